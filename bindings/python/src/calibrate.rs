//! Guarantees for what is dropped: calibrations, scores and audits. `shafer._calibrate` has what Python programs call.

use std::collections::BTreeMap;

use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use shafer::calibrate::{
    Audit, Calibrator, ExchangeabilityTest, Labelled, Losses, Score, Scores, Strata,
    WeightedScores, clopper_pearson, rows_needed,
};
use shafer::{Logits, Threads};

use crate::array::{Array, Typed, View, typed};
use crate::error::{OrRaise, caught};
use crate::threads::{compute, threads};
use crate::transforms::{csr_object, csr_parts, fresh, method};

/// A score from its text. Words may be joined by `_`.
fn score_of(text: &str) -> PyResult<Score> {
    text.replace('_', "-").parse().or_raise()
}

/// Rows of logits: an array in C order, whose last axis has the classes.
fn rows_of<'py>(logits: &Bound<'py, PyAny>) -> PyResult<Array<'py>> {
    Array::new(logits, false)
        .ok_or_else(|| PyValueError::new_err("the logits are not an array of NumPy"))
}

fn logits_of<E: Typed>(view: &View) -> shafer::Result<Logits<'_, E>> {
    view.logits(view.shape.len().saturating_sub(1))
}

/// What is known of rows besides their logits, without objects of the interpreter.
struct Known {
    labels: Vec<u32>,
    groups: Option<Vec<u32>>,
}

type Integers<'py> = PyReadonlyArray1<'py, u32>;

impl Known {
    fn new(labels: &Integers<'_>, groups: Option<&Integers<'_>>) -> PyResult<Self> {
        Ok(Self { labels: labels.as_slice()?.to_vec(), groups: numbers(groups)? })
    }

    fn labelled<'a, E: Typed>(&'a self, view: &'a View) -> shafer::Result<Labelled<'a, E>> {
        let rows = Labelled::new(logits_of(view)?, &self.labels)?;
        match &self.groups {
            Some(groups) => rows.groups(groups),
            None => Ok(rows),
        }
    }
}

fn numbers(groups: Option<&Integers<'_>>) -> PyResult<Option<Vec<u32>>> {
    groups.map(|groups| Ok(groups.as_slice()?.to_vec())).transpose()
}

/// Uniform numbers of rows in order; 1 without any.
fn uniforms(given: Option<&[f64]>) -> impl FnMut() -> f64 + '_ {
    let mut next = given.unwrap_or_default().iter();
    move || next.next().copied().unwrap_or(1.0)
}

/// A method with a threshold that keeps the true class with a guaranteed probability.
///
/// `Calibrator` makes it, or `shafer calibrate`, whose files are the text of `to_json`. The logits must come from the
/// same network as those that it was calibrated on.
///
/// >>> import shafer
/// >>> text = '''{"version": 1, "score": "evidential", "by": "all", "classes": 4, "alpha": 0.1, "delta": null,
/// ...     "thresholds": [{"stratum": 0, "rows": 99, "threshold": 0.5}], "measured_on": "logits.npy"}'''
/// >>> calibration = shafer.Calibration.from_json(text)
/// >>> calibration
/// <Calibration: evidential, 4 classes, alpha 0.1, threshold 0.5, from 99 rows>
/// >>> calibration.transform([3.0, 0.0, -0.4, -2.6]).round(3)
/// array([0.923, 0.046, 0.031, 0.   ])
#[pyclass(module = "shafer", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct Calibration(shafer::calibrate::Calibration);

#[pymethods]
impl Calibration {
    /// Reads the text of `to_json`, or of a file of `shafer calibrate`.
    #[staticmethod]
    fn from_json(text: &str) -> PyResult<Self> {
        caught(|| match serde_json::from_str(text) {
            Ok(calibration) => Ok(Self(calibration)),
            Err(error) => {
                Err(PyValueError::new_err(format!("the text is no calibration: {error}")))
            }
        })
    }

