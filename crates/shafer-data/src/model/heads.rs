//! The last linear layer of a model.

use std::{collections::HashMap, fmt, path::Path};

use super::{At, Kind, ModelFile, TensorInfo, shown};
use crate::{Error, Result};

/// What the rows of a weight matrix stand for in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// A row for each class: K x J, as `torch.nn.Linear` has it.
    ClassesByFeatures,
    /// A row for each feature: J x K.
    FeaturesByClasses,
}

/// A linear layer that may be the head of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadCandidate {
    /// The name of its weights.
    pub weight: String,
    /// The name of its bias, if it has one.
    pub bias: Option<String>,
    /// How many features it takes: J.
    pub features: usize,
    /// How many classes it has: K.
    pub classes: usize,
    /// How the weights lie in the file.
    pub orientation: Orientation,
    /// Why it may be the head.
    pub reason: String,
}

impl HeadCandidate {
    pub(super) fn same_layer(&self, other: &Self) -> bool {
        self.weight == other.weight && self.bias == other.bias
    }
}

impl fmt::Display for HeadCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { weight, features, classes, .. } = self;
        write!(f, "{} ({features} features, {classes} classes)", shown(weight))
    }
}

/// A linear layer: the logits are `features * weights + bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadWeights {
    /// How many features it takes: J.
    pub features: usize,
    /// How many classes it has: K.
    pub classes: usize,
    /// J x K, row by row, whatever the order in the file.
    pub weights: Vec<f32>,
    /// One for each class, if the layer has a bias.
    pub bias: Option<Vec<f32>>,
}

/// How to load a candidate, and how much speaks for it.
pub(super) struct Plan {
    pub(super) candidate: HeadCandidate,
    /// The weights are multiplied by it.
    pub(super) alpha: f32,
    /// The bias is multiplied by it.
    pub(super) beta: f32,
    /// More is better. What only has the shape of a head has none.
    pub(super) strength: u8,
}

/// The layers of a model that may be its head, the likeliest first.
///
/// In an ONNX graph these are the `Gemm`, `MatMul` and 1x1 `Conv` nodes that feed an output or a
/// softmax. Other files have no graph: there it is weights with a bias beside them, and those with
/// a name such as `head`, `classifier`, `fc` or `prior` come first.
///
/// ```
/// # fn main() -> shafer_data::Result<()> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tiny.pt");
/// let heads = shafer_data::heads(path)?;
/// assert_eq!(heads[0].weight, "head.weight");
/// assert_eq!(heads[0].bias.as_deref(), Some("head.bias"));
/// assert_eq!((heads[0].features, heads[0].classes), (8, 5));
/// # Ok(())
/// # }
/// ```
pub fn heads(path: impl AsRef<Path>) -> Result<Vec<HeadCandidate>> {
    let model = ModelFile::open(path)?;
    Ok(plans(&model).into_iter().map(|plan| plan.candidate).collect())
}

/// Loads the head of a model.
///
/// `name` is that of its weights, such as `prior.weight`, or of its layer, such as `prior`. Without
/// it, there must be one that is clearly meant; otherwise the error lists those that may be.
///
/// ```
/// # fn main() -> shafer_data::Result<()> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tiny.safetensors");
/// let head = shafer_data::load_head(path, None)?;
/// assert_eq!((head.features, head.classes), (8, 5));
/// assert_eq!(head.weights.len(), 40);
/// assert_eq!(head.bias.map(|bias| bias.len()), Some(5));
/// # Ok(())
/// # }
/// ```
pub fn load_head(path: impl AsRef<Path>, name: Option<&str>) -> Result<HeadWeights> {
    let mut model = ModelFile::open(path)?;
    let mut plans = plans(&model);
    let plan = match name {
        None => {
            let chosen = choose(&plans, &model.at)?;
            plans.swap_remove(chosen)
        }
        Some(name) => match plans.iter().position(|plan| is_named(&plan.candidate, name)) {
            Some(found) => plans.swap_remove(found),
            None => named(&model, name, &plans)?,
        },
    };
    load(&mut model, &plan)
}

fn plans(model: &ModelFile) -> Vec<Plan> {
    let mut plans: Vec<_> = if let Kind::Onnx(file) = &model.kind {
        file.plans(&model.tensors)
    } else {
        // From the last, so that a stable sort leaves the later one first.
        let tensors = Named::new(&model.tensors);
        model.tensors.iter().rev().filter_map(|weight| by_name(weight, &tensors)).collect()
    };
    plans.sort_by_key(|plan| std::cmp::Reverse(plan.strength));
    plans
}

/// Tensors by their names. Of two with one name it is the first, which is also what is loaded.
struct Named<'m>(HashMap<&'m str, &'m TensorInfo>);

impl<'m> Named<'m> {
    fn new(tensors: &'m [TensorInfo]) -> Self {
        let mut named = HashMap::with_capacity(tensors.len());
        for tensor in tensors {
            named.entry(tensor.name.as_str()).or_insert(tensor);
        }
        Self(named)
    }

