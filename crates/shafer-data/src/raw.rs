//! Arrays stored as the raw bytes of their elements.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

use crate::array::{Purpose, elements, shape_text};
use crate::values::swap_bytes;
use crate::{ArrayInfo, ArrayReader, Dtype, Error, Result, Values};

/// The layout of the elements of an array in a file.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Elements {
    Floats {
        dtype: Dtype,
        big_endian: bool,
    },
    /// Integers, converted to `f32` if they have one byte, else to `f64`, which rounds those beyond 2^53.
    Integers {
        size: usize,
        signed: bool,
        big_endian: bool,
    },
}

impl Elements {
    /// The integer types that a purpose allows, by their names in `NumPy` and safetensors.
    pub(crate) fn integers(purpose: Purpose, word: &str) -> Option<Self> {
        let big_endian =
            word.starts_with('>') || (word.starts_with('=') && cfg!(target_endian = "big"));
        let (size, signed) = match word.trim_start_matches(['<', '>', '=', '|']) {
            "b1" | "u1" | "BOOL" | "U8" => (1, false),
            "i1" | "I8" => (1, true),
            "u2" | "U16" => (2, false),
            "i2" | "I16" => (2, true),
            "u4" | "U32" => (4, false),
            "i4" | "I32" => (4, true),
            "u8" | "U64" => (8, false),
            "i8" | "I64" => (8, true),
            _ => return None,
        };
        let taken = match purpose {
            Purpose::Numbers => false,
            Purpose::Mask => size == 1,
            Purpose::Labels => true,
        };
        taken.then_some(Self::Integers { size, signed, big_endian })
    }

    /// The type that elements are converted to.
    pub(crate) fn dtype(self) -> Dtype {
        match self {
            Self::Floats { dtype, .. } => dtype,
            Self::Integers { size: 1, .. } => Dtype::F32,
            Self::Integers { .. } => Dtype::F64,
        }
    }

    /// The size of an element in the file.
    pub(crate) fn size(self) -> usize {
        match self {
            Self::Floats { dtype, .. } => dtype.size(),
            Self::Integers { size, .. } => size,
        }
    }
}

/// Reads elements in C order, directly into the caller's block if no conversion is needed.
pub(crate) struct RawReader {
    file: String,
    info: ArrayInfo,
    source: Box<dyn Read + Send>,
    elements: Elements,
    /// Bytes before conversion.
    bytes: Vec<u8>,
    /// Bytes not read yet.
    left: u64,
    /// Whether to check that no bytes follow the last element.
    check_end: bool,
}

impl RawReader {
    pub(crate) fn new(
        file: &str,
        info: ArrayInfo,
        source: Box<dyn Read + Send>,
        elements: Elements,
        check_end: bool,
    ) -> Result<Self> {
        let left = byte_size(file, &info.shape, elements)?;
        let (file, bytes) = (file.to_owned(), Vec::new());
        Ok(Self { file, info, source, elements, bytes, left, check_end })
    }
}

impl ArrayReader for RawReader {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()> {
        let size = self.elements.size();
        let n = usize::try_from(self.left / size as u64).unwrap_or(usize::MAX).min(elements);
        let memory = |_| Error::memory(&self.file);
        let bytes = match self.elements {
            Elements::Floats { dtype, .. } => block.bytes_mut(dtype, n).map_err(memory)?,
            Elements::Integers { .. } => {
                let more = (n * size).saturating_sub(self.bytes.len());
                self.bytes.try_reserve_exact(more).map_err(memory)?;
                self.bytes.resize(n * size, 0);
                &mut self.bytes
            }
        };
        let got = fill(&mut *self.source, bytes).map_err(|e| Error::io(&self.file, "read", e))?;
        if got < bytes.len() {
            let missing = self.left - got as u64;
            return Err(truncated(&self.file, missing));
        }
        self.left -= bytes.len() as u64;
        match self.elements {
            Elements::Floats { big_endian, .. } => {
                if big_endian != cfg!(target_endian = "big") {
                    swap_bytes(bytes, size);
                }
            }
            Elements::Integers { size: 1, signed, .. } => {
                let number = |x: u8| if signed { x.cast_signed().into() } else { x.into() };
                block.set_f32(self.bytes.iter().map(|&x| number(x))).map_err(memory)?;
            }
            Elements::Integers { signed, big_endian, .. } => {
                let number = |bytes: &[u8]| integer(bytes, signed, big_endian);
                block.set_f64(self.bytes.chunks_exact(size).map(number)).map_err(memory)?;
            }
        }
        if self.left == 0 && self.check_end {
            self.check_end = false;
            let more =
                fill(&mut *self.source, &mut [0]).map_err(|e| Error::io(&self.file, "read", e))?;
            if more > 0 {
                return Err(Error::format(
                    &self.file,
                    format!(
                        "bytes follow the last element of shape {}",
                        shape_text(&self.info.shape)
                    ),
                    "write the file again",
                ));
            }
        }
        Ok(())
    }
}

/// An integer of up to eight bytes.
fn integer(bytes: &[u8], signed: bool, big_endian: bool) -> f64 {
    let mut lowest_first = [0; 8];
    lowest_first[..bytes.len()].copy_from_slice(bytes);
    if big_endian {
        lowest_first[..bytes.len()].reverse();
    }
    let unused = 64 - 8 * bytes.len();
    let shifted = u64::from_le_bytes(lowest_first) << unused;
    if signed { (shifted.cast_signed() >> unused) as f64 } else { (shifted >> unused) as f64 }
}

/// Reads until the buffer is full or the source ends.
pub(crate) fn fill(source: &mut (impl Read + ?Sized), buffer: &mut [u8]) -> io::Result<usize> {
    let mut got = 0;
    while got < buffer.len() {
        match source.read(&mut buffer[got..]) {
            Ok(0) => break,
            Ok(n) => got += n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(got)
}

/// Reads at a position of a file until the buffer is full or the file ends. Moves the file's own position.
pub(crate) fn read_at(file: &File, position: u64, buffer: &mut [u8]) -> io::Result<usize> {
    let mut file = file;
    file.seek(SeekFrom::Start(position))?;
    fill(&mut file, buffer)
}

/// The size of an array in bytes. Fails if no file can be that large.
pub(crate) fn byte_size(file: &str, shape: &[usize], of: Elements) -> Result<u64> {
    elements(shape)
        .and_then(|n| n.checked_mul(of.size()))
        .filter(|&n| i64::try_from(n).is_ok())
        .map(|n| n as u64)
        .ok_or_else(|| {
            Error::format(
                file,
                format!("no file can hold the shape {} of {}", shape_text(shape), of.dtype()),
                "the header is damaged; write the file again",
            )
        })
}

pub(crate) fn truncated(file: &str, missing: u64) -> Error {
    Error::format(
        file,
        format!("truncated: {missing} {} missing at the end", bytes_word(missing)),
        "copy or write the file again",
    )
}

pub(crate) fn bytes_word(n: u64) -> &'static str {
    if n == 1 { "byte" } else { "bytes" }
}
