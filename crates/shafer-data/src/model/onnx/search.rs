//! Searches a graph for the linear layers that can be its head, and for the use of a named tensor.

use std::collections::HashMap;

use super::super::heads::{Doubt, HeadCandidate, Plan};
use super::super::{TensorInfo, shown};
use super::Onnx;
use super::graph::{Graph, Layer, MAX_WALK, Node, Operand};

/// The most outputs and softmax nodes to search from. Transformers have a softmax per layer.
const MAX_TRACES: usize = 10_000;

/// The layers that feed outputs and softmax nodes.
pub(in super::super) struct Search {
    pub(in super::super) plans: Vec<Plan>,
    /// The reason why no linear layer feeds the first output, if none does.
    pub(in super::super) obstacle: Option<Obstacle>,
}

/// The reason why a node is not a linear layer, phrased to follow "made by" or "used by".
pub(in super::super) struct Obstacle {
    pub(in super::super) problem: String,
    /// Whether a quantised operator is the reason, for which no option helps.
    pub(in super::super) quantised: bool,
}

impl Obstacle {
    pub(super) fn at(node: &Node, why: &str) -> Self {
        let problem = format!("the {} `{}`, {why}", shown(node.op()), node.label());
        Self { problem, quantised: false }
    }

    pub(super) fn quantised(node: &Node) -> Self {
        Self { quantised: true, ..Self::at(node, "a quantised operator, which is not computed") }
    }

    fn prefixed(self, prefix: &str) -> Self {
        Self { problem: format!("{prefix} {}", self.problem), ..self }
    }
}

/// A layer that feeds an output or a softmax.
struct Traced<'g> {
    layer: Layer<'g>,
    /// Whether a softmax or an argmax shows that the values are classes.
    over_classes: bool,
}

struct Found<'g> {
    traced: Traced<'g>,
    feeds_output: bool,
    reason: String,
}

impl Found<'_> {
    fn plan(self) -> Plan {
        let Traced { layer, over_classes } = self.traced;
        let doubt = match layer.classes {
            1 => Some(Doubt::OneValue),
            2..=3 if !over_classes => Some(Doubt::FewValues),
            _ => (!self.feeds_output).then_some(Doubt::Inside),
        };
        plan(&layer, self.reason, doubt, if self.feeds_output { 2 } else { 1 })
    }
}

fn plan(layer: &Layer<'_>, reason: String, doubt: Option<Doubt>, strength: u8) -> Plan {
    Plan {
        candidate: HeadCandidate {
            weight: layer.weight.name.clone(),
            bias: layer.bias.map(|bias| bias.name.clone()),
            features: layer.features,
            classes: layer.classes,
            orientation: layer.orientation,
            reason,
            doubt,
        },
        alpha: layer.alpha,
        beta: layer.beta,
        strength,
    }
}

