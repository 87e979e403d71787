//! Loads the head of a model.

use std::path::Path;

use super::heads::{
    HeadCandidate, HeadWeights, Named, Orientation, Plan, UNQUANTISED, layer, length, no_head,
    plan, search, sides,
};
use super::onnx::{Obstacle, Search};
use super::{At, Kind, ModelFile, TensorInfo, shown};
use crate::{Error, Result};

/// Loads the head of a model.
///
/// `name` is the name of its weights, such as `prior.weight`, or of its layer, such as `prior`. Without a
/// name, the head must be unambiguous: otherwise the error lists the candidates.
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
    HeadRequest { name, ..HeadRequest::default() }.load(path)
}

/// The layer to load, and properties of it that the file does not specify.
///
/// ```
/// use shafer_data::{BiasChoice, HeadRequest, Orientation};
/// # fn main() -> shafer_data::Result<()> {
/// # let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tiny.safetensors");
/// let request = HeadRequest {
///     name: Some("head.weight"),
///     orientation: Some(Orientation::FeaturesByClasses),
///     bias: BiasChoice::None,
/// };
/// let head = request.load(path)?;
/// assert_eq!((head.features, head.classes), (5, 8));
/// assert_eq!(head.bias, None);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct HeadRequest<'r> {
    /// The name of the weights or of the layer. Without it, the head must be unambiguous.
    pub name: Option<&'r str>,
    /// The layout of the weights. Overrides that of the graph or the bias.
    pub orientation: Option<Orientation>,
    /// The bias.
    pub bias: BiasChoice<'r>,
}

/// The bias of a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BiasChoice<'r> {
    /// The bias in the graph, or the tensor that matches the weights by name.
    #[default]
    Known,
    /// No bias, whatever the file has.
    None,
    /// The tensor with this name.
    Tensor(&'r str),
}

impl HeadRequest<'_> {
    /// Loads the layer.
    pub fn load(&self, path: impl AsRef<Path>) -> Result<HeadWeights> {
        let mut model = ModelFile::open(path)?;
        let plan = self.plan(&model)?;
        load(&mut model, &plan)
    }

    fn plan(&self, model: &ModelFile) -> Result<Plan> {
        let Kind::Onnx(file) = &model.kind else { return self.by_names(model) };
        let tensors = Named::new(&model.tensors);
        let Some(name) = self.name else {
            let chosen = choose(search(model), &model.at)?;
            return self.adjusted(chosen, &tensors).map_err(|problem| model.at.request(problem));
        };
        let weight =
            file.weight_named(name, &model.tensors).ok_or_else(|| no_tensor(name, model))?;
        match file.used(weight, &model.tensors) {
            Ok(known) => self.adjusted(known, &tensors),
            Err(why) => self.by_hand(&why, weight, &tensors),
        }
        .map_err(|problem| model.at.request(problem))
    }

    /// Loads a layer of a file without a graph.
    fn by_names(&self, model: &ModelFile) -> Result<Plan> {
        let tensors = Named::new(&model.tensors);
        let name = match self.name {
            Some(name) => name.to_owned(),
            None => choose(search(model), &model.at)?.candidate.weight,
        };
        let weight = tensors
            .get(&name)
            .or_else(|| tensors.get(&format!("{name}.weight")))
            .ok_or_else(|| no_tensor(&name, model))?;
        self.bias(tensors.bias_of(&weight.name), &tensors)
            .and_then(|bias| plan(weight, bias, self.orientation))
            .map_err(|problem| model.at.request(problem))
    }

    /// The requested bias, if it replaces the known one.
    fn bias<'m>(
        &self,
        known: Option<&'m TensorInfo>,
        tensors: &Named<'m>,
    ) -> std::result::Result<Option<&'m TensorInfo>, String> {
        match self.bias {
            BiasChoice::Known => Ok(known),
            BiasChoice::None => Ok(None),
            BiasChoice::Tensor(name) => match tensors.get(name) {
                Some(bias) => Ok(Some(bias)),
                None => Err(format!("no tensor is named `{}`, as the bias is", shown(name))),
            },
        }
    }

    /// A layer of a graph, with the properties of the request.
    fn adjusted(&self, known: Plan, tensors: &Named<'_>) -> std::result::Result<Plan, String> {
        let HeadCandidate { weight, bias, orientation, .. } = &known.candidate;
        let (keeps_bias, keeps_orientation) =
            (self.bias == BiasChoice::Known, self.orientation.is_none_or(|o| o == *orientation));
        let Some(weight) = tensors.get(weight).filter(|_| !keeps_bias || !keeps_orientation) else {
            return Ok(known);
        };
        let bias = self.bias(bias.as_deref().and_then(|bias| tensors.get(bias)), tensors)?;
        // A scalar bias fits both layouts.
        let single = bias.filter(|bias| keeps_bias && length(bias) == Some(1));
        let orientation = self.orientation.unwrap_or(*orientation);
        let mut new = plan(weight, bias.filter(|_| single.is_none()), Some(orientation))?;
        if let Some(bias) = single {
            new.candidate.bias = Some(bias.name.clone());
        }
        let beta = if keeps_bias { known.beta } else { 1.0 };
        Ok(Plan { alpha: known.alpha, beta, ..new })
    }

    /// Weights whose use the graph does not show: the request must specify everything.
    fn by_hand(
        &self,
        why: &Obstacle,
        weight: &TensorInfo,
        tensors: &Named<'_>,
    ) -> std::result::Result<Plan, String> {
        if why.quantised {
            return Err(format!("{}; {UNQUANTISED}", why.problem));
        }
        // A tensor that is not a matrix cannot be a head.
        plan(weight, None, None)?;
        let bias = self.bias(None, tensors)?;
        let is_square = sides(weight).is_some_and(|(rows, columns)| rows == columns);
        let is_told =
            self.orientation.is_some() || bias.is_some() && !is_square || weight.shape.len() > 2;
        if self.bias == BiasChoice::Known || !is_told {
            return Err(format!(
                "{}; give --transpose if its rows are features (--transpose=false if they are \
                 classes) and --bias NAME (or --bias none)",
                why.problem
            ));
        }
        plan(weight, bias, self.orientation)
    }
}

