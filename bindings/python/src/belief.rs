//! Belief: the closed forms of the mass function of evidence.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::error::{OrRaise, caught};
use crate::evidence::Evidence;
use crate::rows::{array, class, classes, row};

/// The mass function of evidence, with mass, belief and plausibility of any set in time linear in the number of
/// classes.
///
/// A set is an iterable of classes, or a single class.
///
/// >>> import shafer
/// >>> belief = shafer.Belief.from_logits([1.0, 1.0, -2.0])
/// >>> round(belief.belief({0, 1}), 4), round(belief.plausibility([0, 1]), 4)
/// (0.9695, 1.0)
/// >>> round(belief.internal_conflict(), 4)
/// 0.3996
#[pyclass(module = "shafer", frozen)]
pub(crate) struct Belief(pub(crate) shafer::Belief);

#[pymethods]
impl Belief {
    #[new]
    fn new(evidence: PyRef<'_, Evidence>) -> PyResult<Self> {
        caught(|| Ok(Self(shafer::Belief::new(&evidence.0))))
    }

    /// The belief of one row of logits.
    #[staticmethod]
    fn from_logits(logits: &Bound<'_, PyAny>) -> PyResult<Self> {
        let logits = row(logits, "the logits")?;
        caught(|| {
            let evidence = shafer::Evidence::from_logits(&logits).or_raise()?;
            Ok(Self(shafer::Belief::new(&evidence)))
        })
    }

    /// The evidence that it comes from.
    #[getter]
    fn evidence(&self) -> Evidence {
        Evidence(self.0.evidence().clone())
    }

    /// The number of classes, masked ones included.
    #[getter]
    fn classes(&self) -> usize {
        self.0.evidence().classes()
    }

    /// The mass of one class (equation 6a of the paper).
    fn singleton(&self, k: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.singleton(class(k)?).or_raise()
    }

    /// The mass of each class.
    ///
    /// >>> import shafer
    /// >>> shafer.Belief.from_logits([1.0, 1.0, -2.0]).singletons().round(4)
    /// array([0.3873, 0.3873, 0.    ])
    fn singletons<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.0.singletons())
    }

    /// The mass of exactly this set (equation 6b).
    fn mass(&self, set: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.mass(classes(set)?).or_raise()
    }

    /// The mass of the whole frame: what is left open.
    ///
    /// >>> import shafer
    /// >>> round(shafer.Belief.from_logits([1.0, -1.0]).ignorance(), 4)
    /// 0.1353
    fn ignorance(&self) -> f64 {
        self.0.ignorance()
    }

    /// The belief, or lower probability, of a set: the mass of all its subsets.
    fn belief(&self, set: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.belief(classes(set)?).or_raise()
    }

    /// The plausibility, or upper probability, of a set: the mass of all sets that meet it.
    fn plausibility(&self, set: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.plausibility(classes(set)?).or_raise()
    }

    /// The plausibility of each class.
    fn contour<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.0.contour())
    }

    /// The normalised contour (equation 2): softmax of the logits that the evidence came from.
    ///
    /// >>> import shafer
    /// >>> shafer.Belief.from_logits([1.0986122886681098, 0.0]).plausibility_transform().round(6)
    /// array([0.75, 0.25])
    fn plausibility_transform<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.0.plausibility_transform())
    }

    /// The logarithm of the normaliser of equations 6a and 6b.
    fn ln_normaliser(&self) -> f64 {
        self.0.ln_normaliser()
    }

    /// Dempster's degree of conflict between all evidence for classes and all evidence against classes; 0 for evidence
    /// from logits.
    fn degree_of_conflict(&self) -> f64 {
        self.0.degree_of_conflict()
    }

    /// The conflict between the evidence for different classes, the paper's sign of several modes.
    fn internal_conflict(&self) -> f64 {
        self.0.internal_conflict()
    }

    fn __getnewargs__(&self) -> (Evidence,) {
        (self.evidence(),)
    }

    fn __repr__(&self) -> String {
        let evidence = self.0.evidence();
        format!(
            "<Belief: {} classes, {} supported, ignorance {:.4}, conflict {:.4}>",
            evidence.classes(),
            evidence.support().len(),
            self.0.ignorance(),
            self.0.internal_conflict(),
        )
    }

    /// The bars and the table of ``shafer explain``, in Jupyter.
    fn _repr_html_<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        html(py, Self(self.0.clone()))
    }
}

pub(crate) fn html(py: Python<'_>, belief: Belief) -> PyResult<Bound<'_, PyAny>> {
    static HTML: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    HTML.import(py, "shafer._display", "html")?.call1((belief,))
}
