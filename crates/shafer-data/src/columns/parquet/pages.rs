//! The pages of a column chunk, with limits.
//!
//! The crate `parquet` decodes them. Before it does, the header of each page is checked: a few bytes can claim a
//! page, a dictionary or a row of any length, and the library would allocate it.

use std::fs::File;
use std::io::{self, BufReader, Read};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use flate2::read::MultiGzDecoder;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::{Page, PageIterator, PageMetadata, PageReader};
use parquet::errors::ParquetError;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::reader::{ChunkReader, Length};
use parquet::file::serialized_reader::SerializedPageReader;

use super::levels::Most;
use super::thrift::PageSize;
use super::{delta, int96};
use crate::columns::DAMAGED;
use crate::raw::{read_at, truncated};
use crate::{Error, Result};

/// The longest page header. Typical ones have about fifty bytes, and those with statistics of long texts more.
const LONGEST_HEADER: usize = 1 << 16;

/// The bytes that are read for a header at first.
const HEADER: usize = 256;

/// The largest page, which is decompressed as a whole. Most have a megabyte, those of some writers a hundred.
const LARGEST_PAGE: usize = 256 << 20;

/// The most levels of a page, which need not take any bytes.
const MOST_LEVELS: usize = 1 << 26;

/// The most levels of a batch in addition to a page.
const MOST_IN_BATCH: usize = 1 << 26;

type Read1<T> = std::result::Result<T, ParquetError>;

/// A file, read by position.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) label: String,
    pub(super) file: Arc<File>,
    pub(super) length: u64,
    /// The first error of our own. The library passes on its text only.
    pub(super) fault: Mutex<Option<Error>>,
}

impl Source {
    /// Keeps an error, and makes one for the library.
    fn ours(&self, error: Error) -> ParquetError {
        if let Ok(mut fault) = self.fault.lock() {
            fault.get_or_insert(error);
        }
        ParquetError::General("see the first error".to_owned())
    }

    /// The error of our own that the library has made this one of, if there is one.
    pub(super) fn first(&self, error: Error) -> Error {
        self.fault.lock().ok().and_then(|mut fault| fault.take()).unwrap_or(error)
    }

    fn fill(&self, start: u64, bytes: &mut [u8]) -> Result<()> {
        let got =
            read_at(&self.file, start, bytes).map_err(|e| Error::io(&self.label, "read", e))?;
        if got < bytes.len() {
            return Err(truncated(&self.label, (bytes.len() - got) as u64));
        }
        Ok(())
    }
}

impl Length for Source {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for Source {
    type T = BufReader<At>;

