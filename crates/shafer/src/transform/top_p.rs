//! Top-p.

use std::cmp::Ordering;

use super::rule::{Scratch, Selection, checked_max};
use super::top_k::take_one;
use super::{Rule, Transform, parameter};
use crate::error::Result;
use crate::kernel::{Above, Ahead, Cut, Float, Loops, Rate};

/// Top-p, or nucleus: softmax over the smallest set of most probable classes whose probabilities
/// sum to at least `p`, renormalised. Of equal logits, the first are taken first.
///
/// ```
/// use shafer::{TopP, TransformExt};
///
/// let logits = [0.5_f64.ln(), 0.3_f64.ln(), 0.2_f64.ln()];
/// let kept = TopP::new(0.7)?.row(&logits)?;
/// assert!((kept[0] - 0.625).abs() < 1e-12 && kept[2] == 0.0);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TopP {
    p: f64,
}

impl TopP {
    /// With this sum of probabilities.
    ///
    /// # Errors
    /// `p` is not between 0 (exclusive) and 1.
    ///
    /// ```
    /// assert!(shafer::TopP::new(0.9).is_ok());
    /// assert!(shafer::TopP::new(1.5).is_err());
    /// ```
    pub fn new(p: f64) -> Result<Self> {
        let rule = "must be greater than 0 and at most 1";
        Ok(Self { p: parameter("p", p, rule, |p| p > 0.0 && p <= 1.0)? })
    }
}

impl Transform for TopP {
    fn name(&self) -> &'static str {
        "top-p"
    }

    #[allow(private_interfaces, reason = "see Transform::rule")]
    fn rule(&self) -> Rule {
        Rule::TopP { p: self.p }
    }
}

/// Sorting this many is cheaper than reading the row once more.
const FEW: usize = 64;

pub(super) fn select<F: Float>(
    p: f64,
    row: &[F],
    rate: Rate,
    scratch: &mut Scratch<F>,
) -> Result<Selection<F>> {
    let max = checked_max(row, F::LOOPS)?;
    if p >= 1.0 {
        let count = scratch.list(row, F::NEG_INFINITY);
        return Ok(scratch.normalise(count, max, rate));
    }
    let mut weights = std::mem::take(&mut scratch.work);
    weights.clear();
    weights.resize(row.len(), F::default());
    F::LOOPS.exp_above(
        row,
        &mut weights,
        Cut { threshold: F::NEG_INFINITY, max },
        rate,
        Ahead::default(),
    );
    let (last, mut ties) = last_kept(p, row, &weights, max, rate, scratch);
    scratch.work = weights;
    let count = scratch.list(row, last.next_down());
    let count = scratch.retain(count, |x| x > last || take_one(&mut ties));
    Ok(scratch.normalise(count, max, rate))
}

/// The smallest logit that is kept, and how many of those equal to it are.
fn last_kept<F: Float>(
    p: f64,
    row: &[F],
    weights: &[F],
    max: F,
    rate: Rate,
    scratch: &mut Scratch<F>,
) -> (F, usize) {
    let all = F::LOOPS.weight_above(row, weights, F::NEG_INFINITY);
    let target = p * all.sum.value();
    let (low, high, mut sum) = if all.count <= FEW {
        (F::NEG_INFINITY, max, 0.0)
    } else {
        narrow_down(target, row, weights, max, rate)
    };
    // In doubt is what lies above `low` and not above `high`. If that is still many, all are equal.
    let count = scratch.list(row, low);
    let doubtful = &mut scratch.pairs;
    doubtful.clear();
    let listed = scratch.columns[..count].iter().zip(&scratch.values);
    doubtful.extend(
        listed.filter(|(_, x)| **x <= high).map(|(&column, &x)| (x, weights[column as usize])),
    );
    doubtful.sort_unstable_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    let (mut last, mut ties) = (high, 0);
    for &(x, weight) in &*doubtful {
        if sum >= target && ties > 0 {
            break;
        }
        ties = if x == last { ties + 1 } else { 1 };
        last = x;
        sum += weight.to_f64();
    }
    (last, ties)
}

/// Two thresholds, of which the weights above the lower one reach the target and those above the
/// higher one, whose sum comes third, do not, and which have few logits between them.
///
/// Bisection, with one vectorised read of the row for each threshold that is tried.
fn narrow_down<F: Float>(target: f64, row: &[F], weights: &[F], max: F, rate: Rate) -> (F, F, f64) {
    let mut high = max;
    // Whatever lies lower than this has a weight of exactly 0 in any of the types.
    let mut low = F::floor_from(max.to_f64() - 800.0 / rate.exact());
    if low == high {
        low = high.next_down();
    }
    let mut above_low = F::LOOPS.weight_above(row, weights, low);
    let mut above_high = Above { sum: 0.0.into(), count: 0 };
    while above_low.count - above_high.count > FEW {
        let middle = F::from_f64(low.to_f64() / 2.0 + high.to_f64() / 2.0);
        if !(low < middle && middle < high) {
            break;
        }
        let above = F::LOOPS.weight_above(row, weights, middle);
        if above.sum.value() >= target {
            (low, above_low) = (middle, above);
        } else {
            (high, above_high) = (middle, above);
        }
    }
    (low, high, above_high.sum.value())
}