    /// The text of a file that `shafer sparsify --calibration` reads.
    ///
    /// >>> import shafer
    /// >>> c = shafer.Calibrator("lac", alpha=0.5).fit([[2.0, 0.0]] * 9, [0] * 9).calibration_
    /// >>> shafer.Calibration.from_json(c.to_json()) == c
    /// True
    fn to_json(&self) -> PyResult<String> {
        let text = serde_json::to_string_pretty(&self.0);
        text.map(|text| text + "\n").map_err(|error| PyValueError::new_err(error.to_string()))
    }

    /// The score that has the threshold, as text.
    #[getter]
    fn score(&self) -> String {
        self.0.score().to_string()
    }

    /// What has a threshold of its own: ``"all"``, ``"group"`` or ``"class"``.
    #[getter]
    fn by(&self) -> &'static str {
        match self.0.strata() {
            Strata::All => "all",
            Strata::Group => "group",
            Strata::Class => "class",
        }
    }

    /// The number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.0.classes()
    }

    /// The probability of dropping the true class that is allowed.
    #[getter]
    fn alpha(&self) -> f64 {
        self.0.alpha()
    }

    /// For a calibration that holds with confidence over the calibration rows, that confidence.
    #[getter]
    fn confidence(&self) -> Option<f64> {
        self.0.delta().map(|delta| 1.0 - delta)
    }

    /// The threshold of each group or class, or of 0 for all rows; infinite where there were too few rows.
    #[getter]
    fn thresholds(&self) -> BTreeMap<u32, f64> {
        self.0.thresholds().iter().map(|(&stratum, threshold)| (stratum, threshold.value)).collect()
    }

    /// The number of calibration rows of each group or class, or of 0 for all rows.
    #[getter]
    fn rows(&self) -> BTreeMap<u32, usize> {
        self.0.thresholds().iter().map(|(&stratum, threshold)| (stratum, threshold.rows)).collect()
    }

    /// What it was measured on, as far as it was noted.
    #[getter]
    fn measured_on(&self) -> &str {
        self.0.origin()
    }

    /// The same with a note of what it was measured on.
    fn with_note(&self, measured_on: &str) -> Self {
        Self(self.0.clone().measured_on(measured_on))
    }

    /// The calibrated distributions of logits.
    ///
    /// Parameters
    /// ----------
    /// logits : array_like
    ///     Rows along the last axis. -inf masks a class.
    /// groups : array_like of int, optional
    ///     For a calibration by group, the group of each row.
    /// sparse : bool
    ///     Returns a ``scipy.sparse.csr_array``.
    /// threads : int, optional
    ///     The maximum number of threads; all cores by default.
    #[pyo3(signature = (logits, groups = None, *, sparse = false, threads = None))]
    fn transform<'py>(
        slf: &Bound<'py, Self>,
        logits: &Bound<'py, PyAny>,
        groups: Option<&Bound<'py, PyAny>>,
        sparse: bool,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let module = slf.py().import("shafer._calibrate")?;
        module.call_method1("transform", (slf, logits, groups, sparse, threads))
    }

    /// The set of classes whose scores are at most the threshold, as booleans of the shape of the logits. Unlike the
    /// distributions, a set need not hold the most probable class. Every score and stratum has sets.
    ///
    /// >>> import shafer
    /// >>> c = shafer.Calibrator("aps", alpha=0.5).fit([[2.0, 0.0]] * 9, [0] * 9).calibration_
    /// >>> c.predict_set([[3.0, 0.0], [0.0, 0.0]])
    /// array([[False, False],
    ///        [ True, False]])
    #[pyo3(signature = (logits, groups = None))]
    fn predict_set<'py>(
        slf: &Bound<'py, Self>,
        logits: &Bound<'py, PyAny>,
        groups: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("shafer._calibrate")?.call_method1("predict_set", (slf, logits, groups))
    }

    /// As `transform`, of rows that were checked by `shafer._calibrate`.
    fn _transform<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        groups: Option<Integers<'py>>,
        sparse: bool,
        threads: Option<usize>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (array, groups) = (rows_of(logits)?, numbers(groups.as_ref())?);
        let threads = self::threads(threads)?;
        if sparse {
            return typed!(array.view.dtype, E => {
                let parts = compute(py, array.view.size(), threads, || {
                    let logits = logits_of::<E>(&array.view).or_raise()?;
                    let groups = groups.as_deref();
                    csr_parts(&logits, |rows| self.0.csr_into(&logits, groups, threads, rows))
                })?;
                csr_object(py, parts)
            });
        }
        let result = array.zeros(&array.view.shape)?;
        let object = result.object.clone().into_any();
        let mut out = fresh(result)?;
        compute(py, array.view.size(), threads, || {
            typed!(array.view.dtype, E => {
                let logits = logits_of::<E>(&array.view).or_raise()?;
                let out = out.elements();
                self.0.dense_into(&logits, groups.as_deref(), threads, out).or_raise()?;
            });
            Ok(())
        })?;
        Ok(object)
    }

    /// The sets, as booleans one row after the other.
    fn _sets<'py>(
        &self,
        py: Python<'py>,
        logits: &Bound<'py, PyAny>,
        groups: Option<Integers<'py>>,
        uniform: Option<PyReadonlyArray1<'py, f64>>,
    ) -> PyResult<Bound<'py, PyArray1<bool>>> {
        let (array, groups) = (rows_of(logits)?, numbers(groups.as_ref())?);
        let uniform = uniform.as_ref().map(|uniform| uniform.as_slice()).transpose()?;
        let kept = compute(py, array.view.size(), Threads::One, || {
            let mut kept = vec![false; array.view.size()];
            let sets = typed!(array.view.dtype, E => {
                let logits = logits_of::<E>(&array.view).or_raise()?;
                self.0.sets(&logits, groups.as_deref(), uniforms(uniform)).or_raise()?
            });
            for (row, set) in kept.chunks_exact_mut(self.0.classes()).zip(sets) {
                for class in set {
                    row[class as usize] = true;
                }
            }
            Ok(kept)
        })?;
        Ok(kept.into_pyarray(py))
    }

    fn __repr__(&self) -> String {
        let (score, classes, alpha) = (self.0.score(), self.0.classes(), self.0.alpha());
        let all = self.0.thresholds();
        let rows: usize = all.values().map(|threshold| threshold.rows).sum();
        let threshold = match (self.0.strata(), all.values().next()) {
            (Strata::All, Some(threshold)) => format!("threshold {}", threshold.value),
            (by, _) => {
                let what = if by == Strata::Group { "groups" } else { "classes" };
                format!("thresholds of {} {what}", all.len())
            }
        };
        format!(
            "<Calibration: {score}, {classes} classes, alpha {alpha}, {threshold}, from {rows} rows>"
        )
    }

    /// Pickles and copies are made from the text.
    fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        Ok((slf.get_type().getattr("from_json")?, (slf.get().to_json()?,)))
    }
}

