//! Parquet files, by the crate `parquet`: row group after row group, in batches of bounded size.

mod delta;
mod int96;
mod levels;
mod pages;
mod schema;
mod thrift;

use std::fs::File;
use std::sync::{Arc, Mutex};

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef, TimeUnit};
use parquet::arrow::arrow_reader::ParquetRecordBatchReader;
use parquet::arrow::arrow_reader::RowGroups;
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::basic::{Compression, Type};
use parquet::column::page::PageIterator;
use parquet::errors::ParquetError;
use parquet::file::metadata::{
    ColumnChunkMetaData, KeyValue, ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData,
};
use parquet::schema::types::ColumnPath;

use self::pages::{Budget, Chunk, Pages, Source};
use super::caught::caught;
use super::{Batches, DAMAGED, column_label};
use crate::npy::quoted;
use crate::raw::{read_at, truncated};
use crate::{Error, Result};

pub(crate) const MAGIC: &[u8] = b"PAR1";

/// The longest footer: enough for a million column chunks.
const LONGEST_FOOTER: u64 = 1 << 27;

/// The bytes of a batch. Large enough to make its overhead negligible, small enough to stay in cache.
const BATCH: usize = 4 << 20;

/// The most rows of a batch.
const MOST_ROWS: usize = 1 << 14;

/// An open file.
#[derive(Debug)]
pub(super) struct Parquet {
    source: Arc<Source>,
    metadata: Arc<ParquetMetaData>,
    pub(super) schema: SchemaRef,
    pub(super) rows: usize,
}

impl Parquet {
    pub(super) fn open(label: &str, file: File) -> Result<Self> {
        let io = |e| Error::io(label, "read", e);
        let length = file.metadata().map_err(io)?.len();
        let footer = footer(label, &file, length)?;
        let damaged = |problem| Error::format(label, format!("the footer {problem}"), DAMAGED);
        thrift::check_footer(&footer).map_err(damaged)?;
        let metadata = caught(label, || ParquetMetaDataReader::decode_metadata(&footer))?;
        let mut rows = Some(0_usize);
        for group in metadata.row_groups() {
            let more = usize::try_from(group.num_rows()).ok();
            rows = rows.zip(more).and_then(|(rows, more)| rows.checked_add(more));
        }
        let rows = rows.ok_or_else(|| damaged("claims more rows than there can be"))?;
        let schema = caught(label, || schema::schema(metadata.file_metadata()))?;
        let source = Source {
            label: label.to_owned(),
            file: Arc::new(file),
            length,
            fault: Mutex::default(),
        };
        Ok(Self {
            source: Arc::new(source),
            metadata: Arc::new(metadata),
            schema: Arc::new(schema),
            rows,
        })
    }

    /// The metadata of the file.
    pub(super) fn notes(&self) -> &[KeyValue] {
        self.metadata.file_metadata().key_value_metadata().map_or(&[], Vec::as_slice)
    }

    /// The path of each column in the first row group, and its compression.
    pub(super) fn compression(&self) -> Vec<(ColumnPath, Compression)> {
        let groups = self.metadata.row_groups().iter().take(1);
        let chunks = groups.flat_map(RowGroupMetaData::columns);
        chunks.map(|chunk| (chunk.column_path().clone(), chunk.compression())).collect()
    }

    /// Reads some columns, in ascending order, in batches of at most `most` rows.
    pub(super) fn batches(&self, columns: &[usize], most: usize) -> Result<Groups> {
        let label = match columns {
            [column] => column_label(&self.source.label, self.schema.field(*column).name()),
            _ => self.source.label.clone(),
        };
        let descriptor = self.metadata.file_metadata().schema_descr();
        let mask = ProjectionMask::roots(descriptor, columns.iter().copied());
        // The least bytes of a row, which need not be in the file.
        let fixed = columns.iter().map(|&i| width(self.schema.field(i).data_type()));
        let fixed = fixed.fold(0, usize::saturating_add);
        Ok(Groups {
            label,
            schema: Arc::new(caught(&self.source.label, || self.schema.project(columns))?),
            source: Arc::clone(&self.source),
            metadata: Arc::clone(&self.metadata),
            fields: Arc::clone(&self.schema),
            mask,
            next: 0,
            fixed,
            most,
            budgets: Vec::new(),
            open: None,
        })
    }
}

