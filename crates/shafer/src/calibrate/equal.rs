//! Methods at equal guarantee.

use super::audit::{Audit, Misses};
use super::calibration::Strata;
use super::calibrator::Calibrator;
use super::labelled::Labelled;
use super::score::Score;
use crate::element::Element;
use crate::error::Result;
use crate::threads::Threads;

/// What a method, calibrated for a miss rate on some rows, does to others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtLevel {
    /// The score of the method.
    pub score: Score,
    /// The allowed miss rate.
    pub alpha: f64,
    /// The threshold; infinite if there were too few calibration rows, and all classes are kept.
    pub threshold: f64,
    /// How many of the other rows lost their true class.
    pub misses: Misses,
    /// The mean number of kept classes in them; `None` without rows.
    pub mean_size: Option<f64>,
}

/// Calibrates each score that has a method for each miss rate on `calibration`, and counts misses and
/// kept classes on `test`: at equal guarantee, the method that keeps fewest classes is best.
///
/// ```
/// use shafer::calibrate::{Labelled, Score, at_levels};
/// use shafer::{Logits, Threads};
///
/// let logits: Vec<f64> = (0..40).flat_map(|i| [2.0, 1.0, -3.0 + f64::from(i % 4)]).collect();
/// let labels: Vec<u32> = (0..40).map(|i| u32::from(i % 5 == 0)).collect();
/// let (first, second) = (Logits::rows(&logits[..60], 3)?, Logits::rows(&logits[60..], 3)?);
/// let calibration = Labelled::new(first, &labels[..20])?;
/// let test = Labelled::new(second, &labels[20..])?;
/// let found = at_levels(&calibration, &test, &[Score::MinP], &[0.1, 0.5], Threads::One)?;
/// assert_eq!((found[0].threshold, found[0].misses.missed), (1.0, 0));
/// // The best class alone is right in 16 of 20 rows.
/// assert_eq!((found[1].threshold, found[1].misses.missed, found[1].mean_size), (0.0, 4, Some(1.0)));
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn at_levels<E: Element>(
    calibration: &Labelled<'_, E>,
    test: &Labelled<'_, E>,
    scores: &[Score],
    alphas: &[f64],
    threads: Threads,
) -> Result<Vec<AtLevel>> {
    let mut found = Vec::with_capacity(scores.len() * alphas.len());
    for &score in scores {
        let mut calibrator = Calibrator::new(score, Strata::All);
        calibrator.add(calibration)?;
        for &alpha in alphas {
            let calibration = calibrator.calibration(alpha)?;
            let mut audit = Audit::default();
            audit.add_calibrated(&calibration, test, threads)?;
            let threshold = calibration.threshold(None)?;
            let (misses, mean_size) = (audit.all(), audit.mean_size());
            found.push(AtLevel { score, alpha, threshold, misses, mean_size });
        }
    }
    Ok(found)
}
