//! The paper's transform: keep the classes with direct support.

use std::num::NonZeroUsize;

use super::rule::{Selection, checked_sum};
use super::{Method, Rule};
use crate::error::{Error, Result};
use crate::kernel::{Above, Float, Loops};
use crate::numerics::Sum;

impl Method {
    /// Evidential sparsification (equation 10 of the paper): softmax over the classes whose singleton
    /// mass is not 0, renormalised.
    ///
    /// With the paper's weights `w_k = l_k - mean(l)` (equations 7 to 9), one of several classes has
    /// singleton mass exactly when `l_k > mean(l)`, so the choice is made by that sign and never by
    /// comparing a rounded mass with 0. The class of the largest logit is always kept. If all logits
    /// are equal, the evidence is vacuous: all classes are kept, and
    /// [`RowCounts::vacuous`](crate::RowCounts::vacuous) counts the row.
    ///
    /// ```
    /// let p = shafer::Method::EVIDENTIAL.row(&[3.0, 2.5, 0.4, -1.0, -2.0, -2.9])?; // The mean is 0.
    /// assert_eq!(p.iter().map(|&p| p > 0.0).collect::<Vec<_>>(), [true, true, true, false, false, false]);
    /// assert!((p[0] / p[1] - 0.5_f64.exp()).abs() < 1e-12);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const EVIDENTIAL: Self = Self(Rule::Evidential { rounds: NonZeroUsize::MIN });

    /// [`EVIDENTIAL`](Self::EVIDENTIAL) in several rounds: each applies the rule to the survivors of
    /// the one before, so that supports are nested. One round is the paper's method.
    ///
    /// # Errors
    /// `rounds` is 0.
    ///
    /// ```
    /// // The mean is 0, and that of the three survivors 1.97.
    /// let p = shafer::Method::evidential(2)?.row(&[3.0, 2.5, 0.4, -1.0, -2.0, -2.9])?;
    /// assert_eq!(p.iter().map(|&p| p > 0.0).collect::<Vec<_>>(), [true, true, false, false, false, false]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn evidential(rounds: usize) -> Result<Self> {
        let rule = "must be at least 1";
        let zero = Error::Parameter { name: "rounds", value: 0.0, rule };
        Ok(Self(Rule::Evidential { rounds: NonZeroUsize::new(rounds).ok_or(zero)? }))
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn select<F: Float>(
    rounds: usize,
    row: &[F],
    loops: impl Loops<F>,
) -> Result<Selection<F>> {
    let (max, mut left) = checked_sum(row, loops)?;
    let mut threshold = F::NEG_INFINITY;
    let mut vacuous = false;
    for round in 0..rounds {
        if round > 0 {
            let before = left.count;
            left = loops.above(row, threshold);
            // Nothing was dropped, so nothing ever will be, however many rounds are left.
            if left.count == before {
                break;
            }
        }
        let mean = mean(row, threshold, left, loops);
        // The mean can only come this close to the maximum if all are equal, or by rounding.
        let second = max.next_down();
        if mean >= second && loops.above(row, second).count == left.count {
            vacuous = round == 0 && left.count > 1;
            break;
        }
        threshold = if mean < second { mean } else { second };
    }
    Ok(Selection { vacuous, ..Selection::above(threshold, max) })
}

/// The mean of the values above `threshold`, whose sum and number are known, rounded down.
#[inline(always)]
pub(super) fn mean<F: Float>(row: &[F], threshold: F, left: Above, loops: impl Loops<F>) -> F {
    if !F::SUMS_OVERFLOW || left.sum.value().is_finite() {
        loops.mean_floor(left)
    } else {
        scaled_mean(row, threshold, left.count)
    }
}

/// As [`mean`], where the sum overflows.
#[cold]
fn scaled_mean<F: Float>(row: &[F], threshold: F, count: usize) -> F {
    // Only values near the end of the range of f64 come here. Scaled down, the mean of equal values
    // is still exactly that value.
    let scale = 2.0_f64.powi(64);
    let kept = row.iter().filter(|&&x| x > threshold);
    let sum: Sum = kept.map(|&x| x.to_f64() / scale).collect();
    F::floor_from(sum.mean_floor(count) * scale)
}
