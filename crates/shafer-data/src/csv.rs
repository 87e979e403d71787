//! Text with a row a line and values separated by commas.

use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder};

use crate::npy::shortened;
use crate::{ArrayInfo, ArrayReader, Dtype, Error, Result, Values};

/// Room for a million classes; more in one row is not a table. Their ends take memory too, which is
/// more than that of the text if there are only commas.
const LONGEST_ROW: usize = 64 << 20;
const MOST_COMMAS: usize = 4 << 20;

const HINT: &str = "write one row of numbers a line, separated by commas";

/// Reads numbers as f64. The first row may be names: it is when none of its fields is a number.
pub(crate) struct CsvReader {
    label: String,
    info: ArrayInfo,
    /// Of the whole text, in bytes, if it is known.
    length: Option<u64>,
    reader: csv::Reader<ShortRows>,
    record: ByteRecord,
    /// How many fields of `record` were handed out.
    used: usize,
}

impl CsvReader {
    pub(crate) fn new(
        label: &str,
        source: Box<dyn Read + Send>,
        length: Option<u64>,
    ) -> Result<Self> {
        let source = ShortRows { source, bytes: 0, commas: 0 };
        let mut builder = ReaderBuilder::new();
        // Ragged rows are found here, where they can be named by their line.
        builder.has_headers(false).flexible(true).buffer_capacity(1 << 16);
        let info = ArrayInfo { name: None, dtype: Dtype::F64, shape: vec![0], open_ended: true };
        let mut this = Self {
            label: label.to_owned(),
            info,
            length,
            reader: builder.from_reader(source),
            record: ByteRecord::new(),
            used: 0,
        };
        if !this.next()? {
            return Err(Error::format(label, "is empty", HINT));
        }
        this.info.shape[0] = this.record.len();
        if this.record.iter().all(|field| number(field).is_none()) {
            this.used = this.record.len();
        }
        Ok(this)
    }

    fn next(&mut self) -> Result<bool> {
        self.used = 0;
        self.reader.get_mut().begin();
        self.reader.read_byte_record(&mut self.record).map_err(|e| match e.into_kind() {
            csv::ErrorKind::Io(e) => Error::io(&self.label, "read", e),
            other => Error::format(&self.label, format!("{other:?}"), HINT),
        })
    }

    fn line(&self) -> u64 {
        self.record.position().map_or(0, csv::Position::line)
    }
}

impl ArrayReader for CsvReader {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()> {
        if !matches!(block, Values::F64(_)) {
            *block = Values::new(Dtype::F64);
        }
        let Values::F64(values) = block else { unreachable!("just made so") };
        values.clear();
        let columns = self.info.shape[0];
        while values.len() < elements {
            if self.used == self.record.len() {
                if !self.next()? {
                    self.record.clear();
                    break;
                }
                if self.record.len() != columns {
                    let (line, found) = (self.line(), self.record.len());
                    let s = if found == 1 { "" } else { "s" };
                    let problem =
                        format!("line {line} has {found} value{s}, the first has {columns}");
                    return Err(Error::format(&self.label, problem, HINT));
                }
            }
            let end = columns.min(self.used + elements - values.len());
            for column in self.used..end {
                let field = &self.record[column];
                let Some(value) = number(field) else {
                    let field = shortened(&String::from_utf8_lossy(field.trim_ascii()));
                    let (line, column) = (self.line(), column + 1);
                    let problem =
                        format!("line {line}, column {column}: `{field}` is not a number");
                    return Err(Error::format(&self.label, problem, HINT));
                };
                values.push(value);
            }
            self.used = end;
        }
        Ok(())
    }

    fn share_read(&self) -> Option<f64> {
        // A file may grow while it is read.
        Some((self.reader.position().byte() as f64 / self.length? as f64).min(1.0))
    }
}

fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field.trim_ascii()).ok()?.parse().ok()
}

/// Fails on a row that is too long to be one, before memory is filled with it. Lines do not end rows:
/// in quotes there may be any number of them.
struct ShortRows {
    source: Box<dyn Read + Send>,
    /// Read since a row was begun.
    bytes: usize,
    commas: usize,
}

impl ShortRows {
    /// A row is asked for.
    fn begin(&mut self) {
        (self.bytes, self.commas) = (0, 0);
    }
}

impl Read for ShortRows {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        self.bytes += n;
        self.commas += buffer[..n].iter().map(|&byte| usize::from(byte == b',')).sum::<usize>();
        if self.bytes <= LONGEST_ROW && self.commas <= MOST_COMMAS {
            return Ok(n);
        }
        let problem = if self.bytes > LONGEST_ROW {
            format!("a row is longer than {LONGEST_ROW} bytes; is this text?")
        } else {
            format!("a row has more than {MOST_COMMAS} commas; is this text?")
        };
        Err(io::Error::new(io::ErrorKind::InvalidData, problem))
    }
}
