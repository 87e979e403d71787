//! Arrow files and streams, by the crate `arrow-ipc`: batch after batch.
//!
//! The library reads a batch as a whole. What is here finds the batches, and checks the lengths that they claim:
//! the library would allocate them, or panic.

use std::fs::File;
use std::io::Read;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_buffer::Buffer;
use arrow_ipc::convert::fb_to_schema;
use arrow_ipc::reader::FileDecoder;
use arrow_ipc::{
    Block, CompressionType, Endianness, Message, MessageHeader, MetadataVersion,
    RecordBatch as Header, Schema as RawSchema, root_as_footer, root_as_message,
};
use arrow_schema::{ArrowError, SchemaRef};
use lz4_flex::frame::FrameDecoder;

use super::caught::caught;
use super::{Batches, DAMAGED, column_label, offsets};
use crate::raw::{read_at, truncated};
use crate::{Error, Result};

pub(crate) const FILE_MAGIC: &[u8] = b"ARROW1";
/// The continuation marker before every message of a stream.
pub(crate) const STREAM_MAGIC: &[u8] = &[0xff; 4];

/// The offset of the schema of a file, after its magic bytes, and that of writers who align it. That of a stream is 0.
const SCHEMA: u64 = 8;
const ALIGNED_SCHEMA: u64 = 64;

/// The longest message: enough for a batch of a million columns.
const LONGEST_MESSAGE: u64 = 1 << 28;

/// The most bytes that a byte of zstd can become: a block of 128 KiB, which has a header of three bytes, repeats one.
const MOST_FROM_ZSTD: u64 = (128 << 10) / 4;

/// The most bytes of a batch after decompression. A batch without compression can be as long as its file.
const LARGEST_BATCH: u64 = 4 << 30;

/// The rows of a batch that is handed out. Those of a file are cut, without a copy.
const MOST_ROWS: usize = 1 << 14;

/// An open file.
#[derive(Debug)]
pub(super) struct Arrow {
    messages: Messages,
    pub(super) schema: SchemaRef,
    version: MetadataVersion,
    /// The dictionaries of a file. A stream has them between its batches.
    dictionaries: Arc<[Entry]>,
    pub(super) rows: usize,
}

impl Arrow {
    pub(super) fn open(label: &str, file: File) -> Result<Self> {
        let io = |e| Error::io(label, "read", e);
        let length = file.metadata().map_err(io)?.len();
        let mut start = [0; 6];
        read_at(&file, 0, &mut start).map_err(io)?;
        let mut this = if start == FILE_MAGIC {
            Self::open_file(label, file, length)?
        } else if start.starts_with(STREAM_MAGIC) {
            Self::open_stream(label, file, length)?
        } else {
            let problem = match &start {
                [b'F', b'E', b'A', b'1', ..] => "is of the first version of Feather",
                _ => "is neither a file nor a stream of Arrow",
            };
            let hint = "write it again, as with pyarrow.ipc.new_file";
            return Err(Error::format(label, problem, hint));
        };
        let mut rows = Some(0);
        let mut later = this.messages.clone();
        let mut end = later.at;
        while let Some(envelope) = later.next()? {
            end = end.max(later.at);
            if let Some(batch) = envelope.message(label)?.header_as_record_batch() {
                // A batch with a damaged length of 0 would be skipped, and its rows lost.
                let column = batch.nodes().filter(|nodes| !nodes.is_empty());
                let column = column.map(|nodes| nodes.get(0).length());
                if column != Some(batch.length()) && !this.schema.fields().is_empty() {
                    return Err(damaged(label, "has a batch whose columns are not of one length"));
                }
                let more = usize::try_from(batch.length()).ok();
                rows = rows.zip(more).and_then(|(rows, more): (usize, _)| rows.checked_add(more));
            }
        }
        let many = || damaged(label, "claims more rows than there can be");
        this.rows = rows.ok_or_else(many)?;
        // A directory with a damaged length would lose the last rows.
        let last = if end > SCHEMA { [end; 2] } else { [SCHEMA, ALIGNED_SCHEMA] };
        if this.messages.directory.is_some() && last.into_iter().any(|at| later.has_batch_from(at))
        {
            return Err(damaged(label, "has a batch that its directory lacks"));
        }
        Ok(this)
    }

