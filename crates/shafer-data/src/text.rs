//! Text files with one row per line.

use std::io::{self, BufReader, Chain, Cursor, Read};

use crate::array::Purpose;
use crate::gunzip::{self, Gunzip};
use crate::lines::Lines;
use crate::npy::shortened;
use crate::raw::fill;
use crate::select::{implausible, names_index};
use crate::{
    ArrayInfo, ArrayReader, Columns, Delimiter, Dtype, Error, Result, TableOptions, Values,
};

/// The bytes to recognise the delimiter and the header by.
const SAMPLE: usize = 1 << 20;
/// The lines to recognise them by.
const SAMPLE_LINES: usize = 16;
/// Reading of the sample stops after this number of line ends, so that a slow pipe is not waited for.
const SAMPLE_LINE_ENDS: usize = 64;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

const HINT: &str = "write one row of numbers a line";

type Source = Box<dyn Read + Send>;

/// Reads numbers as f64. The first line is a header if none of its fields is a number.
pub(crate) struct TextReader {
    label: String,
    info: ArrayInfo,
    lines: Lines<BufReader<Chain<Cursor<Vec<u8>>, Source>>>,
    /// `None` for one value per line.
    delimiter: Option<Delimiter>,
    /// The number of values per line.
    width: usize,
    /// The selected columns, if not all.
    taken: Option<Vec<usize>>,
    columns: Option<Columns>,
    /// The number of values of the current line that were returned.
    used: usize,
    /// The bytes before the first line, and of the whole text if known.
    skipped: u64,
    length: Option<u64>,
}

/// The start of a text, and whether it is all of it.
fn sampled(source: &mut impl Read) -> io::Result<(Vec<u8>, bool)> {
    let (mut sample, mut line_ends) = (Vec::new(), 0);
    while sample.len() < SAMPLE && line_ends < SAMPLE_LINE_ENDS {
        let start = sample.len();
        sample.resize(SAMPLE, 0);
        let count = match source.read(&mut sample[start..]) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                sample.truncate(start);
                continue;
            }
            read => read?,
        };
        sample.truncate(start + count);
        if count == 0 {
            return Ok((sample, true));
        }
        line_ends += sample[start..].iter().filter(|byte| matches!(byte, b'\r' | b'\n')).count();
    }
    Ok((sample, false))
}

impl TextReader {
    /// `length` is that of the file, if known.
    pub(crate) fn new(
        label: &str,
        source: Source,
        length: Option<u64>,
        purpose: Purpose,
        options: &TableOptions,
    ) -> Result<Self> {
        let failed = |e| Error::io(label, "read", e);
        let (mut source, packed) = unpacked(source).map_err(failed)?;
        let (sample, whole) = sampled(&mut source).map_err(failed)?;
        check_encoding(label, &sample)?;
        let skipped = if sample.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let end = if sample.contains(&b'\r') && !sample.contains(&b'\n') { b'\r' } else { b'\n' };
        let known = &sample[skipped..];
        let delimiter = options.delimiter.or_else(|| recognise(known, whole, end));
        let cut_at = delimiter.unwrap_or(Delimiter::COMMA);
        let first_lines = first_lines(known, whole, end, cut_at);
        let mut text = Cursor::new(sample);
        text.set_position(skipped as u64);
        let source = BufReader::with_capacity(1 << 16, text.chain(source));
        let mut this = Self {
            label: label.to_owned(),
            info: ArrayInfo { name: None, dtype: Dtype::F64, shape: vec![0], open_ended: true },
            lines: Lines::new(source, cut_at, end),
            delimiter,
            width: 0,
            taken: None,
            columns: None,
            used: 0,
            skipped: skipped as u64,
            length: length.filter(|_| !packed),
        };
        this.begin(&first_lines, purpose, options)?;
        Ok(this)
    }

    /// Advances to the first row of numbers.
    fn begin(
        &mut self,
        first_lines: &[Vec<Vec<u8>>],
        purpose: Purpose,
        options: &TableOptions,
    ) -> Result<()> {
        if !self.next()? {
            return Err(Error::format(&self.label, "holds no values", HINT));
        }
        self.width = self.lines.len();
        let fields: Vec<&[u8]> = self.lines.fields().collect();
        let header = is_header(&fields);
        let names: Option<Vec<String>> = header.then(|| {
            fields.iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
        });
        if header {
            let line = self.lines.number();
            if !self.next()? {
                let problem = format!(
                    "has no rows: line {line} is taken for a header ({}), and nothing follows",
                    self.separation()
                );
                return Err(Error::format(&self.label, problem, HINT));
            }
            self.check_width()?;
        }
        if purpose == Purpose::Numbers {
            let rows = &first_lines[usize::from(header).min(first_lines.len())..];
            if !header && numbers_columns(first_lines) {
                let problem = "the first line counts the columns, as pandas writes their names; leave \
                               it out, or write 0.0 for 0 if it is a row";
                return Err(Error::request(&self.label, problem));
            }
            let indexed = names.as_ref().is_some_and(|names| names_index(&names[0]));
            if !options.choose() && !indexed && counts_rows(rows) {
                let name = names.as_ref().map_or("0", |names| &names[0]);
                let problem = format!(
                    "the first column counts the rows: it is an index, not a class; leave it out \
                     with --exclude '{}', or name the classes with --columns",
                    shortened(name)
                );
                return Err(Error::request(&self.label, problem));
            }
        }
        self.select(names, purpose, options)?;
        self.info.shape[0] = self.taken.as_ref().map_or(self.width, Vec::len);
        Ok(())
    }

