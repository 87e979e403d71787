//! Min-p.

use super::rule::{Selection, checked_max};
use super::{Method, Rule, share};
use crate::error::Result;
use crate::kernel::{Float, Loops, Rate};

impl Method {
    /// Min-p (Nguyen et al., 2024): softmax over the classes that are at least `p` times as probable
    /// as the best one, renormalised.
    ///
    /// # Errors
    /// `p` is not between 0 (exclusive) and 1.
    ///
    /// ```
    /// // Ratios to the best: 1, 0.61, 0.05.
    /// let kept = shafer::Method::min_p(0.1)?.row(&[0.0, -0.5, -3.0])?;
    /// assert!(kept[1] > 0.0 && kept[2] == 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn min_p(p: f64) -> Result<Self> {
        Ok(Self(Rule::MinP { p: share(p)? }))
    }
}

/// How far below the maximum a logit may lie: `-T ln p`.
pub(super) fn distance(p: f64, rate: Rate) -> f64 {
    -p.ln() / rate.exact()
}

#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn select<F: Float>(
    p: f64,
    row: &[F],
    rate: Rate,
    loops: impl Loops<F>,
) -> Result<Selection<F>> {
    let max = checked_max(row, loops)?;
    Ok(Selection::above(below(max.to_f64() - distance(p, rate)), max))
}

/// The largest value that is less than the bound: what lies above it is not less than the bound.
#[inline(always)]
pub(super) fn below<F: Float>(bound: f64) -> F {
    let floor = F::floor_from(bound);
    if floor.to_f64() == bound { floor.next_down() } else { floor }
}
