//! Text with a row a line and values separated by commas.

use std::io::{self, Read};

use csv::{ByteRecord, ReaderBuilder};

use crate::npy::shortened;
use crate::{ArrayInfo, ArrayReader, Dtype, Error, Result, Values};

/// Room for a million classes; more on one line is not a table.
const LONGEST_LINE: usize = 64 << 20;

const HINT: &str = "write one row of numbers a line, separated by commas";

/// Reads numbers as f64. The first row may be names: it is when none of its fields is a number.
pub(crate) struct CsvReader {
    label: String,
    info: ArrayInfo,
    reader: csv::Reader<ShortLines>,
    record: ByteRecord,
    /// How many fields of `record` were handed out.
    used: usize,
}

impl CsvReader {
    pub(crate) fn new(label: &str, source: Box<dyn Read + Send>) -> Result<Self> {
        let source = ShortLines { source, run: 0 };
        let mut builder = ReaderBuilder::new();
        // Ragged rows are found here, where they can be named by their line.
        builder.has_headers(false).flexible(true).buffer_capacity(1 << 16);
        let info = ArrayInfo { name: None, dtype: Dtype::F64, shape: vec![0], open_ended: true };
        let mut this = Self {
            label: label.to_owned(),
            info,
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
}

fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field.trim_ascii()).ok()?.parse().ok()
}

/// Fails on a line that is too long to be a row, before memory is filled with it.
struct ShortLines {
    source: Box<dyn Read + Send>,
    /// Bytes since the last line began.
    run: usize,
}

impl Read for ShortLines {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n = self.source.read(buffer)?;
        self.run = match buffer[..n].iter().rposition(|&byte| byte == b'\n' || byte == b'\r') {
            Some(end) => n - end,
            None => self.run + n,
        };
        if self.run > LONGEST_LINE {
            let problem = format!("a line is longer than {LONGEST_LINE} bytes; is this text?");
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        Ok(n)
    }
}
