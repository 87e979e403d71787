//! The `.safetensors` format: a length, a JSON header, the bytes of the tensors.

use std::cmp::Ordering;
use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::array::{MAX_RANK, Purpose, elements, shape_text};
use crate::entry::{Entry, choose, types};
use crate::npy::{cut, shortened};
use crate::raw::{RawReader, bytes_word, fill, truncated};
use crate::{ArrayInfo, ArrayReader, Dtype, Error, Result};

/// The limit of the format.
const LONGEST_HEADER: u64 = 100_000_000;

const DAMAGED: &str = "the file is damaged or not a safetensors file; write it again";

/// A tensor in the header.
pub(crate) struct Tensor {
    pub(crate) name: String,
    /// The file's name of an unsupported type.
    pub(crate) dtype: std::result::Result<Dtype, String>,
    pub(crate) shape: Vec<usize>,
    /// The offset and the number of its bytes.
    pub(crate) start: u64,
    pub(crate) bytes: u64,
}

/// The tensors of a file, in the order of their data.
///
/// Validates as strictly as the reference implementation: the length of every tensor matches its shape, there
/// are no gaps or overlaps, and no bytes follow the last tensor.
pub(crate) fn read_header(label: &str, file: &mut File) -> Result<Vec<Tensor>> {
    let io = |e| Error::io(label, "read", e);
    let damaged = |problem: String| Error::format(label, problem, DAMAGED);
    let total = file.metadata().map_err(io)?.len();
    file.seek(SeekFrom::Start(0)).map_err(io)?;
    let mut length = [0; 8];
    if fill(file, &mut length).map_err(io)? < length.len() {
        return Err(damaged(format!(
            "has {total} {}, fewer than the 8 that a file of safetensors begins with",
            bytes_word(total)
        )));
    }
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER {
        return Err(damaged(format!(
            "claims a header of {length} bytes, more than the {LONGEST_HEADER} that the format allows"
        )));
    }
    // Checked before the header is allocated.
    let data = total.checked_sub(8 + length).ok_or_else(|| truncated(label, 8 + length - total))?;
    let mut text = vec![0; length as usize];
    file.read_exact(&mut text).map_err(io)?;
    let mut header: Header = serde_json::from_slice(&text).map_err(|e| {
        // The message quotes the header.
        let problem = cut(&e.to_string(), 200);
        damaged(format!("the header is invalid ({problem})"))
    })?;
    drop(text);
    header.0.sort_by_key(|(_, described)| described.data_offsets);
    header.check(label, data)?;
    let tensors = header.0.into_iter().map(|(name, described)| Tensor {
        name,
        dtype: described.dtype(),
        start: 8 + length + described.data_offsets[0],
        bytes: described.data_offsets[1] - described.data_offsets[0],
        shape: described.shape,
    });
    Ok(tensors.collect())
}

/// An open file with a valid header.
pub(crate) struct Tensors {
    label: String,
    file: File,
    entries: Vec<Entry>,
    /// The position of each tensor in the file.
    starts: Vec<u64>,
}

impl Tensors {
    pub(crate) fn open(label: &str, mut file: File) -> Result<Self> {
        let tensors = read_header(label, &mut file)?;
        let starts = tensors.iter().map(|tensor| tensor.start).collect();
        let entry = |Tensor { name, dtype, shape, .. }| Entry { name, dtype, shape };
        let entries = tensors.into_iter().map(entry).collect();
        Ok(Self { label: label.to_owned(), file, entries, starts })
    }

    /// The tensors of floating-point type.
    pub(crate) fn list(&self) -> Vec<ArrayInfo> {
        self.entries.iter().filter_map(Entry::info).collect()
    }

