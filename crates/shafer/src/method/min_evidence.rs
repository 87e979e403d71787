//! Min-evidence: the paper's transform with another threshold.

use super::evidential::mean;
use super::min_p::below;
use super::rule::{Selection, checked_sum};
use super::{Method, Rule};
use crate::error::{Result, check_parameter};
use crate::kernel::{Float, Loops, ROUNDING, Rate};

impl Method {
    /// Softmax over the classes whose weight of evidence `w_k = (l_k - mean(l)) / T` is at least `w`,
    /// renormalised. The class of the largest logit is always kept.
    ///
    /// [`EVIDENTIAL`](Self::EVIDENTIAL) keeps `w_k > 0`. A negative `w` keeps more classes, a positive
    /// one fewer; [`calibrate`](crate::calibrate) finds the `w` for a given miss rate. Unlike that of
    /// the paper's rule, the support depends on the temperature.
    ///
    /// A weight that is less than `w` by no more than the rounding of the mean counts as equal.
    ///
    /// # Errors
    /// `w` is not finite.
    ///
    /// ```
    /// // The mean is 0, so the logits are the weights.
    /// let logits = [3.0, 2.5, 0.4, -1.0, -2.0, -2.9];
    /// let kept = |w: f64| -> shafer::Result<usize> {
    ///     Ok(shafer::Method::min_evidence(w)?.row(&logits)?.iter().filter(|&&p| p > 0.0).count())
    /// };
    /// assert_eq!((kept(2.5)?, kept(0.0)?, kept(-1.0)?), (2, 3, 4));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn min_evidence(w: f64) -> Result<Self> {
        Ok(Self(Rule::MinEvidence { w: check_parameter("w", w, w.is_finite(), "must be finite")? }))
    }
}

/// How far above the mean a logit must lie: `T w`.
pub(super) fn distance(w: f64, rate: Rate) -> f64 {
    (w / rate.exact()).clamp(f64::MIN, f64::MAX)
}

#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn select<F: Float>(
    w: f64,
    row: &[F],
    rate: Rate,
    loops: impl Loops<F>,
) -> Result<Selection<F>> {
    let (max, all) = checked_sum(row, loops)?;
    let second = max.next_down();
    let floor = mean(row, F::NEG_INFINITY, all, loops);
    let vacuous = floor >= second && all.count > 1 && loops.above(row, second).count == all.count;
    let sum = all.sum.value();
    let mean = if sum.is_finite() { sum / all.count as f64 } else { floor.to_f64() };
    let slack = mean.abs() * ROUNDING + max.to_f64().abs() * ROUNDING;
    let threshold = below::<F>(mean + distance(w, rate) - slack);
    Ok(Selection { vacuous, ..Selection::above(threshold, max) })
}
