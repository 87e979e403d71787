//! Distances between distributions, and the paper's target distribution.

use numpy::{PyArray1, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::PyValueError;
use pyo3::intern;
use pyo3::prelude::*;
use shafer::Threads;

use crate::error::OrRaise;
use crate::rows::{array, doubles, row};
use crate::threads::compute;

/// A number for two rows, or an array of numbers for two arrays of rows.
fn each<'py>(
    p: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
    distance: impl Fn(&[f64], &[f64]) -> shafer::Result<f64> + Send + Sync,
) -> PyResult<Bound<'py, PyAny>> {
    let py = p.py();
    let (p, q) = (doubles(p, "p")?, doubles(q, "q")?);
    let (p, q) = if p.shape() == q.shape() { (p, q) } else { broadcast(&p, &q)? };
    let classes = *p.shape().last().unwrap_or(&0);
    if classes == 0 {
        return Err(PyValueError::new_err("p is empty, but must hold at least one element"));
    }
    let (left, right) = (p.as_slice()?, q.as_slice()?);
    let distances = compute(py, left.len(), Threads::One, || {
        let pairs = left.chunks_exact(classes).zip(right.chunks_exact(classes));
        let distances = pairs.enumerate().map(|(row, (p, q))| {
            // The rows of the core's errors are p and q.
            distance(p, q).map_err(|error| {
                let at = if left.len() > classes {
                    format!("distribution {row}: ")
                } else {
                    String::new()
                };
                PyValueError::new_err(format!("{at}{error}"))
            })
        });
        distances.collect::<PyResult<Vec<f64>>>()
    })?;
    match p.shape() {
        [_] => Ok(distances[0].into_pyobject(py)?.into_any()),
        [outer @ .., _] => {
            Ok(PyArray1::from_vec(py, distances).reshape(outer.to_vec())?.into_any())
        }
        [] => Err(PyValueError::new_err("p has no axis")),
    }
}

type Doubles<'py> = PyReadonlyArrayDyn<'py, f64>;

/// Two arrays of rows of one length, of one shape.
fn broadcast<'py>(p: &Doubles<'py>, q: &Doubles<'py>) -> PyResult<(Doubles<'py>, Doubles<'py>)> {
    let py = p.py();
    if p.shape().last() != q.shape().last() {
        let lengths = |array: &Doubles<'_>| array.shape().last().copied().unwrap_or_default();
        let (expected, found) = (lengths(p), lengths(q));
        return Err(shafer::Error::Length { what: "q", expected, found }).or_raise();
    }
    let numpy = py.import(intern!(py, "numpy"))?;
    let both = numpy.call_method1(intern!(py, "broadcast_arrays"), (&**p, &**q))?;
    let one = |index: usize| doubles(&both.get_item(index)?, "p and q");
    Ok((one(0)?, one(1)?))
}

/// The Bhattacharyya distance, ``-log(sum(sqrt(p q)))``.
///
/// Rows are along the last axis, finite, not negative, and sum to 1 within 0.01; each is divided by its sum. Of two rows
/// it is a number, of arrays of rows an array.
///
/// >>> import shafer
/// >>> round(shafer.distance.bhattacharyya([0.5, 0.5, 0.0], [0.0, 0.5, 0.5]), 6)
/// 0.693147
/// >>> shafer.distance.bhattacharyya([[1.0, 0.0], [0.0, 1.0]], [1.0, 0.0])
/// array([ 0., inf])
#[pyfunction]
pub(crate) fn bhattacharyya<'py>(
    p: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    each(p, q, shafer::bhattacharyya)
}

/// The 1-Wasserstein distance with class ``k`` at ``positions[k]``; without positions, at ``k / (K - 1)``, as in the
/// paper.
///
/// Rows are as for `bhattacharyya`.
///
/// >>> import shafer
/// >>> shafer.distance.wasserstein_1([1.0, 0.0, 0.0], [0.0, 0.5, 0.5])
/// 0.75
/// >>> shafer.distance.wasserstein_1([1.0, 0.0, 0.0], [0.0, 0.5, 0.5], positions=[0.0, 1.0, 4.0])
/// 2.5
#[pyfunction]
#[pyo3(signature = (p, q, positions = None))]
pub(crate) fn wasserstein_1<'py>(
    p: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
    positions: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    match positions {
        None => each(p, q, shafer::wasserstein_1_unit),
        Some(positions) => {
            let positions = row(positions, "the positions")?;
            each(p, q, |p, q| shafer::wasserstein_1(p, q, &positions))
        }
    }
}

/// The total variation distance, ``sum(abs(p - q)) / 2``.
///
/// Rows are as for `bhattacharyya`.
///
/// >>> import shafer
/// >>> shafer.distance.total_variation([0.5, 0.25, 0.125, 0.125], [0.25] * 4)
/// 0.25
#[pyfunction]
pub(crate) fn total_variation<'py>(
    p: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    each(p, q, shafer::total_variation)
}

/// The Jensen-Shannon divergence in nats; its square root, which SciPy has, is a metric.
///
/// Rows are as for `bhattacharyya`.
///
/// >>> import shafer
/// >>> round(shafer.distance.jensen_shannon([1.0, 0.0], [0.0, 1.0]), 6)
/// 0.693147
#[pyfunction]
pub(crate) fn jensen_shannon<'py>(
    p: &Bound<'py, PyAny>,
    q: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    each(p, q, shafer::jensen_shannon)
}

/// The distribution that a sparsification should reach for a query, given that of the complementary query: the classes
/// at which ``p`` is at least ``other``, normalised (section 3.1.1 of the paper).
///
/// >>> import shafer
/// >>> shafer.target_distribution([0.5, 0.25, 0.125, 0.125], [0.25, 0.25, 0.25, 0.25]).round(4)
/// array([0.6667, 0.3333, 0.    , 0.    ])
#[pyfunction]
pub(crate) fn target_distribution<'py>(
    p: &Bound<'py, PyAny>,
    other: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (values, other) = (row(p, "p")?, row(other, "other")?);
    Ok(array(p.py(), shafer::target_distribution(&values, &other).or_raise()?))
}
