//! The pages of a Parquet file: what comes before each, and its contents unpacked.

use std::fs::File;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use ruzstd::decoding::StreamingDecoder;

use super::footer::Chunk;
use super::thrift::{FALSE, I32, Parsed, STRUCT, TRUE, Thrift};
use super::{DAMAGED, Place};
use crate::raw::{fill, read_at};
use crate::{Error, Result};

/// Writers of numbers need some fifty bytes.
const LONGEST_HEADER: usize = 1 << 12;

/// A page has to be held as a whole. Most are of a megabyte; a few writers make them of a hundred.
const LARGEST_PAGE: usize = 256 << 20;

/// The most memory for the pages of all columns that are read together.
const LARGEST_PAGES: usize = 2 << 30;

/// How pages are packed.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Codec {
    None,
    Snappy,
    Gzip,
    Lz4,
    Zstd,
}

impl Codec {
    fn new(place: &Place, number: i64) -> Result<Self> {
        const NAMES: [&str; 8] =
            ["NONE", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4 of Hadoop", "ZSTD", "LZ4_RAW"];
        Ok(match number {
            0 => Self::None,
            1 => Self::Snappy,
            2 => Self::Gzip,
            6 => Self::Zstd,
            7 => Self::Lz4,
            other => {
                let name = usize::try_from(other).ok().and_then(|other| NAMES.get(other));
                let name = name.unwrap_or(&"an unknown method");
                return Err(Error::format(
                    &place.label,
                    format!("is compressed with {name}, which is not read"),
                    "write it with snappy, gzip, zstd or lz4, or without compression",
                ));
            }
        })
    }

    /// Unpacks to as many bytes as there should be.
    fn unpack(
        self,
        packed: &[u8],
        bytes: &mut [u8],
    ) -> std::result::Result<(), Box<dyn std::error::Error>> {
        let length = match self {
            Self::None => {
                let n = packed.len().min(bytes.len());
                bytes[..n].copy_from_slice(&packed[..n]);
                packed.len()
            }
            Self::Snappy => snap::raw::Decoder::new().decompress(packed, bytes)?,
            Self::Gzip => fill(&mut MultiGzDecoder::new(packed), bytes)?,
            Self::Lz4 => lz4_flex::block::decompress_into(packed, bytes)?,
            Self::Zstd => fill(&mut StreamingDecoder::new(packed)?, bytes)?,
        };
        if length == bytes.len() {
            Ok(())
        } else {
            Err(format!("it has {length} bytes and not {}", bytes.len()).into())
        }
    }
}

/// A page with its contents unpacked.
pub(super) struct Page {
    pub(super) kind: PageKind,
    /// The number of values, and how they are stored.
    pub(super) values: usize,
    pub(super) encoding: i64,
    pub(super) bytes: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PageKind {
    Dictionary,
    /// Numbers, after their levels, whose lengths are before them.
    Data {
        repetition: i64,
        definition: i64,
    },
    /// Numbers, after levels of these lengths.
    DataV2 {
        repetition: usize,
        definition: usize,
    },
}

/// The pages of a chunk, one after the other.
pub(super) struct Pages {
    pub(super) place: Place,
    file: Arc<File>,
    codec: Codec,
    at: u64,
    left: u64,
    largest: usize,
    packed: Vec<u8>,
}

impl Pages {
    /// `together` is how many columns are read at the same time.
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
        let (Ok(at), Ok(left)) = (u64::try_from(chunk.start), u64::try_from(chunk.length)) else {
            return Err(place.damaged("has a column that begins before the file"));
        };
        let largest = LARGEST_PAGE.min(LARGEST_PAGES / together);
        Ok(Self { place, file: Arc::clone(file), codec, at, left, largest, packed: Vec::new() })
    }

