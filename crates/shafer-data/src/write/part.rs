//! A table written like another one: in its format, with its metadata.

use std::collections::HashMap;
use std::fmt;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use arrow_schema::{ArrowError, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::NOTE;
use super::parquet::failed;
use crate::{AtomicFile, Result, Table, TableForm};

/// The bytes of a row group, which is held in memory.
const GROUP: usize = 32 << 20;

/// The key of the schema in a Parquet file, which its writer makes anew.
const SCHEMA: &str = "ARROW:schema";

/// Writes a table in the format of another one, with its metadata and the compression of its columns.
///
/// ```
/// use shafer_data::{Column, Table, TableCopy, write_table};
///
/// # let folder = tempfile::tempdir()?;
/// let (path, out) = (folder.path().join("a.parquet"), folder.path().join("b.parquet"));
/// write_table(&path, &[("id", Column::Integers(vec![7, 8]))])?;
/// let table = Table::open(&path)?;
/// let mut copy = TableCopy::create(&out, &table, table.schema(), None, &[("from", "a")])?;
/// let mut batches = table.batches(&[0])?;
/// while let Some(batch) = batches.next()? {
///     copy.write(&batch)?;
/// }
/// copy.finish()?;
/// let back = Table::open(&out)?;
/// assert_eq!(back.rows(), 2);
/// assert_eq!(back.schema().metadata()["shafer.from"], "a");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct TableCopy {
    label: String,
    writer: Writer,
}

enum Writer {
    Parquet(Box<ArrowWriter<AtomicFile>>),
    File(FileWriter<AtomicFile>),
    Stream(StreamWriter<AtomicFile>),
}

impl TableCopy {
    /// Creates a file like `table` with the columns of `schema`. One of these may hold sparse rows instead of
    /// logits. The metadata gets `notes`, whose keys begin with `shafer.`.
    pub fn create(
        path: &Path,
        table: &Table,
        schema: &Schema,
        sparse: Option<&str>,
        notes: &[(&str, &str)],
    ) -> Result<Self> {
        let file = AtomicFile::create(path)?;
        let label = file.label().to_owned();
        let writer = match table.form() {
            TableForm::Parquet => parquet(file, table, schema, sparse, notes),
            _ => arrow(file, table, schema, notes),
        };
        Ok(Self { writer: writer.map_err(|e| failed(&label, e))?, label })
    }

    /// Appends rows.
    pub fn write(&mut self, batch: &RecordBatch) -> Result<()> {
        match &mut self.writer {
            Writer::Parquet(writer) => writer.write(batch),
            Writer::File(writer) => writer.write(batch).map_err(external),
            Writer::Stream(writer) => writer.write(batch).map_err(external),
        }
        .map_err(|e| failed(&self.label, e))
    }

    /// Completes the file and renames it to its target.
    pub fn finish(self) -> Result<()> {
        let file = match self.writer {
            Writer::Parquet(writer) => writer.into_inner(),
            Writer::File(writer) => writer.into_inner().map_err(external),
            Writer::Stream(writer) => writer.into_inner().map_err(external),
        };
        file.map_err(|e| failed(&self.label, e))?.commit()
    }
}

impl fmt::Debug for TableCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TableCopy").field("label", &self.label).finish_non_exhaustive()
    }
}

/// Errors of Arrow's writers keep the error of the operating system.
fn external(error: ArrowError) -> parquet::errors::ParquetError {
    match error {
        ArrowError::IoError(_, error) => parquet::errors::ParquetError::External(Box::new(error)),
        other => other.into(),
    }
}

fn parquet(
    file: AtomicFile,
    table: &Table,
    schema: &Schema,
    sparse: Option<&str>,
    notes: &[(&str, &str)],
) -> std::result::Result<Writer, parquet::errors::ParquetError> {
    let kept =
        table.notes().iter().filter(|note| note.key != SCHEMA && !note.key.starts_with(NOTE));
    let ours =
        notes.iter().map(|(key, value)| KeyValue::new(format!("{NOTE}{key}"), (*value).to_owned()));
    let mut properties = WriterProperties::builder()
        .set_max_row_group_row_count(None)
        .set_max_row_group_bytes(Some(GROUP))
        .set_key_value_metadata(Some(kept.cloned().chain(ours).collect()));
    let mut of_sparse = Compression::UNCOMPRESSED;
    for (column, compression) in table.compression() {
        // LZO cannot be written. Hadoop's LZ4 can, but not be read by all.
        let compression = match compression {
            Compression::LZO => Compression::SNAPPY,
            Compression::LZ4 => Compression::LZ4_RAW,
            other => other,
        };
        if sparse.is_some() && sparse == column.parts().first().map(String::as_str) {
            of_sparse = compression;
        }
        properties = properties.set_column_compression(column, compression);
    }
    if let Some(name) = sparse {
        // As in `ParquetWriter`: classes increase within a row, and probabilities hardly repeat.
        let path =
            |leaf: &str| ColumnPath::from([name, "list", "item", leaf].map(str::to_owned).to_vec());
        properties = properties.set_column_encoding(path("class"), Encoding::DELTA_BINARY_PACKED);
        for leaf in ["class", "p"] {
            properties = properties
                .set_column_dictionary_enabled(path(leaf), false)
                .set_column_statistics_enabled(path(leaf), EnabledStatistics::None)
                .set_column_compression(path(leaf), of_sparse);
        }
    }
    // The metadata of the file is in its own list, and again in the schema.
    let fields = schema.fields().clone();
    let metadata = schema.metadata().iter().filter(|(key, _)| !key.starts_with(NOTE));
    let metadata: HashMap<_, _> =
        metadata.map(|(key, value)| (key.clone(), value.clone())).collect();
    let schema = Arc::new(Schema::new_with_metadata(fields, metadata));
    let writer = ArrowWriter::try_new(file, schema, Some(properties.build()))?;
    Ok(Writer::Parquet(Box::new(writer)))
}

fn arrow(
    file: AtomicFile,
    table: &Table,
    schema: &Schema,
    notes: &[(&str, &str)],
) -> std::result::Result<Writer, parquet::errors::ParquetError> {
    let ours = notes.iter().map(|(key, value)| (format!("{NOTE}{key}"), (*value).to_owned()));
    let mut metadata = schema.metadata().clone();
    metadata.retain(|key, _| !key.starts_with(NOTE));
    metadata.extend(ours);
    let schema = Schema::new_with_metadata(schema.fields().clone(), metadata);
    let options = IpcWriteOptions::default().try_with_compression(table.batch_compression());
    let options = options.map_err(external)?;
    Ok(if table.form() == TableForm::ArrowStream {
        Writer::Stream(
            StreamWriter::try_new_with_options(file, &schema, options).map_err(external)?,
        )
    } else {
        Writer::File(FileWriter::try_new_with_options(file, &schema, options).map_err(external)?)
    })
}

/// The notes in the metadata of a table that was written here, without the prefix of their keys.
///
/// ```
/// # use shafer_data::{Column, Table, table_note, write_table};
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("table.parquet");
/// write_table(&path, &[("id", Column::Integers(vec![7]))])?;
/// let table = Table::open(&path)?;
/// assert_eq!(table_note(&table, "version"), Some(env!("CARGO_PKG_VERSION")));
/// assert_eq!(table_note(&table, "method"), None);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn table_note<'a>(table: &'a Table, key: &str) -> Option<&'a str> {
    table.schema().metadata().get(&format!("{NOTE}{key}")).map(String::as_str)
}
