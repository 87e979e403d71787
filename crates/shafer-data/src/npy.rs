//! `NumPy`'s `.npy` format, versions 1 to 3.

use std::fs::File;
use std::io::{self, Read};

use crate::array::{Purpose, shape_text};
use crate::fortran::{Transposed, order_is_irrelevant};
use crate::raw::{Elements, RawReader, byte_size, bytes_word, fill, truncated};
use crate::{ArrayInfo, Dtype, Error, Result};

pub(crate) const MAGIC: &[u8] = b"\x93NUMPY";

/// The type name that reads the untyped elements `V2` as bf16.
pub(crate) const BFLOAT16: &str = "bfloat16";

/// The longest header. Those of `NumPy` have a few hundred bytes.
const LONGEST_HEADER: usize = 1 << 20;

/// The limit of `NumPy`.
const MOST_AXES: usize = 64;

const DAMAGED: &str = "the file is damaged or not a NumPy array; write it again with numpy.save";

/// The header.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    /// The type in the syntax of `NumPy`, such as `<f4`.
    pub(crate) descr: String,
    pub(crate) fortran: bool,
    pub(crate) shape: Vec<usize>,
    /// The length in bytes up to the elements.
    pub(crate) length: u64,
}

impl Header {
    pub(crate) fn read(file: &str, source: &mut (impl Read + ?Sized)) -> Result<Self> {
        let mut get = |buffer: &mut [u8]| -> Result<()> {
            let got = fill(source, buffer).map_err(|e| Error::io(file, "read", e))?;
            if got < buffer.len() {
                let problem = "ends within the NumPy header";
                return Err(Error::format(file, problem, "copy or write the file again"));
            }
            Ok(())
        };
        let mut start = [0; 8];
        get(&mut start)?;
        if !start.starts_with(MAGIC) {
            let problem =
                format!("begins with {}, not with {}", quoted(&start[..6]), quoted(MAGIC));
            return Err(Error::format(file, problem, DAMAGED));
        }
        let (prefix, length) = match start[6] {
            1 => {
                let mut length = [0; 2];
                get(&mut length)?;
                (10, usize::from(u16::from_le_bytes(length)))
            }
            2 | 3 => {
                let mut length = [0; 4];
                get(&mut length)?;
                (12, u32::from_le_bytes(length) as usize)
            }
            other => {
                let problem =
                    format!("has version {other} of the NumPy format; supported are 1 to 3");
                return Err(Error::format(file, problem, DAMAGED));
            }
        };
        if length > LONGEST_HEADER {
            let problem = format!("claims a header of {length} bytes, more than {LONGEST_HEADER}");
            return Err(Error::format(file, problem, DAMAGED));
        }
        let mut text = vec![0; length];
        get(&mut text)?;
        // Only field names can be non-ASCII, and arrays with fields are not supported.
        let text = String::from_utf8_lossy(&text);
        let (descr, fortran, shape) = Parser { rest: &text }.header().map_err(|problem| {
            Error::format(file, format!("the NumPy header {problem}"), DAMAGED)
        })?;
        Ok(Self { descr, fortran, shape, length: prefix + length as u64 })
    }

    /// `bfloat16` selects that type for untyped two-byte elements.
    pub(crate) fn elements(
        &self,
        file: &str,
        purpose: Purpose,
        bfloat16: bool,
    ) -> Result<Elements> {
        if let Some(elements) = Elements::integers(purpose, &self.descr) {
            return Ok(elements);
        }
        let (order, kind) = match self.descr.as_bytes() {
            [order @ (b'<' | b'>' | b'=' | b'|'), kind @ ..] => (*order, kind),
            kind => (b'=', kind),
        };
        let dtype = match kind {
            b"f2" => Dtype::F16,
            b"f4" => Dtype::F32,
            b"f8" => Dtype::F64,
            b"bfloat16" => Dtype::Bf16,
            b"V2" if bfloat16 => Dtype::Bf16,
            b"V2" => {
                return Err(Error::format(
                    file,
                    "has elements of two bytes without a type, as NumPy stores bfloat16",
                    "if that is what they are, add `:bfloat16` to the name",
                ));
            }
            _ => {
                return Err(Error::format(
                    file,
                    format!("has elements of type `{}`", shortened(&self.descr)),
                    match purpose {
                        Purpose::Numbers => {
                            "convert it to float32, as in numpy.save(path, array.astype('f4'))"
                        }
                        Purpose::Mask => {
                            "convert it to bool, as in numpy.save(path, array.astype(bool))"
                        }
                        Purpose::Labels => {
                            "convert it to int64, as in numpy.save(path, array.astype('i8'))"
                        }
                    },
                ));
            }
        };
        let big_endian = match order {
            b'>' => true,
            b'<' => false,
            _ => cfg!(target_endian = "big"),
        };
        Ok(Elements::Floats { dtype, big_endian })
    }
}