    /// Resolves the selected columns.
    fn select(
        &mut self,
        names: Option<Vec<String>>,
        purpose: Purpose,
        options: &TableOptions,
    ) -> Result<()> {
        let header = names.is_some();
        let names = match names {
            Some(names) => names,
            None if options.choose() => (0..self.width).map(|i| i.to_string()).collect(),
            None => return Ok(()),
        };
        let mut taken = options.positions(&self.label, &names)?;
        if header && options.columns.is_empty() {
            if taken.len() > 1 && taken[0] == 0 && names_index(&names[0]) {
                let value = self.lines.field(0);
                if number(value).is_some() && !is_whole(value) {
                    let problem = format!(
                        "the first column, `{}`, has the name of an index, but not its numbers; say \
                         which columns are logits with --columns",
                        shortened(&names[0])
                    );
                    return Err(Error::request(&self.label, problem));
                }
                taken.remove(0);
            }
            let classes: Vec<&str> = taken.iter().map(|&i| names[i].as_str()).collect();
            if let (Purpose::Numbers, Some(problem)) = (purpose, implausible(&classes)) {
                return Err(Error::request(&self.label, problem));
            }
        }
        let mut is_taken = vec![false; names.len()];
        for &i in &taken {
            is_taken[i] = true;
        }
        self.columns = Some(Columns {
            taken: taken.iter().map(|&i| names[i].clone()).collect(),
            left_out: (0..names.len())
                .filter(|&i| !is_taken[i])
                .map(|i| names[i].clone())
                .collect(),
            lists: false,
        });
        self.taken = Some(taken);
        Ok(())
    }

    fn next(&mut self) -> Result<bool> {
        self.used = 0;
        self.lines.next().map_err(|e| Error::io(&self.label, "read", e))
    }

    fn check_width(&self) -> Result<()> {
        let (line, found, width) = (self.lines.number(), self.lines.len(), self.width);
        if found == width {
            return Ok(());
        }
        let s = if found == 1 { "" } else { "s" };
        let problem = format!(
            "line {line} has {found} value{s}, the first has {width} ({})",
            self.separation()
        );
        Err(Error::format(&self.label, problem, HINT))
    }

    fn not_a_number(&self, column: usize) -> Error {
        let field = self.lines.field(column);
        let shown = shortened(&String::from_utf8_lossy(field));
        let place = format!("line {}, column {}", self.lines.number(), column + 1);
        if has_decimal_comma(field) {
            let problem = format!("{place}: `{shown}` has a decimal comma ({})", self.separation());
            return Error::format(&self.label, problem, "write numbers with a decimal point");
        }
        let problem = format!("{place}: `{shown}` is not a number ({})", self.separation());
        let hint = match &self.columns {
            Some(_) => "leave columns that are not numbers out with --exclude",
            None => HINT,
        };
        Error::format(&self.label, problem, hint)
    }

    /// The delimiter, for error messages.
    fn separation(&self) -> String {
        match self.delimiter {
            Some(delimiter) => format!("separated by {delimiter}"),
            None => "no separator found; --delimiter names one".to_owned(),
        }
    }
}

impl ArrayReader for TextReader {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()> {
        if !matches!(block, Values::F64(_)) {
            *block = Values::new(Dtype::F64);
        }
        let Values::F64(values) = block else { unreachable!("just made so") };
        values.clear();
        let count = self.info.shape[0];
        while values.len() < elements {
            if self.used == count {
                if !self.next()? {
                    self.used = count;
                    break;
                }
                self.check_width()?;
            }
            let end = count.min(self.used + elements - values.len());
            for i in self.used..end {
                let column = self.taken.as_ref().map_or(i, |taken| taken[i]);
                let value = number(self.lines.field(column));
                values.push(value.ok_or_else(|| self.not_a_number(column))?);
            }
            self.used = end;
        }
        Ok(())
    }

    fn share_read(&self) -> Option<f64> {
        // The file can grow while it is read.
        Some(((self.skipped + self.lines.bytes()) as f64 / self.length? as f64).min(1.0))
    }

    fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }
}

/// Decompresses gzip. Also returns whether the source was compressed.
fn unpacked(mut source: Source) -> io::Result<(Source, bool)> {
    let mut start = [0; gunzip::MAGIC.len()];
    let n = fill(&mut *source, &mut start)?;
    let packed = start[..n] == *gunzip::MAGIC;
    let whole = Cursor::new(start).take(n as u64).chain(source);
    let source: Source = if packed { Box::new(Gunzip::new(whole)) } else { Box::new(whole) };
    Ok((source, packed))
}