fn no_tensor(name: &str, model: &ModelFile) -> Error {
    let mut problem = format!("no tensor is named `{}`", shown(name));
    let plans = search(model).plans;
    if !plans.is_empty() {
        problem += "; heads may be ";
        problem += &list(&plans);
    }
    model.at.request(problem)
}

/// The unambiguous candidate.
fn choose(mut search: Search, at: &At) -> Result<Plan> {
    let plans = &search.plans;
    let Some(first) = plans.first() else { return Err(no_head(&search, at)) };
    let best = plans.iter().take_while(|plan| plan.strength == first.strength).count();
    let clear: Vec<_> = (0..best).filter(|&i| plans[i].candidate.doubt.is_none()).collect();
    let chosen = match (last_of_sequence(&plans[..best]), &clear[..]) {
        (Some(last), _) => Some(last),
        (None, &[one]) if first.strength > 0 || plans.len() == 1 => Some(one),
        (None, []) => Some(0),
        (None, _) => None,
    };
    let file = if at.0.len() <= 80 { &at.0 } else { "FILE" };
    let example = |plan: &Plan| format!("{file}:{}", shown(&plan.candidate.weight));
    let Some(chosen) = chosen else {
        return Err(at.request(format!(
            "several layers may be the head: {}; name one, such as {}",
            list(plans),
            example(first)
        )));
    };
    if let Some(doubt) = plans[chosen].candidate.doubt {
        return Err(at.request(format!(
            "no layer is clearly the head, but these may be: {}; {} {doubt}; if it is meant, name \
             it: {}",
            list(plans),
            shown(&plans[chosen].candidate.weight),
            example(&plans[chosen])
        )));
    }
    Ok(search.plans.swap_remove(chosen))
}

/// The last layer of a numbered sequence in which each takes the output of the one before.
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

/// A list of candidates for a message, shortened if it is long.
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
            // A scalar bias is repeated for all classes, of which there are no more than weights.
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
