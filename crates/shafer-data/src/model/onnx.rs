//! `.onnx`: a graph in protocol buffers, of which only the needed fields are declared.
//!
//! Messages are taken apart one level at a time and counted on the way, since two bytes in a file
//! can make a message that takes hundreds in memory. Data are slices of the file until they are
//! asked for.

use std::{
    collections::HashMap,
    fs::File,
    io::{BufReader, Read, Seek, SeekFrom},
    path::{Component, Path, PathBuf},
};

use half::{bf16, f16};
use prost::{Message, bytes::Bytes};

use super::{
    At, TRUNCATED, TensorInfo, byte_length,
    element::{Element, read_floats},
    heads::{HeadCandidate, Orientation, Plan},
    shown, tensor_info,
};
use crate::array::MAX_RANK;
use crate::{Dtype, Result};

/// The most that protocol buffers can hold.
const MAX_FILE: u64 = 1 << 31;
const MAX_MESSAGES: usize = 1_000_000;
/// Fields of one node or one tensor, other than its data.
const MAX_FIELDS: usize = 4096;
/// Of values; those of exporters are some ten words.
const MAX_NAME: usize = 1024;
/// Of an attribute of a node that may be or lead to a head: a number, or the order of two axes.
const MAX_ATTRIBUTE: usize = 4096;
/// The attributes that say how a node is to be understood.
const ATTRIBUTES: [&str; 6] = ["alpha", "beta", "transA", "transB", "group", "perm"];
/// Between a head and the output lie a handful of nodes. This also ends a cycle.
const MAX_WALK: usize = 32;

/// Outputs and softmax nodes that are looked behind. Transformers have a softmax for each layer.
const MAX_TRACES: usize = 10_000;

const REEXPORT: &str = "export the model again";

#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    output: Vec<String>,
    #[prost(string, tag = "3")]
    name: String,
    #[prost(string, tag = "4")]
    op_type: String,
    /// `AttributeProto`s, decoded as what they have to be.
    #[prost(bytes = "bytes", repeated, tag = "5")]
    attribute: Vec<Bytes>,
}

/// An `AttributeProto` that is a number or some.
#[derive(Clone, PartialEq, Message)]
struct NumberAttribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(float, tag = "2")]
    f: f32,
    #[prost(int64, tag = "3")]
    i: i64,
    #[prost(int64, repeated, tag = "8")]
    ints: Vec<i64>,
}

/// An `AttributeProto` that is a tensor.
#[derive(Clone, PartialEq, Message)]
struct TensorAttribute {
    #[prost(string, tag = "1")]
    name: String,
    /// Decoded as what it has to be.
    #[prost(bytes = "bytes", tag = "5")]
    t: Bytes,
}

/// What a `TensorProto` says of its data.
#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(message, repeated, tag = "13")]
    external_data: Vec<StringStringEntryProto>,
    #[prost(int32, tag = "14")]
    data_location: i32,
}

