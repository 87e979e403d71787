//! `.onnx` files: the tensors, and the graph that uses them.
//!
//! Messages are decoded one level at a time, with limits on their number: two bytes of a file can encode a
//! message that takes hundreds of bytes in memory. Tensor data stay slices of the file until they are loaded.

mod graph;
mod proto;
mod search;
mod softmax;

use std::{
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
};

use half::{bf16, f16};
use prost::{Message, bytes::Bytes};

use self::graph::Node;
use self::proto::{Fields, NodeProto, TensorData, TensorProto, ValueInfoProto, check_fields};
pub(super) use self::search::{Obstacle, Search};
use super::{
    At, TRUNCATED, TensorInfo, byte_length,
    element::{Element, read_floats},
    shown, tensor_info,
};
use crate::array::MAX_RANK;
use crate::{Dtype, Result};

/// The size limit of protocol buffers.
const MAX_FILE: u64 = 1 << 31;
const MAX_MESSAGES: usize = 1_000_000;
const REEXPORT: &str = "export the model again";

pub(super) struct Onnx {
    folder: PathBuf,
    constants: Vec<Constant>,
    nodes: Vec<Node>,
    outputs: Vec<String>,
}

/// An initialiser, or the value of a `Constant` node.
struct Constant {
    element: Element,
    shape: Vec<usize>,
    data: Data,
}

enum Data {
    /// The message with the data.
    Inside(Bytes),
    Outside {
        location: String,
        offset: u64,
        length: Option<u64>,
    },
}

impl Onnx {
    pub(super) fn open(
        file: File,
        length: u64,
        folder: PathBuf,
        at: &At,
    ) -> Result<(Self, Vec<TensorInfo>)> {
        if length > MAX_FILE {
            return Err(at.format(
                format!("it has {length} bytes, more than an ONNX file can have"),
                "export it with its weights as external data",
            ));
        }
        let mut bytes = Vec::with_capacity(length as usize);
        file.take(length).read_to_end(&mut bytes).map_err(|e| at.io("read", e))?;

        let bad = |problem: String| at.format(format!("not an ONNX model: {problem}"), REEXPORT);
        let broken = |e: prost::DecodeError| bad(e.to_string());
        let mut graph = None;
        for field in Fields(bytes.into()) {
            if let (7, Some(message)) = field.map_err(bad)? {
                graph = Some(message);
            }
        }
        let graph = graph.ok_or_else(|| bad("it holds no graph".to_owned()))?;

        let mut onnx =
            Self { folder, constants: Vec::new(), nodes: Vec::new(), outputs: Vec::new() };
        let mut tensors = Vec::new();
        for (count, field) in Fields(graph).enumerate() {
            if count > MAX_MESSAGES {
                return Err(bad(format!("its graph has more than {MAX_MESSAGES} parts")));
            }
            let (tag, Some(message)) = field.map_err(bad)? else { continue };
            match tag {
                1 => {
                    check_fields(&message, &[]).map_err(bad)?;
                    let node = NodeProto::decode(message).map_err(broken)?;
                    if let Some((name, tensor)) = node.constant() {
                        onnx.add_constant(tensor, Some(name), &mut tensors).map_err(bad)?;
                    } else {
                        onnx.nodes.push(Node::new(node).map_err(bad)?);
                    }
                }
                5 => onnx.add_constant(message, None, &mut tensors).map_err(bad)?,
                12 => onnx.outputs.push(ValueInfoProto::decode(message).map_err(broken)?.name),
                _ => {}
            }
        }
        Ok((onnx, tensors))
    }

