//! The linear layers of a model that can be its head.

use std::{collections::HashMap, fmt, path::Path};

use super::onnx::Search;
use super::{At, Kind, ModelFile, TensorInfo, byte_length, shown};
use crate::{Error, Result};

/// The layout of a weight matrix in its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Orientation {
    /// One row per class: K x J, the layout of `torch.nn.Linear`.
    ClassesByFeatures,
    /// One row per feature: J x K.
    FeaturesByClasses,
}

/// A linear layer that can be the head of a model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeadCandidate {
    /// The name of the weights.
    pub weight: String,
    /// The name of the bias, if there is one.
    pub bias: Option<String>,
    /// The number of features, J.
    pub features: usize,
    /// The number of classes, K.
    pub classes: usize,
    /// The layout of the weights in the file.
    pub orientation: Orientation,
    /// The reason to take it for the head.
    pub reason: String,
    /// The reason against it. A layer with one is only loaded by its name.
    pub doubt: Option<Doubt>,
}

/// A reason why a linear layer may not be the head. Displays as a predicate of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Doubt {
    /// It has one value.
    OneValue,
    /// It has two or three values, and the graph has no softmax over them.
    FewValues,
    /// It feeds a softmax inside the graph, and no output.
    Inside,
}

impl fmt::Display for Doubt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::OneValue => "gives one value, as a regressor does, and no classes",
            Self::FewValues => "gives as few values as a regressor, and no softmax follows",
            Self::Inside => "is inside the graph and gives no output",
        })
    }
}

impl fmt::Display for HeadCandidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { weight, features, classes, .. } = self;
        let given = match self.doubt {
            Some(Doubt::OneValue) => "value",
            Some(Doubt::FewValues) => "values",
            _ => "classes",
        };
        write!(f, "{} ({features} features, {classes} {given})", shown(weight))
    }
}

/// A linear layer: the logits are `features * weights + bias`.
#[derive(Clone, Debug, PartialEq)]
pub struct HeadWeights {
    /// The number of features, J.
    pub features: usize,
    /// The number of classes, K.
    pub classes: usize,
    /// J x K in row-major order, whatever the layout in the file.
    pub weights: Vec<f32>,
    /// One value per class, if the layer has a bias.
    pub bias: Option<Vec<f32>>,
}

/// How to load a candidate, and its score.
pub(super) struct Plan {
    pub(super) candidate: HeadCandidate,
    /// The factor of the weights.
    pub(super) alpha: f32,
    /// The factor of the bias.
    pub(super) beta: f32,
    /// The score. `None` for a tensor that merely has the shape of a head.
    pub(super) strength: u8,
}

/// The layers of a model that can be its head, the most likely first.
///
/// In an ONNX graph these are the `Gemm`, `MatMul` and 1x1 `Conv` nodes that feed an output or a
/// softmax. Other files have no graph: there they are weights with a matching bias, and those with a name
/// such as `head`, `classifier`, `fc` or `prior` come first. If there is none, the error lists what the
/// model has instead.
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
    let search = search(&model);
    if search.plans.is_empty() {
        return Err(no_head(&search, &model.at));
    }
    Ok(search.plans.into_iter().map(|plan| plan.candidate).collect())
}

pub(super) fn search(model: &ModelFile) -> Search {
    let mut search = if let Kind::Onnx(file) = &model.kind {
        file.search(&model.tensors)
    } else {
        // In reverse, so that a stable sort puts the later one first on a tie.
        let tensors = Named::new(&model.tensors);
        let weights = model.tensors.iter().rev();
        let plans = weights.filter_map(|weight| by_name(weight, &tensors)).collect();
        Search { plans, obstacle: None }
    };
    search.plans.sort_by_key(|plan| std::cmp::Reverse(plan.strength));
    search
}

pub(super) fn no_head(search: &Search, at: &At) -> Error {
    let (problem, hint) = match &search.obstacle {
        Some(why) if why.quantised => {
            return at.request(format!("no head found: {}; {UNQUANTISED}", why.problem));
        }
        Some(why) => (why.problem.as_str(), "if the model has a head, "),
        None => ("no linear layer feeds an output or a softmax, or is named like one", ""),
    };
    at.request(format!(
        "no head found: {problem}; {hint}name its weights, such as FILE:head.weight \
         (shafer heads --all lists all tensors)"
    ))
}

/// The hint for quantised operators.
pub(super) const UNQUANTISED: &str = "export the model without quantisation";

/// Tensors by name. Of duplicates the first, which is also the one that is loaded.
pub(super) struct Named<'m>(HashMap<&'m str, &'m TensorInfo>);

impl<'m> Named<'m> {
    pub(super) fn new(tensors: &'m [TensorInfo]) -> Self {
        let mut named = HashMap::with_capacity(tensors.len());
        for tensor in tensors {
            named.entry(tensor.name.as_str()).or_insert(tensor);
        }
        Self(named)
    }

