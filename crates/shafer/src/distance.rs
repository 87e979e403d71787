//! Distances between two distributions over the same classes.
//!
//! All of them divide both rows by their sums, in double precision, before anything else: a row
//! stored in bf16 sums to 1 only within 0.002, and without the division that rounding would show
//! up as distance (or as a negative one) however alike the rows are.

use std::f64::consts::LN_2;

use crate::error::check_length;
use crate::normalise::normalised;
use crate::{Element, Error, Result};

/// The Bhattacharyya distance `-ln sum_k sqrt(p_k q_k)`.
///
/// Between 0, for equal distributions, and infinity, for distributions without a common class. It
/// is symmetric but no metric: the triangle inequality does not hold.
///
/// Rows must be finite, not negative, and sum to 1 within 0.01; each is divided by its sum, so
/// that the rounding of an f16 or bf16 row does not bias the distance.
///
/// ```
/// let p = [0.5_f32, 0.5, 0.0];
/// let q = [0.0_f64, 0.5, 0.5];
/// // One common class: -ln sqrt(0.5 * 0.5) = ln 2.
/// assert!((shafer::bhattacharyya(&p, &q)? - 2.0_f64.ln()).abs() < 1e-15);
/// assert_eq!(shafer::bhattacharyya(&p, &p)?, 0.0);
/// assert_eq!(shafer::bhattacharyya(&p, &[0.0, 0.0, 1.0])?, f64::INFINITY);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn bhattacharyya<P: Element, Q: Element>(p: &[P], q: &[Q]) -> Result<f64> {
    let (p, q) = pair(p, q)?;
    // The sum of sqrt(p q) is 1 - h for the squared Hellinger distance h. Near 1 it is h that
    // carries the digits: -ln(1 - h) is exactly 0 for equal rows and never below 0.
    let hellinger: f64 =
        0.5 * p.iter().zip(&q).map(|(p, q)| (p.sqrt() - q.sqrt()).powi(2)).sum::<f64>();
    if hellinger < 0.5 {
        return Ok(-(-hellinger).ln_1p() + 0.0);
    }
    // Roots first: the product of two small probabilities would underflow where this does not.
    let coefficient: f64 = p.iter().zip(&q).map(|(p, q)| p.sqrt() * q.sqrt()).sum();
    Ok(-coefficient.ln())
}

/// The 1-Wasserstein distance `sum_k |P_k - Q_k| (x_{k+1} - x_k)`: the minimal mean distance to move the
/// mass of `p` onto `q` when class `k` lies at `x_k` on a line.
///
/// `P_k` and `Q_k` are the cumulative sums. The positions must be finite, in non-decreasing order
/// and span a finite range. Rows must be finite, not negative, and sum to 1 within 0.01; each is
/// divided by its sum, so that the rounding of an f16 or bf16 row does not bias the distance.
///
/// ```
/// let p = [1.0, 0.0, 0.0];
/// let q = [0.0, 0.5, 0.5];
/// // Half of the mass moves by 1, the other half by 4.
/// assert_eq!(shafer::wasserstein_1(&p, &q, &[0.0, 1.0, 4.0])?, 2.5);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn wasserstein_1<P: Element, Q: Element>(p: &[P], q: &[Q], positions: &[f64]) -> Result<f64> {
    let (p, q) = pair(p, q)?;
    check_length("positions", p.len(), positions.len())?;
    let first = positions[0];
    let mut before = first;
    for (column, &value) in positions.iter().enumerate() {
        let broken = if !value.is_finite() {
            "must be finite"
        } else if value < before {
            "must not be less than the position before it"
        } else if !(value - first).is_finite() {
            "the positions must span a finite range"
        } else {
            before = value;
            continue;
        };
        return Err(Error::Value { what: "position", row: 0, column, value, rule: broken });
    }
    let gaps = positions.windows(2).map(|pair| pair[1] - pair[0]);
    Ok(surplus(&p, &q).zip(gaps).map(|(surplus, gap)| surplus * gap).sum())
}

