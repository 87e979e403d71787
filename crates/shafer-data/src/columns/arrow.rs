//! Arrow's files and streams.
//!
//! A batch can hold all rows of a file, and the crate `arrow-ipc` reads batches as a whole. Here it
//! only reads their descriptions: the numbers are read from where these say that they are, a block
//! at a time. A file is a stream with something before and after it; as a batch says how long it is,
//! the rows can be counted without the directory at the end.

use std::fs::File;
use std::io;
use std::sync::Arc;

use arrow_ipc::{
    Endianness, Field, MetadataVersion, Precision, RecordBatch, Schema, Type, UnionMode,
};

use super::message::{Body, Messages, Source};
use super::{Batch, Batches, Column, Kind, Numbers, Place, Table, column_label};
use crate::raw::{fill, read_at, truncated};
use crate::{Dtype, Error, Result};

pub(crate) const FILE_MAGIC: &[u8] = b"ARROW1";
/// What every message of a stream begins with.
pub(crate) const STREAM_MAGIC: &[u8] = &[0xff; 4];

/// A file that is open.
pub(super) struct Arrow {
    messages: Messages,
    columns: Vec<Column>,
    layouts: Vec<Layout>,
    rows: usize,
}

/// What a column takes up in a batch.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Its arrays, and their buffers.
    nodes: usize,
    buffers: usize,
    /// How many of the arrays have more buffers, of which each batch says how many.
    views: usize,
    size: usize,
    lists: Lists,
}

/// Where rows end.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lists {
    /// A row is one number.
    None,
    /// Each has this many.
    Fixed(usize),
    /// A buffer says where, in numbers of this many bytes.
    Offsets(usize),
}

impl Arrow {
    pub(super) fn open(label: &str, file: File) -> Result<Self> {
        let io = |e| Error::io(label, "read", e);
        let length = file.metadata().map_err(io)?.len();
        let mut start = [0; 6];
        read_at(&file, 0, &mut start).map_err(io)?;
        let (at, end) = if start == FILE_MAGIC {
            (8, end_of_stream(label, &file, length)?)
        } else if start.starts_with(STREAM_MAGIC) {
            (0, length)
        } else {
            let problem = match &start {
                [b'F', b'E', b'A', b'1', ..] => "is of the first version of Feather",
                _ => "is neither a file nor a stream of Arrow",
            };
            let hint = "write it again, as with pyarrow.ipc.new_file";
            return Err(Error::format(label, problem, hint));
        };
        let mut messages = Messages { label: label.to_owned(), file: Arc::new(file), at, end };
        let first = messages.next()?;
        let no_schema = || messages.damaged("does not begin with a schema");
        let envelope = first.as_ref().ok_or_else(no_schema)?;
        let message = messages.open(envelope)?;
        let schema = message.header_as_schema().ok_or_else(no_schema)?;
        let (columns, layouts) = columns(&messages, schema, message.version())?;
        let mut rows = Some(0);
        let mut later = messages.clone();
        while let Some(envelope) = later.next()? {
            if let Some(batch) = later.open(&envelope)?.header_as_record_batch() {
                let more = usize::try_from(batch.length()).ok();
                rows = rows.zip(more).and_then(|(rows, more): (usize, _)| rows.checked_add(more));
            }
        }
        let rows = rows.ok_or_else(|| messages.damaged("claims more rows than there can be"))?;
        Ok(Self { messages, columns, layouts, rows })
    }
}

/// Where the stream in a file ends and the directory begins.
fn end_of_stream(label: &str, file: &File, length: u64) -> Result<u64> {
    let mut end = [0; 10];
    let Some(at) = length.checked_sub(18) else { return Err(truncated(label, 18 - length)) };
    read_at(file, at + 8, &mut end).map_err(|e| Error::io(label, "read", e))?;
    let (size, magic) = end.split_at(4);
    if magic != FILE_MAGIC {
        let problem = "does not end as a file of Arrow does: it was not written to its end";
        return Err(Error::format(label, problem, "write it again"));
    }
    let size = i32::from_le_bytes([size[0], size[1], size[2], size[3]]);
    u64::try_from(size).ok().and_then(|size| at.checked_sub(size)).map(|end| end + 8).ok_or_else(
        || {
            let problem = format!("claims a directory of {size} bytes in a file of {length}");
            Error::format(label, problem, super::DAMAGED)
        },
    )
}