    /// Only page headers are read this way.
    fn get_read(&self, start: u64) -> Read1<Self::T> {
        let at = At { file: Arc::clone(&self.file), at: start };
        Ok(BufReader::with_capacity(HEADER, at))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Read1<Bytes> {
        let end = start.saturating_add(length as u64);
        if end > self.length {
            return Err(self.ours(truncated(&self.label, end - self.length)));
        }
        let mut bytes = vec![0; length];
        self.fill(start, &mut bytes).map_err(|error| self.ours(error))?;
        Ok(bytes.into())
    }
}

/// A place in a file.
pub(super) struct At {
    file: Arc<File>,
    at: u64,
}

impl Read for At {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let got = read_at(&self.file, self.at, bytes)?;
        self.at += got as u64;
        Ok(got)
    }
}

/// The levels of the pages of a column since the batch began.
#[derive(Clone, Debug, Default)]
pub(super) struct Budget(Arc<AtomicUsize>);

impl Budget {
    pub(super) fn begin_batch(&self) {
        self.0.store(0, Relaxed);
    }
}

/// The pages of a column chunk.
pub(super) struct Pages {
    label: String,
    source: Arc<Source>,
    inner: SerializedPageReader<Source>,
    compression: Compression,
    /// The bytes of a value in a dictionary, at least.
    width: usize,
    most: Most,
    /// Whether times of 96 bits are read as nanoseconds of 64.
    int96: bool,
    budget: Budget,
    /// The rest of the chunk, from the next page on.
    at: u64,
    end: u64,
    /// The header of the next page, if it was checked.
    next: Option<PageSize>,
}

impl Pages {
    /// `label` is that of the column.
    pub(super) fn new(
        label: String,
        source: &Arc<Source>,
        chunk: &ColumnChunkMetaData,
        rows: usize,
        nanoseconds: bool,
        budget: Budget,
    ) -> Read1<Self> {
        let format = |problem, hint| Err(source.ours(Error::format(&label, problem, hint)));
        if chunk.file_path().is_some() {
            return format("has values in another file", "write the table into one file");
        }
        if chunk.compression() == Compression::LZO {
            let hint = "write it with snappy, gzip, zstd, lz4 or brotli, or without compression";
            return format("is compressed with LZO, which is not supported", hint);
        }
        let (start, length) = chunk.byte_range();
        let Some(end) = start.checked_add(length) else {
            return format("has a column that is longer than the file", DAMAGED);
        };
        let width = match chunk.column_type() {
            Type::DOUBLE | Type::INT64 => 8,
            Type::INT96 => 12,
            Type::FIXED_LEN_BYTE_ARRAY => {
                usize::try_from(chunk.column_descr().type_length()).unwrap_or(1).max(1)
            }
            // A text has its length before it.
            _ => 4,
        };
        let column = chunk.column_descr();
        let level = |level: i16| u16::try_from(level).unwrap_or(0);
        let most = Most {
            repetition: level(column.max_rep_level()),
            definition: level(column.max_def_level()),
        };
        let inner = SerializedPageReader::new(Arc::clone(source), chunk, rows, None)?;
        Ok(Self {
            label,
            source: Arc::clone(source),
            inner,
            compression: chunk.compression(),
            width,
            most,
            int96: nanoseconds && chunk.column_type() == Type::INT96,
            budget,
            at: start,
            end,
            next: None,
        })
    }

    /// Checks the header of the next page.
    fn check(&mut self) -> Result<()> {
        while self.next.is_none() && self.at < self.end {
            let size = self.header()?;
            let problem = |problem: String, hint| Err(Error::format(&self.label, problem, hint));
            let damaged = |what: &str| problem(what.to_owned(), DAMAGED);
            let header_end = self.at + size.header as u64;
            if size.packed as u64 > self.end.saturating_sub(header_end) {
                return damaged("has a page that is longer than its column");
            }
            for bytes in [size.packed, size.unpacked] {
                if bytes > LARGEST_PAGE {
                    return problem(
                        format!(
                            "has a page of {bytes} bytes, more than the {LARGEST_PAGE} that are supported"
                        ),
                        "write it in smaller pages",
                    );
                }
            }
            let Some(values) = size.values else {
                // A page of another kind, which the library skips, too.
                self.at = header_end + size.packed as u64;
                continue;
            };
            if size.is_dictionary && values.saturating_mul(self.width) > size.unpacked {
                return damaged("has a dictionary with fewer values than it claims");
            }
            if size.levels > size.unpacked.min(size.packed) {
                return damaged("has a page that is shorter than its levels");
            }
            if values > MOST_LEVELS || self.budget.0.load(Relaxed) > MOST_IN_BATCH {
                let hint = "write shorter rows or smaller pages";
                return problem(
                    format!("has rows or a page of more than {MOST_LEVELS} values"),
                    hint,
                );
            }
            if self.exceeds(&size, header_end)? {
                return damaged("has a page that decompresses to more than it claims");
            }
            self.next = Some(size);
        }
        Ok(())
    }

    fn header(&self) -> Result<PageSize> {
        let there = self.end.min(self.source.length).saturating_sub(self.at);
        let mut bytes = vec![0; HEADER];
        loop {
            let length = bytes.len().min(usize::try_from(there).unwrap_or(usize::MAX));
            bytes.truncate(length);
            self.source.fill(self.at, &mut bytes)?;
            match PageSize::parse(&bytes) {
                Ok(size) => return Ok(size),
                // It may be longer.
                Err(_) if bytes.len() < LONGEST_HEADER && (bytes.len() as u64) < there => {
                    bytes.resize(bytes.len() * 16, 0);
                }
                Err(problem) => {
                    let problem = format!("the header of a page {problem}");
                    return Err(Error::format(&self.label, problem, DAMAGED));
                }
            }
        }
    }