/// A calibration from labelled rows.
#[pyfunction]
pub(crate) fn calibrate(
    py: Python<'_>,
    logits: &Bound<'_, PyAny>,
    labels: Integers<'_>,
    groups: Option<Integers<'_>>,
    score: &str,
    by: &str,
    alpha: f64,
    delta: Option<f64>,
    uniform: Option<PyReadonlyArray1<'_, f64>>,
) -> PyResult<Calibration> {
    let (array, known) = (rows_of(logits)?, Known::new(&labels, groups.as_ref())?);
    let uniform = uniform.as_ref().map(|uniform| uniform.as_slice()).transpose()?;
    let by = match by {
        "all" => Strata::All,
        "group" => Strata::Group,
        "class" => Strata::Class,
        other => {
            let message = format!("by is \"{other}\", but must be \"all\", \"group\" or \"class\"");
            return Err(PyValueError::new_err(message));
        }
    };
    let mut calibrator = Calibrator::new(score_of(score)?, by);
    compute(py, array.view.size(), Threads::One, || {
        typed!(array.view.dtype, E => {
            let rows = known.labelled::<E>(&array.view).or_raise()?;
            calibrator.add_randomised(&rows, uniforms(uniform)).or_raise()?;
        });
        let calibration = match delta {
            None => calibrator.calibration(alpha),
            Some(delta) => calibrator.confident_calibration(alpha, delta),
        };
        calibration.map(Calibration).or_raise()
    })
}

