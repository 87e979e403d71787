//! Arrow files and streams.
//!
//! The crate `arrow-ipc` reads whole batches, and a batch can contain all rows of a file. It is used only for
//! the metadata here: values are read from the positions in the metadata, one block at a time.

mod message;
mod schema;

use std::fs::File;
use std::io::{self, Read};

use arrow_ipc::{RecordBatch, root_as_footer};

use self::message::{Body, LONGEST_MESSAGE, Messages, Source};
use self::schema::{Layout, Lists, columns};
use crate::columns::{Batch, Batches, Column, DAMAGED, Numbers, Place, Table, column_label};
use crate::raw::{fill, read_at, truncated};
use crate::{Error, Result};

pub(crate) const FILE_MAGIC: &[u8] = b"ARROW1";
/// The continuation marker before every message of a stream.
pub(crate) const STREAM_MAGIC: &[u8] = &[0xff; 4];

/// An open file.
pub(super) struct Arrow {
    messages: Messages,
    columns: Vec<Column>,
    layouts: Vec<Layout>,
    rows: usize,
}

impl Arrow {
    pub(super) fn open(label: &str, file: File) -> Result<Self> {
        let io = |e| Error::io(label, "read", e);
        let length = file.metadata().map_err(io)?.len();
        let mut start = [0; 6];
        read_at(&file, 0, &mut start).map_err(io)?;
        let (messages, (columns, layouts)) = if start == FILE_MAGIC {
            open_file(label, file, length)?
        } else if start.starts_with(STREAM_MAGIC) {
            open_stream(label, file, length)?
        } else {
            let problem = match &start {
                [b'F', b'E', b'A', b'1', ..] => "is of the first version of Feather",
                _ => "is neither a file nor a stream of Arrow",
            };
            let hint = "write it again, as with pyarrow.ipc.new_file";
            return Err(Error::format(label, problem, hint));
        };
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

type Opened = (Messages, (Vec<Column>, Vec<Layout>));

/// Opens a stream, which starts with its schema.
fn open_stream(label: &str, file: File, length: u64) -> Result<Opened> {
    let mut messages = Messages::stream(label, file, length);
    let first = messages.next()?;
    let no_schema = || messages.damaged("does not begin with a schema");
    let message = messages.open(first.as_ref().ok_or_else(no_schema)?)?;
    let schema = message.header_as_schema().ok_or_else(no_schema)?;
    let columns = columns(label, schema, message.version())?;
    Ok((messages, columns))
}

/// Opens a file, which ends with a footer (schema and directory of batches), its length and magic bytes.
fn open_file(label: &str, file: File, length: u64) -> Result<Opened> {
    let io = |e| Error::io(label, "read", e);
    let damaged = |problem| Error::format(label, problem, DAMAGED);
    let mut end = [0; 10];
    let Some(before) = length.checked_sub(18) else { return Err(truncated(label, 18 - length)) };
    read_at(&file, length - 10, &mut end).map_err(io)?;
    let [a, b, c, d, magic @ ..] = end;
    if magic != FILE_MAGIC {
        let problem = "does not end like an Arrow file: it is incomplete";
        return Err(Error::format(label, problem, "write it again"));
    }
    let size = u64::from(u32::from_le_bytes([a, b, c, d]));
    if size > before.min(LONGEST_MESSAGE) {
        let problem = format!("claims a directory of {size} bytes in a file of {length}");
        return Err(damaged(problem));
    }
    let mut bytes = vec![0; size as usize];
    let end = length - 10 - size;
    read_at(&file, end, &mut bytes).map_err(io)?;
    let footer = root_as_footer(&bytes).ok().and_then(|footer| Some((footer, footer.schema()?)));
    let Some((footer, schema)) = footer else {
        return Err(damaged("has a directory whose parts do not fit together".to_owned()));
    };
    let columns = columns(label, schema, footer.version())?;
    let starts = footer.recordBatches().into_iter().flatten();
    // Drops offsets outside of the file.
    let starts = starts.map(|block| u64::try_from(block.offset()).unwrap_or(u64::MAX));
    Ok((Messages::file(label, file, end, starts.collect()), columns))
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
            let (node, buffer) = first_parts(&self.layouts, batch)[column];
            let (_, nulls) = body.node(&place, node)?;
            if first_null(&body, &place, buffer, nulls, 0, 1)?.is_some() {
                return Err(place.null_row(0));
            }
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

/// For each column, the indices of its first array and its first buffer in a batch.
fn first_parts(layouts: &[Layout], batch: RecordBatch<'_>) -> Vec<(usize, usize)> {
    let mut views = batch.variadicBufferCounts().into_iter().flatten();
    let (mut node, mut buffer) = (0, 0_usize);
    let mut parts = Vec::with_capacity(layouts.len());
    for layout in layouts {
        parts.push((node, buffer));
        node += layout.nodes;
        let more = views.by_ref().take(layout.views).filter_map(|n| usize::try_from(n).ok());
        // On overflow, the lookup in the batch fails.
        buffer = more.fold(buffer.saturating_add(layout.buffers), usize::saturating_add);
    }
    parts
}

/// The remaining batches.
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
            // No overflow: the sum was checked when the file was opened.
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

/// The values of a column, after checking that none is null.
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
    let null = first_null(body, place, buffer, nulls, 0, rows)?;
    if layout.lists == Lists::None {
        return match null {
            Some(row) => Err(place.null(row)),
            None => body.buffer(place, buffer + 1, (rows * layout.size) as u64),
        };
    }
    let mut skipped = 0;
    if layout.lists != Lists::Fixed(place.length) {
        let mut ends = Offsets::new(body, place, buffer + 1, layout.lists, rows)?;
        skipped = ends.last;
        for row in 0..null.unwrap_or(rows) {
            let found = ends.next()?;
            if found != place.length {
                return Err(place.ragged(row, found));
            }
        }
        buffer += 1;
    }
    if let Some(row) = null {
        return Err(place.null_row(row));
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
    io::copy(&mut source.by_ref().take(skipped), &mut io::sink())
        .map_err(|e| place.unreadable(e))?;
    Ok(source)
}

/// The first null of `count` values after `skipped` ones, if there is one.
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

/// The end offsets of lists.
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

/// A buffered reader of single values of a buffer.
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
            let got = fill(&mut self.source, &mut self.block).map_err(|e| place.unreadable(e))?;
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

/// The values of a buffer, read without conversion.
struct BufferReader {
    place: Place,
    source: Source,
}

impl Numbers for BufferReader {
    fn read(&mut self, bytes: &mut [u8]) -> Result<()> {
        let got = fill(&mut self.source, bytes).map_err(|e| self.place.unreadable(e))?;
        if got < bytes.len() {
            return Err(truncated(&self.place.label, (bytes.len() - got) as u64));
        }
        Ok(())
    }
}
