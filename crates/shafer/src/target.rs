//! The target distribution of a pair of queries.

use crate::error::check_length;
use crate::normalise::normalised;
use crate::{Element, Result};

/// The distribution that a sparsification should reach for query `y`, given the complementary
/// query `ybar`: the classes at which `y` is at least as probable as `ybar`, normalised,
///
/// ```text
/// p_T(z_k | y) = 1{p(z_k | y) >= p(z_k | ybar)} p(z_k | y) / sum_j 1{...} p(z_j | y)
/// ```
///
/// as in Itkina et al. (2020), with `p` for `p(z | y)` and `other` for `p(z | ybar)`. A class at
/// which the two are equal belongs to the targets of both queries.
///
/// The numbers are compared as they are given, not after normalisation: rounding to a narrower
/// type never reverses an order, but dividing by two sums could break a tie. Rows must be
/// finite, not negative, and sum to 1 within 0.01. That leaves room for a `p` that is below
/// `other` at every class it holds; the two then differ by rounding alone, every class is a tie,
/// and the target is `p` itself.
///
/// ```
/// let even = [0.5, 0.25, 0.125, 0.125];
/// let odd = [0.25, 0.25, 0.25, 0.25];
/// assert_eq!(shafer::target_distribution(&even, &odd)?, [2.0 / 3.0, 1.0 / 3.0, 0.0, 0.0]);
/// assert_eq!(shafer::target_distribution(&odd, &even)?, [0.0, 1.0 / 3.0, 1.0 / 3.0, 1.0 / 3.0]);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn target_distribution<P: Element, Q: Element>(p: &[P], other: &[Q]) -> Result<Vec<f64>> {
    check_length("other", p.len(), other.len())?;
    let whole = normalised(p, "p", 0)?;
    normalised(other, "other", 1)?;
    let keep = p.iter().zip(other).map(|(p, other)| p.to_f64() >= other.to_f64());
    let mut kept: Vec<f64> =
        keep.zip(&whole).map(|(keep, &p)| if keep { p } else { 0.0 }).collect();
    let sum: f64 = kept.iter().sum();
    if sum == 0.0 {
        return Ok(whole);
    }
    for value in &mut kept {
        *value /= sum;
    }
    Ok(kept)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Error;

    #[test]
    fn equal_rows_are_their_own_target() {
        // Tenths do not sum to exactly 1: only the comparison of the numbers themselves ties.
        let p = [0.1; 10];
        for value in target_distribution(&p, &p.map(|x| x)).unwrap() {
            assert!((value - 0.1).abs() < 1e-15);
        }
    }

    #[test]
    fn a_row_below_the_other_everywhere_is_kept_whole() {
        assert_eq!(target_distribution(&[0.0, 0.995], &[0.0, 1.0]).unwrap(), [0.0, 1.0]);
    }

    #[test]
    fn a_target_of_subnormals_is_normalised() {
        let tiny = f64::from_bits(3);
        assert_eq!(target_distribution(&[0.995, tiny], &[1.0, 0.0]).unwrap(), [0.0, 1.0]);
    }

    #[test]
    fn widths_mix_and_lengths_do_not() {
        assert_eq!(target_distribution(&[0.75_f32, 0.25], &[0.5_f64, 0.5]).unwrap(), [1.0, 0.0]);
        assert!(matches!(target_distribution(&[1.0], &[0.5, 0.5]), Err(Error::Length { .. })));
        let empty: [f64; 0] = [];
        assert!(matches!(target_distribution(&empty, &empty), Err(Error::Empty { .. })));
    }
}
