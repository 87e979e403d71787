//! Top-k.

use std::num::NonZeroUsize;

use super::rule::{Scratch, Selection, checked_max};
use super::{Method, Rule};
use crate::error::{Error, Result};
use crate::kernel::{Float, Loops, Rate};

impl Method {
    /// Top-k (Fan, Lewis and Dauphin, 2018): softmax over the `k` largest logits, renormalised. Of
    /// equal logits, the first win.
    ///
    /// If fewer than `k` classes of a row are unmasked, all of them are kept.
    ///
    /// # Errors
    /// `k` is 0. A `k` greater than the number of classes is an error of the calls with rows.
    ///
    /// ```
    /// use shafer::Method;
    ///
    /// assert_eq!(Method::top_k(2)?.row(&[1.0, 1.0, 1.0])?, [0.5, 0.5, 0.0]);
    /// assert!(Method::top_k(4)?.row(&[1.0, 1.0, 1.0]).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn top_k(k: usize) -> Result<Self> {
        let zero = Error::Parameter { name: "k", value: 0.0, rule: "must be at least 1" };
        Ok(Self(Rule::TopK { k: NonZeroUsize::new(k).ok_or(zero)? }))
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn select<F: Float>(
    k: usize,
    row: &[F],
    rate: Rate,
    scratch: &mut Scratch<F>,
    loops: impl Loops<F>,
) -> Result<Selection<F>> {
    let max = checked_max(row, loops)?;
    let floor = floor_of_kth(k, row, &mut scratch.work, loops);
    let count = scratch.list(row, floor, loops);
    if count <= k {
        return Ok(scratch.normalise(count, max, rate, loops));
    }
    scratch.work.clear();
    scratch.work.extend_from_slice(&scratch.values[..count]);
    let kth = kth_largest(&mut scratch.work, k);
    let larger = scratch.values[..count].iter().filter(|&&x| x > kth).count();
    let mut ties = k - larger;
    let count = scratch.retain(count, |x| x > kth || (x == kth && take_one(&mut ties)));
    Ok(scratch.normalise(count, max, rate, loops))
}

/// A threshold with at least `k` values above it, if there are that many, and usually not many
/// more: each of the `k` largest group maxima is a different value, so the smallest of them is no
/// larger than the `k`-th largest value.
#[inline(always)]
fn floor_of_kth<F: Float>(k: usize, row: &[F], maxima: &mut Vec<F>, loops: impl Loops<F>) -> F {
    maxima.clear();
    if k.saturating_mul(16) <= row.len() {
        loops.group_maxima(row, maxima);
    }
    if k < maxima.len() { kth_largest(maxima, k).next_down() } else { F::NEG_INFINITY }
}

fn kth_largest<F: Float>(values: &mut [F], k: usize) -> F {
    // There is no NaN among them.
    let descending = |a: &F, b: &F| b.partial_cmp(a).unwrap_or(std::cmp::Ordering::Equal);
    *values.select_nth_unstable_by(k - 1, descending).1
}

/// Whether there was one left to take.
pub(super) fn take_one(left: &mut usize) -> bool {
    let any = *left > 0;
    *left -= usize::from(any);
    any
}
