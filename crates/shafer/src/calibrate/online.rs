//! A threshold that follows a stream.

use std::collections::VecDeque;

use super::binomial::level;
use super::rank::conformal_rank;
use crate::error::{Error, Result};

/// Adaptive conformal inference (Gibbs and Candès, 2021): a threshold that follows a stream of rows
/// whose distribution may change in any way, with labels that may come late.
///
/// The threshold is that of split conformal prediction over the last scores, at a level that goes down
/// after a miss and up after a hit. Whatever the stream does, the share of misses among the rows with
/// labels is at most `alpha` plus [`bound`](Self::bound), which goes to 0 as `1 / rows`.
///
/// A threshold is issued with a row, and handed back with the score of the label when that is known,
/// in any order and after any number of other rows.
///
/// ```
/// use shafer::calibrate::AdaptiveThreshold;
///
/// let mut online = AdaptiveThreshold::new(0.1, 0.02, 500)?;
/// for i in 0..2000_u32 {
///     let threshold = online.threshold();
///     // The scores grow all the time: a fixed threshold would miss nearly all of them.
///     let score = f64::from(i) + f64::from(i * 7919 % 100);
///     online.observe(threshold, score)?;
/// }
/// assert!(online.misses().share().unwrap() <= 0.1 + online.bound());
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AdaptiveThreshold {
    alpha: f64,
    /// The level now; outside of 0 to 1, all classes are kept, or as few as possible.
    now: f64,
    rate: f64,
    window: usize,
    scores: VecDeque<f64>,
    misses: super::Misses,
    /// The lowest level so far.
    lowest: f64,
}

impl AdaptiveThreshold {
    /// For a miss rate of `alpha`, by steps of `rate`, over the last `window` scores. A larger rate
    /// follows changes faster, with a threshold that varies more: 0.005 to 0.05 are usual.
    ///
    /// # Errors
    /// `alpha` is not between 0 and 1, `rate` is not positive and finite, or the window is 0.
    pub fn new(alpha: f64, rate: f64, window: usize) -> Result<Self> {
        level("alpha", alpha)?;
        if !(rate.is_finite() && rate > 0.0) {
            let rule = "must be finite and greater than 0";
            return Err(Error::Parameter { name: "rate", value: rate, rule });
        }
        if window == 0 {
            let rule = "must be at least 1";
            return Err(Error::Parameter { name: "window", value: 0.0, rule });
        }
        let (scores, misses) = (VecDeque::new(), super::Misses::default());
        Ok(Self { alpha, now: alpha, rate, window, scores, misses, lowest: alpha })
    }

    /// Scores to begin with, from calibration rows: they count as known, not as rows of the stream.
    ///
    /// # Errors
    /// One of them is NaN.
    pub fn start_with(mut self, scores: &[f64]) -> Result<Self> {
        super::scores::check("score", scores, |score| !score.is_nan(), "must be a number")?;
        for &score in scores {
            self.remember(score);
        }
        Ok(self)
    }

    /// The threshold for the next row: infinite, so that all classes are kept, while there are too few
    /// scores for the level.
    pub fn threshold(&self) -> f64 {
        if self.now >= 1.0 {
            return f64::NEG_INFINITY;
        }
        let Ok(Some(rank)) = conformal_rank(self.scores.len(), self.now) else {
            return f64::INFINITY;
        };
        let mut sorted: Vec<f64> = self.scores.iter().copied().collect();
        *sorted.select_nth_unstable_by(rank - 1, f64::total_cmp).1
    }

    /// The score of the true class of a row, and the threshold that was used for it. Returns whether
    /// the class was kept.
    ///
    /// # Errors
    /// One of them is NaN.
    pub fn observe(&mut self, threshold: f64, score: f64) -> Result<bool> {
        let numbers = [threshold, score];
        super::scores::check("score", &numbers, |score| !score.is_nan(), "must be a number")?;
        let kept = score <= threshold;
        self.now += self.rate * (self.alpha - f64::from(u8::from(!kept)));
        self.lowest = self.lowest.min(self.now);
        self.misses.rows += 1;
        self.misses.missed += u64::from(!kept);
        self.remember(score);
        Ok(kept)
    }

    fn remember(&mut self, score: f64) {
        if self.scores.len() >= self.window.max(1) {
            self.scores.pop_front();
        }
        self.scores.push_back(score);
    }

    /// The level that the next threshold is for.
    pub fn level(&self) -> f64 {
        self.now
    }

    /// The misses among the rows with labels.
    pub fn misses(&self) -> super::Misses {
        self.misses
    }

    /// How far the share of misses can lie above `alpha`: `(alpha - a) / (rate n)` for the lowest
    /// level `a` so far, after `n` labels. With labels that come at once, `a` is never below `-rate`;
    /// every further label that a threshold did not know of can lower it by another `rate`. Infinite
    /// without labels.
    pub fn bound(&self) -> f64 {
        (self.alpha - self.lowest) / (self.rate * self.misses.rows as f64)
    }
}