    /// Opens a tensor.
    pub(crate) fn array(
        mut self,
        purpose: Purpose,
        name: Option<&str>,
    ) -> Result<Box<dyn ArrayReader>> {
        let chosen = choose(&self.label, &self.entries, purpose, name)?;
        let entry = &self.entries[chosen];
        let label = format!("{}:{}", self.label, shortened(&entry.name));
        let elements = entry.elements(purpose).ok_or_else(|| {
            let dtype = entry.dtype.as_ref().err().map_or("", String::as_str);
            let problem = format!("has elements of type `{dtype}`, not of {}", types(purpose));
            Error::format(&label, problem, "convert it")
        })?;
        let info = entry.info_as(elements.dtype());
        let start = SeekFrom::Start(self.starts[chosen]);
        self.file.seek(start).map_err(|e| Error::io(&label, "read", e))?;
        Ok(Box::new(RawReader::new(&label, info, Box::new(self.file), elements, false)?))
    }
}

/// The tensors by name.
struct Header(Vec<(String, Described)>);

#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

impl Described {
    fn dtype(&self) -> std::result::Result<Dtype, String> {
        match self.dtype.as_str() {
            "F16" => Ok(Dtype::F16),
            "BF16" => Ok(Dtype::Bf16),
            "F32" => Ok(Dtype::F32),
            "F64" => Ok(Dtype::F64),
            other => Err(shortened(other)),
        }
    }

    /// The size of an element in bytes. Types narrower than a byte are packed, and those that are
    /// not known may be: they are not read, so any size will do.
    fn element_size(&self) -> Option<usize> {
        match self.dtype.as_str() {
            "BOOL" | "U8" | "I8" | "F8_E4M3" | "F8_E5M2" | "F8_E8M0" => Some(1),
            "U16" | "I16" => Some(2),
            "U32" | "I32" => Some(4),
            "U64" | "I64" | "C64" => Some(8),
            _ => self.dtype().ok().map(Dtype::size),
        }
    }

    /// Checks a tensor that should start at an offset of the data.
    fn check(&self, at: u64) -> std::result::Result<(), String> {
        let [start, end] = self.data_offsets;
        let Some(bytes) = end.checked_sub(start) else {
            return Err(format!("ends at {end}, before it begins at {start}"));
        };
        if self.shape.len() > MAX_RANK {
            return Err(format!("has {} axes", self.shape.len()));
        }
        if let Some(size) = self.element_size()
            && elements(&self.shape).and_then(|n| n.checked_mul(size))
                != usize::try_from(bytes).ok()
        {
            let dtype = self.dtype().map_or_else(|word| word, |dtype| dtype.to_string());
            let (shape, bytes_word) = (shape_text(&self.shape), bytes_word(bytes));
            return Err(format!("of {dtype} {shape} has {bytes} {bytes_word}"));
        }
        match start.cmp(&at) {
            Ordering::Less => {
                Err(format!("begins at {start}, inside another tensor that ends at {at}"))
            }
            Ordering::Greater => Err(format!("begins at {start}, after a gap from {at}")),
            Ordering::Equal => Ok(()),
        }
    }
}

impl Header {
    /// Checks tensors, sorted by offset, against the number of bytes of the data.
    fn check(&self, label: &str, data: u64) -> Result<()> {
        let mut at = 0;
        for (name, described) in &self.0 {
            described.check(at).map_err(|problem| {
                let problem = format!("the tensor `{}` {problem}", shortened(name));
                Error::format(label, problem, DAMAGED)
            })?;
            at = described.data_offsets[1];
        }
        if at > data {
            return Err(truncated(label, at - data));
        }
        if at < data {
            let left = data - at;
            let problem = format!("{left} {} left over after the last tensor", bytes_word(left));
            return Err(Error::format(label, problem, DAMAGED));
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Tensors;

        impl<'de> Visitor<'de> for Tensors {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object with a tensor for every name")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Header, A::Error> {
                let mut tensors = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        tensors.push((name, map.next_value()?));
                    }
                }
                // Duplicate names are ambiguous.
                let mut names: Vec<&str> = tensors.iter().map(|(name, _)| &**name).collect();
                names.sort_unstable();
                if let Some(twice) = names.windows(2).find(|pair| pair[0] == pair[1]) {
                    let problem = format!("the name `{}` occurs twice", shortened(twice[0]));
                    return Err(serde::de::Error::custom(problem));
                }
                Ok(Header(tensors))
            }
        }

        deserializer.deserialize_map(Tensors)
    }
}
