//! Which order statistic of the scores becomes the threshold.

use super::binomial::{binomial_tail, level};
use crate::error::Result;

/// The rank of the score, from 1, that split conformal prediction takes from `rows` scores:
/// `ceil((rows + 1) (1 - alpha))`. `None` if that is more than there are: then only an infinite
/// threshold is enough, which keeps all classes.
///
/// ```
/// use shafer::calibrate::conformal_rank;
///
/// assert_eq!(conformal_rank(99, 0.05)?, Some(95));
/// assert_eq!(conformal_rank(19, 0.05)?, Some(19));
/// assert_eq!(conformal_rank(18, 0.05)?, None);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn conformal_rank(rows: usize, alpha: f64) -> Result<Option<usize>> {
    level("alpha", alpha)?;
    // As a whole number of misses, with room for the rounding of a decimal alpha.
    let misses = ((rows + 1) as f64 * alpha * (1.0 + 2.0 * f64::EPSILON)).floor() as usize;
    Ok((misses > 0).then(|| rows + 1 - misses))
}

/// The smallest rank, from 1, such that with probability at least `1 - delta` over the calibration
/// rows, a new row is kept with probability at least `1 - alpha`. `None` if no rank is enough.
///
/// The coverage of the score of rank `k` of `n` is at least a Beta variable of `k` and `n + 1 - k`, so
/// this is a binomial tail.
///
/// ```
/// use shafer::calibrate::{binomial_tail, confident_rank};
///
/// let rank = confident_rank(1000, 0.05, 0.1)?.unwrap();
/// assert!(binomial_tail(1000, 0.95, rank as u64) <= 0.1);
/// assert!(binomial_tail(1000, 0.95, rank as u64 - 1) > 0.1);
/// assert_eq!(confident_rank(40, 0.05, 0.1)?, None); // 0.95^40 > 0.1.
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn confident_rank(rows: usize, alpha: f64, delta: f64) -> Result<Option<usize>> {
    level("alpha", alpha)?;
    level("delta", delta)?;
    let fails = |rank: usize| binomial_tail(rows as u64, 1.0 - alpha, rank as u64) > delta;
    if rows == 0 || fails(rows) {
        return Ok(None);
    }
    let (mut low, mut high) = (0, rows);
    while high - low > 1 {
        let middle = low.midpoint(high);
        if fails(middle) { low = middle } else { high = middle }
    }
    Ok(Some(high))
}

/// The fewest rows from which [`conformal_rank`] is not `None`, or with a `delta`
/// [`confident_rank`].
///
/// ```
/// use shafer::calibrate::rows_needed;
///
/// assert_eq!(rows_needed(0.05, None)?, 19);
/// assert_eq!(rows_needed(0.05, Some(0.1))?, 45); // 0.95^45 < 0.1.
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn rows_needed(alpha: f64, delta: Option<f64>) -> Result<usize> {
    level("alpha", alpha)?;
    let found = |rows: usize| -> Result<bool> {
        Ok(match delta {
            None => conformal_rank(rows, alpha)?.is_some(),
            Some(delta) => confident_rank(rows, alpha, delta)?.is_some(),
        })
    };
    let mut high = 1_usize;
    while !found(high)? && high < 1 << 52 {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low.midpoint(high);
        if found(middle)? { high = middle } else { low = middle }
    }
    Ok(high)
}
