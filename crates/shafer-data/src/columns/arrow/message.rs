//! The messages of an Arrow stream, and the buffers that follow them.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

use arrow_ipc::{
    CompressionType, Message, MessageHeader, MetadataVersion, RecordBatch, root_as_message,
};
use lz4_flex::frame::FrameDecoder;
use ruzstd::decoding::{DEFAULT_MAX_WINDOW_SIZE, StreamingDecoder};

use crate::columns::{DAMAGED, Place};
use crate::raw::{read_at, truncated};
use crate::{Error, Result};

/// The longest message: enough for a batch of a million columns.
pub(super) const LONGEST_MESSAGE: u64 = 1 << 28;

/// The memory limit for the decompressed buffers of all columns.
const LARGEST_WINDOWS: u64 = 2 << 30;

/// The remaining messages.
#[derive(Clone)]
pub(super) struct Messages {
    pub(super) label: String,
    pub(super) file: Arc<File>,
    /// The offset of the next message, and the end of the messages.
    at: u64,
    end: u64,
    /// The offsets of all messages, and the number read, if the file has a directory.
    directory: Option<(Arc<[u64]>, usize)>,
}

/// A message, and the position of its body.
pub(super) struct Envelope {
    bytes: Vec<u8>,
    body: u64,
    length: u64,
}

impl Messages {
    /// The messages of a stream of this length.
    pub(super) fn stream(label: &str, file: File, end: u64) -> Self {
        Self { label: label.to_owned(), file: Arc::new(file), at: 0, end, directory: None }
    }

    /// The messages of a file at these offsets, up to the directory.
    pub(super) fn file(label: &str, file: File, end: u64, starts: Arc<[u64]>) -> Self {
        Self { directory: Some((starts, 0)), ..Self::stream(label, file, end) }
    }

    pub(super) fn next(&mut self) -> Result<Option<Envelope>> {
        if let Some((starts, read)) = &mut self.directory {
            let Some(&start) = starts.get(*read) else { return Ok(None) };
            *read += 1;
            self.at = start.min(self.end);
        } else if self.at == self.end {
            return Ok(None);
        }
        let first = self.directory.is_none() && self.at == 0;
        // Before Arrow 0.15, the length had no prefix.
        let mut length = self.integer()?;
        if length == -1 {
            length = self.integer()?;
        }
        if length == 0 {
            // The end-of-stream marker. A file with a directory must have all its messages.
            return match self.directory {
                None => Ok(None),
                Some(_) => Err(self.damaged("has no batch where its directory has one")),
            };
        }
        let length = match u64::try_from(length) {
            Ok(length) if length <= LONGEST_MESSAGE => length,
            _ => return Err(self.damaged(format!("claims a message of {length} bytes"))),
        };
        let bytes = self.bytes(length)?;
        let message = self.message(&bytes)?;
        // Skipping an unknown type could silently lose rows of a damaged file.
        let kinds: &[MessageHeader] = match self.directory {
            Some(_) => &[MessageHeader::RecordBatch],
            None => &[MessageHeader::RecordBatch, MessageHeader::DictionaryBatch],
        };
        if !first && !kinds.contains(&message.header_type()) {
            return Err(self.damaged("has a message of another kind than belongs there"));
        }
        let body = message.bodyLength();
        let Ok(length) = u64::try_from(body) else {
            return Err(self.damaged(format!("claims a batch of {body} bytes")));
        };
        self.need(length)?;
        let body = self.at;
        self.at += length;
        Ok(Some(Envelope { bytes, body, length }))
    }