    /// The bias that belongs to weights by its name: `a.bias` to `a.weight`.
    fn bias_of(&self, weight: &str) -> Option<&'m TensorInfo> {
        self.0.get(format!("{}bias", weight.strip_suffix("weight")?).as_str()).copied()
    }
}

fn is_float(tensor: &TensorInfo) -> bool {
    matches!(tensor.dtype.as_str(), "f16" | "bf16" | "f32" | "f64")
}

/// The two sides of a matrix, or of a convolution that looks at one place at a time.
fn sides(tensor: &TensorInfo) -> Option<(usize, usize)> {
    match tensor.shape[..] {
        [rows, columns] | [rows, columns, 1, 1] if rows > 0 && columns > 0 && is_float(tensor) => {
            Some((rows, columns))
        }
        _ => None,
    }
}

/// How a weight lies by the length of its bias. A square matrix fits both ways: that of
/// `torch.nn.Linear` is the likelier, and the only one for a convolution.
fn orientation(weight: &TensorInfo, classes: usize) -> Option<Orientation> {
    let (rows, columns) = sides(weight)?;
    if rows == classes {
        Some(Orientation::ClassesByFeatures)
    } else if columns == classes && weight.shape.len() == 2 {
        Some(Orientation::FeaturesByClasses)
    } else {
        None
    }
}

fn by_name(weight: &TensorInfo, tensors: &Named<'_>) -> Option<Plan> {
    if !is_weight(&weight.name) {
        return None;
    }
    let strength = strength(&weight.name);
    let bias = tensors.bias_of(&weight.name);
    // Without a bias it takes a telling name: embeddings are matrices too.
    if bias.is_none() && strength == 0 {
        return None;
    }
    let plan = plan(weight, bias).ok()?;
    let reason = match (strength > 0, bias.is_some()) {
        (true, true) => "its name says so, and a bias is beside it",
        (true, false) => "its name says so; it has no bias",
        _ => "a bias is beside it",
    };
    Some(Plan {
        candidate: HeadCandidate { reason: reason.to_owned(), ..plan.candidate },
        strength,
        ..plan
    })
}

/// Weights and their bias as a head, or why they are none.
fn plan(weight: &TensorInfo, bias: Option<&TensorInfo>) -> std::result::Result<Plan, String> {
    let Some((rows, columns)) = sides(weight) else {
        return Err(format!(
            "`{}` is of {} with shape {:?}; a head is a matrix of floats, or a 1x1 convolution",
            shown(&weight.name),
            weight.dtype,
            weight.shape
        ));
    };
    let orientation = match bias {
        None => Orientation::ClassesByFeatures,
        Some(bias) => match bias.shape[..] {
            [classes] if is_float(bias) => orientation(weight, classes),
            _ => None,
        }
        .ok_or_else(|| {
            format!(
                "`{}` of shape {:?} does not fit its bias, which is of {} with shape {:?}",
                shown(&weight.name),
                weight.shape,
                bias.dtype,
                bias.shape
            )
        })?,
    };
    let (features, classes) = match orientation {
        Orientation::ClassesByFeatures => (columns, rows),
        Orientation::FeaturesByClasses => (rows, columns),
    };
    Ok(Plan {
        candidate: HeadCandidate {
            weight: weight.name.clone(),
            bias: bias.map(|bias| bias.name.clone()),
            features,
            classes,
            orientation,
            reason: "it was named".to_owned(),
        },
        alpha: 1.0,
        beta: 1.0,
        strength: 0,
    })
}

fn is_weight(name: &str) -> bool {
    name == "weight" || name.ends_with(".weight")
}

/// The layer of a weight, and its number in a sequence of layers: `a`, 6 of `a.6.weight`.
fn layer(weight: &str) -> (&str, Option<u32>) {
    let layer = weight.strip_suffix("weight").unwrap_or(weight);
    let layer = layer.strip_suffix('.').unwrap_or(layer);
    let (before, last) = layer.rsplit_once('.').unwrap_or(("", layer));
    match last.parse() {
        Ok(number) => (before, Some(number)),
        Err(_) => (layer, None),
    }
}

/// How much the name of a weight says that it is a head.
fn strength(weight: &str) -> u8 {
    // The layer itself must be called so: inside a block named `output` lie all kinds of layers.
    let name = layer(weight).0.rsplit('.').next().unwrap_or("").to_ascii_lowercase();
    let has = |word: &str| {
        name.strip_suffix(word).is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
            || name.strip_prefix(word).is_some_and(|rest| rest.starts_with('_'))
    };
    if ["head", "classifier", "prior", "logits"].into_iter().any(has) {
        2
    } else {
        u8::from(matches!(&*name, "fc" | "output" | "cls" | "score" | "predictions"))
    }
}

/// Whether a layer is called by the name of its weights or by its own. Exporters to ONNX transpose
/// weights and then name them anew: there the bias still tells what the layer was called.
fn is_named(candidate: &HeadCandidate, name: &str) -> bool {
    let layer = name.strip_suffix(".weight").unwrap_or(name);
    candidate.weight == name
        || candidate.weight.strip_suffix(".weight") == Some(layer)
        || candidate.bias.as_ref().and_then(|bias| bias.strip_suffix(".bias")) == Some(layer)
}

