//! Top-k.

use super::rule::{Scratch, Selection, checked_max};
use super::{Rule, Transform};
use crate::error::{Error, Result};
use crate::kernel::{Float, Loops, Rate};

/// Top-k: softmax over the `k` largest logits, renormalised. Of equal logits, the first win.
///
/// If fewer than `k` classes of a row are unmasked, all of them are kept.
///
/// ```
/// use shafer::{TopK, TransformExt};
///
/// assert_eq!(TopK::new(2)?.row(&[1.0, 1.0, 1.0])?, [0.5, 0.5, 0.0]);
/// assert!(TopK::new(4)?.row(&[1.0, 1.0, 1.0]).is_err());
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TopK {
    k: usize,
}

impl TopK {
    /// With this number of classes.
    ///
    /// # Errors
    /// `k` is 0. Whether it is more than there are classes shows when rows are there.
    ///
    /// ```
    /// assert!(shafer::TopK::new(3).is_ok());
    /// assert!(shafer::TopK::new(0).is_err());
    /// ```
    pub fn new(k: usize) -> Result<Self> {
        if k == 0 {
            return Err(Error::Parameter { name: "k", value: 0.0, rule: "must be at least 1" });
        }
        Ok(Self { k })
    }
}

impl Transform for TopK {
    fn name(&self) -> &'static str {
        "top-k"
    }

    #[allow(private_interfaces, reason = "see Transform::rule")]
    fn rule(&self) -> Rule {
        Rule::TopK { k: self.k }
    }
}

pub(super) fn select<F: Float>(
    k: usize,
    row: &[F],
    rate: Rate,
    scratch: &mut Scratch<F>,
) -> Result<Selection<F>> {
    let max = checked_max(row, F::LOOPS)?;
    let floor = floor_of_kth(k, row, &mut scratch.work);
    let count = scratch.list(row, floor);
    if count <= k {
        return Ok(scratch.normalise(count, max, rate));
    }
    scratch.work.clear();
    scratch.work.extend_from_slice(&scratch.values[..count]);
    let kth = kth_largest(&mut scratch.work, k);
    let larger = scratch.values[..count].iter().filter(|&&x| x > kth).count();
    let mut ties = k - larger;
    let count = scratch.retain(count, |x| x > kth || (x == kth && take_one(&mut ties)));
    Ok(scratch.normalise(count, max, rate))
}

/// A threshold with at least `k` values above it, if there are that many, and usually not many
/// more: each of the `k` largest group maxima is a different value, so the smallest of them is no
/// larger than the `k`-th largest value.
fn floor_of_kth<F: Float>(k: usize, row: &[F], maxima: &mut Vec<F>) -> F {
    maxima.clear();
    if k * 16 <= row.len() {
        F::LOOPS.group_maxima(row, maxima);
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
