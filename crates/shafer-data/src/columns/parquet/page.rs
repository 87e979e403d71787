//! The pages of a Parquet file: headers and decompressed contents.

use std::fs::File;
use std::io::{self, Read};
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::footer::Chunk;
use super::thrift::{FALSE, I32, Parsed, STRUCT, TRUE, Thrift};
use crate::columns::Place;
use crate::raw::{fill, read_at};
use crate::{Error, Result};

/// The longest page header. Typical ones have about fifty bytes.
const LONGEST_HEADER: usize = 1 << 12;

/// The largest page, which is read as a whole. Most have a megabyte, those of some writers a hundred.
const LARGEST_PAGE: usize = 256 << 20;

/// The memory limit for the pages of all columns.
const LARGEST_PAGES: usize = 2 << 30;

/// The compression of pages.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Codec {
    Snappy,
    Gzip,
    Lz4,
    Zstd,
}

impl Codec {
    fn new(place: &Place, number: u8) -> Result<Option<Self>> {
        const NAMES: [&str; 8] =
            ["NONE", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4 of Hadoop", "ZSTD", "LZ4_RAW"];
        match number {
            0 => Ok(None),
            1 => Ok(Some(Self::Snappy)),
            2 => Ok(Some(Self::Gzip)),
            6 => Ok(Some(Self::Zstd)),
            7 => Ok(Some(Self::Lz4)),
            other => {
                let name = NAMES.get(usize::from(other)).unwrap_or(&"an unknown method");
                let problem = format!("is compressed with {name}, which is not supported");
                let hint = "write it with snappy, gzip, zstd or lz4, or without compression";
                Err(Error::format(&place.label, problem, hint))
            }
        }
    }

    /// Decompresses to the expected number of bytes.
    fn unpack(
        self,
        packed: &[u8],
        bytes: &mut [u8],
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let length = match self {
            Self::Snappy => snap::raw::Decoder::new().decompress(packed, bytes)?,
            Self::Gzip => exhaust(MultiGzDecoder::new(packed), bytes)?,
            Self::Lz4 => lz4_flex::block::decompress_into(packed, bytes)?,
            Self::Zstd => exhaust(StreamingDecoder::new(packed)?, bytes)?,
        };
        if length == bytes.len() {
            Ok(())
        } else {
            Err(format!("it has {length} bytes, not {}", bytes.len()).into())
        }
    }
}

/// Fills `bytes` and returns the number of bytes available, or one more than fit. Reads to the end, where
/// decompressors verify checksums.
fn exhaust(mut source: impl Read, bytes: &mut [u8]) -> io::Result<usize> {
    Ok(fill(&mut source, bytes)? + fill(&mut source, &mut [0])?)
}

/// A decompressed page.
pub(super) struct Page {
    pub(super) kind: PageKind,
    /// The number of values, and their encoding.
    pub(super) values: usize,
    pub(super) encoding: i64,
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PageKind {
    Dictionary,
    /// Version 1: levels with length prefixes, then values.
    Data {
        repetition: i64,
        definition: i64,
    },
    /// Version 2: levels of these lengths, then values.
    DataV2 {
        repetition: usize,
        definition: usize,
    },
}

/// The pages of a column chunk.
pub(super) struct Pages {
    pub(super) place: Place,
    file: Arc<File>,
    codec: Option<Codec>,
    at: u64,
    left: u64,
    largest: usize,
}

impl Pages {
    /// `together` is the number of columns that are read together.
    pub(super) fn new(
        place: Place,
        file: &Arc<File>,
        chunk: Chunk,
        together: usize,
    ) -> Result<Self> {
        if chunk.elsewhere {
            return Err(Error::format(
                &place.label,
                "has numbers in another file or encrypted ones",
                "write the table into one file that is not encrypted",
            ));
        }
        let codec = Codec::new(&place, chunk.codec)?;
        let largest = LARGEST_PAGE.min(LARGEST_PAGES / together);
        let (at, left) = (chunk.start, chunk.length);
        Ok(Self { place, file: Arc::clone(file), codec, at, left, largest })
    }

    pub(super) fn next(&mut self) -> Result<Option<Page>> {
        while self.left > 0 {
            let header = self.header()?;
            let mut packed = self.room(header.packed)?;
            let got = read_at(&self.file, self.at, &mut packed)
                .map_err(|e| Error::io(&self.place.label, "read", e))?;
            if got < header.packed {
                return Err(crate::raw::truncated(&self.place.label, (header.packed - got) as u64));
            }
            self.at += header.packed as u64;
            self.left -= header.packed as u64;
            if let Some(crc) = header.crc
                && crc != crc32fast::hash(&packed)
            {
                return Err(self.place.damaged("has a page whose checksum does not match"));
            }
            let Some(kind) = header.kind else { continue };
            let bytes = self.unpack(&header, packed)?;
            let Header { values, encoding, .. } = header;
            return Ok(Some(Page { kind, values, encoding, bytes }));
        }
        Ok(None)
    }

