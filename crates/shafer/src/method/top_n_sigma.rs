//! Top-n-sigma.

use super::min_p::below;
use super::rule::{Selection, checked_sum};
use super::{Method, Rule};
use crate::error::{Result, check_parameter};
use crate::kernel::{Float, Loops};
use crate::numerics::Sum;

impl Method {
    /// Top-n-sigma (Tang et al., 2024): softmax over the classes whose logit is at most `n` standard
    /// deviations below the largest, renormalised.
    ///
    /// The standard deviation is that of the row's logits (divided by their number, as in NumPy and
    /// llama.cpp; masked classes do not count). Temperature does not change what is kept. Nothing is
    /// sorted.
    ///
    /// # Errors
    /// `n` is not positive.
    ///
    /// ```
    /// // The standard deviation is 1.66, so that logits of at least 1.34 are kept.
    /// let kept = shafer::Method::top_n_sigma(1.0)?.row(&[3.0, 1.0, -1.0, -1.0, -1.0, -1.0, 2.0, -2.0])?;
    /// assert_eq!(kept.iter().filter(|&&p| p > 0.0).count(), 2);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn top_n_sigma(n: f64) -> Result<Self> {
        let holds = n.is_finite() && n > 0.0;
        check_parameter("n", n, holds, "must be finite and greater than 0")?;
        Ok(Self(Rule::TopNSigma { n }))
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn select<F: Float>(n: f64, row: &[F], loops: impl Loops<F>) -> Result<Selection<F>> {
    let (max, unmasked) = checked_sum(row, loops)?;
    let count = unmasked.count as f64;
    let variance = loops.squares(row, unmasked.sum.value() / count) / count;
    // Squares of f64 can overflow and underflow; those of f32 cannot.
    let deviation = if !F::SUMS_OVERFLOW || (1e-280..=1e280).contains(&variance) {
        variance.sqrt()
    } else {
        scaled_deviation(row, max.to_f64(), count)
    };
    Ok(Selection::above(below(max.to_f64() - n * deviation), max))
}

/// The standard deviation where its square overflows or underflows.
#[cold]
fn scaled_deviation<F: Float>(row: &[F], max: f64, count: f64) -> f64 {
    let unmasked = || row.iter().filter(|&&x| x > F::NEG_INFINITY).map(|&x| x.to_f64());
    // In halves: the difference of two numbers can overflow.
    let range = max / 2.0 - unmasked().fold(max, f64::min) / 2.0;
    if range == 0.0 {
        return 0.0;
    }
    let scaled = || unmasked().map(|x| (x / 2.0 - max / 2.0) / range);
    let mean = scaled().collect::<Sum>().value() / count;
    let squares: Sum = scaled().map(|x| (x - mean) * (x - mean)).collect();
    (squares.value() / count).sqrt() * range * 2.0
}
