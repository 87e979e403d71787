//! Control of any bounded loss, in expectation or with confidence.

use super::binomial::{binomial_tail, level};
use crate::error::{Error, Result};

/// The losses of calibration rows over a list of thresholds: a row for each calibration row, and a
/// column for each threshold, from the tightest to the loosest.
///
/// ```
/// use shafer::calibrate::Losses;
///
/// // 20 rows over three thresholds: the first loses 1 in half of the rows, the second in one.
/// let table: Vec<f64> = (0..20)
///     .flat_map(|i| [f64::from(i % 2), f64::from(u8::from(i == 1)), 0.0])
///     .collect();
/// let losses = Losses::new(&table, 3, 1.0)?;
/// // 20 / 21 * 0.05 + 1 / 21 is 2 / 21 = 0.095.
/// assert_eq!(losses.control_risk(0.1)?, Some(1));
/// assert_eq!(losses.control_risk(0.09)?, Some(2));
/// assert_eq!(losses.control_risk(0.04)?, None);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Losses<'a> {
    table: &'a [f64],
    thresholds: usize,
    bound: f64,
}

impl<'a> Losses<'a> {
    /// A table of losses from 0 to `bound`, row after row.
    ///
    /// # Errors
    /// There are no rows or thresholds, the table has an incomplete row, the bound is not positive, or
    /// a loss is not between 0 and the bound.
    pub fn new(table: &'a [f64], thresholds: usize, bound: f64) -> Result<Self> {
        if thresholds == 0 || table.is_empty() {
            return Err(Error::Empty { what: "the table of losses" });
        }
        if !table.len().is_multiple_of(thresholds) {
            let (found, expected) = (table.len(), table.len().next_multiple_of(thresholds));
            return Err(Error::Length { what: "the table of losses", expected, found });
        }
        if !(bound.is_finite() && bound > 0.0) {
            let rule = "must be finite and greater than 0";
            return Err(Error::Parameter { name: "bound", value: bound, rule });
        }
        if let Some(i) = table.iter().position(|loss| !(0.0..=bound).contains(loss)) {
            let (row, column) = (i / thresholds, i % thresholds);
            let rule = "must be between 0 and the bound";
            return Err(Error::Value { what: "loss", row, column, value: table[i], rule });
        }
        Ok(Self { table, thresholds, bound })
    }

    fn rows(&self) -> usize {
        self.table.len() / self.thresholds
    }

    /// The mean loss of each threshold.
    pub fn means(&self) -> Vec<f64> {
        let sum = |column: usize| -> f64 {
            self.table.iter().skip(column).step_by(self.thresholds).sum()
        };
        (0..self.thresholds).map(|column| sum(column) / self.rows() as f64).collect()
    }

    /// Conformal risk control (Angelopoulos, Bates, Fisch, Lei and Schuster, 2024): the tightest
    /// threshold with `n / (n + 1) R + B / (n + 1) <= alpha`, with `R` the mean loss and `B` the bound.
    /// The loss of a new exchangeable row at this threshold then is at most `alpha` in expectation.
    /// `None` if no threshold is loose enough.
    ///
    /// # Errors
    /// `alpha` is not positive, or the loss of a row grows from one threshold to the next.
    pub fn control_risk(&self, alpha: f64) -> Result<Option<usize>> {
        positive("alpha", alpha)?;
        for (row, losses) in self.table.chunks_exact(self.thresholds).enumerate() {
            if let Some(i) = losses.windows(2).position(|pair| pair[1] > pair[0]) {
                let (column, value) = (i + 1, losses[i + 1]);
                let rule = "must not be greater than at the tighter threshold before it";
                return Err(Error::Value { what: "loss", row, column, value, rule });
            }
        }
        let n = self.rows() as f64;
        let holds = |&risk: &f64| n / (n + 1.0) * risk + self.bound / (n + 1.0) <= alpha;
        Ok(self.means().iter().position(holds))
    }

    /// Learn-then-Test (Angelopoulos, Bates, Candès, Jordan and Lei, 2021) with fixed-sequence
    /// testing: the tightest threshold up to which every looser one passes the test that its
    /// risk is above `alpha`. With probability at least `1 - delta` over the calibration rows, which
    /// must be independent, the risk at this threshold is at most `alpha`. The loss need not be
    /// monotone. `None` if not even the loosest passes.
    ///
    /// The p-values are the exact binomial ones for losses of 0 and the bound, and those of Hoeffding
    /// and Bentkus otherwise.
    ///
    /// ```
    /// use shafer::calibrate::Losses;
    ///
    /// // None of 60 rows lost at the looser threshold: 0.95^60 = 0.046.
    /// let table: Vec<f64> = (0..60).flat_map(|i| [f64::from(i % 2), 0.0]).collect();
    /// let losses = Losses::new(&table, 2, 1.0)?;
    /// assert_eq!(losses.learn_then_test(0.05, 0.05)?, Some(1));
    /// assert_eq!(losses.learn_then_test(0.05, 0.04)?, None);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn learn_then_test(&self, alpha: f64, delta: f64) -> Result<Option<usize>> {
        positive("alpha", alpha)?;
        level("delta", delta)?;
        let passes = |column: usize| self.p_value(column, alpha) <= delta;
        let failed = (0..self.thresholds).rev().find(|&column| !passes(column));
        let tightest = failed.map_or(0, |column| column + 1);
        Ok((tightest < self.thresholds).then_some(tightest))
    }

    /// The p-value of the hypothesis that the risk of a threshold is above `alpha`.
    fn p_value(&self, column: usize, alpha: f64) -> f64 {
        let n = self.rows();
        let losses = || self.table.iter().skip(column).step_by(self.thresholds);
        let (total, level) = (losses().sum::<f64>() / self.bound, alpha / self.bound);
        if level >= 1.0 {
            return 0.0;
        }
        // At most `count` losses, if the risk is the level.
        let at_most = |count: f64| 1.0 - binomial_tail(n as u64, level, count as u64 + 1);
        let at_most = |count: f64| {
            // The complement, where the tail itself would cancel.
            if count < n as f64 * level {
                binomial_tail(n as u64, 1.0 - level, n as u64 - count as u64)
            } else {
                at_most(count)
            }
        };
        if losses().all(|&loss| loss == 0.0 || loss == self.bound) {
            return at_most(total.round());
        }
        let mean = (total / n as f64).min(level);
        let part = |x: f64, y: f64| if x == 0.0 { 0.0 } else { x * (x / y).ln() };
        let divergence = part(mean, level) + part(1.0 - mean, 1.0 - level);
        let hoeffding = (-(n as f64) * divergence).exp();
        // With room for the rounding of a sum that is a whole number.
        let bentkus = std::f64::consts::E * at_most((total * (1.0 - 1e-12)).ceil());
        hoeffding.min(bentkus).min(1.0)
    }
}

fn positive(name: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(Error::Parameter { name, value, rule: "must be finite and greater than 0" })
    }
}
