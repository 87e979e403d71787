//! `.safetensors`: a length, a header in JSON, and the data.

use std::{
    collections::HashSet,
    fmt,
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
};

use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, Visitor},
};

use super::{
    At, MAX_RANK, TRUNCATED, TensorInfo, byte_length, element::Element, element::read_floats,
    shown, tensor_info,
};
use crate::Result;

/// What the reference implementation accepts.
const MAX_HEADER: u64 = 100_000_000;
const RESAVE: &str = "write it again with the safetensors library";

pub(super) struct Safetensors {
    file: File,
    entries: Vec<Entry>,
}

struct Entry {
    element: Element,
    /// From the beginning of the file.
    start: u64,
    bytes: u64,
}

/// The header in its order. Nothing is made of what we do not need, so that memory stays in
/// proportion to the header.
struct Header(Vec<(String, Described)>);

#[derive(Deserialize)]
struct Described {
    dtype: String,
    shape: Vec<u64>,
    data_offsets: (u64, u64),
}

impl<'de> Deserialize<'de> for Header {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = Header;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of tensors")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut map: A,
            ) -> std::result::Result<Header, A::Error> {
                let mut entries = Vec::new();
                let mut names = HashSet::new();
                while let Some(name) = map.next_key::<String>()? {
                    if !names.insert(name.clone()) {
                        return Err(de::Error::custom(format!("two of `{}`", shown(&name))));
                    }
                    if name == "__metadata__" {
                        map.next_value::<IgnoredAny>()?;
                    } else {
                        entries.push((name, map.next_value()?));
                    }
                }
                Ok(Header(entries))
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

impl Safetensors {
    pub(super) fn open(mut file: File, length: u64, at: &At) -> Result<(Self, Vec<TensorInfo>)> {
        let mut size = [0; 8];
        file.read_exact(&mut size).map_err(|e| at.read("the length of the header", e))?;
        let size = u64::from_le_bytes(size);
        if size > MAX_HEADER {
            return Err(at.format(
                format!("the header is said to be {size} bytes long, more than {MAX_HEADER}"),
                "this is no safetensors file, or a broken one",
            ));
        }
        if size > length - 8 {
            return Err(at.format(
                format!("the header is said to be {size} bytes long, more than the file"),
                TRUNCATED,
            ));
        }
        let mut header = vec![0; size as usize];
        file.read_exact(&mut header).map_err(|e| at.read("the header", e))?;
        let Header(mut described) = serde_json::from_slice(&header)
            .map_err(|e| at.format(format!("the header does not parse: {e}"), RESAVE))?;
        drop(header);

        // The order of the data is the order in which the tensors were written.
        described.sort_by_key(|(_, d)| d.data_offsets);
        let data = 8 + size;
        let mut entries = Vec::with_capacity(described.len());
        let mut tensors = Vec::with_capacity(described.len());
        let mut last_end = 0;
        for (name, described) in described {
            let bad =
                |problem: String| at.format(format!("tensor `{}` {problem}", shown(&name)), RESAVE);
            let (begin, end) = described.data_offsets;
            if begin > end {
                return Err(bad(format!("begins at {begin} and ends before, at {end}")));
            }
            if end > length - data {
                return Err(at.format(
                    format!(
                        "tensor `{}` ends at byte {end} of the data, of which there are {}",
                        shown(&name),
                        length - data
                    ),
                    TRUNCATED,
                ));
            }
            if begin < last_end {
                return Err(bad("overlaps the one before it".to_owned()));
            }
            last_end = end;
            if described.shape.len() > MAX_RANK {
                return Err(bad(format!("has {} axes", described.shape.len())));
            }
            let shape = described
                .shape
                .iter()
                .map(|&n| usize::try_from(n))
                .collect::<std::result::Result<Vec<_>, _>>()
                .map_err(|_| bad(format!("has the impossible shape {:?}", described.shape)))?;
            let element = element(&described.dtype)
                .ok_or_else(|| bad(format!("has the unknown type {}", shown(&described.dtype))))?;
            // Types narrower than a byte are packed; they are never loaded, so any size will do.
            if element.size() > 0 && byte_length(&shape, element.size()) != Some(end - begin) {
                return Err(bad(format!(
                    "of {} with shape {shape:?} cannot have {} bytes",
                    element.name(),
                    end - begin
                )));
            }
            entries.push(Entry { element, start: data + begin, bytes: end - begin });
            tensors.push(tensor_info(name, element, shape));
        }
        Ok((Self { file, entries }, tensors))
    }

    pub(super) fn load(&mut self, index: usize, what: &str, at: &At) -> Result<Vec<f32>> {
        let entry = &self.entries[index];
        let dtype = entry.element.float(what, at)?;
        self.file.seek(SeekFrom::Start(entry.start)).map_err(|e| at.io("read", e))?;
        let count = entry.bytes as usize / dtype.size();
        read_floats(BufReader::new(&self.file), dtype, count).map_err(|e| at.read(what, e))
    }
}

fn element(name: &str) -> Option<Element> {
    Some(match name {
        "F16" => Element::F16,
        "BF16" => Element::BF16,
        "F32" => Element::F32,
        "F64" => Element::F64,
        "BOOL" => Element::Other("bool", 1),
        "U8" => Element::Other("u8", 1),
        "I8" => Element::Other("i8", 1),
        "U16" => Element::Other("u16", 2),
        "I16" => Element::Other("i16", 2),
        "U32" => Element::Other("u32", 4),
        "I32" => Element::Other("i32", 4),
        "U64" => Element::Other("u64", 8),
        "I64" => Element::Other("i64", 8),
        "C64" => Element::Other("c64", 8),
        "F8_E4M3" => Element::Other("f8_e4m3", 1),
        "F8_E5M2" => Element::Other("f8_e5m2", 1),
        "F8_E8M0" => Element::Other("f8_e8m0", 1),
        "F6_E2M3" => Element::Other("f6_e2m3", 0),
        "F6_E3M2" => Element::Other("f6_e3m2", 0),
        "F4" => Element::Other("f4", 0),
        _ => return None,
    })
}
