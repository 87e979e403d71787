//! Top-p.

use std::cmp::Ordering;

use super::rule::{Scratch, Selection, checked_max};
use super::top_k::take_one;
use super::{Method, Rule, share};
use crate::error::Result;
use crate::kernel::{Above, Float, Loops, Rate};

impl Method {
    /// Top-p, or nucleus (Holtzman et al., 2020): softmax over the smallest set of most probable
    /// classes whose probabilities sum to at least `p`, renormalised. Of equal logits, the first are
    /// taken first.
    ///
    /// # Errors
    /// `p` is not between 0 (exclusive) and 1.
    ///
    /// ```
    /// let logits = [0.5_f64.ln(), 0.3_f64.ln(), 0.2_f64.ln()];
    /// let kept = shafer::Method::top_p(0.7)?.row(&logits)?;
    /// assert!((kept[0] - 0.625).abs() < 1e-12 && kept[2] == 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn top_p(p: f64) -> Result<Self> {
        Ok(Self(Rule::TopP { p: share(p)? }))
    }
}

/// Sorting this many is faster than reading the row once more.
const FEW: usize = 64;

#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn select<F: Float>(
    p: f64,
    row: &[F],
    rate: Rate,
    scratch: &mut Scratch<F>,
    loops: impl Loops<F>,
) -> Result<Selection<F>> {
    let max = checked_max(row, loops)?;
    if p >= 1.0 {
        let count = scratch.list(row, F::NEG_INFINITY, loops);
        return Ok(scratch.normalise(count, max, rate, loops));
    }
    scratch.weigh(row, max, rate, loops);
    let weights = std::mem::take(&mut scratch.work);
    let (last, mut ties) = last_kept(p, row, &weights, max, rate, scratch, loops);
    scratch.work = weights;
    let count = scratch.list(row, last.next_down(), loops);
    let count = scratch.retain(count, |x| x > last || take_one(&mut ties));
    Ok(scratch.normalise(count, max, rate, loops))
}

/// The smallest logit that is kept, and how many of those equal to it are.
#[inline(always)]
fn last_kept<F: Float>(
    p: f64,
    row: &[F],
    weights: &[F],
    max: F,
    rate: Rate,
    scratch: &mut Scratch<F>,
    loops: impl Loops<F>,
) -> (F, usize) {
    let all = loops.weight_above(row, weights, F::NEG_INFINITY);
    let target = p * all.sum.value();
    let (low, high, mut sum) = if all.count <= FEW {
        (F::NEG_INFINITY, max, 0.0)
    } else {
        narrow_down(target, row, weights, max, rate, loops)
    };
    // Undecided is what lies above `low` and not above `high`. If that is still many, all are equal.
    let count = scratch.list(row, low, loops);
    let undecided = &mut scratch.pairs;
    undecided.clear();
    let listed = scratch.columns[..count].iter().zip(&scratch.values);
    undecided.extend(
        listed.filter(|(_, x)| **x <= high).map(|(&column, &x)| (x, weights[column as usize])),
    );
    undecided.sort_unstable_by(|a, b| b.0.partial_cmp(&a.0).unwrap_or(Ordering::Equal));
    let (mut last, mut ties) = (high, 0);
    for &(x, weight) in &*undecided {
        if sum >= target && ties > 0 {
            break;
        }
        ties = if x == last { ties + 1 } else { 1 };
        last = x;
        sum += weight.to_f64();
    }
    (last, ties)
}

/// Two thresholds with few logits between them: the sum of the weights above the lower one reaches
/// the target, that above the higher one, which is returned as well, does not.
///
/// Bisection, which reads the row once for each step.
#[inline(always)]
fn narrow_down<F: Float>(
    target: f64,
    row: &[F],
    weights: &[F],
    max: F,
    rate: Rate,
    loops: impl Loops<F>,
) -> (F, F, f64) {
    let mut high = max;
    // Whatever lies lower than this has a weight of exactly 0 in any of the types.
    let mut low = F::floor_from(max.to_f64() - 800.0 / rate.exact());
    if low == high {
        low = high.next_down();
    }
    let mut above_low = loops.weight_above(row, weights, low);
    let mut above_high = Above { sum: 0.0.into(), count: 0 };
    while above_low.count - above_high.count > FEW {
        let middle = F::from_f64(low.to_f64() / 2.0 + high.to_f64() / 2.0);
        if !(low < middle && middle < high) {
            break;
        }
        let above = loops.weight_above(row, weights, middle);
        if above.sum.value() >= target {
            (low, above_low) = (middle, above);
        } else {
            (high, above_high) = (middle, above);
        }
    }
    (low, high, above_high.sum.value())
}