    /// Allocates a buffer, or fails if memory is short.
    fn room(&self, size: usize) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(size).map_err(|_| Error::memory(&self.place.label))?;
        bytes.resize(size, 0);
        Ok(bytes)
    }

    fn header(&mut self) -> Result<Header> {
        let mut bytes = [0; LONGEST_HEADER];
        let most = self.left.min(LONGEST_HEADER as u64) as usize;
        let got = read_at(&self.file, self.at, &mut bytes[..most])
            .map_err(|e| Error::io(&self.place.label, "read", e))?;
        let mut thrift = Thrift { bytes: &bytes[..got] };
        let header = Header::parse(&mut thrift)
            .map_err(|problem| self.place.damaged(format!("the header of a page {problem}")))?;
        let length = (got - thrift.bytes.len()) as u64;
        self.at += length;
        self.left -= length;
        if header.packed as u64 > self.left {
            return Err(self.place.damaged("has a page that is longer than its column"));
        }
        let size = header.packed.max(header.unpacked);
        if size > self.largest {
            return Err(Error::format(
                &self.place.label,
                format!(
                    "has a page of {size} bytes, more than the {} that are supported",
                    self.largest
                ),
                "write it with smaller pages, as with data_page_size in pyarrow",
            ));
        }
        Ok(header)
    }

    /// The levels of a version 2 page are not compressed.
    fn unpack(&self, header: &Header, packed: Vec<u8>) -> Result<Vec<u8>> {
        let (levels, codec) = match header.kind {
            Some(PageKind::DataV2 { repetition, definition }) => {
                (repetition.saturating_add(definition), self.codec.filter(|_| header.is_packed))
            }
            _ => (0, self.codec),
        };
        let Some(codec) = codec else { return Ok(packed) };
        let mut bytes = self.room(header.unpacked)?;
        let parts = packed.split_at_checked(levels).zip(bytes.split_at_mut_checked(levels));
        let Some(((levels, packed), (first, rest))) = parts else {
            return Err(self.place.damaged("has a page that is shorter than its levels"));
        };
        first.copy_from_slice(levels);
        // An empty page is not compressed.
        if !rest.is_empty() {
            codec.unpack(packed, rest).map_err(|problem| {
                self.place.damaged(format!("has a page that cannot be decompressed ({problem})"))
            })?;
        }
        Ok(bytes)
    }
}

/// A page header.
struct Header {
    /// `None` for other kinds of pages.
    kind: Option<PageKind>,
    values: usize,
    encoding: i64,
    packed: usize,
    unpacked: usize,
    is_packed: bool,
    crc: Option<u32>,
}

impl Header {
    fn parse(thrift: &mut Thrift<'_>) -> Parsed<Self> {
        let (mut kind, mut packed, mut unpacked, mut crc) = (-1, -1, -1, None);
        // The fields of each kind of page, by their ids.
        let [mut first, mut dictionary, mut second] = [[-1; 8]; 3];
        thrift.fields(|thrift, field| {
            match field {
                (1, I32) => kind = thrift.integer()?,
                (2, I32) => unpacked = thrift.integer()?,
                (3, I32) => packed = thrift.integer()?,
                (4, I32) => crc = Some(thrift.integer()? as u32),
                (5, STRUCT) => numbers(thrift, &mut first)?,
                (7, STRUCT) => numbers(thrift, &mut dictionary)?,
                (8, STRUCT) => numbers(thrift, &mut second)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let size = |n: i64| usize::try_from(n).map_err(|_| "lacks a length");
        let (packed, unpacked) = (size(packed)?, size(unpacked)?);
        let (kind, values, encoding) = match kind {
            0 => {
                let [_, values, encoding, definition, repetition, ..] = first;
                (Some(PageKind::Data { repetition, definition }), size(values)?, encoding)
            }
            2 => (Some(PageKind::Dictionary), size(dictionary[1])?, dictionary[2]),
            3 => {
                let [_, values, _, _, encoding, definition, repetition, _] = second;
                let (repetition, definition) = (size(repetition)?, size(definition)?);
                (Some(PageKind::DataV2 { repetition, definition }), size(values)?, encoding)
            }
            _ => (None, 0, 0),
        };
        Ok(Self { kind, values, encoding, packed, unpacked, is_packed: second[7] != 0, crc })
    }
}

/// The integers and booleans (as 1 or 0) of a struct, by field id.
fn numbers(thrift: &mut Thrift<'_>, into: &mut [i64; 8]) -> Parsed<()> {
    thrift.fields(|thrift, (id, kind)| {
        let Some(place) = usize::try_from(id).ok().and_then(|id| into.get_mut(id)) else {
            return Ok(false);
        };
        match kind {
            I32 => *place = thrift.integer()?,
            TRUE | FALSE => *place = i64::from(kind == TRUE),
            _ => return Ok(false),
        }
        Ok(true)
    })
}
