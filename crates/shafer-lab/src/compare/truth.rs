//! The accuracy and loss of methods, with the true classes.

use serde::Serialize;
use shafer::calibrate::Misses;

/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// The true class of a row under a method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    /// Whether it is the arg-max, the first of ties.
    pub(super) is_best: bool,
    /// Zero for a dropped class.
    pub(super) probability: f64,
}

/// Sums over rows.
#[derive(Clone, Debug, Default)]
pub(super) struct TruthTotals {
    rows: u64,
    best: u64,
    dropped: u64,
    loss: f64,
}

/// Accuracy and loss of a method over the rows for which it has a distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TruthReport {
    /// The share of rows whose arg-max (the first of ties) is the true class.
    pub(crate) accuracy: f64,
    /// Rows in which the true class has probability 0: their log-loss is infinite.
    pub(crate) dropped: u64,
    pub(crate) dropped_share: f64,
    /// The Clopper-Pearson 95% interval of that share.
    pub(crate) dropped_interval: [f64; 2],
    /// `-ln p` of the true class in nats, mean over the other rows.
    pub(crate) log_loss_of_kept: Option<f64>,
}

impl TruthTotals {
    pub(super) fn add(&mut self, truth: Truth) {
        self.rows += 1;
        self.best += u64::from(truth.is_best);
        if truth.probability > 0.0 {
            self.loss -= truth.probability.ln();
        } else {
            self.dropped += 1;
        }
    }

    /// `None` without labels or rows.
    pub(super) fn report(&self) -> Option<TruthReport> {
        let Self { rows, best, dropped, loss } = *self;
        // Fails only without rows.
        let interval = Misses { rows, missed: dropped }.interval(CONFIDENCE).ok()?;
        Some(TruthReport {
            accuracy: best as f64 / rows as f64,
            dropped,
            dropped_share: dropped as f64 / rows as f64,
            dropped_interval: interval.into(),
            log_loss_of_kept: (dropped < rows).then(|| loss / (rows - dropped) as f64),
        })
    }
}
