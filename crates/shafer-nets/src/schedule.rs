//! Values that change from iteration to iteration, such as learning rates.

use serde::{Deserialize, Serialize};

use crate::config::{finite_positive, positive};
use crate::{Error, Result};

/// Exponential decay from iteration to iteration.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Annealed {
    /// The value at the first iteration.
    pub start: f64,
    /// The factor from one iteration to the next, at most 1.
    pub decay: f64,
    /// The lower bound.
    pub floor: f64,
}

impl Annealed {
    /// The value at an iteration, counted from 0.
    ///
    /// ```
    /// use shafer_nets::training::Annealed;
    ///
    /// let temperature = Annealed { start: 2.0, decay: 0.5, floor: 0.1 };
    /// assert_eq!([0, 1, 2, 9].map(|it| temperature.at(it)), [2.0, 1.0, 0.5, 0.1]);
    /// ```
    pub fn at(&self, iteration: u64) -> f64 {
        (self.start * self.decay.powf(iteration as f64)).max(self.floor)
    }

    pub(crate) fn check(&self, key: &'static str) -> Result<()> {
        for value in [self.start, self.decay, self.floor] {
            finite_positive(key, value)?;
        }
        if self.decay > 1.0 || self.floor > self.start {
            return Err(Error::config(key, "must fall: decay at most 1, floor at most start"));
        }
        Ok(())
    }
}

/// A learning rate as a function of the iteration.
///
/// ```
/// use shafer_nets::training::Schedule;
///
/// let cyclic = Schedule::Cyclic { low: 0.5, high: 1.5, iterations_up: 4 };
/// assert_eq!([0, 1, 4, 6, 8, 12].map(|it| cyclic.at(it)), [0.5, 0.75, 1.5, 1.0, 0.5, 1.5]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// The same at every iteration.
    Constant(f64),
    /// Exponential decay.
    Annealed(Annealed),
    /// A triangle wave, as `torch.optim.lr_scheduler.CyclicLR` has it.
    Cyclic {
        /// The learning rate at the first iteration.
        low: f64,
        /// The learning rate at the peaks.
        high: f64,
        /// The iterations from `low` to `high`; as many lead back.
        iterations_up: usize,
    },
}

impl Schedule {
    /// The learning rate at an iteration, counted from 0.
    pub fn at(&self, iteration: u64) -> f64 {
        match *self {
            Self::Constant(rate) => rate,
            Self::Annealed(annealed) => annealed.at(iteration),
            Self::Cyclic { low, high, iterations_up } => {
                let up = iterations_up as u64;
                let place = iteration % (2 * up);
                let climbed = place.min(2 * up - place);
                low + (high - low) * (climbed as f64 / up as f64)
            }
        }
    }

    /// Checks the values of the configuration key `key`.
    pub fn check(&self, key: &'static str) -> Result<()> {
        match *self {
            Self::Constant(rate) => finite_positive(key, rate),
            Self::Annealed(annealed) => annealed.check(key),
            Self::Cyclic { low, high, iterations_up } => {
                finite_positive(key, low)?;
                finite_positive(key, high)?;
                positive(key, iterations_up)?;
                if iterations_up > 1 << 40 {
                    return Err(Error::config(key, "must have at most 2^40 iterations_up"));
                }
                Ok(())
            }
        }
    }
}
