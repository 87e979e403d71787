//! Tables of plain columns as Parquet.

use std::path::Path;
use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

use super::NOTE;
use super::parquet::failed;
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

    fn field(&self, name: &str) -> Field {
        let kind = match self {
            Self::Integers(_) => DataType::Int64,
            Self::Numbers(_) => DataType::Float64,
            Self::Words(_) => DataType::Utf8,
        };
        Field::new(name, kind, false)
    }

    fn array(&self) -> ArrayRef {
        match self {
            Self::Integers(values) => Arc::new(Int64Array::from(values.clone())),
            Self::Numbers(values) => Arc::new(Float64Array::from(values.clone())),
            Self::Words(values) => Arc::new(StringArray::from_iter_values(values)),
        }
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
    writer: ArrowWriter<AtomicFile>,
    schema: Arc<Schema>,
}

impl TableWriter {
    /// Creates a file with the names and types of `columns`. Their values are not written.
    pub fn create(path: &Path, columns: &[(&str, Column)]) -> Result<Self> {
        let file = AtomicFile::create(path)?;
        let label = file.label().to_owned();
        let fields: Vec<Field> = columns.iter().map(|(name, column)| column.field(name)).collect();
        let schema = Arc::new(Schema::new(fields));
        let note = KeyValue::new(format!("{NOTE}version"), env!("CARGO_PKG_VERSION").to_owned());
        let properties = WriterProperties::builder().set_key_value_metadata(Some(vec![note]));
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_skip_arrow_metadata(true);
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(&schema), options)
            .map_err(|error| failed(&label, error))?;
        Ok(Self { label, writer, schema })
    }

    /// Appends rows. Names and types of columns must match those of the file.
    pub fn write(&mut self, columns: &[(&str, Column)]) -> Result<()> {
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        if let Some((name, column)) = columns.iter().find(|(_, column)| column.len() != rows) {
            let problem = format!("column {name} has {} values for {rows} rows", column.len());
            return Err(Error::request(&self.label, problem));
        }
        let arrays = columns.iter().map(|(_, column)| column.array()).collect();
        RecordBatch::try_new(Arc::clone(&self.schema), arrays)
            .map_err(Into::into)
            .and_then(|batch| self.writer.write(&batch))
            .and_then(|()| self.writer.flush())
            .map_err(|error| failed(&self.label, error))
    }

    /// Completes the file and renames it to its target.
    pub fn finish(self) -> Result<()> {
        let Self { label, writer, .. } = self;
        writer.into_inner().map_err(|error| failed(&label, error))?.commit()
    }
}
