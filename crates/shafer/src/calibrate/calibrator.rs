//! From labelled rows to a calibration.

use std::collections::BTreeMap;

use super::calibration::{Calibration, Strata, Threshold};
use super::labelled::Labelled;
use super::score::Score;
use super::scores::Scores;
use crate::element::Element;
use crate::error::{Error, Result};

/// Collects the scores of labelled rows, batch after batch, and makes a [`Calibration`] of them.
///
/// ```
/// use shafer::calibrate::{Calibrator, Labelled, Score, Strata};
/// use shafer::{Logits, Method, Threads};
///
/// // 40 rows whose true class is the first, but for two.
/// let logits: Vec<f64> = (0..40).flat_map(|i| [2.0, -1.0, f64::from(i % 5) / 5.0, -1.0]).collect();
/// let labels: Vec<u32> = (0..40).map(|i| if i < 38 { 0 } else { 2 }).collect();
/// let rows = Labelled::new(Logits::rows(&logits, 4)?, &labels)?;
///
/// let mut calibrator = Calibrator::new(Score::Evidential, Strata::All);
/// calibrator.add(&rows)?;
/// let calibration = calibrator.calibration(0.1)?;
/// assert_eq!(calibration.threshold(None)?, -1.8); // Score number 37 of 40, ordered: -w_y.
/// assert_eq!(calibrator.calibration(0.02)?.threshold(None)?, f64::INFINITY); // Needs 49 rows.
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Calibrator {
    score: Score,
    by: Strata,
    classes: Option<usize>,
    scores: BTreeMap<u32, Vec<f64>>,
}

impl Calibrator {
    /// For this score, with one threshold for all rows, or one for each group or class.
    pub fn new(score: Score, by: Strata) -> Self {
        Self { score, by, classes: None, scores: BTreeMap::new() }
    }

    /// Adds rows.
    ///
    /// # Errors
    /// A row or a label is invalid, the number of classes is not that of the rows before, or the
    /// strata are groups and the rows have none.
    pub fn add<E: Element>(&mut self, rows: &Labelled<'_, E>) -> Result<()> {
        self.add_randomised(rows, || 1.0)
    }

    /// As [`add`](Self::add), with a uniform number from `[0, 1)` for each row, for APS and RAPS.
    pub fn add_randomised<E: Element>(
        &mut self,
        rows: &Labelled<'_, E>,
        uniform: impl FnMut() -> f64,
    ) -> Result<()> {
        let (expected, found) =
            (self.classes.unwrap_or(rows.logits.classes()), rows.logits.classes());
        if expected != found {
            return Err(Error::Length { what: "a row of logits", expected, found });
        }
        let scores = self.score.of_labels_randomised(rows, uniform)?;
        let strata = match self.by {
            Strata::All => None,
            Strata::Class => Some(rows.labels),
            Strata::Group => Some(rows.groups.ok_or(Error::Empty { what: "groups" })?),
        };
        self.classes = Some(found);
        for (row, score) in scores.into_iter().enumerate() {
            let stratum = strata.map_or(0, |strata| strata[row]);
            self.scores.entry(stratum).or_default().push(score);
        }
        Ok(())
    }

    /// The number of rows so far.
    pub fn rows(&self) -> usize {
        self.scores.values().map(Vec::len).sum()
    }

    /// The scores of a stratum: 0 for all rows, or a group or class.
    pub fn scores(&self, stratum: u32) -> Result<Scores> {
        Scores::new(self.scores.get(&stratum).cloned().unwrap_or_default())
    }

    /// The split conformal calibration: a new row that is exchangeable with those of its stratum
    /// keeps its true class with probability at least `1 - alpha`.
    ///
    /// # Errors
    /// There are no rows, or `alpha` is not between 0 and 1.
    pub fn calibration(&self, alpha: f64) -> Result<Calibration> {
        self.with(alpha, None, |scores| scores.threshold(alpha))
    }

    /// The calibration that keeps the true class of new rows with probability at least `1 - alpha`
    /// unless the calibration rows were bad luck, which has probability `delta` at most, for each
    /// stratum. Rows must be independent and of one distribution.
    ///
    /// # Errors
    /// There are no rows, or a probability is not between 0 and 1.
    pub fn confident_calibration(&self, alpha: f64, delta: f64) -> Result<Calibration> {
        self.with(alpha, Some(delta), |scores| scores.confident_threshold(alpha, delta))
    }

    fn with(
        &self,
        alpha: f64,
        delta: Option<f64>,
        threshold: impl Fn(&Scores) -> Result<f64>,
    ) -> Result<Calibration> {
        let Some(classes) = self.classes.filter(|_| self.rows() > 0) else {
            return Err(Error::Empty { what: "the set of calibration rows" });
        };
        let mut thresholds = BTreeMap::new();
        if self.by == Strata::Class {
            // Classes that did not occur are kept always.
            let unseen = Threshold { rows: 0, value: f64::INFINITY };
            thresholds.extend((0..classes as u32).map(|class| (class, unseen)));
        }
        for (&stratum, scores) in &self.scores {
            let scores = Scores::new(scores.clone())?;
            let value = threshold(&scores)?;
            thresholds.insert(stratum, Threshold { rows: scores.len(), value });
        }
        Calibration::new(self.score, self.by, classes, alpha, delta, thresholds)
    }
}