fn columns(
    messages: &Messages,
    schema: Schema<'_>,
    version: MetadataVersion,
) -> Result<(Vec<Column>, Vec<Layout>)> {
    if schema.endianness() != Endianness::Little {
        return Err(Error::format(
            &messages.label,
            "has the bytes of its numbers in the order of other machines",
            "write it on one that has the lowest byte first",
        ));
    }
    let (mut columns, mut layouts) = (Vec::new(), Vec::new());
    for field in schema.fields().iter().flatten() {
        let name = field.name().unwrap_or_default().to_owned();
        let mut layout = Layout { nodes: 0, buffers: 0, views: 0, size: 0, lists: Lists::None };
        if !layout.add(field, version) {
            let problem =
                format!("has a column `{}` of an unknown type", crate::npy::shortened(&name));
            return Err(messages.damaged(problem));
        }
        let kind = layout.kind(field);
        columns.push(Column { name, kind });
        layouts.push(layout);
    }
    Ok((columns, layouts))
}

impl Layout {
    /// Adds what a field takes up, or returns `false` if its type is not known.
    fn add(&mut self, field: Field<'_>, version: MetadataVersion) -> bool {
        self.nodes += 1;
        // What is in a dictionary is written elsewhere; here are the places in it.
        if field.dictionary().is_some() {
            self.buffers += 2;
            return true;
        }
        self.buffers += match field.type_type() {
            Type::Null | Type::RunEndEncoded => 0,
            Type::Struct_ | Type::FixedSizeList => 1,
            Type::Int
            | Type::FloatingPoint
            | Type::Bool
            | Type::Decimal
            | Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::Interval
            | Type::Duration
            | Type::FixedSizeBinary
            | Type::List
            | Type::LargeList
            | Type::Map => 2,
            Type::Binary
            | Type::Utf8
            | Type::LargeBinary
            | Type::LargeUtf8
            | Type::ListView
            | Type::LargeListView => 3,
            Type::BinaryView | Type::Utf8View => {
                self.views += 1;
                2
            }
            Type::Union => {
                let dense = field.type_as_union().is_some_and(|u| u.mode() == UnionMode::Dense);
                // Until version 4 there was one for nulls.
                1 + usize::from(dense) + usize::from(version == MetadataVersion::V4)
            }
            _ => return false,
        };
        field.children().iter().flatten().all(|child| self.add(child, version))
    }

    /// What can be read of a field.
    fn kind(&mut self, field: Field<'_>) -> Kind {
        let child = field.children().filter(|all| all.len() == 1).map(|all| all.get(0));
        self.lists = match field.type_type() {
            _ if field.dictionary().is_some() => return Kind::Other("a dictionary".to_owned()),
            Type::List => Lists::Offsets(4),
            Type::LargeList => Lists::Offsets(8),
            Type::FixedSizeList => {
                let size = field.type_as_fixed_size_list().map_or(0, |list| list.listSize());
                Lists::Fixed(usize::try_from(size).unwrap_or(0))
            }
            _ => Lists::None,
        };
        let is_list = self.lists != Lists::None;
        let values = if is_list { child } else { Some(field) };
        let Some(values) = values.filter(|values| values.dictionary().is_none()) else {
            return Kind::Other("nested values".to_owned());
        };
        let dtype = values.type_as_floating_point().and_then(|float| match float.precision() {
            Precision::HALF => Some(Dtype::F16),
            Precision::SINGLE => Some(Dtype::F32),
            Precision::DOUBLE => Some(Dtype::F64),
            _ => None,
        });
        self.size = dtype.map_or(0, Dtype::size);
        match (dtype, is_list) {
            (Some(dtype), true) => Kind::Lists(dtype),
            (Some(dtype), false) => Kind::Numbers(dtype),
            (None, true) => Kind::Other(format!("list of {}", type_name(values))),
            (None, false) => Kind::Other(type_name(values)),
        }
    }
}

fn type_name(field: Field<'_>) -> String {
    match (field.type_as_int(), field.type_type().variant_name()) {
        (Some(int), _) => {
            let sign = if int.is_signed() { "" } else { "u" };
            format!("{sign}int{}", int.bitWidth())
        }
        (None, name) => name.unwrap_or("nested values").trim_end_matches('_').to_lowercase(),
    }
}