impl Onnx {
    /// The linear layers that feed an output of the graph or a softmax.
    pub(in super::super) fn search<'g>(&'g self, tensors: &'g [TensorInfo]) -> Search {
        let graph = Graph::new(&self.nodes, tensors);
        let mut found: Vec<Found<'g>> = Vec::new();
        let mut obstacle = None;
        let mut add = |new: Found<'g>| match found
            .iter_mut()
            .find(|old| old.traced.layer.agrees(&new.traced.layer))
        {
            Some(old) => old.traced.over_classes |= new.traced.over_classes,
            None => found.push(new),
        };
        for output in self.outputs.iter().take(MAX_TRACES) {
            match graph.trace(output) {
                Ok(traced) => {
                    let op = traced.layer.node.op();
                    let reason = format!("its {op} feeds the output `{}`", shown(output));
                    add(Found { traced, feeds_output: true, reason });
                }
                Err(why) => {
                    let what = format!("the output `{}` is made by", shown(output));
                    obstacle.get_or_insert_with(|| why.prefixed(&what));
                }
            }
        }
        let softmax = |node| Some((node, graph.softmax_input(node)?));
        for (node, logits) in self.nodes.iter().filter_map(softmax).take(MAX_TRACES) {
            if let Ok(traced) = graph.trace(logits) {
                let (op, end) = (traced.layer.node.op(), node.label());
                let reason = match node.op() {
                    whole @ ("Softmax" | "LogSoftmax") => {
                        format!("its {op} feeds the {whole} `{end}`")
                    }
                    last => format!("its {op} feeds the softmax that ends in the {last} `{end}`"),
                };
                let traced = Traced { over_classes: true, ..traced };
                add(Found { traced, feeds_output: false, reason });
            }
        }
        Search { plans: found.into_iter().map(Found::plan).collect(), obstacle }
    }

    /// The weights that a name refers to: a tensor, or the layer whose bias has the name. Exporters that
    /// transpose weights rename them, but not the bias.
    pub(in super::super) fn weight_named<'t>(
        &self,
        name: &str,
        tensors: &'t [TensorInfo],
    ) -> Option<&'t TensorInfo> {
        let layer = name.strip_suffix(".weight").unwrap_or(name);
        let find = |name: &str| tensors.iter().find(|tensor| tensor.name == name);
        if let Some(tensor) = find(name).or_else(|| find(&format!("{layer}.weight"))) {
            return Some(tensor);
        }
        let bias = find(&format!("{layer}.bias"))?;
        let graph = Graph::new(&self.nodes, tensors);
        let uses = graph.uses(&self.outputs);
        let mut layers = graph.nodes.iter().filter(|node| node.is_layer());
        let weight = layers.find_map(|node| {
            let found = graph.layer_with_bias(node, &uses).ok()?;
            (found.bias?.name == bias.name).then_some(&found.weight.name)
        })?;
        find(weight)
    }

    /// The use of a matrix by the nodes of the graph, if it is unambiguous.
    pub(in super::super) fn used(
        &self,
        weight: &TensorInfo,
        tensors: &[TensorInfo],
    ) -> Result<Plan, Obstacle> {
        let graph = Graph::new(&self.nodes, tensors);
        let uses = graph.uses(&self.outputs);
        let is_weight = |value: &String| {
            graph.constant(value).is_some_and(|operand| operand.tensor.name == weight.name)
        };
        let name = shown(&weight.name);
        let mut layer: Option<Layer<'_>> = None;
        for node in &self.nodes {
            // The third input is the bias.
            let inputs = || node.input.iter().take(2);
            let found = if node.is_quantised() && node.input.iter().any(is_weight) {
                Err(Obstacle::quantised(node))
            } else if node.is_layer() && inputs().any(is_weight) {
                graph.layer_with_bias(node, &uses)
            } else {
                continue;
            };
            let new = found.map_err(|why| why.prefixed(&format!("`{name}` is used by")))?;
            if let Some(old) = layer.filter(|old| !old.agrees(&new)) {
                let why =
                    format!("in another way than by the {} `{}`", old.node.op(), old.node.label());
                return Err(Obstacle::at(new.node, &why).prefixed(&format!("`{name}` is used by")));
            }
            layer = Some(new);
        }
        let layer = layer.ok_or_else(|| Obstacle {
            problem: format!("no Gemm, MatMul or Conv multiplies by `{name}`"),
            quantised: false,
        })?;
        let op = layer.node.op();
        Ok(plan(&layer, format!("it was named, and its {op} defines its layout"), None, 0))
    }
}

/// The nodes that use a value. Nodes that only use its shape do not count.
#[derive(Default)]
struct Uses<'g> {
    count: usize,
    first: Option<&'g Node>,
    /// The tensor that is added to it.
    addends: Vec<&'g str>,
}

impl<'g> Graph<'g> {
    fn uses(&self, outputs: &'g [String]) -> HashMap<&'g str, Uses<'g>> {
        let mut uses: HashMap<&str, Uses<'_>> = HashMap::new();
        for output in outputs {
            uses.entry(output).or_default().count += 1;
        }
        for node in self.nodes.iter().filter(|node| !matches!(node.op(), "Shape" | "Size")) {
            for (i, input) in node.input.iter().enumerate() {
                let of = uses.entry(input).or_default();
                of.count += 1;
                of.first.get_or_insert(node);
                if let ("Add", [a, b]) = (node.op(), &node.input[..]) {
                    of.addends.push(if i == 0 { b } else { a });
                }
            }
        }
        uses
    }

