//! Tables with all their columns.

use std::fs::File;
use std::path::Path;

use ::parquet::basic::Compression;
use arrow_array::RecordBatch;
use arrow_schema::SchemaRef;

use super::{Batches, FILE_MAGIC, PARQUET_MAGIC, STREAM_MAGIC, Source, arrow, parquet};
use crate::raw::read_at;
use crate::unchanged::Opened;
use crate::{Error, Result};

/// An open table: a Parquet file, or an Arrow file or stream.
///
/// ```
/// use shafer_data::{Column, Table, write_table};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("table.parquet");
/// let words = ["a", "b"].map(str::to_owned).to_vec();
/// write_table(&path, &[("id", Column::Integers(vec![7, 8])), ("name", Column::Words(words))])?;
/// let table = Table::open(&path)?;
/// assert_eq!(table.rows(), 2);
/// assert_eq!(table.schema().field(1).name(), "name");
/// // Only the columns that are needed are read.
/// let batch = table.batches(&[0])?.next()?.unwrap();
/// assert_eq!((batch.num_columns(), batch.num_rows()), (1, 2));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Table {
    label: String,
    source: Source,
    opened: Opened,
    form: TableForm,
}

/// The format of a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableForm {
    /// A Parquet file.
    Parquet,
    /// An Arrow file, also called Feather.
    ArrowFile,
    /// An Arrow stream.
    ArrowStream,
}

impl Table {
    /// The extensions of the names of tables.
    pub const EXTENSIONS: [&str; 5] = ["parquet", "arrow", "arrows", "feather", "ipc"];

    /// Opens a file. Its first bytes decide the format.
    pub fn open(path: &Path) -> Result<Self> {
        let label = path.display().to_string();
        let io = |e| Error::io(&label, "open", e);
        // Checked first: the error of opening a folder differs between systems.
        if path.is_dir() {
            return Err(Error::request(&label, "is a folder; name a file in it"));
        }
        let file = File::open(path).map_err(io)?;
        if file.metadata().map_err(io)?.len() == 0 {
            return Err(Error::format(&label, "is empty", "write the file again"));
        }
        let opened = Opened::new(&label, &file)?;
        let mut start = [0; 6];
        read_at(&file, 0, &mut start).map_err(|e| Error::io(&label, "read", e))?;
        let (source, form) = if start.starts_with(PARQUET_MAGIC) {
            (Source::Parquet(parquet::Parquet::open(&label, file)?), TableForm::Parquet)
        } else {
            let form = match start {
                _ if start.starts_with(STREAM_MAGIC) => TableForm::ArrowStream,
                _ if start == FILE_MAGIC => TableForm::ArrowFile,
                // The name says what it was to be.
                _ if path.extension().is_some_and(|e| e.eq_ignore_ascii_case("parquet")) => {
                    return Err(parquet::Parquet::open(&label, file)
                        .map(drop)
                        .err()
                        .unwrap_or_else(|| Error::request(&label, "is not a table")));
                }
                _ => TableForm::ArrowFile,
            };
            (Source::Arrow(arrow::Arrow::open(&label, file)?), form)
        };
        Ok(Self { label, source, opened, form })
    }

    /// The columns, and the metadata of the file.
    pub fn schema(&self) -> &SchemaRef {
        self.source.schema()
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.source.rows()
    }

    /// The format.
    pub fn form(&self) -> TableForm {
        self.form
    }

    /// Reads some columns: their positions, in ascending order.
    pub fn batches(&self, columns: &[usize]) -> Result<TableBatches<'_>> {
        let batches = self.source.batches(columns, usize::MAX)?;
        Ok(TableBatches { table: self, batches, rows: 0, done: false })
    }

    /// The metadata of a Parquet file.
    pub(crate) fn notes(&self) -> &[::parquet::file::metadata::KeyValue] {
        match &self.source {
            Source::Parquet(table) => table.notes(),
            Source::Arrow(_) => &[],
        }
    }

    /// The compression of the first batch of an Arrow file.
    pub(crate) fn batch_compression(&self) -> Option<arrow_ipc::CompressionType> {
        match &self.source {
            Source::Parquet(_) => None,
            Source::Arrow(table) => table.compression(),
        }
    }

    /// The compression of the first row group: the path of each column of a Parquet file, and its method.
    pub(crate) fn compression(&self) -> Vec<(::parquet::schema::types::ColumnPath, Compression)> {
        match &self.source {
            Source::Parquet(table) => table.compression(),
            Source::Arrow(_) => Vec::new(),
        }
    }
}

/// The rows of a table, in batches of bounded size.
pub struct TableBatches<'a> {
    table: &'a Table,
    batches: Box<dyn Batches>,
    rows: usize,
    done: bool,
}

impl std::fmt::Debug for TableBatches<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TableBatches").field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl TableBatches<'_> {
    /// The next batch, which has rows; `None` at the end, and after an error.
    #[allow(clippy::should_implement_trait, reason = "errors come first here, for `?`")]
    pub fn next(&mut self) -> Result<Option<RecordBatch>> {
        if self.done {
            return Ok(None);
        }
        self.done = true;
        let next = self.batches.next();
        // Before other errors: a changing file also looks damaged.
        self.table.opened.check()?;
        let next = next?;
        let all = self.table.rows();
        let found = next.as_ref().map_or(0, RecordBatch::num_rows);
        self.rows += found;
        let damaged = |problem| Err(Error::format(&self.table.label, problem, super::DAMAGED));
        if self.rows > all {
            return damaged("has more rows than it claims".to_owned());
        }
        if found == 0 && self.rows < all {
            return damaged(format!("ends after {} of {all} rows", self.rows));
        }
        self.done = found == 0;
        Ok(next)
    }
}