    pub(super) fn get(&self, name: &str) -> Option<&'m TensorInfo> {
        self.0.get(name).copied()
    }

    /// The bias that matches weights by name: `a.bias` for `a.weight`.
    pub(super) fn bias_of(&self, weight: &str) -> Option<&'m TensorInfo> {
        self.get(&format!("{}bias", weight.strip_suffix("weight")?))
    }
}

fn is_float(tensor: &TensorInfo) -> bool {
    matches!(tensor.dtype.as_str(), "f16" | "bf16" | "f32" | "f64")
}

/// The shape of a matrix, or of a 1x1 convolution.
pub(super) fn sides(tensor: &TensorInfo) -> Option<(usize, usize)> {
    match tensor.shape[..] {
        [rows, columns] | [rows, columns, 1, 1] if rows > 0 && columns > 0 && is_float(tensor) => {
            Some((rows, columns))
        }
        _ => None,
    }
}

/// The possible layouts of weights, given the length of the bias. Both fit a square matrix: that of
/// `torch.nn.Linear` is more likely, and the only one for a convolution.
fn orientation(
    weight: &TensorInfo,
    classes: usize,
    known: Option<Orientation>,
) -> Option<Orientation> {
    use Orientation::{ClassesByFeatures, FeaturesByClasses};
    let (rows, columns) = sides(weight)?;
    let possible = |orientation| known.is_none_or(|known| known == orientation);
    if rows == classes && possible(ClassesByFeatures) {
        Some(ClassesByFeatures)
    } else if columns == classes && weight.shape.len() == 2 && possible(FeaturesByClasses) {
        Some(FeaturesByClasses)
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
    // Without a bias, only by name: embeddings are matrices, too.
    if bias.is_none() && strength == 0 {
        return None;
    }
    let plan = plan(weight, bias, None).ok()?;
    let reason = match (strength > 0, bias.is_some()) {
        (true, true) => "its name says so, and a bias is beside it",
        (true, false) => "its name says so; it has no bias",
        _ => "a bias is beside it",
    };
    let doubt = (plan.candidate.classes == 1).then_some(Doubt::OneValue);
    let candidate = HeadCandidate { reason: reason.to_owned(), doubt, ..plan.candidate };
    Some(Plan { candidate, strength, ..plan })
}

/// A head of weights and a bias, or the reason why they cannot be one. Without an orientation, the length of
/// the bias decides. A square matrix, or one without a bias, has the layout of `torch.nn.Linear`.
pub(super) fn plan(
    weight: &TensorInfo,
    bias: Option<&TensorInfo>,
    known: Option<Orientation>,
) -> std::result::Result<Plan, String> {
    let Some((rows, columns)) = sides(weight) else {
        return Err(format!(
            "`{}` is of {} with shape {:?}; a head is a matrix of floats, or a 1x1 convolution",
            shown(&weight.name),
            weight.dtype,
            weight.shape
        ));
    };
    if known == Some(Orientation::FeaturesByClasses) && weight.shape.len() > 2 {
        return Err(format!(
            "`{}` is a convolution, which cannot be transposed",
            shown(&weight.name)
        ));
    }
    let orientation = match bias {
        None => known.unwrap_or(Orientation::ClassesByFeatures),
        Some(bias) => length(bias)
            .and_then(|classes| orientation(weight, classes, known))
            .ok_or_else(|| {
                format!(
                    "`{}` of shape {:?} does not fit its bias `{}`, which is of {} with shape {:?}",
                    shown(&weight.name),
                    weight.shape,
                    shown(&bias.name),
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
            doubt: None,
        },
        alpha: 1.0,
        beta: 1.0,
        strength: 0,
    })
}

/// The length of a vector, ignoring axes of length 1.
pub(super) fn length(bias: &TensorInfo) -> Option<usize> {
    let vector = bias.shape.iter().filter(|&&n| n != 1).count() <= 1;
    let count = byte_length(&bias.shape, 1).filter(|_| vector && is_float(bias))?;
    usize::try_from(count).ok()
}

fn is_weight(name: &str) -> bool {
    name == "weight" || name.ends_with(".weight")
}

/// The module of a weight, and its index in a sequence of layers: `a` and 6 for `a.6.weight`.
pub(super) fn layer(weight: &str) -> (&str, Option<u32>) {
    let layer = weight.strip_suffix("weight").unwrap_or(weight);
    let layer = layer.strip_suffix('.').unwrap_or(layer);
    let (before, last) = layer.rsplit_once('.').unwrap_or(("", layer));
    match last.parse() {
        Ok(number) => (before, Some(number)),
        Err(_) => (layer, None),
    }
}

/// The score of the name of a weight as that of a head.
fn strength(weight: &str) -> u8 {
    // Only the name of the layer itself counts: a block named `output` contains all kinds of layers.
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