/// The bytes of the footer. A file ends with it, its length and the magic bytes.
fn footer(label: &str, file: &File, length: u64) -> Result<Vec<u8>> {
    let io = |e| Error::io(label, "read", e);
    let mut start = [0; 4];
    let got = read_at(file, 0, &mut start).map_err(io)?;
    if start != MAGIC {
        let problem = format!("begins with {}, not with {}", quoted(&start[..got]), quoted(MAGIC));
        return Err(Error::format(label, problem, "the file is damaged or not of Parquet"));
    }
    let mut end = [0; 8];
    let Some(before) = length.checked_sub(12) else {
        return Err(truncated(label, 12 - length));
    };
    read_at(file, before + 4, &mut end).map_err(io)?;
    let [size @ .., _, _, _, _] = end;
    if end[4..] != *MAGIC {
        let problem = format!("ends with {}, not with {}", quoted(&end[4..]), quoted(MAGIC));
        return Err(Error::format(label, problem, "it was not written to its end; write again"));
    }
    let size = u64::from(u32::from_le_bytes(size));
    if size > before || size > LONGEST_FOOTER {
        let problem = format!("claims a footer of {size} bytes in a file of {length}");
        return Err(Error::format(label, problem, DAMAGED));
    }
    let mut bytes = vec![0; size as usize];
    read_at(file, length - 8 - size, &mut bytes).map_err(io)?;
    Ok(bytes)
}

/// The bytes of a value that all values have, which a few bytes of a file can claim.
fn width(kind: &DataType) -> usize {
    match kind {
        DataType::FixedSizeList(field, n) => {
            usize::try_from(*n).unwrap_or(0).saturating_mul(width(field.data_type()).max(1))
        }
        DataType::FixedSizeBinary(n) => usize::try_from(*n).unwrap_or(0),
        DataType::Struct(fields) => {
            fields.iter().map(|field| width(field.data_type())).fold(0, usize::saturating_add)
        }
        other => other.primitive_width().unwrap_or(0),
    }
}

/// Whether a column has times in nanoseconds. A writer of Arrow may have had a longer unit.
fn has_nanoseconds(kind: &DataType) -> bool {
    match kind {
        DataType::Timestamp(unit, _) => *unit == TimeUnit::Nanosecond,
        DataType::Struct(fields) => fields.iter().any(|field| has_nanoseconds(field.data_type())),
        DataType::List(item)
        | DataType::LargeList(item)
        | DataType::ListView(item)
        | DataType::LargeListView(item)
        | DataType::FixedSizeList(item, _)
        | DataType::Map(item, _) => has_nanoseconds(item.data_type()),
        DataType::Dictionary(_, values) => has_nanoseconds(values),
        _ => false,
    }
}

/// The remaining row groups.
pub(super) struct Groups {
    label: String,
    schema: SchemaRef,
    source: Arc<Source>,
    metadata: Arc<ParquetMetaData>,
    /// The schema of all columns.
    fields: SchemaRef,
    mask: ProjectionMask,
    next: usize,
    fixed: usize,
    most: usize,
    budgets: Vec<Budget>,
    open: Option<ParquetRecordBatchReader>,
}

impl Groups {
    /// Calls the library. What is wrong with a page is known in more detail here.
    fn caught<T>(&self, call: impl FnOnce() -> std::result::Result<T, ParquetError>) -> Result<T> {
        caught(&self.label, call).map_err(|error| self.source.first(error))
    }

