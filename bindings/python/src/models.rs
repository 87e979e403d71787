//! The heads of model files.

use std::path::PathBuf;

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use shafer_data::{BiasChoice, HeadRequest, Orientation};

use crate::error::{OrRaise, caught};
use crate::head::Head;

/// A tensor of a model that can be the weights of its last linear layer.
#[pyclass(module = "shafer", frozen, get_all)]
pub(crate) struct HeadCandidate {
    /// The name of the weights.
    weight: String,
    /// The name of the bias.
    bias: Option<String>,
    /// The number of features.
    features: usize,
    /// The number of classes.
    classes: usize,
    /// Why it can be the head.
    reason: String,
    /// Whether something speaks against it.
    doubtful: bool,
}

#[pymethods]
impl HeadCandidate {
    fn __repr__(&self) -> String {
        let Self { weight, features, classes, .. } = self;
        format!("<HeadCandidate: {weight}, {features} features, {classes} classes>")
    }
}

/// The layers of a model file that can be its last linear layer, the likeliest first.
///
/// `.safetensors`, `.onnx`, and what ``torch.save`` writes: `.pt`, `.pth`, `.bin`, `.ckpt`. Nothing in a file is executed.
#[pyfunction]
pub(crate) fn heads(py: Python<'_>, path: PathBuf) -> PyResult<Vec<HeadCandidate>> {
    let heads = caught(|| py.detach(|| shafer_data::heads(&path).or_raise()))?;
    Ok(heads
        .into_iter()
        .map(|head| HeadCandidate {
            weight: head.weight,
            bias: head.bias,
            features: head.features,
            classes: head.classes,
            reason: head.reason,
            doubtful: head.doubt.is_some(),
        })
        .collect())
}

/// Loads the last linear layer of a model file. Nothing in the file is executed.
///
/// `name` is that of the layer or of its weights; without it, the head must be unambiguous. `layout` says how the
/// weights are stored, ``"classes-by-features"`` or ``"features-by-classes"``, where the file leaves it open, and `bias`
/// is the name of the bias, or False for none.
#[pyfunction]
#[pyo3(signature = (path, name = None, *, layout = None, bias = None))]
pub(crate) fn load_head(
    py: Python<'_>,
    path: PathBuf,
    name: Option<&str>,
    layout: Option<&str>,
    bias: Option<&Bound<'_, PyAny>>,
) -> PyResult<Head> {
    let orientation = match layout {
        None => None,
        Some("classes-by-features") => Some(Orientation::ClassesByFeatures),
        Some("features-by-classes") => Some(Orientation::FeaturesByClasses),
        Some(other) => {
            let message = format!(
                "there is no layout {other:?}; use \"classes-by-features\" or \"features-by-classes\""
            );
            return Err(PyValueError::new_err(message));
        }
    };
    let bias_name: Option<String> = match bias {
        Some(bias) if bias.extract::<bool>().is_ok_and(|bias| !bias) => Some(String::new()),
        Some(bias) => Some(bias.extract()?),
        None => None,
    };
    let bias = match bias_name.as_deref() {
        None => BiasChoice::Known,
        Some("") => BiasChoice::None,
        Some(name) => BiasChoice::Tensor(name),
    };
    let request = HeadRequest { name, orientation, bias };
    let head = caught(|| py.detach(|| request.load(&path).or_raise()))?;
    let (features, classes) = (head.features, head.classes);
    let weight = transposed(&head.weights, features, classes);
    let bias = head.bias.map(|bias| bias.into_iter().map(f64::from).collect());
    caught(|| Head::from_parts(features, classes, weight, bias))
}

/// From a row for each feature to a row for each class.
fn transposed(weights: &[f32], features: usize, classes: usize) -> Vec<f64> {
    let rows = 0..classes;
    rows.flat_map(|class| {
        (0..features).map(move |feature| f64::from(weights[feature * classes + class]))
    })
    .collect()
}