    /// Whether a page decompresses to more bytes than its header says. Only these decompressors have no limit of
    /// their own in the library, which would fill the memory; so they run twice, first into nowhere.
    fn exceeds(&self, size: &PageSize, start: u64) -> Result<bool> {
        if !matches!(
            self.compression,
            Compression::GZIP(_) | Compression::BROTLI(_) | Compression::LZ4
        ) {
            return Ok(false);
        }
        let mut packed = vec![0; size.packed];
        self.source.fill(start, &mut packed)?;
        let packed = &packed[size.levels..];
        let most = (size.unpacked - size.levels) as u64;
        let count = |source: &mut dyn Read| {
            // An error is the library's to report.
            io::copy(&mut source.take(most + 1), &mut io::sink()).unwrap_or(0)
        };
        Ok(most
            < match self.compression {
                Compression::GZIP(_) => count(&mut MultiGzDecoder::new(packed)),
                Compression::BROTLI(_) => count(&mut brotli::Decompressor::new(packed, 1 << 16)),
                _ => count(&mut lz4_flex::frame::FrameDecoder::new(packed)),
            })
    }

    /// Checks levels and values of a page before they are decoded.
    fn check_values(&self, page: &Page) -> Result<()> {
        let problem = |problem, hint| Error::format(&self.label, problem, hint);
        let start = self.most.check(page).map_err(|what| problem(what, DAMAGED))?;
        let bytes = page.buffer().get(start..).unwrap_or_default();
        let plain =
            matches!(page, Page::DictionaryPage { .. }) || page.encoding() == Encoding::PLAIN;
        if self.int96 && plain && int96::overflows(bytes) {
            let hint = "write them as microseconds of 64 bits";
            return Err(problem("has times before 1678 or after 2261 in 96 bits", hint));
        }
        let sequences = match page.encoding() {
            Encoding::DELTA_LENGTH_BYTE_ARRAY => 1,
            Encoding::DELTA_BYTE_ARRAY => 2,
            _ => return Ok(()),
        };
        if delta::claims_more(bytes, sequences, page.num_values() as usize) {
            return Err(problem("has a page of texts with more lengths than values", DAMAGED));
        }
        Ok(())
    }

    /// Goes past the page that was checked.
    fn pass(&mut self) {
        if let Some(size) = self.next.take() {
            self.at += (size.header + size.packed) as u64;
            if !size.is_dictionary {
                self.budget.0.fetch_add(size.values.unwrap_or(0), Relaxed);
            }
        }
    }
}

impl Iterator for Pages {
    type Item = Read1<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Read1<Option<Page>> {
        self.check().map_err(|error| self.source.ours(error))?;
        self.pass();
        let page = self.inner.get_next_page()?;
        if let Some(page) = &page {
            self.check_values(page).map_err(|error| self.source.ours(error))?;
        }
        Ok(page)
    }

    fn peek_next_page(&mut self) -> Read1<Option<PageMetadata>> {
        self.check().map_err(|error| self.source.ours(error))?;
        self.inner.peek_next_page()
    }

    fn skip_next_page(&mut self) -> Read1<()> {
        self.check().map_err(|error| self.source.ours(error))?;
        self.pass();
        self.inner.skip_next_page()
    }

    fn at_record_boundary(&mut self) -> Read1<bool> {
        self.check().map_err(|error| self.source.ours(error))?;
        self.inner.at_record_boundary()
    }
}

/// The column chunk of one row group.
pub(super) struct Chunk(pub(super) Option<Read1<Pages>>);

impl Iterator for Chunk {
    type Item = Read1<Box<dyn PageReader>>;

    fn next(&mut self) -> Option<Self::Item> {
        self.0.take().map(|pages| pages.map(|pages| Box::new(pages) as Box<dyn PageReader>))
    }
}

impl PageIterator for Chunk {}