impl Table for Arrow {
    fn columns(&self) -> &[Column] {
        &self.columns
    }

    fn rows(&self) -> usize {
        self.rows
    }

    fn first_length(&self, column: usize) -> Result<usize> {
        let layout = self.layouts[column];
        if let Lists::Fixed(length) = layout.lists {
            return Ok(length);
        }
        let mut messages = self.messages.clone();
        let label = column_label(&messages.label, &self.columns[column].name);
        let place = Place { label, first: 0, length: 1 };
        while let Some(envelope) = messages.next()? {
            let message = messages.open(&envelope)?;
            let Some(batch) = message.header_as_record_batch().filter(|b| b.length() > 0) else {
                continue;
            };
            let body = Body { batch, file: &messages.file, envelope: &envelope, together: 1 };
            let (_, buffer) = first_parts(&self.layouts, batch)[column];
            let mut ends = Offsets::new(&body, &place, buffer + 1, layout.lists, 1)?;
            return ends.next();
        }
        Ok(0)
    }

    fn batches(self: Box<Self>, columns: Vec<usize>, length: usize) -> Box<dyn Batches> {
        let Self { messages, columns: all, layouts, .. } = *self;
        let labels = columns.iter().map(|&i| column_label(&messages.label, &all[i].name)).collect();
        Box::new(RecordBatches { messages, layouts, columns, labels, length })
    }
}

/// For each column, its first array and its first buffer in a batch.
fn first_parts(layouts: &[Layout], batch: RecordBatch<'_>) -> Vec<(usize, usize)> {
    let mut views = batch.variadicBufferCounts().into_iter().flatten();
    let (mut node, mut buffer) = (0, 0_usize);
    let mut parts = Vec::with_capacity(layouts.len());
    for layout in layouts {
        parts.push((node, buffer));
        node += layout.nodes;
        let more = views.by_ref().take(layout.views).filter_map(|n| usize::try_from(n).ok());
        // What does not fit is not found in the batch.
        buffer = more.fold(buffer.saturating_add(layout.buffers), usize::saturating_add);
    }
    parts
}

/// The batches that are still to be read.
struct RecordBatches {
    messages: Messages,
    layouts: Vec<Layout>,
    columns: Vec<usize>,
    labels: Vec<String>,
    length: usize,
}

impl Batches for RecordBatches {
    fn next(&mut self, first: usize) -> Result<Option<Batch>> {
        while let Some(envelope) = self.messages.next()? {
            let message = self.messages.open(&envelope)?;
            let Some(batch) = message.header_as_record_batch().filter(|b| b.length() > 0) else {
                continue;
            };
            // The sum of all was counted when the file was opened.
            let rows = batch.length() as usize;
            let (file, together) = (&self.messages.file, self.columns.len());
            let body = Body { batch, file, envelope: &envelope, together };
            let parts = first_parts(&self.layouts, batch);
            let mut columns = Vec::with_capacity(together);
            for (&i, label) in self.columns.iter().zip(&self.labels) {
                let place = Place { label: label.clone(), first, length: self.length };
                let source = numbers(&body, &place, self.layouts[i], parts[i], rows)?;
                columns.push(Box::new(BufferReader { place, source }) as Box<dyn Numbers>);
            }
            return Ok(Some(Batch { rows, columns }));
        }
        Ok(None)
    }
}

/// The numbers of a column, after it was checked that all are there.
fn numbers(
    body: &Body<'_>,
    place: &Place,
    layout: Layout,
    (mut node, mut buffer): (usize, usize),
    rows: usize,
) -> Result<Source> {
    let (length, nulls) = body.node(place, node)?;
    if length != rows {
        return Err(place.damaged("has a batch whose columns are not of one length"));
    }
    if layout.lists == Lists::None {
        if let Some(row) = first_null(body, place, buffer, nulls, 0, rows)? {
            return Err(place.null(row));
        }
        return body.buffer(place, buffer + 1, (rows * layout.size) as u64);
    }
    if let Some(row) = first_null(body, place, buffer, nulls, 0, rows)? {
        return Err(place.null_row(row));
    }
    let mut skipped = 0;
    if layout.lists != Lists::Fixed(place.length) {
        let mut ends = Offsets::new(body, place, buffer + 1, layout.lists, rows)?;
        skipped = ends.last;
        for row in 0..rows {
            let found = ends.next()?;
            if found != place.length {
                return Err(place.ragged(row, found));
            }
        }
        buffer += 1;
    }
    (node, buffer) = (node + 1, buffer + 1);
    let values = rows * place.length;
    let (length, nulls) = body.node(place, node)?;
    let end = skipped.checked_add(values).filter(|&end| end <= length);
    let end = end.and_then(|end| end.checked_mul(layout.size));
    let end = end.ok_or_else(|| place.damaged("has lists that are longer than their values"))?;
    if let Some(value) = first_null(body, place, buffer, nulls, skipped, values)? {
        return Err(place.null(value));
    }
    let mut source = body.buffer(place, buffer + 1, end as u64)?;
    let skipped = (skipped * layout.size) as u64;
    let io = |e| Error::io(&place.label, "read", e);
    io::copy(&mut io::Read::take(&mut source, skipped), &mut io::sink()).map_err(io)?;
    Ok(source)
}