/// Opens the array in `source`, which has `length` bytes if known. `again` is the same array in a seekable
/// file, with its offset.
pub(crate) fn open(
    file: &str,
    name: Option<String>,
    purpose: Purpose,
    bfloat16: bool,
    mut source: Box<dyn Read + Send>,
    length: Option<u64>,
    again: Option<(File, u64)>,
) -> Result<RawReader> {
    let header = Header::read(file, &mut *source)?;
    let elements = header.elements(file, purpose, bfloat16)?;
    let needed = byte_size(file, &header.shape, elements)?;
    if let Some(length) = length {
        let found = length.saturating_sub(header.length);
        if found < needed {
            return Err(truncated(file, needed - found));
        }
        if found > needed {
            let left = found - needed;
            return Err(Error::format(
                file,
                format!(
                    "{left} {} left over after the last element of shape {}",
                    bytes_word(left),
                    shape_text(&header.shape)
                ),
                "write the file again",
            ));
        }
    }
    let transpose = header.fortran && !order_is_irrelevant(&header.shape);
    if transpose {
        let (seekable, start) = match again {
            Some((seekable, start)) => (seekable, start + header.length),
            None => (spill(file, source, needed)?, 0),
        };
        source = Box::new(Transposed::new(seekable, start, elements.size(), &header.shape));
    }
    let info = ArrayInfo { name, dtype: elements.dtype(), shape: header.shape, open_ended: false };
    // The length of a reordered file was already checked.
    RawReader::new(file, info, source, elements, !transpose)
}

/// Copies exactly `needed` bytes of a stream into an anonymous temporary file.
fn spill(file: &str, mut source: Box<dyn Read + Send>, needed: u64) -> Result<File> {
    let keep = |e| Error::io(file, "keep a temporary copy of the array", e);
    let mut copy = tempfile::tempfile().map_err(keep)?;
    let copied = io::copy(&mut source.by_ref().take(needed), &mut copy).map_err(keep)?;
    if copied < needed {
        return Err(truncated(file, needed - copied));
    }
    let more = fill(&mut *source, &mut [0]).map_err(|e| Error::io(file, "read", e))?;
    if more > 0 {
        let problem = "bytes follow the last element";
        return Err(Error::format(file, problem, "write the file again"));
    }
    Ok(copy)
}

/// A header of at least `reserved` bytes.
pub(crate) fn header_bytes(descr: &str, shape: &[usize], reserved: usize) -> Vec<u8> {
    let dict =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {}, }}", shape_text(shape));
    // Elements are aligned to 64 bytes, as NumPy does.
    let total = (10 + dict.len() + 1).max(reserved).next_multiple_of(64);
    let mut bytes = Vec::with_capacity(total);
    bytes.extend_from_slice(MAGIC);
    bytes.extend_from_slice(&[1, 0]);
    // Shapes have few axes: the length is far below the 65,535 bytes of version 1.
    bytes.extend_from_slice(&((total - 10) as u16).to_le_bytes());
    bytes.extend_from_slice(dict.as_bytes());
    bytes.resize(total - 1, b' ');
    bytes.push(b'\n');
    bytes
}

/// Bytes, escaped for a message.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    format!("\"{}\"", bytes.escape_ascii())
}

/// A name from a file, escaped and shortened for a message.
pub(crate) fn shortened(text: &str) -> String {
    cut(text, 60)
}

/// Text from a file, shortened and with control characters escaped, for a message.
pub(crate) fn cut(text: &str, longest: usize) -> String {
    let mut short = String::new();
    for (i, c) in text.chars().enumerate() {
        match c {
            _ if i == longest => {
                short.push_str("...");
                break;
            }
            '\'' | '"' => short.push(c),
            _ => short.extend(c.escape_debug()),
        }
    }
    short
}

/// Parses the Python dictionary of a header.
struct Parser<'a> {
    rest: &'a str,
}

type Parsed<T> = std::result::Result<T, String>;

