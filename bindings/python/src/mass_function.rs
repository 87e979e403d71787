//! Mass functions over the power set of small frames, and Dempster's rule.

use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFrozenSet};
use shafer::ClassSet;

use crate::error::{OrRaise, caught};
use crate::rows::{array, classes};

/// A mass function on the subsets of a frame of up to 64 classes.
///
/// Masses are a dictionary, or pairs, of a set (classes, or a single class) and its mass. They sum to 1.
///
/// >>> import shafer
/// >>> m = shafer.MassFunction(3, {(0, 1): 0.5, (0, 1, 2): 0.5})
/// >>> m.belief({0, 1}), m.plausibility(2)
/// (0.5, 0.5)
/// >>> a = shafer.MassFunction.simple(2, 0, 0.5)
/// >>> b = shafer.MassFunction.simple(2, 1, 0.5)
/// >>> a.combine(b).conflict
/// 0.25
#[pyclass(module = "shafer", frozen, eq)]
#[derive(Clone, PartialEq)]
pub(crate) struct MassFunction(shafer::MassFunction);

/// The result of Dempster's rule: the combined mass function, and the conflict that it removed.
#[pyclass(module = "shafer", frozen)]
pub(crate) struct Combination {
    /// The normalised combination.
    #[pyo3(get)]
    mass: Py<MassFunction>,
    /// The product mass of sets that do not meet.
    #[pyo3(get)]
    conflict: f64,
}

#[pymethods]
impl Combination {
    fn __repr__(&self) -> String {
        format!("<Combination: conflict {:.4}, mass {}>", self.conflict, self.mass.get().__repr__())
    }
}

fn set(object: &Bound<'_, PyAny>) -> PyResult<ClassSet> {
    ClassSet::new(classes(object)?).or_raise()
}

#[pymethods]
impl MassFunction {
    #[new]
    fn new(classes: usize, masses: &Bound<'_, PyAny>) -> PyResult<Self> {
        let pairs = match masses.cast::<PyDict>() {
            Ok(masses) => masses.items().into_any(),
            Err(_) => masses.clone(),
        };
        let mut focal = Vec::new();
        for pair in pairs.try_iter()? {
            let (object, mass): (Bound<'_, PyAny>, f64) = pair?.extract()?;
            focal.push((set(&object)?, mass));
        }
        caught(|| Ok(Self(shafer::MassFunction::new(classes, focal).or_raise()?)))
    }

    /// All mass on the whole frame: nothing is known.
    ///
    /// >>> import shafer
    /// >>> shafer.MassFunction.vacuous(3).mass({0, 1, 2})
    /// 1.0
    #[staticmethod]
    fn vacuous(classes: usize) -> PyResult<Self> {
        shafer::MassFunction::vacuous(classes).or_raise().map(Self)
    }

    /// Mass `support` on a set, and the rest on the frame (equation 1 of the paper).
    #[staticmethod]
    fn simple(classes: usize, set: &Bound<'_, PyAny>, support: f64) -> PyResult<Self> {
        shafer::MassFunction::simple(classes, self::set(set)?, support).or_raise().map(Self)
    }

    /// The simple mass function of an evidential weight, ``-log(1 - support)``.
    #[staticmethod]
    fn simple_from_weight(classes: usize, set: &Bound<'_, PyAny>, weight: f64) -> PyResult<Self> {
        let set = self::set(set)?;
        shafer::MassFunction::simple_from_weight(classes, set, weight).or_raise().map(Self)
    }

    /// Dempster's rule, for independent pieces of evidence. Mass functions in total conflict are a ``ValueError``.
    fn combine(&self, py: Python<'_>, other: PyRef<'_, Self>) -> PyResult<Combination> {
        let combined = caught(|| self.0.combine(&other.0).or_raise())?;
        let mass = Py::new(py, Self(combined.mass))?;
        Ok(Combination { mass, conflict: combined.conflict })
    }

    /// The number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.0.classes()
    }

    /// The sets with mass, and their masses.
    ///
    /// >>> import shafer
    /// >>> shafer.MassFunction.simple(2, 1, 0.25).focal_sets()
    /// {frozenset({1}): 0.25, frozenset({0, 1}): 0.75}
    fn focal_sets<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let sets = PyDict::new(py);
        for &(set, mass) in self.0.focal_sets() {
            sets.set_item(PyFrozenSet::new(py, set.iter())?, mass)?;
        }
        Ok(sets)
    }

    /// The mass of exactly this set.
    fn mass(&self, set: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.0.mass(self::set(set)?))
    }

    /// The mass of all subsets of a set.
    fn belief(&self, set: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.0.belief(self::set(set)?))
    }

    /// The mass of all sets that meet a set.
    fn plausibility(&self, set: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.0.plausibility(self::set(set)?))
    }

    /// The mass of all supersets of a set.
    fn commonality(&self, set: &Bound<'_, PyAny>) -> PyResult<f64> {
        Ok(self.0.commonality(self::set(set)?))
    }

    /// The normalised plausibilities of the classes (equation 2).
    fn plausibility_transform<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        array(py, self.0.plausibility_transform())
    }

    fn __getnewargs__<'py>(&self, py: Python<'py>) -> PyResult<(usize, Bound<'py, PyDict>)> {
        Ok((self.classes(), self.focal_sets(py)?))
    }

    fn __repr__(&self) -> String {
        let sets = self.0.focal_sets();
        let shown: Vec<String> =
            sets.iter().take(6).map(|(set, mass)| format!("{set:?}: {mass:.4}")).collect();
        let more = if sets.len() > shown.len() { ", ..." } else { "" };
        format!("<MassFunction: {} classes, {}{more}>", self.0.classes(), shown.join(", "))
    }
}
