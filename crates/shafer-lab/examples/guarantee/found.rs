//! Misses and sizes, as numbers of the results.

use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use serde::Serialize;
use shafer::calibrate::{Audit, Labelled, Misses, Score, at_levels};
use shafer::{Logits, Method, Threads};

use crate::Outcome;

/// The miss rates to calibrate for.
pub(crate) const LEVELS: [f64; 3] = [0.01, 0.05, 0.1];

const CONFIDENCE: f64 = 0.95;

/// Misses, with their exact 95% interval, and kept classes.
#[derive(Serialize)]
pub(crate) struct Found {
    pub(crate) rows: u64,
    pub(crate) missed: u64,
    pub(crate) missed_share: f64,
    pub(crate) interval: (f64, f64),
    pub(crate) kept_mean: f64,
}

impl Found {
    pub(crate) fn new(misses: Misses, kept_mean: Option<f64>) -> Outcome<Self> {
        Ok(Self {
            rows: misses.rows,
            missed: misses.missed,
            missed_share: misses.share().ok_or("no rows")?,
            interval: misses.interval(CONFIDENCE)?,
            kept_mean: kept_mean.ok_or("no rows")?,
        })
    }
}

/// A calibrated method.
#[derive(Serialize)]
pub(crate) struct AtMiss {
    score: String,
    miss: f64,
    /// Infinite if missing.
    threshold: Option<f64>,
    #[serde(flatten)]
    found: Found,
}

/// All methods at equal guarantee, calibrated on a random half of the rows and tested on the other.
#[derive(Serialize)]
pub(crate) struct Table {
    calibration_rows: usize,
    /// Methods without calibration, on the test half.
    uncalibrated: Vec<(String, Found)>,
    calibrated: Vec<AtMiss>,
}

/// Rows of logits with their true classes.
pub(crate) struct Rows {
    pub(crate) logits: Vec<f32>,
    pub(crate) labels: Vec<u32>,
}

impl Rows {
    fn classes(&self) -> usize {
        self.logits.len() / self.labels.len()
    }

    pub(crate) fn labelled(&self) -> shafer::Result<Labelled<'_, f32>> {
        Labelled::new(Logits::rows(&self.logits, self.classes())?, &self.labels)
    }

    fn select(&self, rows: &[usize]) -> Self {
        let classes = self.classes();
        let row = |&row: &usize| self.logits[row * classes..][..classes].iter().copied();
        Self {
            logits: rows.iter().flat_map(row).collect(),
            labels: rows.iter().map(|&row| self.labels[row]).collect(),
        }
    }

    /// Two random halves.
    pub(crate) fn halves(&self) -> (Self, Self) {
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
        let (first, second) = order.split_at(order.len() / 2);
        (self.select(first), self.select(second))
    }

    pub(crate) fn table(&self) -> Outcome<Table> {
        let (first, second) = self.halves();
        let (calibration, test) = (first.labelled()?, second.labelled()?);
        let mut uncalibrated = Vec::new();
        for text in ["evidential", "sparsemax", "entmax:alpha=1.5", "min-p:p=0.05", "top-p:p=0.9"] {
            let mut audit = Audit::default();
            audit.add(text.parse::<Method>()?, &test, Threads::One)?;
            uncalibrated.push((text.to_owned(), Found::new(audit.all(), audit.mean_size())?));
        }
        let found = at_levels(&calibration, &test, &Score::METHODS, &LEVELS, Threads::One)?;
        let at = |at: shafer::calibrate::AtLevel| {
            Ok(AtMiss {
                score: at.score.to_string(),
                miss: at.alpha,
                threshold: at.threshold.is_finite().then_some(at.threshold),
                found: Found::new(at.misses, at.mean_size)?,
            })
        };
        Ok(Table {
            calibration_rows: calibration.len(),
            uncalibrated,
            calibrated: found.into_iter().map(at).collect::<Outcome<_>>()?,
        })
    }
}