impl<'a> Parser<'a> {
    fn header(mut self) -> Parsed<(String, bool, Vec<usize>)> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.expect('{')?;
        while !self.take('}') {
            let key = self.string()?;
            self.expect(':')?;
            let new = match key {
                "descr" => descr.replace(self.descr()?).is_none(),
                "fortran_order" => fortran.replace(self.boolean()?).is_none(),
                "shape" => shape.replace(self.shape()?).is_none(),
                _ => return Err(format!("has an unknown key `{}`", shortened(key))),
            };
            if !new {
                return Err(format!("has the key `{key}` twice"));
            }
            if !self.take(',') {
                self.expect('}')?;
                break;
            }
        }
        if !self.rest.trim().is_empty() {
            return Err(format!("has text after its end: `{}`", shortened(self.rest.trim())));
        }
        let missing = |key| format!("has no key `{key}`");
        Ok((
            descr.ok_or_else(|| missing("descr"))?,
            fortran.ok_or_else(|| missing("fortran_order"))?,
            shape.ok_or_else(|| missing("shape"))?,
        ))
    }

    fn take(&mut self, wanted: char) -> bool {
        self.rest = self.rest.trim_start();
        match self.rest.strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Parsed<()> {
        if self.take(wanted) {
            Ok(())
        } else {
            Err(format!("has `{}` instead of `{wanted}`", shortened(self.rest)))
        }
    }

    fn string(&mut self) -> Parsed<&'a str> {
        let quote = if self.take('"') {
            '"'
        } else {
            self.expect('\'')?;
            '\''
        };
        let (text, rest) =
            self.rest.split_once(quote).ok_or_else(|| "has a text without an end".to_owned())?;
        self.rest = rest;
        Ok(text)
    }

    fn boolean(&mut self) -> Parsed<bool> {
        self.rest = self.rest.trim_start();
        for (text, value) in [("True", true), ("False", false)] {
            if let Some(rest) = self.rest.strip_prefix(text) {
                self.rest = rest;
                return Ok(value);
            }
        }
        Err(format!("has `{}` instead of True or False", shortened(self.rest)))
    }

    /// The type, or the list of fields of a structured array, which is only shown in an error.
    fn descr(&mut self) -> Parsed<String> {
        self.rest = self.rest.trim_start();
        if !self.rest.starts_with('[') {
            return self.string().map(str::to_owned);
        }
        let mut depth = 0_usize;
        for (i, c) in self.rest.char_indices() {
            match c {
                '[' => depth += 1,
                ']' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                let (text, rest) = self.rest.split_at(i + 1);
                self.rest = rest;
                return Ok(text.to_owned());
            }
        }
        Err("has a list without an end".to_owned())
    }

    fn shape(&mut self) -> Parsed<Vec<usize>> {
        self.expect('(')?;
        let mut shape = Vec::new();
        while !self.take(')') {
            self.rest = self.rest.trim_start();
            let end = self.rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.rest.len());
            let (digits, rest) = self.rest.split_at(end);
            let n = digits.parse().map_err(|_| {
                format!("has `{}` instead of the length of an axis", shortened(self.rest))
            })?;
            if shape.len() == MOST_AXES {
                return Err(format!("has a shape of more than {MOST_AXES} axes"));
            }
            shape.push(n);
            // The suffix of long integers in Python 2.
            self.rest = rest.strip_prefix('L').unwrap_or(rest);
            if !self.take(',') {
                self.expect(')')?;
                break;
            }
        }
        Ok(shape)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn parse(dict: &str) -> Parsed<(String, bool, Vec<usize>)> {
        Parser { rest: dict }.header()
    }

    #[test]
    fn headers_as_numpy_writes_them() {
        let ok = |dict, descr: &str, fortran, shape: &[usize]| {
            assert_eq!(parse(dict), Ok((descr.to_owned(), fortran, shape.to_vec())));
        };
        ok(
            "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }   \n",
            "<f4",
            false,
            &[2, 3],
        );
        ok("{'descr': '>f8', 'fortran_order': True, 'shape': (), }", ">f8", true, &[]);
        ok("{\"shape\": (7L,), 'fortran_order': False, 'descr': '<f2'}", "<f2", false, &[7]);
        ok(
            "{'descr': [('a', '<f4', [1]), ('b', '<i4')], 'fortran_order': False, 'shape': (3,)}",
            "[('a', '<f4', [1]), ('b', '<i4')]",
            false,
            &[3],
        );
    }

    #[test]
    fn a_header_is_read_back() {
        for (shape, reserved) in [(vec![], 0), (vec![5], 0), (vec![3, 1 << 40], 192)] {
            let bytes = header_bytes("<f4", &shape, reserved);
            assert_eq!(bytes.len() % 64, 0);
            assert!(bytes.len() >= reserved);
            let length = bytes.len() as u64;
            let header = Header::read("x", &mut &bytes[..]).unwrap();
            assert_eq!(header, Header { descr: "<f4".to_owned(), fortran: false, shape, length });
        }
    }
}
