//! Observations of pedestrians, and training examples.

use super::config::NetworkConfig;
use crate::{Error, Result};

/// Position, velocity and acceleration, each as x and y, in metres and seconds. The position is relative to
/// the pedestrian's present one.
pub type State = [f64; 6];

/// The history of a pedestrian and of the neighbours, up to the present.
///
/// ```
/// use shafer_nets::behaviour::Observation;
///
/// // Two steps to the right at 1 m/s, without neighbours.
/// let history = [[-0.4, 0.0, 1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]];
/// let observation = Observation::new(&history, &[[0.0; 6]; 2])?;
/// assert_eq!(observation.steps(), 2);
/// assert!(Observation::new(&history, &[]).is_err());
/// # Ok::<(), shafer_nets::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    history: Vec<[f32; 6]>,
    neighbours: Vec<[f32; 6]>,
}

impl Observation {
    /// The states up to the present, which is the last, and for each the sum of the neighbours' states,
    /// with positions relative to the same point.
    pub fn new(history: &[State], neighbours: &[State]) -> Result<Self> {
        if history.is_empty() {
            return Err(Error::data(
                "history",
                "must have at least the present state, but is empty",
            ));
        }
        if history.len() != neighbours.len() {
            return Err(Error::data(
                "neighbours",
                format!(
                    "must be {}, one for each step of the history, but are {}",
                    history.len(),
                    neighbours.len(),
                ),
            ));
        }
        Ok(Self {
            history: narrow("history", history)?,
            neighbours: narrow("neighbours", neighbours)?,
        })
    }

    /// The number of states. A network ignores those before its history.
    pub fn steps(&self) -> usize {
        self.history.len()
    }

    /// The state at present.
    pub(super) fn present(&self) -> [f32; 6] {
        self.history[self.history.len() - 1]
    }

    /// The state and the neighbours' sum this number of steps ago, if the history reaches back that far.
    pub(super) fn ago(&self, steps: usize) -> Option<[[f32; 6]; 2]> {
        let place = self.history.len().checked_sub(steps + 1)?;
        Some([self.history[place], self.neighbours[place]])
    }
}

/// An observation of a pedestrian, and the future after it.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    pub(super) observation: Observation,
    pub(super) future: Vec<[f32; 6]>,
}

impl Example {
    /// An observation and the states after the present.
    pub fn new(history: &[State], neighbours: &[State], future: &[State]) -> Result<Self> {
        let observation = Observation::new(history, neighbours)?;
        Ok(Self { observation, future: narrow("future", future)? })
    }

    /// The observation.
    pub fn observation(&self) -> &Observation {
        &self.observation
    }

    /// All states: the history, the neighbours' and the future.
    pub(super) fn parts(&self) -> [&[[f32; 6]]; 3] {
        [&self.observation.history, &self.observation.neighbours, &self.future]
    }

    /// Rotated about the present position and scaled.
    pub(super) fn turned(&self, angle: f32, factor: f32) -> Self {
        let (sin, cos) = angle.sin_cos();
        let (sin, cos) = (factor * sin, factor * cos);
        let turn = |states: &[[f32; 6]]| -> Vec<[f32; 6]> {
            let turned = |&[x, y, u, v, a, b]: &[f32; 6]| {
                let turn = |x: f32, y: f32| (cos * x - sin * y, sin * x + cos * y);
                let ((x, y), (u, v), (a, b)) = (turn(x, y), turn(u, v), turn(a, b));
                [x, y, u, v, a, b]
            };
            states.iter().map(turned).collect()
        };
        Self {
            observation: Observation {
                history: turn(&self.observation.history),
                neighbours: turn(&self.observation.neighbours),
            },
            future: turn(&self.future),
        }
    }
}

/// Checks that every example has a future as long as a prediction.
pub(super) fn check(examples: &[Example], config: &NetworkConfig) -> Result<()> {
    match examples.iter().position(|example| example.future.len() < config.future_steps) {
        None => Ok(()),
        Some(row) => Err(Error::data(
            "examples",
            format!(
                "number {row} has {} steps of future, but must have {}",
                examples[row].future.len(),
                config.future_steps,
            ),
        )),
    }
}

fn narrow(what: &'static str, states: &[State]) -> Result<Vec<[f32; 6]>> {
    let narrow = |(step, state): (usize, &State)| {
        let narrow = state.map(|x| x as f32);
        match narrow.iter().position(|x| !x.is_finite()) {
            None => Ok(narrow),
            Some(column) => Err(Error::data(
                what,
                format!("step {step}, column {column} is {}, but must be finite", state[column]),
            )),
        }
    };
    states.iter().enumerate().map(narrow).collect()
}