/// The scores of the true classes.
#[pyfunction]
pub(crate) fn label_scores<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    labels: Integers<'py>,
    score: &str,
    uniform: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let (array, known) = (rows_of(logits)?, Known::new(&labels, None)?);
    let uniform = uniform.as_ref().map(|uniform| uniform.as_slice()).transpose()?;
    let score = score_of(score)?;
    let scores = compute(py, array.view.size(), Threads::One, || {
        typed!(array.view.dtype, E => {
            let rows = known.labelled::<E>(&array.view).or_raise()?;
            score.of_labels_randomised(&rows, uniforms(uniform)).or_raise()
        })
    })?;
    Ok(scores.into_pyarray(py))
}

/// The scores of all classes, one row after the other; infinite for masked ones.
#[pyfunction]
pub(crate) fn class_scores<'py>(
    py: Python<'py>,
    logits: &Bound<'py, PyAny>,
    score: &str,
    uniform: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let array = rows_of(logits)?;
    let uniform = uniform.as_ref().map(|uniform| uniform.as_slice()).transpose()?;
    let score = score_of(score)?;
    let scores = compute(py, array.view.size(), Threads::One, || {
        typed!(array.view.dtype, E => {
            let mut uniform = uniforms(uniform);
            let memory = array.view.memory::<E>();
            let classes = array.view.shape.last().copied().unwrap_or(1).max(1);
            let mut scores = Vec::with_capacity(memory.len());
            for (row, logits) in memory.chunks_exact(classes).enumerate() {
                let of_row = score.of_row(logits, uniform());
                scores.extend(of_row.map_err(|error| at_row(error, row)).or_raise()?);
            }
            Ok(scores)
        })
    })?;
    Ok(scores.into_pyarray(py))
}

/// The error of one row as that of a row of many.
fn at_row(mut error: shafer::Error, number: usize) -> shafer::Error {
    if let shafer::Error::Value { row, .. } | shafer::Error::Row { row, .. } = &mut error {
        *row = number;
    }
    error
}

/// The p-value of each score: among the scores of calibration rows, ties broken by `uniform` if it is given.
#[pyfunction]
pub(crate) fn p_values<'py>(
    py: Python<'py>,
    known: PyReadonlyArray1<'py, f64>,
    scores: PyReadonlyArray1<'py, f64>,
    uniform: Option<PyReadonlyArray1<'py, f64>>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let known = Scores::new(known.as_slice()?.to_vec()).or_raise()?;
    let scores = scores.as_slice()?;
    let values: Vec<f64> = match &uniform {
        None => scores.iter().map(|&score| known.p_value(score)).collect(),
        Some(uniform) => {
            let pairs = scores.iter().zip(uniform.as_slice()?);
            pairs.map(|(&score, &uniform)| known.smoothed_p_value(score, uniform)).collect()
        }
    };
    Ok(values.into_pyarray(py))
}

/// The threshold for a row of each weight, from calibration rows with weights.
#[pyfunction]
pub(crate) fn weighted_thresholds<'py>(
    py: Python<'py>,
    known: PyReadonlyArray1<'py, f64>,
    weights: PyReadonlyArray1<'py, f64>,
    alpha: f64,
    rows: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let known = weighted(&known, &weights)?;
    let rows = rows.as_slice()?.iter();
    let thresholds =
        rows.map(|&weight| known.threshold(alpha, weight)).collect::<Result<Vec<_>, _>>();
    Ok(thresholds.or_raise()?.into_pyarray(py))
}

/// The p-values of scores of rows with weights.
#[pyfunction]
pub(crate) fn weighted_p_values<'py>(
    py: Python<'py>,
    known: PyReadonlyArray1<'py, f64>,
    weights: PyReadonlyArray1<'py, f64>,
    scores: PyReadonlyArray1<'py, f64>,
    rows: PyReadonlyArray1<'py, f64>,
) -> PyResult<Bound<'py, PyArray1<f64>>> {
    let known = weighted(&known, &weights)?;
    let pairs = scores.as_slice()?.iter().zip(rows.as_slice()?);
    let values = pairs.map(|(&score, &weight)| known.p_value(score, weight));
    Ok(values.collect::<Result<Vec<_>, _>>().or_raise()?.into_pyarray(py))
}

