//! The nodes of an ONNX graph, their constant inputs, and the linear layers among them.

use std::collections::HashMap;

use prost::Message;

use super::super::heads::Orientation;
use super::super::{TensorInfo, byte_length, shown};
use super::proto::{NodeProto, NumberAttribute};
use super::search::Obstacle;

/// Of values; those of exporters are some ten words.
const MAX_NAME: usize = 1024;
/// Of an attribute of a node that may be or lead to a head: a number, or the order of two axes.
const MAX_ATTRIBUTE: usize = 4096;
/// The attributes that define the meaning of a node.
const ATTRIBUTES: [&str; 7] = ["alpha", "beta", "transA", "transB", "group", "perm", "to"];
/// The most nodes between a head and the output. Also ends cycles.
pub(super) const MAX_WALK: usize = 32;

pub(super) struct Node {
    pub(super) input: Vec<String>,
    pub(super) output: Vec<String>,
    name: String,
    op_type: String,
    /// Decoded only for nodes that can be, or lead to, a head.
    attributes: Vec<NumberAttribute>,
}

impl Node {
    /// Decodes the attributes, once: a node can be reachable from any number of outputs.
    pub(super) fn new(proto: NodeProto) -> Result<Self, String> {
        let NodeProto { input, output, name, op_type, attribute } = proto;
        if input.iter().chain(&output).any(|name| name.len() > MAX_NAME) {
            return Err(format!("a value has a name of more than {MAX_NAME} bytes"));
        }
        let mut attributes = Vec::new();
        if matches!(&*op_type, "Gemm" | "Conv" | "Transpose" | "Cast") {
            for bytes in attribute {
                if bytes.len() > MAX_ATTRIBUTE {
                    let n = bytes.len();
                    return Err(format!("a {op_type} has an attribute of {n} bytes"));
                }
                // A default in place of a damaged attribute would change the numbers.
                let Ok(attribute) = NumberAttribute::decode(bytes) else {
                    return Err(format!("a {op_type} has a damaged attribute"));
                };
                if matches!(&*attribute.name, "alpha" | "beta") && attribute.f.is_none() {
                    return Err(format!("the {} of a {op_type} has no value", attribute.name));
                }
                let taken = |a: &NumberAttribute| a.name == attribute.name;
                if ATTRIBUTES.contains(&&*attribute.name) && !attributes.iter().any(taken) {
                    attributes.push(attribute);
                }
            }
        }
        Ok(Self { input, output, name, op_type, attributes })
    }

    pub(super) fn op(&self) -> &str {
        &self.op_type
    }

    fn attribute(&self, name: &str) -> Option<&NumberAttribute> {
        self.attributes.iter().find(|attribute| attribute.name == name)
    }

    fn int(&self, name: &str) -> i64 {
        self.attribute(name).map_or(0, |a| a.i)
    }

    fn float(&self, name: &str) -> f32 {
        self.attribute(name).and_then(|a| a.f).unwrap_or(1.0)
    }

    /// The name for messages. Names of nodes are optional, those of outputs are not.
    pub(super) fn label(&self) -> String {
        shown(if self.name.is_empty() {
            self.output.first().map_or("", String::as_str)
        } else {
            &self.name
        })
    }

    pub(super) fn is_layer(&self) -> bool {
        matches!(self.op(), "Gemm" | "MatMul" | "Conv")
    }

    /// Quantised operators of the standard and of onnxruntime.
    pub(super) fn is_quantised(&self) -> bool {
        let op = self.op();
        op.starts_with("QLinear")
            || matches!(
                op,
                "MatMulInteger"
                    | "ConvInteger"
                    | "QuantizeLinear"
                    | "DequantizeLinear"
                    | "DynamicQuantizeLinear"
                    | "QGemm"
                    | "QAttention"
                    | "MatMulIntegerToFloat"
                    | "DynamicQuantizeMatMul"
                    | "MatMulNBits"
                    | "MatMulBnb4"
            )
    }

    /// Whether the output has the values of the first input.
    pub(super) fn keeps_values(&self) -> bool {
        matches!(self.op(), "Identity" | "Cast" | "Dropout") || self.moves_axes()
    }

    /// Whether the output has the values of the first input, in another shape or order.
    pub(super) fn moves_axes(&self) -> bool {
        matches!(
            self.op(),
            "Reshape" | "Transpose" | "Flatten" | "Squeeze" | "Unsqueeze" | "Expand"
        )
    }
}