/// The 1-Wasserstein distance with class `k` of `K` at `k / (K - 1)`, so that 1 is the largest
/// distance for any number of classes (and 0 the only one for a single class).
///
/// It is [`wasserstein_1`] at these positions, as in Itkina et al. (2020), where ten classes lie
/// at 0, 1/9, ..., 1.
///
/// ```
/// let p = [1.0, 0.0, 0.0];
/// let q = [0.0, 0.5, 0.5];
/// assert_eq!(shafer::wasserstein_1_unit(&p, &q)?, 0.75);
/// assert_eq!(shafer::wasserstein_1_unit(&[1.0], &[1.0])?, 0.0);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn wasserstein_1_unit<P: Element, Q: Element>(p: &[P], q: &[Q]) -> Result<f64> {
    let (p, q) = pair(p, q)?;
    let gaps = (p.len() - 1).max(1) as f64;
    // Each surplus may be one rounding above 1.
    Ok((surplus(&p, &q).sum::<f64>() / gaps).min(1.0))
}

/// The total variation distance `1/2 sum_k |p_k - q_k|`: the largest difference between the
/// probabilities that `p` and `q` give to one event. Between 0 and 1.
///
/// Rows must be finite, not negative, and sum to 1 within 0.01; each is divided by its sum, so
/// that the rounding of an f16 or bf16 row does not bias the distance.
///
/// ```
/// let p = [0.5, 0.25, 0.125, 0.125];
/// let q = [0.25; 4];
/// assert_eq!(shafer::total_variation(&p, &q)?, 0.25);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn total_variation<P: Element, Q: Element>(p: &[P], q: &[Q]) -> Result<f64> {
    let (p, q) = pair(p, q)?;
    let sum: f64 = p.iter().zip(&q).map(|(p, q)| (p - q).abs()).sum();
    Ok((0.5 * sum).min(1.0))
}

/// The Jensen-Shannon divergence `1/2 sum_k (p_k ln(p_k / m_k) + q_k ln(q_k / m_k))` with
/// `m = (p + q) / 2`, in nats. Between 0 and `ln 2`; its square root is a metric.
///
/// Rows must be finite, not negative, and sum to 1 within 0.01; each is divided by its sum, so
/// that the rounding of an f16 or bf16 row does not bias the divergence.
///
/// ```
/// let p = [1.0, 0.0];
/// assert_eq!(shafer::jensen_shannon(&p, &p)?, 0.0);
/// assert_eq!(shafer::jensen_shannon(&p, &[0.0, 1.0])?, 2.0_f64.ln());
/// // m = (3/4, 1/4): (ln(4/3) + ln(2/3) / 2 + ln(2) / 2) / 2.
/// assert!((shafer::jensen_shannon(&p, &[0.5, 0.5])? - 0.215_761_554_338_835_7).abs() < 1e-15);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn jensen_shannon<P: Element, Q: Element>(p: &[P], q: &[Q]) -> Result<f64> {
    let (p, q) = pair(p, q)?;
    let sum: f64 = p.iter().zip(&q).map(|(&p, &q)| jensen_shannon_term(p, q)).sum();
    Ok((0.5 * sum).clamp(0.0, LN_2))
}

/// `p ln(p / m) + q ln(q / m)` with `m = (p + q) / 2` and `0 ln 0 = 0`.
fn jensen_shannon_term(p: f64, q: f64) -> f64 {
    let sum = p + q;
    if sum == 0.0 {
        return 0.0;
    }
    let skew = (p - q) / sum;
    if skew.abs() < 0.5 {
        // The two logarithms nearly cancel. With p = m (1 + d) and q = m (1 - d) the term is
        // m (2 d atanh(d) + ln(1 - d^2)): second order in d, and exactly 0 at 0.
        return 0.5 * sum * (2.0 * skew * skew.atanh() + (-skew * skew).ln_1p());
    }
    // 2 p / (p + q), not p / m: halving the smallest subnormal would give m = 0.
    let part = |x: f64| if x > 0.0 { x * (2.0 * x / sum).ln() } else { 0.0 };
    part(p) + part(q)
}

