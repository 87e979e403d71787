//! The last linear layer of a model.

use numpy::{PyArray1, PyArray2, PyArrayMethods, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{OrRaise, caught};
use crate::evidence::{Evidence, construction};
use crate::rows::{array, doubles, row};

/// A linear layer from features to logits, with weights ``classes x features`` as in ``torch.nn.Linear``.
///
/// >>> import shafer
/// >>> head = shafer.Head([[1.0, 2.0], [0.0, 0.0], [-1.0, 1.0]], [0.5, 0.0, 0.25])
/// >>> head.logits([1.0, 0.5])
/// array([ 2.5 ,  0.  , -0.25])
/// >>> head.evidence([1.0, 0.5]).negative
/// array([0.  , 0.75, 1.  ])
#[pyclass(module = "shafer", frozen, eq)]
#[derive(Clone, PartialEq)]
pub(crate) struct Head {
    layer: shafer::Head,
    /// ``classes x features``.
    weight: Vec<f64>,
    bias: Vec<f64>,
}

impl Head {
    pub(crate) fn from_parts(
        features: usize,
        classes: usize,
        weight: Vec<f64>,
        bias: Option<Vec<f64>>,
    ) -> PyResult<Self> {
        let bias = bias.unwrap_or_else(|| vec![0.0; classes]);
        let layer =
            shafer::Head::from_output_major(features, classes, &weight, bias.clone()).or_raise()?;
        Ok(Self { layer, weight, bias })
    }
}

#[pymethods]
impl Head {
    #[new]
    #[pyo3(signature = (weight, bias = None))]
    pub(crate) fn new(
        weight: &Bound<'_, PyAny>,
        bias: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let weight = doubles(weight, "the weights")?;
        let &[classes, features] = weight.shape() else {
            let message =
                format!("the weights have {} axes, but must be classes x features", weight.ndim());
            return Err(PyValueError::new_err(message));
        };
        let weight = weight.as_slice()?.to_vec();
        let bias = bias.map(|bias| row(bias, "the bias")).transpose()?;
        caught(|| Self::from_parts(features, classes, weight, bias))
    }

    /// The number of features.
    #[getter]
    fn features(&self) -> usize {
        self.layer.features()
    }

    /// The number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.layer.classes()
    }

    /// The weights, ``classes x features``.
    #[getter]
    fn weight<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        array(py, self.weight.clone()).reshape([self.classes(), self.features()])
    }

    /// The bias; zeros if there is none.
    #[getter]
    fn bias<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.bias.clone())
    }

    /// The logits of one row of features.
    fn logits<'py>(&self, features: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let values = row(features, "the features")?;
        let logits = caught(|| self.layer.logits(&values).or_raise())?;
        Ok(array(features.py(), logits))
    }

    /// The evidence of one row of features; see `Evidence.from_head`.
    #[pyo3(signature = (features, construction = "direct", *, mean = None))]
    pub(crate) fn evidence(
        &self,
        features: &Bound<'_, PyAny>,
        construction: &str,
        mean: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Evidence> {
        let features = row(features, "the features")?;
        let mean = mean.map(|mean| row(mean, "the mean features")).transpose()?;
        let construction = self::construction(construction, mean.as_deref())?;
        caught(|| Ok(Evidence(self.layer.evidence(&features, construction).or_raise()?)))
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, [self.weight(py)?.into_any(), self.bias(py).into_any()])
    }

    fn __repr__(&self) -> String {
        format!("<Head: {} features, {} classes>", self.features(), self.classes())
    }
}
