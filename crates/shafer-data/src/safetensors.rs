//! `.safetensors`: a length, a header in JSON, and the bytes of the tensors.

use std::fmt;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};

use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};

use crate::array::{elements, shape_text};
use crate::entry::{Entry, choose};
use crate::npy::{cut, shortened};
use crate::raw::{RawReader, bytes_word, fill, truncated};
use crate::{ArrayInfo, ArrayReader, Dtype, Error, Result};

/// The format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;

const DAMAGED: &str = "the file is damaged or not of safetensors; write it again";

/// A file that is open and whose header was found to be right.
pub(crate) struct Tensors {
    label: String,
    file: File,
    entries: Vec<Entry>,
    /// Where each tensor lies in the file.
    starts: Vec<u64>,
}

impl Tensors {
    pub(crate) fn open(label: &str, mut file: File) -> Result<Self> {
        let io = |e| Error::io(label, "read", e);
        let damaged = |problem: String| Error::format(label, problem, DAMAGED);
        let total = file.metadata().map_err(io)?.len();
        file.seek(SeekFrom::Start(0)).map_err(io)?;
        let mut length = [0; 8];
        if fill(&mut file, &mut length).map_err(io)? < length.len() {
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
        // Checked before memory is asked for.
        let data =
            total.checked_sub(8 + length).ok_or_else(|| truncated(label, 8 + length - total))?;
        let mut text = vec![0; length as usize];
        file.read_exact(&mut text).map_err(io)?;
        let header: Header = serde_json::from_slice(&text).map_err(|e| {
            // It quotes the header.
            let problem = cut(&e.to_string(), 200);
            damaged(format!("the header is not what it should be ({problem})"))
        })?;
        drop(text);
        let starts =
            header.check(label, data)?.into_iter().map(|start| 8 + length + start).collect();
        let entries = header.0.into_iter().map(|(name, tensor)| Entry {
            name,
            dtype: tensor.dtype(),
            shape: tensor.shape,
        });
        Ok(Self { label: label.to_owned(), file, entries: entries.collect(), starts })
    }

    /// The tensors of floating-point type.
    pub(crate) fn list(&self) -> Vec<ArrayInfo> {
        self.entries.iter().filter_map(Entry::info).collect()
    }

    /// Opens one tensor.
    pub(crate) fn array(mut self, name: Option<&str>) -> Result<Box<dyn ArrayReader>> {
        let chosen = choose(&self.label, &self.entries, name)?;
        let entry = &self.entries[chosen];
        let label = format!("{}:{}", self.label, shortened(&entry.name));
        let info = entry.info().ok_or_else(|| {
            let dtype = entry.dtype.as_ref().err().map_or("", String::as_str);
            Error::format(
                &label,
                format!("has elements of type `{dtype}`"),
                "F16, BF16, F32 and F64 are read; convert it",
            )
        })?;
        let start = SeekFrom::Start(self.starts[chosen]);
        self.file.seek(start).map_err(|e| Error::io(&label, "read", e))?;
        Ok(Box::new(RawReader::new(&label, info, Box::new(self.file), false, false)?))
    }
}

/// The tensors by name, in the order of the file.
struct Header(Vec<(String, Tensor)>);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Tensor {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: [u64; 2],
}

impl Tensor {
    fn dtype(&self) -> std::result::Result<Dtype, String> {
        match self.dtype.as_str() {
            "F16" => Ok(Dtype::F16),
            "BF16" => Ok(Dtype::Bf16),
            "F32" => Ok(Dtype::F32),
            "F64" => Ok(Dtype::F64),
            other => Err(shortened(other)),
        }
    }
}

impl Header {
    /// The beginnings of the tensors in the data, of which there are so many bytes: every tensor is
    /// as long as its shape says, and they lie one after the other without holes, as the format
    /// requires.
    fn check(&self, label: &str, data: u64) -> Result<Vec<u64>> {
        let damaged = |name: &str, problem: String| {
            Err(Error::format(
                label,
                format!("the tensor `{}` {problem}", shortened(name)),
                DAMAGED,
            ))
        };
        for (name, tensor) in &self.0 {
            let [start, end] = tensor.data_offsets;
            if start > end {
                return damaged(name, format!("ends at {end}, before it begins at {start}"));
            }
            // The sizes of other types do not matter here: they are not read.
            let Ok(dtype) = tensor.dtype() else { continue };
            let needed = elements(&tensor.shape).and_then(|n| n.checked_mul(dtype.size()));
            if needed.is_none_or(|needed| needed as u64 != end - start) {
                let (shape, has) = (shape_text(&tensor.shape), end - start);
                return damaged(name, format!("of {dtype} {shape} has {has} {}", bytes_word(has)));
            }
        }
        let mut order: Vec<&(String, Tensor)> = self.0.iter().collect();
        order.sort_by_key(|(_, tensor)| tensor.data_offsets);
        let mut at = 0;
        for (name, tensor) in order {
            let [start, end] = tensor.data_offsets;
            if start < at {
                return damaged(
                    name,
                    format!("begins at {start}, within another that ends at {at}"),
                );
            }
            if start > at {
                return damaged(name, format!("begins at {start}, after a hole from {at}"));
            }
            at = end;
        }
        if at > data {
            return Err(truncated(label, at - data));
        }
        if at < data {
            let left = data - at;
            let problem = format!("{left} {} left over after the last tensor", bytes_word(left));
            return Err(Error::format(label, problem, DAMAGED));
        }
        Ok(self.0.iter().map(|(_, tensor)| tensor.data_offsets[0]).collect())
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
                // Two tensors of one name: which one is meant cannot be said.
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
