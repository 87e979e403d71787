//! A calibrated threshold, and the transform that it makes.

use std::collections::BTreeMap;

use super::binomial::level;
use super::labelled::checked_row;
use super::score::Score;
use crate::csr::CsrRows;
use crate::element::Element;
use crate::error::{Error, Result, check_length};
use crate::logits::Logits;
use crate::method::{Method, RowCounts};
use crate::threads::Threads;

/// What has a threshold of its own (Mondrian conformal prediction): the guarantee then holds within
/// each of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "lowercase"))]
pub enum Strata {
    /// All rows have the same threshold.
    #[default]
    All,
    /// Each group of rows has one.
    Group,
    /// Each class has one: a row keeps the classes whose scores are at most their own thresholds, with
    /// the ratios of softmax. The guarantee then holds for the rows of each class.
    Class,
}

const SETS_ONLY: &str = "this score gives sets of classes, not distributions";

/// The threshold of a stratum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    /// The number of calibration rows behind it.
    pub rows: usize,
    /// The score up to which classes are kept; infinite if all are, because there were too few rows.
    pub value: f64,
}

/// A method with a threshold that keeps the true class with a guaranteed probability.
///
/// It is made by a [`Calibrator`](super::Calibrator) and is applied like a [`Method`]: dense or
/// compressed, a batch at a time, on threads. The logits must come from the same network at the same
/// temperature as those of the calibration. With the feature `serde` it is a small text, without a
/// date, that says what it was measured on.
///
/// ```
/// use shafer::calibrate::{Calibration, Score};
/// use shafer::{Logits, Threads};
///
/// let calibration = Calibration::of_threshold(Score::Evidential, 4, 0.1, 0.5)?;
/// // The weights of evidence are 3, 0, -0.4 and -2.6; kept is what has at least -0.5.
/// let kept = calibration.csr(&Logits::row(&[3.0, 0.0, -0.4, -2.6])?, None, Threads::One)?;
/// assert_eq!(kept.indices(), [0, 1, 2]);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    score: Score,
    by: Strata,
    classes: usize,
    alpha: f64,
    delta: Option<f64>,
    thresholds: BTreeMap<u32, Threshold>,
    measured_on: String,
}

impl Calibration {
    pub(super) fn new(
        score: Score,
        by: Strata,
        classes: usize,
        alpha: f64,
        delta: Option<f64>,
        thresholds: BTreeMap<u32, Threshold>,
    ) -> Result<Self> {
        level("alpha", alpha)?;
        delta.map(|delta| level("delta", delta)).transpose()?;
        if classes == 0 || thresholds.is_empty() {
            return Err(Error::Empty { what: "a calibration" });
        }
        let measured_on = String::new();
        Ok(Self { score, by, classes, alpha, delta, thresholds, measured_on })
    }

    /// A threshold that was found in another way: by risk control, or online. `alpha` is what it was
    /// meant to achieve.
    ///
    /// # Errors
    /// `classes` is 0, `alpha` is not between 0 and 1, or the threshold is NaN.
    pub fn of_threshold(score: Score, classes: usize, alpha: f64, threshold: f64) -> Result<Self> {
        score.method(threshold)?;
        let thresholds = BTreeMap::from([(0, Threshold { rows: 0, value: threshold })]);
        Self::new(score, Strata::All, classes, alpha, None, thresholds)
    }

    /// The same, with a note of what it was measured on.
    #[must_use]
    pub fn measured_on(mut self, what: impl Into<String>) -> Self {
        self.measured_on = what.into();
        self
    }

    /// What it was measured on, as far as it was noted.
    pub fn origin(&self) -> &str {
        &self.measured_on
    }

    /// The score that the thresholds are for.
    pub fn score(&self) -> Score {
        self.score
    }

    /// What has a threshold of its own.
    pub fn strata(&self) -> Strata {
        self.by
    }

    /// The number of classes.
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The allowed miss rate.
    pub fn alpha(&self) -> f64 {
        self.alpha
    }

    /// For a calibration that holds with confidence, the probability that it does not.
    pub fn delta(&self) -> Option<f64> {
        self.delta
    }

    /// The thresholds: of group or class, or of 0 for all rows.
    pub fn thresholds(&self) -> &BTreeMap<u32, Threshold> {
        &self.thresholds
    }

    /// The threshold of a group, or without groups that of all rows.
    ///
    /// # Errors
    /// The group did not occur in calibration, is missing, or classes have thresholds of their own.
    pub fn threshold(&self, group: Option<u32>) -> Result<f64> {
        self.threshold_of(0, group)
    }

    fn threshold_of(&self, row: usize, group: Option<u32>) -> Result<f64> {
        let stratum = match self.by {
            Strata::All => 0,
            Strata::Group => group.ok_or(Error::Empty { what: "groups" })?,
            Strata::Class => {
                return self.refuse("each class has a threshold of its own, and rows have none");
            }
        };
        let found = self.thresholds.get(&stratum).map(|threshold| threshold.value);
        found.ok_or(Error::Group { row, group: stratum })
    }