    fn integer(&mut self) -> Result<i32> {
        let bytes = self.bytes(4)?;
        Ok(bytes.first_chunk().map_or(0, |bytes| i32::from_le_bytes(*bytes)))
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

    fn message<'a>(&self, bytes: &'a [u8]) -> Result<Message<'a>> {
        let message = root_as_message(bytes)
            .map_err(|_| self.damaged("has a message whose parts do not fit together"))?;
        if ![MetadataVersion::V4, MetadataVersion::V5].contains(&message.version()) {
            return Err(self.damaged("is of a version of the format that is not known"));
        }
        Ok(message)
    }

    /// The message in an envelope that was verified.
    pub(super) fn open<'a>(&self, envelope: &'a Envelope) -> Result<Message<'a>> {
        self.message(&envelope.bytes)
    }

    pub(super) fn damaged(&self, problem: impl Into<String>) -> Error {
        Error::format(&self.label, problem, DAMAGED)
    }
}

/// A record batch, and the file with its buffers.
pub(super) struct Body<'a> {
    pub(super) batch: RecordBatch<'a>,
    pub(super) file: &'a Arc<File>,
    pub(super) envelope: &'a Envelope,
    /// The number of columns that are read together.
    pub(super) together: usize,
}

impl Body<'_> {
    /// The length of an array, and its number of nulls.
    pub(super) fn node(&self, place: &Place, i: usize) -> Result<(usize, i64)> {
        let node = self.batch.nodes().filter(|nodes| i < nodes.len()).map(|nodes| nodes.get(i));
        node.and_then(|node| Some((usize::try_from(node.length()).ok()?, node.null_count())))
            .ok_or_else(|| place.damaged("has a batch that lacks a column"))
    }

    /// A buffer, which must have at least this many bytes decompressed.
    pub(super) fn buffer(&self, place: &Place, i: usize, needed: u64) -> Result<Source> {
        let io = |e| Error::io(&place.label, "read", e);
        let found = self.batch.buffers().filter(|all| i < all.len()).map(|all| *all.get(i));
        let part = found.and_then(|buffer| {
            let start = u64::try_from(buffer.offset()).ok()?;
            let length = u64::try_from(buffer.length()).ok()?;
            let end = start.checked_add(length).filter(|&end| end <= self.envelope.length)?;
            let (at, end) = (self.envelope.body + start, self.envelope.body + end);
            Some(Part { file: Arc::clone(self.file), at, end })
        });
        let mut part = part.ok_or_else(|| place.damaged("has a batch that lacks a buffer"))?;
        let (length, source): (u64, Source) = match self.batch.compression() {
            // Empty buffers are not compressed.
            Some(compression) if part.at < part.end => {
                let mut length = [0; 8];
                part.read_exact(&mut length).map_err(io)?;
                let length = i64::from_le_bytes(length);
                match (u64::try_from(length), compression.codec()) {
                    // The length -1 marks a buffer that is stored uncompressed.
                    _ if length == -1 => (part.end - part.at, Box::new(part)),
                    (Ok(length), CompressionType::LZ4_FRAME) => {
                        (length, Box::new(FrameDecoder::new(BufReader::new(part)).take(length)))
                    }
                    (Ok(length), CompressionType::ZSTD) => {
                        let most = LARGEST_WINDOWS / self.together as u64;
                        let most = most.min(DEFAULT_MAX_WINDOW_SIZE);
                        let source = BufReader::new(part);
                        let source = StreamingDecoder::new_with_max_window_size(source, most)
                            .map_err(|e| place.damaged(format!("cannot be decompressed ({e})")))?;
                        (length, Box::new(source.take(length)))
                    }
                    _ => return Err(place.damaged("is packed in a way that is not known")),
                }
            }
            _ => (part.end - part.at, Box::new(part)),
        };
        if length < needed {
            return Err(place.damaged("has a buffer that is shorter than its values"));
        }
        Ok(source)
    }
}

/// The bytes of a buffer.
pub(super) type Source = Box<dyn Read + Send>;

/// A part of a file with its own read position.
struct Part {
    file: Arc<File>,
    at: u64,
    end: u64,
}

impl Read for Part {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.end - self.at).unwrap_or(usize::MAX);
        let n = buffer.len().min(left);
        let got = read_at(&self.file, self.at, &mut buffer[..n])?;
        self.at += got as u64;
        Ok(got)
    }
}