    /// Opens a stream, which starts with its schema.
    fn open_stream(label: &str, file: File, length: u64) -> Result<Self> {
        let mut messages = Messages::stream(label, file, length);
        let no_schema = || damaged(label, "does not begin with a schema");
        let first = messages.next()?.ok_or_else(no_schema)?;
        let message = first.message(label)?;
        let raw = message.header_as_schema().ok_or_else(no_schema)?;
        let (schema, version) = (schema(label, raw)?, message.version());
        Ok(Self { messages, schema, version, dictionaries: Arc::new([]), rows: 0 })
    }

    /// Opens a file, which ends with a footer (schema and directory of batches), its length and magic bytes.
    fn open_file(label: &str, file: File, length: u64) -> Result<Self> {
        let io = |e| Error::io(label, "read", e);
        let mut end = [0; 10];
        let Some(before) = length.checked_sub(18) else {
            return Err(truncated(label, 18 - length));
        };
        read_at(&file, length - 10, &mut end).map_err(io)?;
        let [a, b, c, d, magic @ ..] = end;
        if magic != FILE_MAGIC {
            let problem = "does not end like an Arrow file: it is incomplete";
            return Err(Error::format(label, problem, "write it again"));
        }
        let size = u64::from(u32::from_le_bytes([a, b, c, d]));
        if size > before.min(LONGEST_MESSAGE) {
            let problem = format!("claims a directory of {size} bytes in a file of {length}");
            return Err(damaged(label, problem));
        }
        let mut bytes = vec![0; size as usize];
        let end = length - 10 - size;
        read_at(&file, end, &mut bytes).map_err(io)?;
        let footer = root_as_footer(&bytes).ok().filter(|footer| offsets::footer(*footer));
        let Some((footer, raw)) = footer.and_then(|footer| Some((footer, footer.schema()?))) else {
            return Err(damaged(label, "has a directory whose parts do not fit together"));
        };
        let (schema, version) = (schema(label, raw)?, footer.version());
        let dictionaries = footer.dictionaries().into_iter().flatten().map(Entry::new).collect();
        let batches = footer.recordBatches();
        let batches = batches.ok_or_else(|| damaged(label, "has a directory without batches"))?;
        let batches = batches.iter().map(Entry::new).collect();
        let messages = Messages::file(label, file, end, batches);
        Ok(Self { messages, schema, version, dictionaries, rows: 0 })
    }

    /// The compression of the first batch.
    pub(super) fn compression(&self) -> Option<CompressionType> {
        let mut messages = self.messages.clone();
        // What cannot be read is an error when it is read.
        while let Some(envelope) = messages.next().ok()? {
            let message = envelope.message(&self.messages.label).ok()?;
            if let Some(batch) = message.header_as_record_batch() {
                return Some(batch.compression()?.codec());
            }
        }
        None
    }

    /// Reads some columns, in ascending order.
    pub(super) fn batches(&self, columns: &[usize], most: usize) -> Result<RecordBatches> {
        let label = match columns {
            [column] => column_label(&self.messages.label, self.schema.field(*column).name()),
            _ => self.messages.label.clone(),
        };
        let mut decoder = FileDecoder::new(Arc::clone(&self.schema), self.version);
        // Dictionaries of other columns are not read.
        let with_dictionaries =
            columns.iter().any(|&i| has_dictionary(self.schema.field(i).data_type()));
        if columns.len() < self.schema.fields().len() {
            decoder = decoder.with_projection(columns.to_vec());
        }
        if with_dictionaries {
            let entries = Arc::clone(&self.dictionaries);
            let mut messages = Messages { directory: Some((entries, 0)), ..self.messages.clone() };
            while let Some(envelope) = messages.next()? {
                let (block, body) = envelope.read(&label, &messages.file)?;
                caught(&label, || decoder.read_dictionary(&block, &body))?;
            }
        }
        Ok(RecordBatches {
            label,
            messages: self.messages.clone(),
            decoder,
            with_dictionaries,
            left: None,
            most: most.min(MOST_ROWS),
        })
    }
}