/// The data of a `TensorProto`.
#[derive(Clone, PartialEq, Message)]
#[expect(clippy::struct_field_names, reason = "they are called so in the format")]
struct TensorData {
    #[prost(float, repeated, tag = "4")]
    float_data: Vec<f32>,
    #[prost(int32, repeated, tag = "5")]
    int32_data: Vec<i32>,
    #[prost(bytes = "bytes", tag = "9")]
    raw_data: Bytes,
    #[prost(double, repeated, tag = "10")]
    double_data: Vec<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct StringStringEntryProto {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct ValueInfoProto {
    #[prost(string, tag = "1")]
    name: String,
}

pub(super) struct Onnx {
    folder: PathBuf,
    constants: Vec<Constant>,
    nodes: Vec<Node>,
    outputs: Vec<String>,
}

struct Node {
    input: Vec<String>,
    output: Vec<String>,
    name: String,
    op_type: String,
    /// Only of nodes that may be or lead to a head.
    attributes: Vec<NumberAttribute>,
}

/// An initialiser, or the value of a `Constant` node.
struct Constant {
    element: Element,
    shape: Vec<usize>,
    data: Data,
}

enum Data {
    /// The message with the data in it.
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
        // Of two with one name the first is meant, here and in every lookup.
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

    /// Data in another file, which must lie in the folder of the model or below it: a model from
    /// elsewhere must not make us read (and show) anything else of the machine.
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
        // Links are resolved before the path is compared.
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

    /// The linear layers whose result goes to an output of the graph or into a softmax.
    pub(super) fn plans(&self, tensors: &[TensorInfo]) -> Vec<Plan> {
        let mut graph = Graph {
            constants: HashMap::with_capacity(tensors.len()),
            producers: HashMap::with_capacity(self.nodes.len()),
            tensors,
        };
        for (i, tensor) in tensors.iter().enumerate() {
            graph.constants.entry(&tensor.name).or_insert(i);
        }
        for node in &self.nodes {
            for output in node.output.iter().filter(|name| !name.is_empty()) {
                graph.producers.entry(output).or_insert(node);
            }
        }
        let mut plans: Vec<Plan> = Vec::new();
        let mut add = |plan: Option<Plan>| {
            if let Some(plan) = plan
                && !plans.iter().any(|p| p.candidate.same_layer(&plan.candidate))
            {
                plans.push(plan);
            }
        };
        for output in self.outputs.iter().take(MAX_TRACES) {
            add(graph
                .trace(output, 2, &|op| format!("its {op} feeds the output `{}`", shown(output))));
        }
        let is_softmax = |node: &&Node| matches!(node.op_type.as_str(), "Softmax" | "LogSoftmax");
        for node in self.nodes.iter().filter(is_softmax).take(MAX_TRACES) {
            if let [input, ..] = &node.input[..] {
                add(graph.trace(input, 1, &|op| {
                    format!("its {op} feeds the {} `{}`", node.op_type, shown(node.label()))
                }));
            }
        }
        plans
    }
}

impl NodeProto {
    /// The name and the tensor of a node that is nothing else.
    fn constant(&self) -> Option<(&str, Bytes)> {
        let [name] = &self.output[..] else { return None };
        if self.op_type != "Constant" {
            return None;
        }
        let mut attributes =
            self.attribute.iter().filter_map(|bytes| TensorAttribute::decode(bytes.clone()).ok());
        let tensor = attributes.find(|attribute| attribute.name == "value")?.t;
        (!tensor.is_empty()).then_some((name, tensor))
    }
}

impl Node {
    /// Decodes the attributes, once: the same node may lie behind any number of outputs.
    fn new(proto: NodeProto) -> std::result::Result<Self, String> {
        let NodeProto { input, output, name, op_type, attribute } = proto;
        if input.iter().chain(&output).any(|name| name.len() > MAX_NAME) {
            return Err(format!("a value has a name of more than {MAX_NAME} bytes"));
        }
        let mut attributes = Vec::new();
        if matches!(&*op_type, "Gemm" | "Conv" | "Transpose") {
            for bytes in attribute {
                if bytes.len() > MAX_ATTRIBUTE {
                    let n = bytes.len();
                    return Err(format!("a {op_type} has an attribute of {n} bytes"));
                }
                // One that does not decode is one that is not there.
                let Ok(attribute) = NumberAttribute::decode(bytes) else { continue };
                let taken = |a: &NumberAttribute| a.name == attribute.name;
                if ATTRIBUTES.contains(&&*attribute.name) && !attributes.iter().any(taken) {
                    attributes.push(attribute);
                }
            }
        }
        Ok(Self { input, output, name, op_type, attributes })
    }

    fn attribute(&self, name: &str) -> Option<&NumberAttribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    fn int(&self, name: &str) -> i64 {
        self.attribute(name).map_or(0, |a| a.i)
    }

    fn float(&self, name: &str) -> f32 {
        self.attribute(name).map_or(1.0, |a| a.f)
    }

    fn label(&self) -> &str {
        if self.name.is_empty() {
            self.output.first().map_or("", String::as_str)
        } else {
            &self.name
        }
    }
}

struct Graph<'g> {
    constants: HashMap<&'g str, usize>,
    producers: HashMap<&'g str, &'g Node>,
    tensors: &'g [TensorInfo],
}

impl<'g> Graph<'g> {
    /// The tensor behind a value, and whether it was transposed on the way.
    fn constant(&self, value: &str) -> Option<(&'g TensorInfo, bool)> {
        let mut value = value;
        let mut transposed = false;
        for _ in 0..MAX_WALK {
            if let Some(&index) = self.constants.get(value) {
                return Some((&self.tensors[index], transposed));
            }
            let node = self.producers.get(value)?;
            match &*node.op_type {
                "Identity" | "Cast" => {}
                "Transpose" => {
                    // Without an order the axes are reversed. Only a matrix can be meant here.
                    if node.attribute("perm").is_some_and(|perm| perm.ints != [1, 0]) {
                        return None;
                    }
                    transposed = !transposed;
                }
                _ => return None,
            }
            value = node.input.first()?;
        }
        None
    }

    /// Back from a value to the layer that makes it, if nothing else than a bias and a softmax
    /// lies between.
    fn trace(&self, value: &str, strength: u8, reason: &dyn Fn(&str) -> String) -> Option<Plan> {
        let mut value = value;
        let mut added: Option<&TensorInfo> = None;
        for _ in 0..MAX_WALK {
            let node = *self.producers.get(value)?;
            match &*node.op_type {
                "Softmax" | "LogSoftmax" | "Identity" | "Reshape" | "Transpose" | "Cast"
                | "Flatten" | "Squeeze" | "Unsqueeze" | "Dropout" => value = node.input.first()?,
                "Add" => {
                    let [a, b] = &node.input[..] else { return None };
                    let (bias, other) = match (self.constant(a), self.constant(b)) {
                        (Some((bias, _)), None) => (bias, b),
                        (None, Some((bias, _))) => (bias, a),
                        _ => return None,
                    };
                    if added.replace(bias).is_some() {
                        return None;
                    }
                    value = other;
                }
                "Gemm" | "MatMul" | "Conv" => {
                    let mut plan = self.layer(node, added)?;
                    plan.strength = strength;
                    plan.candidate.reason = reason(&node.op_type);
                    return Some(plan);
                }
                _ => return None,
            }
        }
        None
    }

