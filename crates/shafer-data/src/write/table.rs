//! Tables of plain columns as Parquet.

use std::path::Path;
use std::sync::Arc;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::NOTE;
use super::parquet::{Written, failed};
use crate::{AtomicFile, Error, Result};

/// The values of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    /// Integers.
    Integers(Vec<i64>),
    /// Floating-point numbers, which need not be finite.
    Numbers(Vec<f64>),
    /// Text.
    Words(Vec<String>),
}

impl Column {
    fn len(&self) -> usize {
        match self {
            Self::Integers(values) => values.len(),
            Self::Numbers(values) => values.len(),
            Self::Words(values) => values.len(),
        }
    }

    fn schema(&self, name: &str) -> std::result::Result<Type, parquet::errors::ParquetError> {
        let (physical, logical) = match self {
            Self::Integers(_) => (Physical::INT64, None),
            Self::Numbers(_) => (Physical::DOUBLE, None),
            Self::Words(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        Type::primitive_type_builder(name, physical)
            .with_repetition(Repetition::REQUIRED)
            .with_logical_type(logical)
            .build()
    }
}

/// Writes a table of named columns of equal length.
///
/// The whole table is in memory. For larger tables, see [`TableWriter`].
///
/// ```
/// use shafer_data::{Column, write_table};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("results.parquet");
/// let methods = ["softmax", "evidential"].map(str::to_owned).to_vec();
/// let columns = [
///     ("method", Column::Words(methods)),
///     ("seed", Column::Integers(vec![0, 0])),
///     ("distance", Column::Numbers(vec![0.25, f64::INFINITY])),
/// ];
/// write_table(&path, &columns)?;
/// // Columns of numbers can be read as an array.
/// assert_eq!(shafer_data::list(&path)?[0].to_string(), "f64 (2, 1)");
///
/// let uneven = [("a", Column::Integers(vec![1])), ("b", Column::Integers(vec![]))];
/// assert!(write_table(&path, &uneven).is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn write_table(path: &Path, columns: &[(&str, Column)]) -> Result<()> {
    let mut writer = TableWriter::create(path, columns)?;
    writer.write(columns)?;
    writer.finish()
}

/// Writes a table in parts. Each becomes a row group, so memory use is that of one part.
///
/// ```
/// use shafer_data::{Column, TableWriter};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("long.parquet");
/// let part = |values: &[f64]| [("distance", Column::Numbers(values.to_vec()))];
/// let mut writer = TableWriter::create(&path, &part(&[]))?;
/// writer.write(&part(&[0.1, 0.2]))?;
/// writer.write(&part(&[0.3]))?;
/// writer.finish()?;
/// assert_eq!(shafer_data::list(&path)?[0].to_string(), "f64 (3, 1)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct TableWriter {
    label: String,
    writer: SerializedFileWriter<AtomicFile>,
}

impl TableWriter {
    /// Creates a file with the names and types of `columns`. Their values are not written.
    pub fn create(path: &Path, columns: &[(&str, Column)]) -> Result<Self> {
        let file = AtomicFile::create(path)?;
        let label = file.label().to_owned();
        let writer = begun(file, columns).map_err(|error| failed(&label, error))?;
        Ok(Self { label, writer })
    }

    /// Appends rows. Names and types of columns must match those of the file.
    pub fn write(&mut self, columns: &[(&str, Column)]) -> Result<()> {
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        if let Some((name, column)) = columns.iter().find(|(_, column)| column.len() != rows) {
            let problem = format!("column {name} has {} values for {rows} rows", column.len());
            return Err(Error::request(&self.label, problem));
        }
        add_group(&mut self.writer, columns).map_err(|error| failed(&self.label, error))
    }

    /// Completes the file and renames it to its target.
    pub fn finish(self) -> Result<()> {
        let Self { label, writer } = self;
        writer.into_inner().map_err(|error| failed(&label, error))?.commit()
    }
}

fn begun(
    file: AtomicFile,
    columns: &[(&str, Column)],
) -> Written<SerializedFileWriter<AtomicFile>> {
    let fields = columns.iter().map(|(name, column)| Ok(Arc::new(column.schema(name)?)));
    let schema = Type::group_type_builder("table")
        .with_fields(fields.collect::<Written<Vec<_>>>()?)
        .build()?;
    let note = KeyValue::new(format!("{NOTE}version"), env!("CARGO_PKG_VERSION").to_owned());
    let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![note])).build();
    SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties))
}

fn add_group(
    writer: &mut SerializedFileWriter<AtomicFile>,
    columns: &[(&str, Column)],
) -> Written<()> {
    let mut group = writer.next_row_group()?;
    for (_, values) in columns {
        let Some(mut column) = group.next_column()? else { break };
        match (column.untyped(), values) {
            (ColumnWriter::Int64ColumnWriter(column), Column::Integers(values)) => {
                column.write_batch(values, None, None)?;
            }
            (ColumnWriter::DoubleColumnWriter(column), Column::Numbers(values)) => {
                column.write_batch(values, None, None)?;
            }
            (ColumnWriter::ByteArrayColumnWriter(column), Column::Words(values)) => {
                let values: Vec<ByteArray> =
                    values.iter().map(|word| word.as_str().into()).collect();
                column.write_batch(&values, None, None)?;
            }
            // A column of another type gets no values, which is an error when the group is closed.
            _ => {}
        }
        column.close()?;
    }
    group.close()?;
    Ok(())
}