fn weighted(
    scores: &PyReadonlyArray1<'_, f64>,
    weights: &PyReadonlyArray1<'_, f64>,
) -> PyResult<WeightedScores> {
    let pairs = scores.as_slice()?.iter().copied().zip(weights.as_slice()?.iter().copied());
    WeightedScores::new(pairs).or_raise()
}

/// Rows and those of them whose true class was dropped.
type Counts = (u64, u64);

/// Counts of groups or of support sizes.
type CountsOf = BTreeMap<u32, Counts>;

/// Counts of a method or a calibration: all rows, by group, by support size.
#[pyfunction]
pub(crate) fn count_misses(
    py: Python<'_>,
    logits: &Bound<'_, PyAny>,
    labels: Integers<'_>,
    groups: Option<Integers<'_>>,
    how: &Bound<'_, PyAny>,
    temperature: f64,
    threads: Option<usize>,
) -> PyResult<(Counts, CountsOf, CountsOf)> {
    let (array, known) = (rows_of(logits)?, Known::new(&labels, groups.as_ref())?);
    let threads = self::threads(threads)?;
    let calibration = how.cast::<Calibration>().ok().map(Bound::get);
    let method = match calibration {
        Some(_) => None,
        None => Some(method(how.extract()?)?),
    };
    let mut audit = Audit::default();
    compute(py, array.view.size(), threads, || {
        typed!(array.view.dtype, E => {
            let rows = known.labelled::<E>(&array.view).or_raise()?;
            let rows = rows.at_temperature(temperature).or_raise()?;
            match (calibration, method) {
                (Some(calibration), _) => audit.add_calibrated(&calibration.0, &rows, threads),
                (None, Some(method)) => audit.add(method, &rows, threads),
                (None, None) => Ok(()),
            }
            .or_raise()
        })
    })?;
    let pair = |misses: shafer::calibrate::Misses| (misses.rows, misses.missed);
    let parts =
        |of: &BTreeMap<u32, _>| of.iter().map(|(&value, &misses)| (value, pair(misses))).collect();
    Ok((pair(audit.all()), parts(audit.by_group()), parts(audit.by_size())))
}

/// The exact interval of the probability behind `missed` of `rows`.
#[pyfunction]
pub(crate) fn exact_interval(missed: u64, rows: u64, confidence: f64) -> PyResult<(f64, f64)> {
    clopper_pearson(missed, rows, confidence).or_raise()
}

/// The fewest calibration rows for which a threshold is not infinite, for a miss rate of `alpha`, and if wanted with
/// a confidence over the calibration rows.
///
/// >>> import shafer
/// >>> shafer.rows_needed(0.05), shafer.rows_needed(0.05, confidence=0.9)
/// (19, 45)
#[pyfunction(name = "rows_needed")]
#[pyo3(signature = (alpha, confidence = None))]
pub(crate) fn needed(alpha: f64, confidence: Option<f64>) -> PyResult<usize> {
    rows_needed(alpha, confidence.map(|confidence| 1.0 - confidence)).or_raise()
}

/// The column of the tightest threshold whose risk is controlled; see `shafer.control_risk`.
#[pyfunction]
pub(crate) fn risk_column(
    losses: PyReadonlyArray1<'_, f64>,
    thresholds: usize,
    bound: f64,
    alpha: f64,
    delta: Option<f64>,
) -> PyResult<Option<usize>> {
    let losses = Losses::new(losses.as_slice()?, thresholds, bound).or_raise()?;
    match delta {
        None => losses.control_risk(alpha),
        Some(delta) => losses.learn_then_test(alpha, delta),
    }
    .or_raise()
}

/// The largest natural logarithm of the capital of the test that scores are exchangeable.
#[pyfunction]
pub(crate) fn ln_capital(
    scores: PyReadonlyArray1<'_, f64>,
    uniform: PyReadonlyArray1<'_, f64>,
) -> PyResult<f64> {
    let mut test = ExchangeabilityTest::new();
    for (&score, &uniform) in scores.as_slice()?.iter().zip(uniform.as_slice()?) {
        test.add(score, uniform).or_raise()?;
    }
    Ok(test.ln_most())
}
