//! Several independent categorical variables at once.

use std::vec;

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::error::{OrRaise, caught};
use crate::rows::{classes, row};

/// The joint distribution of independent variables, from one row of probabilities for each.
///
/// A joint class is one class of every variable. They are never enumerated, so that their number does not matter.
///
/// >>> import shafer
/// >>> product = shafer.Product([[0.5, 0.25, 0.25], [0.0, 0.75, 0.25]])
/// >>> product.support_size(), product.probability((0, 1))
/// (6, 0.375)
/// >>> product.best(2)
/// [Joint(classes=(0, 1), probability=0.375), Joint(classes=(1, 1), probability=0.1875)]
#[pyclass(module = "shafer", frozen, eq)]
#[derive(Clone, PartialEq)]
pub(crate) struct Product(shafer::Product);

/// One class of every variable, and its probability.
#[pyclass(module = "shafer", frozen)]
pub(crate) struct Joint(shafer::Joint);

#[pymethods]
impl Joint {
    /// The class of each variable.
    #[getter]
    fn classes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, &self.0.classes)
    }

    /// The product of their probabilities.
    #[getter]
    fn probability(&self) -> f64 {
        self.0.probability
    }

    fn __repr__(&self) -> String {
        let classes: Vec<String> = self.0.classes.iter().map(usize::to_string).collect();
        let comma = if classes.len() == 1 { "," } else { "" };
        let classes = classes.join(", ");
        format!("Joint(classes=({classes}{comma}), probability={:?})", self.0.probability)
    }
}

#[pymethods]
impl Product {
    #[new]
    fn new(rows: &Bound<'_, PyAny>) -> PyResult<Self> {
        let mut dense = Vec::new();
        for item in rows.try_iter()? {
            dense.push(row(&item?, "the probabilities of a variable")?);
        }
        caught(|| Ok(Self(shafer::Product::dense(&dense).or_raise()?)))
    }

    /// The number of variables.
    #[getter]
    fn variables(&self) -> usize {
        self.0.variables()
    }

    /// The number of joint classes with positive probability; at most 2**128 - 1.
    fn support_size(&self) -> u128 {
        self.0.support_size()
    }

    /// Whether a joint class has positive probability.
    fn contains(&self, classes: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.0.contains(&self::classes(classes)?).or_raise()
    }

    /// The probability of a joint class.
    fn probability(&self, classes: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.probability(&self::classes(classes)?).or_raise()
    }

    /// The logarithm of the probability of a joint class, which does not underflow.
    fn ln_probability(&self, classes: &Bound<'_, PyAny>) -> PyResult<f64> {
        self.0.ln_probability(&self::classes(classes)?).or_raise()
    }

    /// The `k` most probable joint classes, or all if there are fewer; equals in lexicographic order.
    fn best(&self, py: Python<'_>, k: usize) -> PyResult<Vec<Joint>> {
        caught(|| Ok(py.detach(|| self.0.best(k)).into_iter().map(Joint).collect()))
    }

    /// All joint classes with positive probability, the most probable first, computed lazily.
    ///
    /// >>> import shafer
    /// >>> [joint.classes for joint in shafer.Product([[0.5, 0.5], [0.75, 0.25]])]
    /// [(0, 0), (1, 0), (0, 1), (1, 1)]
    fn __iter__(&self) -> BestJoints {
        BestJoints { product: self.0.clone(), found: 0, ready: Vec::new().into_iter() }
    }

    fn __repr__(&self) -> String {
        let (variables, support) = (self.0.variables(), self.0.support_size());
        format!("<Product: {variables} variables, {support} joint classes>")
    }
}

/// The joint classes of a product from the most probable on.
#[pyclass(module = "shafer")]
pub(crate) struct BestJoints {
    product: shafer::Product,
    /// The number of joint classes returned, or ready.
    found: usize,
    ready: vec::IntoIter<shafer::Joint>,
}

#[pymethods]
impl BestJoints {
    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__(&mut self) -> PyResult<Option<Joint>> {
        if self.ready.len() == 0 {
            // The core's iterator borrows the product, which an object of Python cannot. Twice as many each time: the
            // work is at most doubled.
            let (before, wanted) = (self.found, (2 * self.found).max(16));
            let mut best = caught(|| Ok(self.product.best(wanted)))?;
            self.found = best.len();
            self.ready = best.split_off(before.min(best.len())).into_iter();
        }
        Ok(self.ready.next().map(Joint))
    }
}