    fn layer(&self, node: &Node, added: Option<&TensorInfo>) -> Option<Plan> {
        let [a, b, rest @ ..] = &node.input[..] else { return None };
        let (mut alpha, mut beta) = (1.0, 1.0);
        // Whether the tensor in the file has a row for each class.
        let (weight, by_class) = match &*node.op_type {
            "Gemm" => {
                if node.int("transA") != 0 {
                    return None;
                }
                (alpha, beta) = (node.float("alpha"), node.float("beta"));
                let (weight, transposed) = self.constant(b)?;
                (weight, transposed != (node.int("transB") != 0))
            }
            "MatMul" => match (self.constant(a), self.constant(b)) {
                (None, Some((weight, transposed))) => (weight, transposed),
                (Some((weight, transposed)), None) => (weight, !transposed),
                _ => return None,
            },
            _ => {
                let (weight, transposed) = self.constant(b)?;
                let single = weight.shape.len() > 2 && weight.shape[2..].iter().all(|&n| n == 1);
                if transposed || !single || node.attribute("group").is_some_and(|g| g.i != 1) {
                    return None;
                }
                (weight, true)
            }
        };
        let (rows, columns) = match weight.shape[..] {
            [rows, columns] => (rows, columns),
            [rows, columns, ..] if node.op_type == "Conv" => (rows, columns),
            _ => return None,
        };
        // Without this the size of one side would not be bounded by the data.
        if rows == 0 || columns == 0 {
            return None;
        }
        let (features, classes, orientation) = if by_class {
            (columns, rows, Orientation::ClassesByFeatures)
        } else {
            (rows, columns, Orientation::FeaturesByClasses)
        };
        let own = match rest.first().filter(|name| !name.is_empty()) {
            // A bias that is computed is none that can be taken out.
            Some(name) => Some(self.constant(name)?.0),
            None => None,
        };
        let bias = match (own, added) {
            (Some(_), Some(_)) => return None,
            (own, None) => own,
            (None, added) => {
                // It is added after the scaling.
                beta = 1.0;
                added
            }
        };
        if let Some(bias) = bias {
            let count = byte_length(&bias.shape, 1)?;
            if count != classes as u64 && count != 1 {
                return None;
            }
        }
        Some(Plan {
            candidate: HeadCandidate {
                weight: weight.name.clone(),
                bias: bias.map(|b| b.name.clone()),
                features,
                classes,
                orientation,
                reason: String::new(),
            },
            alpha,
            beta,
            strength: 0,
        })
    }
}

/// The fields of a message: the number of each, and its bytes if it has a length.
struct Fields(Bytes);

impl Fields {
    fn varint(&mut self) -> std::result::Result<u64, String> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err("a number has no end".to_owned())
    }

    fn take(&mut self, length: u64) -> std::result::Result<Bytes, String> {
        if length > self.0.len() as u64 {
            return Err("it ends early".to_owned());
        }
        Ok(self.0.split_to(length as usize))
    }

    fn field(&mut self) -> std::result::Result<(u64, Option<Bytes>), String> {
        let key = self.varint()?;
        let bytes = match key & 7 {
            0 => {
                self.varint()?;
                None
            }
            1 => {
                self.take(8)?;
                None
            }
            2 => {
                let length = self.varint()?;
                Some(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                None
            }
            other => return Err(format!("it has a field of the unknown kind {other}")),
        };
        Ok((key >> 3, bytes))
    }
}

impl Iterator for Fields {
    type Item = std::result::Result<(u64, Option<Bytes>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            // Nothing sensible follows.
            self.0.clear();
        }
        Some(field)
    }
}

/// Whether a message has few enough fields, apart from those of some numbers, to be decoded.
fn check_fields(message: &Bytes, except: &[u64]) -> std::result::Result<(), String> {
    let mut count = 0;
    for field in Fields(message.clone()) {
        count += usize::from(!except.contains(&field?.0));
        if count > MAX_FIELDS {
            return Err(format!("a part of its graph has more than {MAX_FIELDS} fields"));
        }
    }
    Ok(())
}

/// The data in a `TensorProto`, which must be as many as the shape says.
fn inside(message: Bytes, dtype: Dtype, bytes: u64) -> std::result::Result<Vec<f32>, String> {
    let data = TensorData::decode(message).map_err(|e| format!("does not decode: {e}"))?;
    let count = bytes as usize / dtype.size();
    let values: Vec<f32> = if data.raw_data.is_empty() {
        // Halves are stored as their bits, one in a number.
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