fn has_dictionary(kind: &arrow_schema::DataType) -> bool {
    use arrow_schema::DataType as D;
    match kind {
        D::Dictionary(..) => true,
        D::List(field)
        | D::LargeList(field)
        | D::ListView(field)
        | D::LargeListView(field)
        | D::FixedSizeList(field, _)
        | D::Map(field, _) => has_dictionary(field.data_type()),
        D::Struct(fields) => fields.iter().any(|field| has_dictionary(field.data_type())),
        D::Union(fields, _) => fields.iter().any(|(_, field)| has_dictionary(field.data_type())),
        D::RunEndEncoded(_, values) => has_dictionary(values.data_type()),
        _ => false,
    }
}

fn schema(label: &str, raw: RawSchema<'_>) -> Result<SchemaRef> {
    if raw.endianness() != Endianness::Little {
        return Err(Error::format(
            label,
            "has the bytes of its numbers in the order of other machines",
            "write it on one that has the lowest byte first",
        ));
    }
    if !offsets::schema(raw) {
        return Err(damaged(label, "has a schema whose parts do not fit together"));
    }
    caught(label, || Ok::<_, ArrowError>(Arc::new(fb_to_schema(raw))))
}

fn damaged(label: &str, problem: impl Into<String>) -> Error {
    Error::format(label, problem, DAMAGED)
}

/// What the directory of a file says of a message.
#[derive(Clone, Copy, Debug)]
struct Entry {
    /// Errors if it is outside of the file when it is read.
    offset: u64,
    /// The length of the message, with its length before it and without its body.
    length: usize,
}

impl Entry {
    fn new(block: &Block) -> Self {
        Self {
            offset: u64::try_from(block.offset()).unwrap_or(u64::MAX),
            length: usize::try_from(block.metaDataLength()).unwrap_or(0),
        }
    }
}

/// The remaining messages.
#[derive(Clone, Debug)]
struct Messages {
    label: String,
    file: Arc<File>,
    /// The offset of the next message, and the end of the messages.
    at: u64,
    end: u64,
    /// The entries of all messages, and the number read, if the file has a directory.
    directory: Option<(Arc<[Entry]>, usize)>,
}

/// A message with its length before it, and the place of its body.
struct Envelope {
    /// The length, and the message.
    bytes: Vec<u8>,
    /// The length of the length.
    prefix: usize,
    body: u64,
    length: u64,
}

impl Messages {
    /// The messages of a stream of this length.
    fn stream(label: &str, file: File, end: u64) -> Self {
        Self { label: label.to_owned(), file: Arc::new(file), at: 0, end, directory: None }
    }

    /// The messages of a file with this directory, which is at its end.
    fn file(label: &str, file: File, end: u64, entries: Arc<[Entry]>) -> Self {
        let directory = Some((entries, 0));
        Self { at: SCHEMA, directory, ..Self::stream(label, file, end) }
    }

