//! Min-probability.

use super::min_p::below;
use super::rule::{Scratch, Selection, checked_max};
use super::{Method, Rule, share};
use crate::error::Result;
use crate::kernel::{Cut, Float, Loops, Rate};

impl Method {
    /// Softmax over the classes whose probability is at least `p`, renormalised. The best class is
    /// always kept.
    ///
    /// Calibrated by [`calibrate`](crate::calibrate) it is what the literature on conformal
    /// prediction calls LAC or THR (Sadinle, Lei and Wasserman, 2019).
    ///
    /// # Errors
    /// `p` is not between 0 (exclusive) and 1.
    ///
    /// ```
    /// let logits = [0.5_f64.ln(), 0.3_f64.ln(), 0.2_f64.ln()];
    /// let kept = shafer::Method::min_probability(0.25)?.row(&logits)?;
    /// assert!((kept[0] - 0.625).abs() < 1e-12 && kept[2] == 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn min_probability(p: f64) -> Result<Self> {
        Ok(Self(Rule::MinProbability { p: share(p)? }))
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn select<F: Float>(
    p: f64,
    row: &[F],
    rate: Rate,
    scratch: &mut Scratch<F>,
    loops: impl Loops<F>,
) -> Result<Selection<F>> {
    let max = checked_max(row, loops)?;
    let sum = scratch.weigh(row, max, rate, loops);
    let best = loops.scan::<false>(&scratch.work).max.to_f64();
    // Logits are compared, because exponentials underflow.
    let threshold = below::<F>(max.to_f64() + (p * (sum / best)).ln() / rate.exact());
    let Cut { threshold, .. } = Cut::keeping_best(threshold, max);
    let count = scratch.list(row, threshold, loops);
    Ok(scratch.normalise(count, max, rate, loops))
}
