//! Scores of calibration rows: thresholds and p-values.

use super::binomial::level;
use super::rank::{confident_rank, conformal_rank};
use crate::error::{Error, Result};

/// Scores of the true classes of calibration rows, in order.
///
/// ```
/// use shafer::calibrate::Scores;
///
/// let scores = Scores::new((1..=99).map(f64::from).collect())?;
/// assert_eq!(scores.threshold(0.05)?, 95.0);
/// assert_eq!(scores.threshold(0.001)?, f64::INFINITY); // Needs 999 rows.
/// assert_eq!(scores.p_value(95.5), 5.0 / 100.0);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Scores {
    sorted: Vec<f64>,
}

impl Scores {
    /// The scores, in any order.
    ///
    /// # Errors
    /// One of them is NaN.
    pub fn new(mut scores: Vec<f64>) -> Result<Self> {
        check("score", &scores, |score| !score.is_nan(), "must be a number")?;
        scores.sort_unstable_by(f64::total_cmp);
        Ok(Self { sorted: scores })
    }

    pub(super) fn of_none() -> Self {
        Self { sorted: Vec::new() }
    }

    /// Their number.
    pub fn len(&self) -> usize {
        self.sorted.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sorted.is_empty()
    }

    /// The split conformal threshold: the score of a new row that is exchangeable with these is at
    /// most this with probability at least `1 - alpha`, and without ties at most
    /// `1 - alpha + 1 / (n + 1)`. Infinite if there are too few rows.
    pub fn threshold(&self, alpha: f64) -> Result<f64> {
        Ok(self.of_rank(conformal_rank(self.len(), alpha)?))
    }

    /// The threshold that is large enough with probability at least `1 - delta` over the choice of
    /// these rows, which must be independent and of one distribution. Infinite if there are too few.
    pub fn confident_threshold(&self, alpha: f64, delta: f64) -> Result<f64> {
        Ok(self.of_rank(confident_rank(self.len(), alpha, delta)?))
    }

    fn of_rank(&self, rank: Option<usize>) -> f64 {
        rank.map_or(f64::INFINITY, |rank| self.sorted[rank - 1])
    }

    /// The conformal p-value of a score: the share of scores, itself included, that are at least as
    /// large. If it belongs to the true class of an exchangeable row, it is at most `u` with
    /// probability at most `u`.
    pub fn p_value(&self, score: f64) -> f64 {
        let at_least = self.len() - self.sorted.partition_point(|&other| other < score);
        (1 + at_least) as f64 / (self.len() + 1) as f64
    }

    /// The p-value with ties broken by `uniform`, from `[0, 1)`: exactly uniform for an exchangeable
    /// row.
    pub fn smoothed_p_value(&self, score: f64, uniform: f64) -> f64 {
        let below = self.sorted.partition_point(|&other| other < score);
        let not_above = self.sorted.partition_point(|&other| other <= score);
        let ties = (not_above - below + 1) as f64;
        ((self.len() - not_above) as f64 + uniform * ties) / (self.len() + 1) as f64
    }

    /// Adds a score.
    ///
    /// # Errors
    /// It is NaN.
    pub fn insert(&mut self, score: f64) -> Result<()> {
        check("score", &[score], |score| !score.is_nan(), "must be a number")?;
        let place = self.sorted.partition_point(|&other| other <= score);
        self.sorted.insert(place, score);
        Ok(())
    }
}

/// Scores with weights, for rows to come that are distributed differently in a known way: the weight
/// of a row is proportional to how much more frequent rows like it will be, `dP(x) / dQ(x)` with `Q`
/// the distribution of the calibration rows (Tibshirani, Barber, Candès and Ramdas, 2019).
///
/// ```
/// use shafer::calibrate::WeightedScores;
///
/// // Equal weights are split conformal prediction.
/// let scores = WeightedScores::new((1..=99).map(|i| (f64::from(i), 2.0)))?;
/// assert_eq!(scores.threshold(0.05, 2.0)?, 95.0);
/// // A row unlike all of them keeps every class.
/// assert_eq!(scores.threshold(0.05, 500.0)?, f64::INFINITY);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedScores {
    /// Scores in order, each with the weight of it and all before it.
    sorted: Vec<(f64, f64)>,
}

impl WeightedScores {
    /// Pairs of score and weight.
    ///
    /// # Errors
    /// A score is NaN, or a weight is not finite or negative.
    pub fn new(scores: impl IntoIterator<Item = (f64, f64)>) -> Result<Self> {
        let mut sorted: Vec<(f64, f64)> = scores.into_iter().collect();
        let (scores, weights): (Vec<f64>, Vec<f64>) = sorted.iter().copied().unzip();
        check("score", &scores, |score| !score.is_nan(), "must be a number")?;
        check("weight", &weights, weight_holds, WEIGHT)?;
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = crate::numerics::Sum::default();
        for (_, weight) in &mut sorted {
            sum.add(*weight);
            *weight = sum.value();
        }
        Ok(Self { sorted })
    }

    /// The threshold for a new row of this weight: the smallest score such that the weights up to it
    /// are at least `1 - alpha` of all, that of the row itself included.
    pub fn threshold(&self, alpha: f64, weight: f64) -> Result<f64> {
        level("alpha", alpha)?;
        check("weight", &[weight], weight_holds, WEIGHT)?;
        let all = self.sorted.last().map_or(0.0, |last| last.1);
        if all == 0.0 {
            return Ok(f64::INFINITY);
        }
        let total = all + weight;
        let target = (1.0 - alpha) * total * (1.0 - 4.0 * f64::EPSILON);
        let first = self.sorted.partition_point(|&(_, sum)| sum < target);
        Ok(self.sorted.get(first).map_or(f64::INFINITY, |&(score, _)| score))
    }

    /// The p-value of a score of a row of this weight.
    pub fn p_value(&self, score: f64, weight: f64) -> Result<f64> {
        check("weight", &[weight], weight_holds, WEIGHT)?;
        let all = self.sorted.last().map_or(0.0, |last| last.1);
        let less = self.sorted.partition_point(|&(other, _)| other < score);
        let below = if less == 0 { 0.0 } else { self.sorted[less - 1].1 };
        // Without any weight nothing is known.
        Ok(if all + weight > 0.0 { (all - below + weight) / (all + weight) } else { 1.0 })
    }
}

const WEIGHT: &str = "must be finite and not negative";

fn weight_holds(weight: f64) -> bool {
    weight.is_finite() && weight >= 0.0
}

/// Each of the values.
pub(super) fn check(
    what: &'static str,
    values: &[f64],
    holds: impl Fn(f64) -> bool,
    rule: &'static str,
) -> Result<()> {
    match values.iter().position(|&value| !holds(value)) {
        Some(row) => Err(Error::Value { what, row, column: 0, value: values[row], rule }),
        None => Ok(()),
    }
}