    /// A node as a linear layer, with a bias that a later node adds.
    fn layer_with_bias(
        &self,
        node: &'g Node,
        uses: &HashMap<&'g str, Uses<'g>>,
    ) -> Result<Layer<'g>, Obstacle> {
        let mut layer = self.layer(node)?;
        let mut moved = false;
        let Some(mut value) = node.output.first().map(String::as_str) else { return Ok(layer) };
        for _ in 0..MAX_WALK {
            let Some(Uses { count, first: Some(next), addends }) = uses.get(value) else { break };
            let single = *count == 1;
            let mut addends = addends.iter().take(MAX_WALK);
            if let Some(added) = addends.find(|added| self.is_fixed(added)) {
                // A layer with a bias is complete, and its result can have several uses.
                if !single && layer.bias.is_some() {
                    break;
                }
                let Some(operand) = self.constant(added) else {
                    return Err(Obstacle::at(node, "whose bias is computed"));
                };
                // Position embeddings, for example, are no bias.
                if !layer.fits(operand, moved) {
                    break;
                }
                if !single {
                    let why = "whose result is used both with and without an Add behind it";
                    return Err(Obstacle::at(node, why));
                }
                layer = layer.plus(operand, moved)?;
            } else if single && next.keeps_values() {
                moved |= next.moves_axes();
            } else {
                break;
            }
            match next.output.first() {
                Some(output) => value = output,
                None => break,
            }
        }
        Ok(layer)
    }

    /// The layer that computes a value, with at most a bias and a softmax in between.
    fn trace(&self, value: &'g str) -> Result<Traced<'g>, Obstacle> {
        let mut value = value;
        let mut added: Option<Operand<'g>> = None;
        let (mut moved, mut over_classes, mut quantised) = (false, false, None);
        for _ in 0..MAX_WALK {
            let Some(node) = self.producer(value) else { break };
            let not_linear = || Obstacle::at(node, "which is no linear layer");
            let first = node.input.first().ok_or_else(not_linear);
            let logits = match node.op() {
                "ArgMax" | "TopK" => node.input.first().map(String::as_str),
                _ => self.softmax_input(node),
            };
            if let Some(logits) = logits {
                // A tensor added to probabilities is no bias.
                if added.is_some() {
                    return Err(not_linear());
                }
                (value, over_classes) = (logits, true);
            } else if node.keeps_values() {
                moved |= added.is_some() && node.moves_axes();
                value = first?;
            } else if matches!(node.op(), "QuantizeLinear" | "DequantizeLinear") {
                quantised = Some(node);
                value = first?;
            } else if node.is_quantised() {
                return Err(Obstacle::quantised(node));
            } else if node.is_layer() {
                if let Some(by) = quantised {
                    return Err(Obstacle::quantised(by));
                }
                let layer = self.layer(node)?;
                let layer = added.map_or(Ok(layer), |added| layer.plus(added, moved))?;
                return Ok(Traced { layer, over_classes });
            } else {
                let [a, b] = &node.input[..] else { return Err(not_linear()) };
                let (operand, other) = match (node.op(), self.constant(a), self.constant(b)) {
                    ("Add", Some(operand), None) => (operand, b),
                    ("Add", None, Some(operand)) => (operand, a),
                    // The scale of a quantised product.
                    ("Mul", ..) => return Err(self.scaled(node).unwrap_or_else(not_linear)),
                    _ => return Err(not_linear()),
                };
                if added.replace(operand).is_some() {
                    return Err(not_linear());
                }
                value = other;
            }
        }
        Err(Obstacle { problem: "no linear layer".to_owned(), quantised: false })
    }

    /// The quantised product that a node scales.
    fn scaled(&self, node: &'g Node) -> Option<Obstacle> {
        node.input.iter().find_map(|factor| {
            let mut maker = self.producer(factor)?;
            if maker.op() == "Cast" {
                maker = self.producer(maker.input.first()?)?;
            }
            maker.is_quantised().then(|| Obstacle::quantised(maker))
        })
    }
}
