//! A test that rows are still exchangeable.

use super::scores::Scores;
use crate::error::{Error, Result};

/// Tests online whether scores are exchangeable, which the guarantee of a calibration assumes: bets
/// against it, with a capital that cannot grow by much while it is true.
///
/// Every score gets a smoothed p-value among all scores so far, which for exchangeable scores are
/// independent and uniform. The capital is that of the simple jumper (Vovk et al., 2021), which bets on
/// small or large p-values and switches bets at a fixed rate. Under exchangeability, the probability
/// that the capital ever reaches `c` is at most `1 / c` (Ville's inequality), however long the test
/// runs: an alarm at a capital of 100 is false with probability at most 1%.
///
/// ```
/// use shafer::calibrate::ExchangeabilityTest;
///
/// let mut test = ExchangeabilityTest::new();
/// for i in 0..300 {
///     let score = f64::from(i % 10) + if i < 150 { 0.0 } else { 20.0 };
///     test.add(score, 0.5)?;
/// }
/// assert!(test.ln_capital() > 100_f64.ln());
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ExchangeabilityTest {
    scores: Scores,
    /// The share of the capital on each bet.
    shares: [f64; 3],
    ln_capital: f64,
    ln_most: f64,
}

/// The slopes of the bets: on small p-values, on nothing, on large ones.
const SLOPES: [f64; 3] = [-1.0, 0.0, 1.0];

/// The share of the capital that switches bets at every step.
const JUMP: f64 = 0.01;

impl Default for ExchangeabilityTest {
    fn default() -> Self {
        Self::new()
    }
}

impl ExchangeabilityTest {
    /// Without scores, with a capital of 1.
    pub fn new() -> Self {
        let scores = Scores::of_none();
        Self { scores, shares: [1.0 / 3.0; 3], ln_capital: 0.0, ln_most: 0.0 }
    }

    /// Adds the score of the true class of the next row, with a uniform number from `[0, 1)`; returns
    /// its p-value.
    ///
    /// # Errors
    /// The score is NaN, or the number is not in that range.
    pub fn add(&mut self, score: f64, uniform: f64) -> Result<f64> {
        if !(0.0..1.0).contains(&uniform) {
            let rule = "must be at least 0 and less than 1";
            return Err(Error::Parameter { name: "uniform", value: uniform, rule });
        }
        let p = self.scores.smoothed_p_value(score, uniform);
        self.scores.insert(score)?;
        let mut total = 0.0;
        for (share, slope) in self.shares.iter_mut().zip(SLOPES) {
            *share = ((1.0 - JUMP) * *share + JUMP / 3.0) * (1.0 + slope * (p - 0.5));
            total += *share;
        }
        for share in &mut self.shares {
            *share /= total;
        }
        self.ln_capital += total.ln();
        self.ln_most = self.ln_most.max(self.ln_capital);
        Ok(p)
    }

    /// The logarithm of the capital.
    pub fn ln_capital(&self) -> f64 {
        self.ln_capital
    }

    /// The largest it has been.
    pub fn ln_most(&self) -> f64 {
        self.ln_most
    }
}
