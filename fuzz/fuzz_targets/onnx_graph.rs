//! Random graphs of the nodes that occur around a head: each head found fits its tensors, and each loaded one has the
//! announced size.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer_fuzz::Count;
use shafer_fuzz::bytes::{field, number};
use shafer_fuzz::files::{file, model};

#[derive(Arbitrary, Debug)]
struct Input {
    nodes: Vec<Node>,
    tensors: Vec<Tensor>,
    outputs: Vec<Name>,
}

/// One of few names, so that inputs match outputs.
#[derive(Arbitrary, Clone, Copy, Debug)]
struct Name(u8);

impl Name {
    fn field(self, tag: u64) -> Vec<u8> {
        const NAMES: [&str; 11] =
            ["", "x", "y", "z", "w", "b", "u", "v", "head.weight", "head.bias", "weight"];
        field(tag, NAMES[usize::from(self.0) % NAMES.len()].as_bytes())
    }
}

#[derive(Arbitrary, Debug)]
struct Node {
    op: u8,
    inputs: Vec<Name>,
    outputs: Vec<Name>,
    attributes: Vec<Attribute>,
}

impl Node {
    fn bytes(&self) -> Vec<u8> {
        const OPERATORS: [&str; 23] = [
            "Gemm",
            "MatMul",
            "Conv",
            "Add",
            "Softmax",
            "LogSoftmax",
            "Identity",
            "Transpose",
            "Cast",
            "Reshape",
            "Flatten",
            "Constant",
            "Dropout",
            "Relu",
            "Exp",
            "ReduceSum",
            "ReduceMax",
            "Div",
            "Sub",
            "Mul",
            "Log",
            "DequantizeLinear",
            "MatMulInteger",
        ];
        let op = OPERATORS[usize::from(self.op) % OPERATORS.len()];
        let mut bytes = field(4, op.as_bytes());
        bytes.extend(self.inputs.iter().flat_map(|name| name.field(1)));
        bytes.extend(self.outputs.iter().flat_map(|name| name.field(2)));
        bytes.extend(self.attributes.iter().flat_map(|attribute| field(5, &attribute.bytes())));
        bytes
    }
}

#[derive(Arbitrary, Debug)]
enum Attribute {
    TransA(bool),
    TransB(bool),
    Alpha(f32),
    Beta(f32),
    Perm(Vec<u8>),
    Group(i64),
    Value(Tensor),
    Bytes(Vec<u8>),
}

impl Attribute {
    fn bytes(&self) -> Vec<u8> {
        let named = |name: &str, value: Vec<u8>| [field(1, name.as_bytes()), value].concat();
        // The wire type of a fixed 32-bit number.
        let float = |x: f32| [&[2 << 3 | 5], &x.to_le_bytes()[..]].concat();
        match self {
            Self::TransA(on) => named("transA", number(3, i64::from(*on))),
            Self::TransB(on) => named("transB", number(3, i64::from(*on))),
            Self::Alpha(x) => named("alpha", float(*x)),
            Self::Beta(x) => named("beta", float(*x)),
            Self::Perm(axes) => named(
                "perm",
                axes.iter().flat_map(|&axis| number(8, i64::from(axis % 3))).collect(),
            ),
            Self::Group(n) => named("group", number(3, *n)),
            Self::Value(tensor) => named("value", field(5, &tensor.bytes())),
            Self::Bytes(bytes) => bytes.clone(),
        }
    }
}

#[derive(Arbitrary, Debug)]
struct Tensor {
    name: Name,
    shape: Vec<Count>,
    of: u8,
    data: Data,
}

#[derive(Arbitrary, Debug)]
enum Data {
    /// The number of bytes for the shape, within a limit.
    Fitting(u8),
    Raw(Vec<u8>),
    Floats(Vec<u8>),
    Halves(Vec<u8>),
    Doubles(Vec<u8>),
    Outside {
        location: String,
        offset: Count,
    },
}

impl Tensor {
    fn bytes(&self) -> Vec<u8> {
        // Mostly floating-point types.
        const TYPES: [(i64, usize); 6] = [(1, 4), (1, 4), (10, 2), (11, 8), (16, 2), (7, 8)];
        let (of, size) = TYPES[usize::from(self.of) % TYPES.len()];
        let mut bytes = [number(2, of), self.name.field(8)].concat();
        bytes.extend(self.shape.iter().flat_map(|n| number(1, n.0 as i64)));
        bytes.extend(match &self.data {
            Data::Fitting(byte) => {
                let product = self.shape.iter().try_fold(size, |n, axis| n.checked_mul(axis.0));
                field(9, &vec![*byte; product.filter(|&n| n < 10_000).unwrap_or(3)])
            }
            Data::Raw(bytes) => field(9, bytes),
            Data::Floats(bytes) => field(4, bytes),
            Data::Halves(bytes) => field(5, bytes),
            Data::Doubles(bytes) => field(10, bytes),
            Data::Outside { location, offset } => {
                let entry = |key: &str, value: &str| {
                    field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
                };
                let offset = offset.0.to_string();
                [entry("location", location), entry("offset", &offset), number(14, 1)].concat()
            }
        });
        bytes
    }
}

fuzz_target!(|input: Input| {
    let mut graph = Vec::new();
    graph.extend(input.nodes.iter().flat_map(|node| field(1, &node.bytes())));
    graph.extend(input.tensors.iter().flat_map(|tensor| field(5, &tensor.bytes())));
    graph.extend(input.outputs.iter().flat_map(|name| field(12, &name.field(1))));
    let bytes = field(7, &graph);
    let file = file(".onnx", &bytes);
    model(file.path(), bytes.len(), true);
});