    /// Opens the next row group that has rows.
    fn open_next(&mut self) -> Result<Option<ParquetRecordBatchReader>> {
        let groups = self.metadata.row_groups();
        let Some(at) = (self.next..groups.len()).find(|&at| groups[at].num_rows() > 0) else {
            return Ok(None);
        };
        self.next = at + 1;
        let group = &groups[at];
        let rows = group.num_rows() as usize;
        let columns = (0..group.num_columns()).filter(|&leaf| self.mask.leaf_included(leaf));
        let bytes = columns.map(|leaf| stored(group.column(leaf))).fold(0, usize::saturating_add);
        let a_row = (bytes / rows).max(self.fixed).max(1);
        let most = (BATCH / a_row).clamp(1, MOST_ROWS).min(self.most).min(rows);
        self.budgets.clear();
        self.budgets.resize_with(group.num_columns(), Budget::default);
        let one = OneGroup { groups: self, at, rows };
        self.caught(|| {
            let descriptor = self.metadata.file_metadata().schema_descr();
            let hint = Some(self.fields.fields());
            let levels = parquet_to_arrow_field_levels(descriptor, self.mask.clone(), hint)?;
            ParquetRecordBatchReader::try_new_with_row_groups(&levels, &one, most, None)
        })
        .map(Some)
    }
}

/// The bytes of the values of a column chunk, as the metadata has them. Runs of equal values take more in memory
/// than in the file.
fn stored(chunk: &ColumnChunkMetaData) -> usize {
    let width = match chunk.column_type() {
        Type::BOOLEAN => 1,
        Type::INT32 | Type::FLOAT => 4,
        Type::INT64 | Type::DOUBLE | Type::BYTE_ARRAY => 8,
        Type::INT96 => 12,
        Type::FIXED_LEN_BYTE_ARRAY => {
            usize::try_from(chunk.column_descr().type_length()).unwrap_or(0)
        }
    };
    let values = usize::try_from(chunk.num_values()).unwrap_or(0).saturating_mul(width);
    values.max(usize::try_from(chunk.uncompressed_size()).unwrap_or(0))
}

impl Batches for Groups {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if self.open.is_none() {
                self.open = self.open_next()?;
            }
            let Some(reader) = &mut self.open else { return Ok(None) };
            self.budgets.iter().for_each(Budget::begin_batch);
            let next = caught(&self.label, || reader.next().transpose());
            match next.map_err(|error| self.source.first(error))? {
                // With the metadata of the columns.
                Some(batch) if batch.num_rows() > 0 => {
                    let schema = Arc::clone(&self.schema);
                    return caught(&self.label, || batch.with_schema(schema)).map(Some);
                }
                Some(_) => {}
                None => self.open = None,
            }
        }
    }
}

/// A row group, for the library.
struct OneGroup<'a> {
    groups: &'a Groups,
    at: usize,
    rows: usize,
}

impl RowGroups for OneGroup<'_> {
    fn num_rows(&self) -> usize {
        self.rows
    }

    fn column_chunks(
        &self,
        leaf: usize,
    ) -> std::result::Result<Box<dyn PageIterator>, ParquetError> {
        let Groups { source, fields, metadata, budgets, .. } = self.groups;
        let column = metadata.file_metadata().schema_descr().get_column_root_idx(leaf);
        let label = column_label(&source.label, fields.field(column).name());
        let chunk = metadata.row_group(self.at).column(leaf);
        let nanoseconds = has_nanoseconds(fields.field(column).data_type());
        let budget = budgets[leaf].clone();
        let pages = Pages::new(label, source, chunk, self.rows, nanoseconds, budget);
        Ok(Box::new(Chunk(Some(pages))))
    }

    fn row_groups(&self) -> Box<dyn Iterator<Item = &RowGroupMetaData> + '_> {
        Box::new(std::iter::once(self.groups.metadata.row_group(self.at)))
    }

    fn metadata(&self) -> &ParquetMetaData {
        &self.groups.metadata
    }
}