    pub(super) fn next(&mut self) -> Result<Option<Page>> {
        while self.left > 0 {
            let header = self.header()?;
            self.packed.resize(header.packed, 0);
            let got = read_at(&self.file, self.at, &mut self.packed)
                .map_err(|e| Error::io(&self.place.label, "read", e))?;
            if got < header.packed {
                return Err(crate::raw::truncated(&self.place.label, (header.packed - got) as u64));
            }
            self.at += header.packed as u64;
            self.left -= header.packed as u64;
            if let Some(crc) = header.crc
                && crc != crc32fast::hash(&self.packed)
            {
                return Err(self.place.damaged("has a page whose checksum does not match"));
            }
            let Some(kind) = header.kind else { continue };
            let bytes = self.unpack(&header)?;
            let Header { values, encoding, .. } = header;
            return Ok(Some(Page { kind, values, encoding, bytes }));
        }
        Ok(None)
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
                format!("has a page of {size} bytes, more than the {} that are held", self.largest),
                "write it with smaller pages, as with data_page_size in pyarrow",
            ));
        }
        Ok(header)
    }

    /// The levels of a page of the second version are not packed.
    fn unpack(&mut self, header: &Header) -> Result<Vec<u8>> {
        let (levels, codec) = match header.kind {
            Some(PageKind::DataV2 { repetition, definition }) => {
                let codec = if header.is_packed { self.codec } else { Codec::None };
                (repetition.saturating_add(definition), codec)
            }
            _ => (0, self.codec),
        };
        if codec == Codec::None {
            return Ok(std::mem::take(&mut self.packed));
        }
        let mut bytes = vec![0; header.unpacked];
        let parts = self.packed.split_at_checked(levels).zip(bytes.split_at_mut_checked(levels));
        let Some(((levels, packed), (first, rest))) = parts else {
            return Err(self.place.damaged("has a page that is shorter than its levels"));
        };
        first.copy_from_slice(levels);
        codec.unpack(packed, rest).map_err(|problem| {
            let problem = format!("has a page that cannot be unpacked ({problem})");
            Error::format(&self.place.label, problem, DAMAGED)
        })?;
        Ok(bytes)
    }
}

/// What comes before a page.
#[derive(Default)]
struct Header {
    /// `None` for what is not needed.
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
        let (mut kind, mut packed, mut unpacked) = (-1, -1, -1);
        // What the three kinds of pages have in common is at different places in each.
        let (mut first, mut second) = ([-1; 7], [-1; 7]);
        let mut dictionary = [-1; 7];
        let mut header = Self { is_packed: true, ..Self::default() };
        thrift.fields(|thrift, field| {
            match field {
                (1, I32) => kind = thrift.integer()?,
                (2, I32) => unpacked = thrift.integer()?,
                (3, I32) => packed = thrift.integer()?,
                (4, I32) => header.crc = Some(thrift.integer()? as u32),
                (5, STRUCT) => integers(thrift, &mut first)?,
                (7, STRUCT) => integers(thrift, &mut dictionary)?,
                (8, STRUCT) => thrift.fields(|thrift, field| {
                    match field {
                        (7, TRUE | FALSE) => header.is_packed = field.1 == TRUE,
                        (1..=6, I32) => second[field.0 as usize] = thrift.integer()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let size = |n: i64| usize::try_from(n).map_err(|_| "lacks a length");
        (header.packed, header.unpacked) = (size(packed)?, size(unpacked)?);
        let (values, encoding) = match kind {
            0 => {
                let [_, values, encoding, definition, repetition, ..] = first;
                header.kind = Some(PageKind::Data { repetition, definition });
                (values, encoding)
            }
            2 => {
                header.kind = Some(PageKind::Dictionary);
                (dictionary[1], dictionary[2])
            }
            3 => {
                let [_, values, _, _, encoding, definition, repetition] = second;
                let (repetition, definition) = (size(repetition)?, size(definition)?);
                header.kind = Some(PageKind::DataV2 { repetition, definition });
                (values, encoding)
            }
            _ => return Ok(header),
        };
        (header.values, header.encoding) = (size(values)?, encoding);
        Ok(header)
    }
}

/// The integers of a struct, each at the place of its number.
fn integers(thrift: &mut Thrift<'_>, into: &mut [i64; 7]) -> Parsed<()> {
    thrift.fields(|thrift, field| match field {
        (1..=6, I32) => {
            into[field.0 as usize] = thrift.integer()?;
            Ok(true)
        }
        _ => Ok(false),
    })
}