/// The first of `count` values after `skipped` ones that is null, if there is one.
fn first_null(
    body: &Body<'_>,
    place: &Place,
    buffer: usize,
    nulls: i64,
    skipped: usize,
    count: usize,
) -> Result<Option<usize>> {
    if nulls == 0 {
        return Ok(None);
    }
    let end = skipped.saturating_add(count);
    let mut bits = Blocks::new(body.buffer(place, buffer, end.div_ceil(8) as u64)?);
    let mut byte = [0];
    for i in 0..end {
        if i % 8 == 0 {
            byte = bits.next(place)?;
        }
        if byte[0] >> (i % 8) & 1 == 0 && i >= skipped {
            return Ok(Some(i - skipped));
        }
    }
    Ok(None)
}

/// Where lists end in their values.
struct Offsets<'a> {
    place: &'a Place,
    blocks: Blocks,
    size: usize,
    last: usize,
}

impl<'a> Offsets<'a> {
    fn new(
        body: &Body<'_>,
        place: &'a Place,
        buffer: usize,
        lists: Lists,
        rows: usize,
    ) -> Result<Self> {
        let size = if let Lists::Offsets(size) = lists { size } else { 4 };
        let needed = (rows as u64).saturating_add(1).saturating_mul(size as u64);
        let blocks = Blocks::new(body.buffer(place, buffer, needed)?);
        let mut offsets = Self { place, blocks, size, last: 0 };
        offsets.last = offsets.end()?;
        Ok(offsets)
    }

    /// The length of the next list.
    fn next(&mut self) -> Result<usize> {
        let end = self.end()?;
        let length = end.checked_sub(self.last);
        self.last = end;
        length.ok_or_else(|| self.place.damaged("has a list that ends before it begins"))
    }

    fn end(&mut self) -> Result<usize> {
        let end = match self.size {
            8 => usize::try_from(i64::from_le_bytes(self.blocks.next(self.place)?)),
            _ => usize::try_from(i32::from_le_bytes(self.blocks.next(self.place)?)),
        };
        end.map_err(|_| self.place.damaged("has a list that ends before the first"))
    }
}

/// A buffer in pieces, from which single values are taken.
struct Blocks {
    source: Source,
    block: Vec<u8>,
    used: usize,
}

impl Blocks {
    const SIZE: usize = 1 << 16;

    fn new(source: Source) -> Self {
        Self { source, block: Vec::new(), used: 0 }
    }

    /// The next `N` bytes, a power of two.
    fn next<const N: usize>(&mut self, place: &Place) -> Result<[u8; N]> {
        if self.used == self.block.len() {
            self.block.resize(Self::SIZE, 0);
            let got = fill(&mut self.source, &mut self.block)
                .map_err(|e| Error::io(&place.label, "read", e))?;
            self.block.truncate(got);
            self.used = 0;
        }
        let Some(&bytes) = self.block[self.used..].first_chunk() else {
            return Err(truncated(&place.label, N as u64));
        };
        self.used += N;
        Ok(bytes)
    }
}

/// Numbers that are read as they lie in a buffer.
struct BufferReader {
    place: Place,
    source: Source,
}

impl Numbers for BufferReader {
    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        let got =
            fill(&mut self.source, bytes).map_err(|e| Error::io(&self.place.label, "read", e))?;
        if got < bytes.len() {
            return Err(truncated(&self.place.label, (bytes.len() - got) as u64));
        }
        Ok(())
    }
}