    fn next(&mut self) -> Result<Option<Envelope>> {
        let mut expected = None;
        if let Some((entries, read)) = &mut self.directory {
            let Some(entry) = entries.get(*read) else { return Ok(None) };
            *read += 1;
            self.at = entry.offset.min(self.end);
            expected = Some(entry.length);
        } else if self.at == self.end {
            return Ok(None);
        }
        let first = self.directory.is_none() && self.at <= ALIGNED_SCHEMA;
        // Before Arrow 0.15, the length had no prefix.
        let mut bytes = self.bytes(4)?;
        if bytes == STREAM_MAGIC {
            bytes.extend(self.bytes(4)?);
        }
        let prefix = bytes.len();
        let length = bytes.last_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes));
        if length == 0 {
            // The end-of-stream marker. A file with a directory must have all its messages.
            return match self.directory {
                None => Ok(None),
                Some(_) => Err(damaged(&self.label, "has no batch where its directory has one")),
            };
        }
        let length = match u64::try_from(length) {
            Ok(length) if length <= LONGEST_MESSAGE => length,
            _ => {
                return Err(damaged(&self.label, format!("claims a message of {length} bytes")));
            }
        };
        bytes.extend(self.bytes(length)?);
        // The body begins after the message, so that a damaged length would move all numbers.
        if expected.is_some_and(|expected| expected != bytes.len()) {
            let problem = "has a message of another length than its directory says";
            return Err(damaged(&self.label, problem));
        }
        let mut envelope = Envelope { bytes, prefix, body: self.at, length: 0 };
        let message = envelope.message(&self.label)?;
        let kind = message.header_type();
        let belongs = match kind {
            MessageHeader::RecordBatch | MessageHeader::DictionaryBatch => true,
            _ => first && kind == MessageHeader::Schema,
        };
        // Skipping an unknown type could silently lose rows of a damaged file.
        if !belongs || message.header().is_none() {
            let problem = "has a message of another kind than belongs there";
            return Err(damaged(&self.label, problem));
        }
        let body = message.bodyLength();
        let Ok(length) = u64::try_from(body) else {
            return Err(damaged(&self.label, format!("claims a batch of {body} bytes")));
        };
        self.need(length)?;
        envelope.length = length;
        self.at += length;
        Ok(Some(envelope))
    }

    /// Whether there is a batch from an offset on, where a file with a directory has none. What else is there is not
    /// read.
    fn has_batch_from(&self, at: u64) -> bool {
        let mut rest = Self { directory: None, at: at.min(self.end), ..self.clone() };
        while let Ok(Some(envelope)) = rest.next() {
            let message = envelope.message(&self.label);
            if message.is_ok_and(|m| m.header_type() == MessageHeader::RecordBatch) {
                return true;
            }
        }
        false
    }

    /// Reads the next `length` bytes.
    fn bytes(&mut self, length: u64) -> Result<Vec<u8>> {
        self.need(length)?;
        let mut bytes = vec![0; length as usize];
        let got = read_at(&self.file, self.at, &mut bytes)
            .map_err(|e| Error::io(&self.label, "read", e))?;
        self.at += got as u64;
        if got < bytes.len() {
            return Err(truncated(&self.label, length - got as u64));
        }
        Ok(bytes)
    }

    /// Checks that this many bytes follow.
    fn need(&self, length: u64) -> Result<()> {
        let there = self.end - self.at;
        if length > there { Err(truncated(&self.label, length - there)) } else { Ok(()) }
    }
}

impl Envelope {
    fn message(&self, label: &str) -> Result<Message<'_>> {
        let message = root_as_message(&self.bytes[self.prefix..]).ok();
        let message = message
            .filter(|message| offsets::message(*message))
            .ok_or_else(|| damaged(label, "has a message whose parts do not fit together"))?;
        if ![MetadataVersion::V4, MetadataVersion::V5].contains(&message.version()) {
            return Err(damaged(label, "is of a version of the format that is not known"));
        }
        Ok(message)
    }

    /// Reads message and body, whose buffers have been checked.
    fn read(&self, label: &str, file: &File) -> Result<(Block, Buffer)> {
        let metadata = self.bytes.len();
        let total = usize::try_from(self.length).ok().and_then(|n| n.checked_add(metadata));
        let mut bytes = Vec::new();
        let total = total.filter(|&total| bytes.try_reserve_exact(total).is_ok());
        let total = total.ok_or_else(|| Error::memory(label))?;
        bytes.extend_from_slice(&self.bytes);
        bytes.resize(total, 0);
        let got = read_at(file, self.body, &mut bytes[metadata..])
            .map_err(|e| Error::io(label, "read", e))?;
        if got < total - metadata {
            return Err(truncated(label, (total - metadata - got) as u64));
        }
        let message = self.message(label)?;
        let batch = message.header_as_record_batch();
        let batch = batch.or_else(|| message.header_as_dictionary_batch()?.data());
        if let Some(batch) = batch {
            check_buffers(label, batch, &bytes[metadata..])?;
        }
        let block = Block::new(0, metadata as i32, self.length as i64);
        Ok((block, Buffer::from_vec(bytes)))
    }
}