    fn refuse<T>(&self, problem: &str) -> Result<T> {
        Err(Error::Method { text: self.score.to_string(), problem: problem.to_owned() })
    }

    /// The method for the rows of a group, or without groups for all rows, and the temperature to
    /// multiply that of the logits by.
    ///
    /// # Errors
    /// As [`threshold`](Self::threshold), or the score gives sets only.
    pub fn method(&self, group: Option<u32>) -> Result<(Method, f64)> {
        self.method_of(0, group)
    }

    fn method_of(&self, row: usize, group: Option<u32>) -> Result<(Method, f64)> {
        match self.score.method(self.threshold_of(row, group)?)? {
            Some(method) => Ok(method),
            None => self.refuse(SETS_ONLY),
        }
    }

    /// As [`Method::dense`]. Rows need their `groups` if the calibration is by group.
    ///
    /// # Errors
    /// As [`Method::dense`]; the number of classes is another one; the score gives sets only; groups are
    /// missing or did not occur in calibration.
    pub fn dense<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        groups: Option<&[u32]>,
        threads: Threads,
    ) -> Result<Vec<E>> {
        let mut out = vec![E::default(); logits.len()];
        self.dense_into(logits, groups, threads, &mut out)?;
        Ok(out)
    }

    /// As [`dense`](Self::dense), into memory of the caller.
    pub fn dense_into<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        groups: Option<&[u32]>,
        threads: Threads,
        out: &mut [E],
    ) -> Result<RowCounts> {
        check_length("output", logits.len(), out.len())?;
        let Some(parts) = self.parts(logits, groups)? else {
            let (method, temperature) = self.method(None)?;
            return method.dense_into(&logits.warmer(temperature)?, threads, out);
        };
        self.each_part(&parts, logits, |part, batch| {
            let mut p = vec![E::Compute::default(); batch.len()];
            let counts = part.method.dense_into(batch, threads, &mut p)?;
            for (&row, p) in part.rows.iter().zip(p.chunks_exact(self.classes)) {
                for (place, &p) in logits.places(row).zip(p) {
                    out[place] = E::narrow(p);
                }
            }
            Ok(counts)
        })
    }

    /// As [`Method::csr`], with groups as for [`dense`](Self::dense).
    pub fn csr<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        groups: Option<&[u32]>,
        threads: Threads,
    ) -> Result<CsrRows<E>> {
        let mut rows = CsrRows::new();
        self.csr_into(logits, groups, threads, &mut rows)?;
        Ok(rows)
    }

    /// As [`csr`](Self::csr), in place of what `rows` holds.
    pub fn csr_into<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        groups: Option<&[u32]>,
        threads: Threads,
        rows: &mut CsrRows<E>,
    ) -> Result<RowCounts> {
        let Some(parts) = self.parts(logits, groups)? else {
            let (method, temperature) = self.method(None)?;
            return method.csr_into(&logits.warmer(temperature)?, threads, rows);
        };
        let mut found = Vec::new();
        let mut places = vec![(0, 0); logits.row_count()];
        let counts = self.each_part(&parts, logits, |part, batch| {
            let mut kept = CsrRows::new();
            let counts = part.method.csr_into(batch, threads, &mut kept)?;
            for (i, &row) in part.rows.iter().enumerate() {
                places[row] = (found.len(), i);
            }
            found.push(kept);
            Ok(counts)
        })?;
        let (mut indptr, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (number, i) in places {
            let Some((classes, p)) = found[number].row(i) else { unreachable!("a row of a part") };
            indices.extend_from_slice(classes);
            values.extend(p.iter().map(|&p| E::narrow(p)));
            indptr.push(indices.len() as i64);
        }
        *rows = CsrRows::from_parts(self.classes, indptr, indices, values)?;
        Ok(counts)
    }

    /// The classes of each row whose score is at most the threshold, also for scores and strata that
    /// give no distribution. `uniform` gives a number in `[0, 1)` for each row, for randomised APS and
    /// RAPS, or 1. Unlike the distributions, a set can be empty.
    ///
    /// ```
    /// use shafer::Logits;
    /// use shafer::calibrate::{Calibration, Score};
    ///
    /// let calibration = Calibration::of_threshold(Score::Aps, 3, 0.1, 0.9)?;
    /// let logits = [0.5_f64.ln(), 0.3_f64.ln(), 0.2_f64.ln()];
    /// assert_eq!(calibration.sets(&Logits::row(&logits)?, None, || 1.0)?, [vec![0, 1]]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn sets<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        groups: Option<&[u32]>,
        mut uniform: impl FnMut() -> f64,
    ) -> Result<Vec<Vec<u32>>> {
        self.check(logits, groups)?;
        let mut buffers = (Vec::new(), Vec::new());
        let mut sets = Vec::with_capacity(logits.row_count());
        for row in 0..logits.row_count() {
            let z = checked_row(logits, row, &mut buffers)?;
            let scores = self.score.of_all(z, uniform());
            let all = if self.by == Strata::Class {
                None
            } else {
                Some(self.threshold_of(row, groups.map(|groups| groups[row]))?)
            };
            let keeps = |&class: &u32| {
                let k = class as usize;
                let threshold = all.unwrap_or_else(|| self.threshold_of_class(k));
                z[k] > f64::NEG_INFINITY && scores[k] <= threshold
            };
            sets.push((0..self.classes as u32).filter(keeps).collect());
        }
        Ok(sets)
    }

    fn check<E: Element>(&self, logits: &Logits<'_, E>, groups: Option<&[u32]>) -> Result<()> {
        check_length("a row of logits", self.classes, logits.classes())?;
        if let (Strata::Group, Some(groups)) = (self.by, groups) {
            check_length("groups", logits.row_count(), groups.len())?;
        }
        Ok(())
    }

    /// Does `work` on the rows of each part, and sums what it counts.
    fn each_part<E: Element>(
        &self,
        parts: &[Part],
        logits: &Logits<'_, E>,
        mut work: impl FnMut(&Part, &Logits<'_, E::Compute>) -> Result<RowCounts>,
    ) -> Result<RowCounts> {
        let mut counts = RowCounts::default();
        for part in parts {
            let rows = self.gather(part, logits)?;
            let batch = Logits::rows(&rows, logits.classes())?;
            let batch = batch.temperature_of(logits).warmer(part.temperature)?;
            let found = work(part, &batch).map_err(|error| part.name_row(error))?;
            counts.rows += found.rows;
            counts.vacuous += found.vacuous;
        }
        Ok(counts)
    }

    /// The logits of a part, with `-inf` for the classes that thresholds of their own drop.
    fn gather<E: Element>(&self, part: &Part, logits: &Logits<'_, E>) -> Result<Vec<E::Compute>> {
        let mut gathered = part.gather(logits);
        if self.by == Strata::Class {
            let mut buffers = (Vec::new(), Vec::new());
            for (&row, kept) in part.rows.iter().zip(gathered.chunks_exact_mut(self.classes)) {
                let scores = self.score.of_all(checked_row(logits, row, &mut buffers)?, 1.0);
                let best =
                    (0..self.classes).reduce(|best, k| if kept[k] > kept[best] { k } else { best });
                for (k, logit) in kept.iter_mut().enumerate() {
                    if scores[k] > self.threshold_of_class(k) && Some(k) != best {
                        *logit = Element::from_f64(f64::NEG_INFINITY);
                    }
                }
            }
        }
        Ok(gathered)
    }

    fn threshold_of_class(&self, class: usize) -> f64 {
        self.thresholds.get(&(class as u32)).map_or(f64::INFINITY, |threshold| threshold.value)
    }

    /// The rows of each group with their methods; `None` if all have the same.
    fn parts<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        groups: Option<&[u32]>,
    ) -> Result<Option<Vec<Part>>> {
        self.check(logits, groups)?;
        match self.by {
            Strata::All => return Ok(None),
            Strata::Group => {}
            Strata::Class => {
                let problem = match self.score {
                    Score::Aps | Score::Raps { .. } => SETS_ONLY,
                    Score::Sparsemax | Score::Entmax { .. } => {
                        "the threshold is the temperature of a row, so a class cannot have its own"
                    }
                    _ => {
                        let (rows, method) = ((0..logits.row_count()).collect(), Method::SOFTMAX);
                        return Ok(Some(vec![Part { rows, method, temperature: 1.0 }]));
                    }
                };
                return self.refuse(problem);
            }
        }
        let groups = groups.ok_or(Error::Empty { what: "groups" })?;
        let mut rows: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        for (row, &group) in groups.iter().enumerate() {
            if !self.thresholds.contains_key(&group) {
                return Err(Error::Group { row, group });
            }
            rows.entry(group).or_default().push(row);
        }
        let part = |(group, rows)| {
            let (method, temperature) = self.method(Some(group))?;
            Ok(Part { rows, method, temperature })
        };
        rows.into_iter().map(part).collect::<Result<_>>().map(Some)
    }
}

/// Rows with the same method.
struct Part {
    rows: Vec<usize>,
    method: Method,
    temperature: f64,
}

impl Part {
    /// The logits of the rows, with the mask applied.
    fn gather<E: Element>(&self, logits: &Logits<'_, E>) -> Vec<E::Compute> {
        let mut buffer = Vec::new();
        let mut out = Vec::with_capacity(self.rows.len() * logits.classes());
        for &row in &self.rows {
            out.extend_from_slice(logits.block(row, 1, &mut buffer));
        }
        out
    }

    /// The error with the number of the row in the whole batch.
    fn name_row(&self, error: Error) -> Error {
        match error {
            Error::Value { row, .. } | Error::Row { row, .. } => {
                error.clone().at_row(self.rows.get(row).copied().unwrap_or(row))
            }
            _ => error,
        }
    }
}