/// The absolute difference of the cumulative sums, at every class but the last (where both are 1).
fn surplus<'a>(p: &'a [f64], q: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
    let differences = p.iter().zip(q).map(|(p, q)| p - q);
    differences
        .scan(0.0, |total, difference| {
            *total += difference;
            Some(f64::abs(*total))
        })
        .take(p.len() - 1)
}

/// Both rows, normalised and of one length.
fn pair<P: Element, Q: Element>(p: &[P], q: &[Q]) -> Result<(Vec<f64>, Vec<f64>)> {
    check_length("q", p.len(), q.len())?;
    Ok((normalised(p, "p", 0)?, normalised(q, "q", 1)?))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn ten_classes_lie_at_ninths() {
        let mut p = [0.0; 10];
        let mut q = [0.0; 10];
        p[2] = 1.0;
        q[7] = 1.0;
        assert!((wasserstein_1_unit(&p, &q).unwrap() - 5.0 / 9.0).abs() < 1e-15);
        let positions: Vec<f64> = (0..10).map(|k| f64::from(k) / 9.0).collect();
        assert!((wasserstein_1(&p, &q, &positions).unwrap() - 5.0 / 9.0).abs() < 1e-15);
    }

    #[test]
    fn nearly_equal_rows_keep_their_digits() {
        let d = 2.0_f64.powi(-30);
        let (p, q) = ([0.5 + d, 0.5 - d], [0.5, 0.5]);
        // To leading order both are d^2 / 2; neither survives the textbook formula.
        for distance in [bhattacharyya(&p, &q).unwrap(), jensen_shannon(&p, &q).unwrap()] {
            assert!((distance / (0.5 * d * d) - 1.0).abs() < 1e-6, "{distance}");
        }
    }

    #[test]
    fn subnormal_overlap_is_still_overlap() {
        let tiny = f64::from_bits(1);
        let distance = bhattacharyya(&[1.0, tiny, 0.0], &[0.0, tiny, 1.0]).unwrap();
        assert!((distance - 744.440_071_921_381_3).abs() < 1e-9, "{distance}");
        assert_eq!(jensen_shannon(&[1.0, tiny, 0.0], &[0.0, 0.0, 1.0]).unwrap(), LN_2);
    }

    #[cfg(feature = "half")]
    #[test]
    fn rounding_to_half_precision_is_no_distance() {
        use half::bf16;
        // Thirds round up: the row sums to more than 1.
        let thirds = [1.0 / 3.0; 3];
        let rounded = thirds.map(bf16::from_f64);
        assert_ne!(rounded.iter().map(|x| x.to_f64()).sum::<f64>(), 1.0);
        assert!(total_variation(&thirds, &rounded).unwrap() < 1e-15);
        assert!(bhattacharyya(&thirds, &rounded).unwrap() < 1e-15);
        assert!(wasserstein_1_unit(&thirds, &rounded).unwrap() < 1e-15);
        assert!(jensen_shannon(&thirds, &rounded).unwrap() < 1e-15);
    }

    #[test]
    fn broken_rows_are_named() {
        let nan = total_variation(&[0.5, 0.5], &[0.5, f64::NAN]).unwrap_err();
        assert!(matches!(nan, Error::Value { row: 1, column: 1, .. }));
        let empty: [f32; 0] = [];
        assert_eq!(total_variation(&empty, &empty), Err(Error::Empty { what: "p" }));
        let length = Error::Length { what: "q", expected: 1, found: 2 };
        assert_eq!(total_variation(&[1.0], &[0.5, 0.5]), Err(length));
        assert!(matches!(total_variation(&[1.0], &[1.1]), Err(Error::Row { row: 1, .. })));
        let half = [0.5, 0.5];
        for bad in [[1.0, 0.0], [0.0, f64::NAN], [f64::MIN, f64::MAX]] {
            let error = wasserstein_1(&half, &half, &bad).unwrap_err();
            assert!(matches!(error, Error::Value { what: "position", column: 1, .. }));
        }
    }
}