fn check_encoding(label: &str, sample: &[u8]) -> Result<()> {
    if sample.starts_with(b"\xff\xfe") || sample.starts_with(b"\xfe\xff") {
        return Err(Error::format(label, "is text in UTF-16", "save it as UTF-8"));
    }
    if let Some(at) = sample.iter().position(|&byte| byte == 0) {
        let problem = format!("is not UTF-8 text: byte {at} is 0");
        return Err(Error::format(
            label,
            problem,
            "save it as UTF-8, or end its name in its format",
        ));
    }
    Ok(())
}

/// The fields of the first lines of a text, of which `text` is the start or the whole.
fn first_lines(sample: &[u8], whole: bool, end: u8, delimiter: Delimiter) -> Vec<Vec<Vec<u8>>> {
    let mut lines = Lines::new(sample, delimiter, end);
    let mut found: Vec<Vec<Vec<u8>>> = Vec::new();
    // Invalid lines are reported when they are read.
    while found.len() < SAMPLE_LINES && lines.next().unwrap_or(false) {
        found.push(lines.fields().map(<[u8]>::to_vec).collect());
    }
    if !whole && lines.bytes() == sample.len() as u64 {
        // The last line, or the last field of a single line, can be incomplete.
        match &mut found[..] {
            [only] => drop(only.pop()),
            _ => drop(found.pop()),
        }
    }
    found
}

/// Recognises the delimiter: the one that splits all lines into the same number of fields, with numbers in
/// the last line. If there is none, a delimiter in the first line, for the error message.
fn recognise(sample: &[u8], whole: bool, end: u8) -> Option<Delimiter> {
    let lines = |delimiter| first_lines(sample, whole, end, delimiter);
    let mut candidates = vec![Delimiter::TAB, Delimiter::SEMICOLON, Delimiter::COMMA];
    // Tabs before spaces: two tabs have a missing value between them.
    if lines(Delimiter::TAB).iter().all(|line| line.len() == 1) {
        candidates.push(Delimiter::Spaces);
    }
    let fits = |&delimiter: &Delimiter| {
        let lines = lines(delimiter);
        let width = lines.first().map_or(0, Vec::len);
        let numbers =
            lines.last().is_some_and(|line| line.iter().all(|field| number(field).is_some()));
        width > 1 && numbers && lines.iter().all(|line| line.len() == width)
    };
    if let Some(&found) = candidates.iter().find(|delimiter| fits(delimiter)) {
        return Some(found);
    }
    let last_is_number = |delimiter| {
        lines(delimiter).last().is_some_and(|line| line.len() == 1 && number(&line[0]).is_some())
    };
    let occurs = |&delimiter: &Delimiter| {
        // One column with a header of several words.
        lines(delimiter).first().is_some_and(|line| line.len() > 1)
            && (delimiter != Delimiter::Spaces || !last_is_number(delimiter))
    };
    candidates.into_iter().find(|delimiter| occurs(delimiter))
}

/// Whether a line is a header: distinct names, none of them a number or a mistyped one.
fn is_header(fields: &[&[u8]]) -> bool {
    let names = fields.iter().all(|field| number(field).is_none() && !has_decimal_comma(field));
    names && (fields.len() == 1 || fields.iter().any(|field| field != &fields[0]))
}

/// Whether the first line is 0, 1, 2, ..., and the next has values that are not integers.
fn numbers_columns(lines: &[Vec<Vec<u8>>]) -> bool {
    let [first, second, ..] = lines else { return false };
    let counts = first.iter().enumerate().all(|(i, field)| field == i.to_string().as_bytes());
    first.len() > 2 && counts && second.iter().any(|field| !is_whole(field))
}

/// Whether the first column is 0, 1, 2, ... or 1, 2, 3, ..., and others have values that are not integers.
fn counts_rows(lines: &[Vec<Vec<u8>>]) -> bool {
    let counts = |from: usize| {
        let mut lines = lines.iter().enumerate();
        lines.all(|(i, line)| line.first().is_some_and(|f| f == (from + i).to_string().as_bytes()))
    };
    let mut others = lines.iter().flat_map(|line| line.iter().skip(1));
    lines.len() > 2 && (counts(0) || counts(1)) && others.any(|field| !is_whole(field))
}

fn number(field: &[u8]) -> Option<f64> {
    std::str::from_utf8(field).ok()?.parse().ok()
}

fn is_whole(field: &[u8]) -> bool {
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    !digits.is_empty() && digits.iter().all(u8::is_ascii_digit)
}

/// Whether a field is a number with a decimal comma.
fn has_decimal_comma(field: &[u8]) -> bool {
    let mut parts = field.split(|&byte| byte == b',');
    match (parts.next(), parts.next(), parts.next()) {
        (Some(whole), Some(rest), None) => number(&[whole, b".", rest].concat()).is_some(),
        _ => false,
    }
}
