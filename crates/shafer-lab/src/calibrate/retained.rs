//! Labelled rows in memory: methods at equal guarantee, and their curves.

use std::fmt::Write as _;

use anyhow::Result;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use serde::Serialize;
use shafer::calibrate::{
    AtLevel, Audit, Calibration, Labelled, Misses, Score, at_levels, conformal_rank,
};
use shafer::{Element, Logits, Method, Threads};

use crate::words::counted;

/// The logits that are held at most; further rows are left out.
const MOST_LOGITS: usize = 1 << 23;

/// The miss rates of the table.
const LEVELS: [f64; 3] = [0.01, 0.05, 0.1];

/// The miss rates of the curves.
const CURVE: [f64; 22] = [
    0.001, 0.002, 0.003, 0.005, 0.0075, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12,
    0.15, 0.18, 0.22, 0.26, 0.3, 0.35, 0.4,
];

/// The confidence of intervals.
pub(super) const CONFIDENCE: f64 = 0.95;

/// Rows in double precision, masked classes as `-inf`.
#[derive(Debug)]
pub(crate) struct Retained {
    classes: usize,
    temperature: f64,
    logits: Vec<f64>,
    labels: Vec<u32>,
    /// Whether rows were left out.
    pub(crate) cut: bool,
}

/// A method that was calibrated for a miss rate on half of the rows, on the other half.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AtMiss {
    pub(crate) score: String,
    /// The miss rate that it was calibrated for.
    pub(crate) miss: f64,
    /// `None` if there are too few rows for it, so that all classes are kept.
    pub(crate) threshold: Option<f64>,
    #[serde(flatten)]
    pub(crate) found: Found,
}

/// Misses and sizes of a method on some rows.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Found {
    pub(crate) rows: u64,
    pub(crate) missed: u64,
    pub(crate) missed_share: f64,
    /// The exact 95% interval of that share.
    pub(crate) interval: [f64; 2],
    pub(crate) kept_mean: f64,
}

impl Found {
    /// `None` without rows.
    pub(super) fn new(misses: Misses, size: Option<f64>, confidence: f64) -> Option<Self> {
        Some(Self {
            rows: misses.rows,
            missed: misses.missed,
            missed_share: misses.share()?,
            interval: misses.interval(confidence).ok()?.into(),
            kept_mean: size?,
        })
    }
}

/// All methods at equal guarantee.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct EqualGuarantee {
    pub(crate) calibration_rows: usize,
    /// Whether the file has more rows than were used.
    pub(crate) cut: bool,
    /// The paper's rule on the same test rows.
    pub(crate) evidential: Found,
    pub(crate) methods: Vec<AtMiss>,
}

impl EqualGuarantee {
    /// A line for each method: the mean number of kept classes, and the miss rate that was found.
    pub(crate) fn text(&self) -> String {
        let mut text = format!(
            "\nat equal guarantee: calibrated on {}{}, tested on {} others\n{:<18}",
            counted(self.calibration_rows, "random row"),
            if self.cut { " of the first" } else { "" },
            self.evidential.rows,
            "classes kept at"
        );
        for level in LEVELS {
            let _ = write!(text, "{:>20}", format!("{}% dropped", 100.0 * level));
        }
        let cell =
            |found: &Found| format!("{:.2} ({:.2}%)", found.kept_mean, 100.0 * found.missed_share);
        for methods in self.methods.chunk_by(|a, b| a.score == b.score) {
            let _ = write!(text, "\n{:<18}", methods[0].score);
            for method in methods {
                let _ = write!(text, "{:>20}", cell(&method.found));
            }
        }
        let _ = writeln!(text, "\n{:<18}{:>20}", "the paper's rule", cell(&self.evidential));
        text
    }
}

/// Miss rate and mean support size of a method over a range of thresholds.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Curve {
    pub(super) score: Score,
    pub(super) points: Vec<(f64, f64)>,
}

impl Retained {
    pub(crate) fn new(classes: usize, temperature: f64) -> Self {
        Self { classes, temperature, logits: Vec::new(), labels: Vec::new(), cut: false }
    }

    /// Adds rows that are contiguous, as long as there is room.
    pub(crate) fn add<E: Element>(&mut self, logits: &[E], labels: &[u32]) {
        let room = (MOST_LOGITS.saturating_sub(self.logits.len()) / self.classes).min(labels.len());
        self.cut |= room < labels.len();
        self.logits.extend(logits[..room * self.classes].iter().map(|x| x.to_f64()));
        self.labels.extend_from_slice(&labels[..room]);
    }

    fn of<'a>(&self, logits: &'a [f64], labels: &'a [u32]) -> shafer::Result<Labelled<'a, f64>> {
        Labelled::new(Logits::rows(logits, self.classes)?.temperature(self.temperature)?, labels)
    }

    /// Calibrates all methods on a random half of the rows and tests them on the other; `None` if there are
    /// fewer than two rows.
    pub(crate) fn equal_guarantee(&self) -> Result<Option<EqualGuarantee>> {
        let mut order: Vec<usize> = (0..self.labels.len()).collect();
        order.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
        let (first, second) = order.split_at(order.len() / 2);
        if first.is_empty() {
            return Ok(None);
        }
        let take = |rows: &[usize]| {
            let row = |&row: &usize| &self.logits[row * self.classes..(row + 1) * self.classes];
            let logits: Vec<f64> = rows.iter().flat_map(row).copied().collect();
            let labels: Vec<u32> = rows.iter().map(|&row| self.labels[row]).collect();
            (logits, labels)
        };
        let (first, second) = (take(first), take(second));
        let (calibration, test) = (self.of(&first.0, &first.1)?, self.of(&second.0, &second.1)?);
        let found = at_levels(&calibration, &test, &Score::METHODS, &LEVELS, Threads::All)?;
        let mut audit = Audit::default();
        audit.add(Method::EVIDENTIAL, &test, Threads::All)?;
        let at = |at: AtLevel| {
            Some(AtMiss {
                score: at.score.to_string(),
                miss: at.alpha,
                threshold: at.threshold.is_finite().then_some(at.threshold),
                found: Found::new(at.misses, at.mean_size, CONFIDENCE)?,
            })
        };
        let evidential = Found::new(audit.all(), audit.mean_size(), CONFIDENCE);
        Ok(evidential.map(|evidential| EqualGuarantee {
            calibration_rows: calibration.len(),
            cut: self.cut,
            evidential,
            methods: found.into_iter().filter_map(at).collect(),
        }))
    }

    /// The curve of each method on all rows, and the paper's rule.
    pub(super) fn curves(&self) -> Result<Option<(Vec<Curve>, Found)>> {
        let rows = self.of(&self.logits, &self.labels)?;
        let mut audit = Audit::default();
        audit.add(Method::EVIDENTIAL, &rows, Threads::All)?;
        let Some(paper) = Found::new(audit.all(), audit.mean_size(), CONFIDENCE) else {
            return Ok(None);
        };
        let mut curves = Vec::new();
        for score in Score::METHODS {
            let mut scores = score.of_labels(&rows)?;
            scores.sort_unstable_by(f64::total_cmp);
            let mut points = Vec::new();
            for miss in CURVE {
                let Some(rank) = conformal_rank(scores.len(), miss)? else { continue };
                let at = Calibration::of_threshold(score, self.classes, miss, scores[rank - 1])?;
                let mut audit = Audit::default();
                audit.add_calibrated(&at, &rows, Threads::All)?;
                points.extend(audit.all().share().zip(audit.mean_size()));
            }
            curves.push(Curve { score, points });
        }
        Ok(Some((curves, paper)))
    }
}