/// A constant tensor that is an input of a node, and the operations in between.
#[derive(Clone, Copy)]
pub(super) struct Operand<'g> {
    pub(super) tensor: &'g TensorInfo,
    /// Whether a matrix is transposed.
    transposed: bool,
    reshaped: bool,
    /// The node that dequantises or quantises it.
    quantised: Option<&'g Node>,
}

/// A node that multiplies by a constant tensor, and the bias.
#[derive(Clone, Copy)]
pub(super) struct Layer<'g> {
    pub(super) node: &'g Node,
    pub(super) weight: &'g TensorInfo,
    pub(super) bias: Option<&'g TensorInfo>,
    pub(super) orientation: Orientation,
    pub(super) features: usize,
    pub(super) classes: usize,
    /// The factor of the weights.
    pub(super) alpha: f32,
    /// The factor of the bias.
    pub(super) beta: f32,
    /// The number of axes after that of the classes in the output.
    axes_behind: usize,
}

impl<'g> Layer<'g> {
    /// Adds a bias, a tensor that is added to the output or to its transpose.
    pub(super) fn plus(self, added: Operand<'g>, moved: bool) -> Result<Self, Obstacle> {
        if let Some(by) = added.quantised {
            return Err(Obstacle::quantised(by));
        }
        if self.bias.is_some() {
            return Err(Obstacle::at(self.node, "which has two biases"));
        }
        if !self.fits(added, moved) {
            return Err(Obstacle::at(self.node, "to which a tensor of another shape is added"));
        }
        // Added after scaling.
        Ok(Self { bias: Some(added.tensor), beta: 1.0, ..self })
    }

    /// Whether an added tensor is a vector with one value per class, or a scalar.
    pub(super) fn fits(&self, added: Operand<'_>, moved: bool) -> bool {
        let shape = &added.tensor.shape;
        let Some(count) = byte_length(shape, 1) else { return false };
        if count == 1 {
            return true;
        }
        let mut long = shape.iter().rev().enumerate().filter(|&(_, &n)| n != 1);
        let (Some((behind, &n)), None) = (long.next(), long.next()) else { return false };
        // The output of `W @ x` is a vector.
        let placed = behind == self.axes_behind || (self.node.op() == "MatMul" && shape.len() == 1);
        n == self.classes && (placed || moved || added.reshaped || added.transposed)
    }

    /// Whether two nodes use their weights in the same way.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let name = |tensor: Option<&'g TensorInfo>| tensor.map(|tensor| &tensor.name);
        self.weight.name == other.weight.name
            && name(self.bias) == name(other.bias)
            && self.orientation == other.orientation
            && self.alpha.to_bits() == other.alpha.to_bits()
            && self.beta.to_bits() == other.beta.to_bits()
    }
}

pub(super) struct Graph<'g> {
    pub(super) nodes: &'g [Node],
    tensors: &'g [TensorInfo],
    constants: HashMap<&'g str, usize>,
    producers: HashMap<&'g str, &'g Node>,
}

impl<'g> Graph<'g> {
    pub(super) fn new(nodes: &'g [Node], tensors: &'g [TensorInfo]) -> Self {
        let mut constants = HashMap::with_capacity(tensors.len());
        for (i, tensor) in tensors.iter().enumerate() {
            constants.entry(tensor.name.as_str()).or_insert(i);
        }
        let mut producers = HashMap::with_capacity(nodes.len());
        for node in nodes {
            for output in node.output.iter().filter(|name| !name.is_empty()) {
                producers.entry(output.as_str()).or_insert(node);
            }
        }
        Self { nodes, tensors, constants, producers }
    }