    fn add_constant(
        &mut self,
        message: Bytes,
        name: Option<&str>,
        tensors: &mut Vec<TensorInfo>,
    ) -> std::result::Result<(), String> {
        check_fields(&message, &[4, 5, 6, 7, 10, 11])?;
        let tensor = TensorProto::decode(message.clone()).map_err(|e| e.to_string())?;
        let name = name.map_or(tensor.name, ToOwned::to_owned);
        let bad = |problem: String| format!("tensor `{}` {problem}", shown(&name));
        if tensor.dims.len() > MAX_RANK {
            return Err(bad(format!("has {} axes", tensor.dims.len())));
        }
        let shape = tensor
            .dims
            .iter()
            .map(|&n| usize::try_from(n))
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|_| bad(format!("has the impossible shape {:?}", tensor.dims)))?;
        let element = element(tensor.data_type)
            .ok_or_else(|| bad(format!("has the unknown type {}", tensor.data_type)))?;
        let data = if tensor.data_location == 1 {
            let entry = |key: &str| {
                tensor.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str())
            };
            let number = |key: &str| {
                entry(key).map(str::parse::<u64>).transpose().map_err(|_| {
                    bad(format!("has the impossible {key} `{}`", shown(entry(key).unwrap_or(""))))
                })
            };
            Data::Outside {
                location: entry("location")
                    .ok_or_else(|| bad("lies outside, but does not say where".to_owned()))?
                    .to_owned(),
                offset: number("offset")?.unwrap_or(0),
                length: number("length")?,
            }
        } else {
            Data::Inside(message)
        };
        // Of duplicates the first is used, here and in every lookup.
        self.constants.push(Constant { element, shape: shape.clone(), data });
        tensors.push(tensor_info(name, element, shape));
        Ok(())
    }

    pub(super) fn load(&mut self, index: usize, what: &str, at: &At) -> Result<Vec<f32>> {
        let constant = &self.constants[index];
        let dtype = constant.element.float(what, at)?;
        let impossible =
            || at.format(format!("{what} has the impossible shape {:?}", constant.shape), REEXPORT);
        let bytes = byte_length(&constant.shape, dtype.size()).ok_or_else(impossible)?;
        match &constant.data {
            Data::Inside(message) => inside(message.clone(), dtype, bytes)
                .map_err(|problem| at.format(format!("{what} {problem}"), REEXPORT)),
            Data::Outside { location, offset, length } => {
                if length.is_some_and(|length| length != bytes) {
                    return Err(at.format(
                        format!(
                            "{what} needs {bytes} bytes, and its external data have another length"
                        ),
                        REEXPORT,
                    ));
                }
                self.outside(location, *offset, bytes, dtype, what, at)
            }
        }
    }

    /// External data, which must be in the folder of the model or below it: a hostile model must not read other
    /// files of the machine.
    fn outside(
        &self,
        location: &str,
        offset: u64,
        bytes: u64,
        dtype: Dtype,
        what: &str,
        at: &At,
    ) -> Result<Vec<f32>> {
        let stray = || {
            at.format(
                format!(
                    "{what} has its data in `{}`, which is not in the folder of the model",
                    shown(location)
                ),
                "put the data beside the model and export it again; do not trust this file",
            )
        };
        let inside = Path::new(location)
            .components()
            .all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
        if location.is_empty() || !inside {
            return Err(stray());
        }
        let folder = if self.folder.as_os_str().is_empty() { Path::new(".") } else { &self.folder };
        let data = At(folder.join(shown(location)).display().to_string());
        // Compares after resolving symbolic links.
        let folder = folder.canonicalize().map_err(|e| at.io("find the folder", e))?;
        let path = folder
            .join(location)
            .canonicalize()
            .map_err(|e| data.io("open the data of the model", e))?;
        if !path.starts_with(&folder) {
            return Err(stray());
        }
        let size = match path.metadata() {
            Ok(found) if found.is_file() => found.len(),
            Ok(_) => return Err(data.request("not a file; the model expects its data here")),
            Err(e) => return Err(data.io("open", e)),
        };
        if offset.checked_add(bytes).is_none_or(|end| end > size) {
            return Err(data.format(
                format!("{what} is said to be at byte {offset} with {bytes} bytes, of {size}"),
                TRUNCATED,
            ));
        }
        let mut file = File::open(&path).map_err(|e| data.io("open", e))?;
        file.seek(SeekFrom::Start(offset)).map_err(|e| data.io("read", e))?;
        read_floats(BufReader::new(file), dtype, bytes as usize / dtype.size())
            .map_err(|e| data.read(what, e))
    }
}

/// The data in a `TensorProto`, whose length must match the shape.
fn inside(message: Bytes, dtype: Dtype, bytes: u64) -> std::result::Result<Vec<f32>, String> {
    let data = TensorData::decode(message).map_err(|e| format!("does not decode: {e}"))?;
    let count = bytes as usize / dtype.size();
    let values: Vec<f32> = if data.raw_data.is_empty() {
        // Halves are stored as the bits of an integer each.
        let halves = data.int32_data.iter().map(|&bits| bits as u16);
        match dtype {
            Dtype::F32 => data.float_data,
            Dtype::F64 => data.double_data.iter().map(|&v| v as f32).collect(),
            Dtype::F16 => halves.map(|bits| f16::from_bits(bits).to_f32()).collect(),
            Dtype::Bf16 => halves.map(|bits| bf16::from_bits(bits).to_f32()).collect(),
        }
    } else {
        let held = data.raw_data.len();
        if held as u64 != bytes {
            return Err(format!("needs {bytes} bytes and has {held}"));
        }
        read_floats(&data.raw_data[..], dtype, count).map_err(|e| e.to_string())?
    };
    if values.len() == count {
        Ok(values)
    } else {
        Err(format!("needs {count} elements and has {}", values.len()))
    }
}

fn element(data_type: i32) -> Option<Element> {
    Some(match data_type {
        1 => Element::F32,
        2 => Element::Other("u8", 1),
        3 => Element::Other("i8", 1),
        4 => Element::Other("u16", 2),
        5 => Element::Other("i16", 2),
        6 => Element::Other("i32", 4),
        7 => Element::Other("i64", 8),
        8 => Element::Other("string", 0),
        9 => Element::Other("bool", 1),
        10 => Element::F16,
        11 => Element::F64,
        12 => Element::Other("u32", 4),
        13 => Element::Other("u64", 8),
        14 => Element::Other("c64", 8),
        15 => Element::Other("c128", 16),
        16 => Element::BF16,
        17..=20 | 24 => Element::Other("f8", 1),
        21 => Element::Other("u4", 0),
        22 => Element::Other("i4", 0),
        23 => Element::Other("f4", 0),
        25 => Element::Other("u2", 0),
        26 => Element::Other("i2", 0),
        _ => return None,
    })
}