/// A head that was asked for by a name which is not among the candidates.
fn named(model: &ModelFile, name: &str, plans: &[Plan]) -> Result<Plan> {
    let tensors = Named::new(&model.tensors);
    let weight =
        tensors.0.get(name).or_else(|| tensors.0.get(format!("{name}.weight").as_str())).copied();
    let Some(weight) = weight else {
        let mut problem = format!("no tensor is named `{}`", shown(name));
        if !plans.is_empty() {
            problem += "; heads may be ";
            problem += &list(plans);
        }
        return Err(model.at.request(problem));
    };
    plan(weight, tensors.bias_of(&weight.name)).map_err(|problem| model.at.request(problem))
}

/// The one that is clearly meant.
fn choose(plans: &[Plan], at: &At) -> Result<usize> {
    let Some(first) = plans.first() else {
        return Err(no_head(at));
    };
    let best = plans.iter().take_while(|plan| plan.strength == first.strength).count();
    if best == 1 && (first.strength > 0 || plans.len() == 1) {
        return Ok(0);
    }
    if let Some(last) = last_of_sequence(&plans[..best]) {
        return Ok(last);
    }
    let example = if at.0.len() <= 80 { &at.0 } else { "FILE" };
    Err(at.request(format!(
        "several layers may be the head: {}; name one, such as {example}:{}",
        list(plans),
        shown(&first.candidate.weight)
    )))
}

fn no_head(at: &At) -> Error {
    at.request(
        "no head found: no linear layer feeds an output or a softmax, or is named like one; \
         name its weights, such as FILE:head.weight",
    )
}

/// Layers that are numbered in one sequence, each taking what the one before it gives: the last
/// gives the result.
fn last_of_sequence(plans: &[Plan]) -> Option<usize> {
    let mut numbered = Vec::with_capacity(plans.len());
    for (i, plan) in plans.iter().enumerate() {
        let (before, number) = layer(&plan.candidate.weight);
        if before != layer(&plans[0].candidate.weight).0 {
            return None;
        }
        numbered.push((number?, i));
    }
    numbered.sort_unstable();
    let chained = numbered.windows(2).all(|pair| {
        let (this, next) = (&plans[pair[0].1].candidate, &plans[pair[1].1].candidate);
        this.classes == next.features
    });
    if chained { numbered.last().map(|&(_, i)| i) } else { None }
}

/// Candidates in a message: not more than a line can take.
fn list(plans: &[Plan]) -> String {
    const SHOWN: usize = 8;
    let mut shown: Vec<_> =
        plans.iter().take(SHOWN).map(|plan| plan.candidate.to_string()).collect();
    if plans.len() > SHOWN {
        shown.push(format!("and {} more", plans.len() - SHOWN));
    }
    shown.join(", ")
}

fn load(model: &mut ModelFile, plan: &Plan) -> Result<HeadWeights> {
    let HeadCandidate { weight, bias, features, classes, orientation, .. } = &plan.candidate;
    let (features, classes) = (*features, *classes);
    let mut weights = model.load(weight)?;
    if *orientation == Orientation::ClassesByFeatures {
        weights = transposed(&weights, classes, features);
    }
    if plan.alpha != 1.0 {
        for w in &mut weights {
            *w *= plan.alpha;
        }
    }
    let bias = match bias {
        None => None,
        Some(name) => {
            let mut bias = model.load(name)?;
            // A graph may add one number to all classes, of which there are no more than weights.
            if let [value] = bias[..] {
                bias.resize(classes, value);
            }
            if plan.beta != 1.0 {
                for b in &mut bias {
                    *b *= plan.beta;
                }
            }
            Some(bias)
        }
    };
    Ok(HeadWeights { features, classes, weights, bias })
}

fn transposed(matrix: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let mut result = Vec::with_capacity(matrix.len());
    for column in 0..columns {
        result.extend((0..rows).map(|row| matrix[row * columns + column]));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::{layer, strength};

    #[test]
    fn layers_and_their_numbers() {
        assert_eq!(layer("classifier.6.weight"), ("classifier", Some(6)));
        assert_eq!(layer("a.head.weight"), ("a.head", None));
        assert_eq!(layer("2.weight"), ("", Some(2)));
        assert_eq!(layer("weight"), ("", None));
    }

    #[test]
    fn names_that_say_head() {
        for (name, expected) in [
            ("lm_head.weight", 2),
            ("model.prior.weight", 2),
            ("classifier.6.weight", 2),
            ("head_dist.weight", 2),
            ("fc.weight", 1),
            ("encoder.layer.0.output.dense.weight", 0),
            ("h.0.mlp.c_fc.weight", 0),
            ("overhead.weight", 0),
        ] {
            assert_eq!(strength(name), expected, "{name}");
        }
    }
}