    pub(super) fn producer(&self, value: &str) -> Option<&'g Node> {
        self.producers.get(value).copied()
    }

    /// The tensor with this name. Of duplicates the first.
    pub(super) fn tensor(&self, name: &str) -> Option<&'g TensorInfo> {
        self.constants.get(name).map(|&index| &self.tensors[index])
    }

    /// The constant tensor that a value comes from.
    pub(super) fn constant(&self, value: &str) -> Option<Operand<'g>> {
        let mut value = value;
        let (mut transposed, mut reshaped, mut quantised) = (false, false, None);
        for _ in 0..MAX_WALK {
            if let Some(tensor) = self.tensor(value) {
                return Some(Operand { tensor, transposed, reshaped, quantised });
            }
            let node = self.producer(value)?;
            match node.op() {
                "Identity" => {}
                // A cast to floating point.
                "Cast" if matches!(node.int("to"), 1 | 10 | 11 | 16) => {}
                "Transpose" => {
                    // The default order reverses the axes. Only matrices are supported.
                    if node.attribute("perm").is_some_and(|perm| perm.ints != [1, 0]) {
                        return None;
                    }
                    transposed = !transposed;
                }
                "QuantizeLinear" | "DequantizeLinear" => quantised = Some(node),
                _ if node.moves_axes() => reshaped = true,
                _ => return None,
            }
            value = node.input.first()?;
        }
        None
    }

    /// Whether a value does not depend on the inputs of the graph.
    pub(super) fn is_fixed(&self, value: &'g str) -> bool {
        let mut open = vec![value];
        for _ in 0..MAX_WALK {
            let Some(value) = open.pop() else { return true };
            if value.is_empty() || self.tensor(value).is_some() {
                continue;
            }
            match self.producer(value) {
                Some(node) if node.input.len() <= MAX_WALK => {
                    open.extend(node.input.iter().map(String::as_str));
                }
                _ => return false,
            }
        }
        false
    }

    /// A node as a linear layer, with its own bias.
    pub(super) fn layer(&self, node: &'g Node) -> Result<Layer<'g>, Obstacle> {
        let refuse = |why| Obstacle::at(node, why);
        let no_weight = || refuse("which multiplies by no tensor of the file");
        let [a, b, rest @ ..] = &node.input[..] else { return Err(no_weight()) };
        let (mut alpha, mut beta) = (1.0, 1.0);
        // Whether the tensor has one row per class.
        let (weight, by_class, axes_behind) = match node.op() {
            "Gemm" => {
                if node.int("transA") != 0 {
                    return Err(refuse("which transposes its features (transA)"));
                }
                (alpha, beta) = (node.float("alpha"), node.float("beta"));
                let weight = self.constant(b).ok_or_else(no_weight)?;
                (weight, weight.transposed != (node.int("transB") != 0), 0)
            }
            "MatMul" => match (self.constant(a), self.constant(b)) {
                (None, Some(weight)) => (weight, weight.transposed, 0),
                (Some(weight), None) => (weight, !weight.transposed, 1),
                _ => return Err(no_weight()),
            },
            _ => {
                let weight = self.constant(b).ok_or_else(no_weight)?;
                let shape = &weight.tensor.shape;
                let single = shape.len() > 2 && shape[2..].iter().all(|&n| n == 1);
                let grouped = node.attribute("group").is_some_and(|g| g.i != 1);
                if weight.transposed || !single || grouped {
                    return Err(refuse(
                        "which looks at more than one place at a time, or in groups",
                    ));
                }
                (weight, true, shape.len() - 2)
            }
        };
        if let Some(by) = weight.quantised {
            return Err(Obstacle::quantised(by));
        }
        let weight = match weight.tensor {
            _ if weight.reshaped => return Err(refuse("which reshapes its weights")),
            tensor => tensor,
        };
        let (rows, columns) = match weight.shape[..] {
            [rows, columns] => (rows, columns),
            [rows, columns, ..] if node.op() == "Conv" => (rows, columns),
            _ => return Err(refuse("whose weights are no matrix")),
        };
        // Bounds the size of each side by the data.
        if rows == 0 || columns == 0 {
            return Err(refuse("whose weights have no elements"));
        }
        let (features, classes, orientation) = if by_class {
            (columns, rows, Orientation::ClassesByFeatures)
        } else {
            (rows, columns, Orientation::FeaturesByClasses)
        };
        let layer = Layer {
            node,
            weight,
            bias: None,
            orientation,
            features,
            classes,
            alpha,
            beta,
            axes_behind,
        };
        let Some(own) = rest.first().filter(|name| !name.is_empty()) else { return Ok(layer) };
        let own = self.constant(own).ok_or_else(|| refuse("whose bias is computed"))?;
        if let Some(by) = own.quantised {
            return Err(Obstacle::quantised(by));
        }
        // The bias input of a Conv is a vector.
        if !(Layer { axes_behind: 0, ..layer }).fits(own, false) {
            return Err(refuse("whose bias has another shape"));
        }
        Ok(Layer { bias: Some(own.tensor), ..layer })
    }
}
