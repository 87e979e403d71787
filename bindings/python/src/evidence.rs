//! Evidence: the weights for and against each class.

use numpy::PyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use shafer::Construction;

use crate::error::{OrRaise, caught};
use crate::head::Head;
use crate::rows::{array, class, row};

/// The total evidential weights of every class: for it, and against it.
///
/// A masked class has infinite weight against it.
///
/// >>> import shafer
/// >>> evidence = shafer.Evidence.from_logits([3.0, 1.0, 0.5, -0.5])
/// >>> evidence.positive, evidence.negative
/// (array([2., 0., 0., 0.]), array([0. , 0. , 0.5, 1.5]))
/// >>> evidence.support()
/// [0]
#[pyclass(module = "shafer", frozen, eq)]
#[derive(Clone, PartialEq)]
pub(crate) struct Evidence(pub(crate) shafer::Evidence);

#[pymethods]
impl Evidence {
    #[new]
    fn new(positive: &Bound<'_, PyAny>, negative: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (positive, negative) =
            (row(positive, "the positive weights")?, row(negative, "the negative weights")?);
        caught(|| Ok(Self(shafer::Evidence::new(positive, negative).or_raise()?)))
    }

    /// The evidence of one row of logits: each logit minus their mean (equation 7 of the paper). A logit of -inf masks
    /// its class.
    ///
    /// >>> import shafer
    /// >>> shafer.Evidence.from_logits([2.0, float("-inf"), 1.0]).positive
    /// array([0.5, 0. , 0. ])
    #[staticmethod]
    fn from_logits(logits: &Bound<'_, PyAny>) -> PyResult<Self> {
        let logits = row(logits, "the logits")?;
        caught(|| Ok(Self(shafer::Evidence::from_logits(&logits).or_raise()?)))
    }

    /// The evidence of features under a linear layer with these weights, ``classes x features`` as in
    /// ``torch.nn.Linear``.
    ///
    /// The construction is ``"direct"``, the paper's, or ``"least-commitment"``, Denoeux's, which weighs each feature
    /// separately and needs the `mean` features of the data set.
    ///
    /// >>> import shafer
    /// >>> weight, bias = [[1.0, 0.5], [-1.0, -0.5]], [0.0, 0.0]
    /// >>> shafer.Evidence.from_head(weight, bias, [2.0, 0.0]).positive
    /// array([2., 0.])
    /// >>> shafer.Evidence.from_head(weight, bias, [2.0, 0.0], "least-commitment", mean=[1.0, 1.0]).negative
    /// array([0., 2.])
    #[staticmethod]
    #[pyo3(signature = (weight, bias, features, construction = "direct", *, mean = None))]
    fn from_head(
        weight: &Bound<'_, PyAny>,
        bias: Option<&Bound<'_, PyAny>>,
        features: &Bound<'_, PyAny>,
        construction: &str,
        mean: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        Head::new(weight, bias)?.evidence(features, construction, mean)
    }

    /// The weights for each class.
    #[getter]
    fn positive<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.0.positive().to_vec())
    }

    /// The weights against each class.
    #[getter]
    fn negative<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.0.negative().to_vec())
    }

    /// The number of classes, masked ones included.
    #[getter]
    fn classes(&self) -> usize {
        self.0.classes()
    }

    /// The number of classes that are not masked: the size of the frame.
    #[getter]
    fn unmasked(&self) -> usize {
        self.0.unmasked()
    }

    /// Whether there is no evidence at all, as for logits that are all equal.
    ///
    /// >>> import shafer
    /// >>> shafer.Evidence.from_logits([0.1, 0.1]).is_vacuous()
    /// True
    fn is_vacuous(&self) -> bool {
        self.0.is_vacuous()
    }

    /// Whether the evidence supports a class directly: whether its singleton mass is not 0 (equation 10 of the paper).
    ///
    /// >>> import shafer
    /// >>> shafer.Evidence.from_logits([1.0, 0.0]).supports(1)
    /// False
    fn supports(&self, k: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.0.supports(class(k)?).or_raise()
    }

    /// The classes that the evidence supports, in ascending order.
    ///
    /// >>> import shafer
    /// >>> shafer.Evidence.from_logits([0.0, 2.0, 1.5, -1.0]).support()
    /// [1, 2]
    fn support(&self) -> Vec<usize> {
        self.0.support()
    }

    fn __getnewargs__<'py>(
        &self,
        py: Python<'py>,
    ) -> (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>) {
        (self.positive(py), self.negative(py))
    }

    fn __repr__(&self) -> String {
        let (supported, classes) = (self.0.support().len(), self.0.classes());
        format!("<Evidence: {classes} classes, {supported} supported>")
    }

    /// The bars and the table of ``shafer explain``, in Jupyter.
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let belief = shafer::Belief::new(&self.0);
        crate::belief::html(py, crate::belief::Belief(belief))
    }
}

/// A construction from its name.
pub(crate) fn construction<'a>(name: &str, mean: Option<&'a [f64]>) -> PyResult<Construction<'a>> {
    match (name.replace('_', "-").as_str(), mean) {
        ("direct", None) => Ok(Construction::Direct),
        ("direct", Some(_)) => {
            Err(PyValueError::new_err("mean is for the construction \"least-commitment\""))
        }
        ("least-commitment", Some(mean)) => Ok(Construction::LeastCommitment { mean }),
        ("least-commitment", None) => {
            let message = "the construction \"least-commitment\" needs mean, the mean features";
            Err(PyValueError::new_err(message))
        }
        _ => {
            let message = format!(
                "there is no construction {name:?}; use \"direct\" or \"least-commitment\""
            );
            Err(PyValueError::new_err(message))
        }
    }
}
