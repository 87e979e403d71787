//! Min-p.

use super::rule::{Selection, checked_max};
use super::{Rule, Transform, parameter};
use crate::error::Result;
use crate::kernel::{Float, Loops, Rate};

/// Min-p: softmax over the classes that are at least `p` times as probable as the best one,
/// renormalised.
///
/// ```
/// use shafer::{MinP, TransformExt};
///
/// // Ratios to the best: 1, 0.61, 0.05.
/// let kept = MinP::new(0.1)?.row(&[0.0, -0.5, -3.0])?;
/// assert!(kept[1] > 0.0 && kept[2] == 0.0);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MinP {
    p: f64,
}

impl MinP {
    /// With this share of the best probability.
    ///
    /// # Errors
    /// `p` is not between 0 (exclusive) and 1.
    ///
    /// ```
    /// assert!(shafer::MinP::new(0.05).is_ok());
    /// assert!(shafer::MinP::new(0.0).is_err());
    /// ```
    pub fn new(p: f64) -> Result<Self> {
        let rule = "must be greater than 0 and at most 1";
        Ok(Self { p: parameter("p", p, rule, |p| p > 0.0 && p <= 1.0)? })
    }
}

impl Transform for MinP {
    fn name(&self) -> &'static str {
        "min-p"
    }

    #[allow(private_interfaces, reason = "see Transform::rule")]
    fn rule(&self) -> Rule {
        Rule::MinP { p: self.p }
    }
}

/// How far below the maximum a logit may lie: `-T ln p`.
pub(super) fn distance(p: f64, rate: Rate) -> f64 {
    -p.ln() / rate.exact()
}

#[inline(always)]
pub(super) fn select<F: Float>(
    p: f64,
    row: &[F],
    rate: Rate,
    loops: impl Loops<F>,
) -> Result<Selection<F>> {
    let max = checked_max(row, loops)?;
    let bound = max.to_f64() - distance(p, rate);
    let floor = F::floor_from(bound);
    // The bound itself is kept.
    let threshold = if floor.to_f64() == bound { floor.next_down() } else { floor };
    Ok(Selection::above(threshold, max))
}