/// Checks that the buffers of a batch are in its body, and what they claim to be after decompression.
fn check_buffers(label: &str, batch: Header<'_>, body: &[u8]) -> Result<()> {
    let mut total = 0_u64;
    for buffer in batch.buffers().into_iter().flatten() {
        let range =
            usize::try_from(buffer.offset()).ok().zip(usize::try_from(buffer.length()).ok());
        let part = range
            // The format aligns all buffers.
            .filter(|(start, _)| start % 8 == 0)
            .and_then(|(start, length)| body.get(start..start.checked_add(length)?))
            .ok_or_else(|| damaged(label, "has a batch that lacks a buffer"))?;
        let Some(compression) = batch.compression() else { continue };
        // Empty buffers are not compressed. The others begin with their length, or -1 if they are not.
        let Some((length, packed)) = part.split_first_chunk() else { continue };
        let Ok(length) = u64::try_from(i64::from_le_bytes(*length)) else { continue };
        total = total.saturating_add(length);
        if total > LARGEST_BATCH {
            let problem =
                format!("has a batch of more than the {LARGEST_BATCH} bytes that are supported");
            return Err(Error::format(label, problem, "write it in smaller batches"));
        }
        // The library allocates what is claimed.
        let possible = if compression.codec() == CompressionType::LZ4_FRAME {
            // It also decompresses this method to the end, however long that is. So it runs twice.
            let mut source = FrameDecoder::new(packed).take(length + 1);
            std::io::copy(&mut source, &mut std::io::sink()).is_ok_and(|found| found == length)
        } else {
            length / MOST_FROM_ZSTD <= packed.len() as u64
        };
        if !possible {
            let problem = "has a buffer that does not decompress to the length it claims";
            return Err(damaged(label, problem));
        }
    }
    Ok(())
}

/// The remaining batches.
pub(super) struct RecordBatches {
    label: String,
    messages: Messages,
    decoder: FileDecoder,
    with_dictionaries: bool,
    /// The rest of a batch.
    left: Option<RecordBatch>,
    most: usize,
}

impl Batches for RecordBatches {
    fn next(&mut self) -> Result<Option<RecordBatch>> {
        while self.left.is_none() {
            let Some(envelope) = self.messages.next()? else { return Ok(None) };
            let message = envelope.message(&self.label)?;
            if message.header_type() == MessageHeader::DictionaryBatch {
                if self.with_dictionaries {
                    let (block, body) = envelope.read(&self.label, &self.messages.file)?;
                    caught(&self.label, || self.decoder.read_dictionary(&block, &body))?;
                }
                continue;
            }
            let (block, body) = envelope.read(&self.label, &self.messages.file)?;
            // An empty batch is decoded, too: its columns must be empty.
            let batch = caught(&self.label, || self.decoder.read_record_batch(&block, &body))?;
            self.left = batch.filter(|batch| batch.num_rows() > 0);
        }
        let Some(batch) = self.left.take() else { return Ok(None) };
        if batch.num_rows() <= self.most {
            return Ok(Some(batch));
        }
        self.left = Some(batch.slice(self.most, batch.num_rows() - self.most));
        Ok(Some(batch.slice(0, self.most)))
    }
}
