//! What a predictor sees of a pedestrian, and what it learns from.

use super::config::NetworkConfig;
use crate::{Error, Result};

/// Position, velocity and acceleration, each as x and y; in metres and seconds, and the position relative
/// to where the pedestrian is at present.
pub type State = [f64; 6];

/// What is known of a pedestrian at present.
///
/// ```
/// use shafer_nets::behaviour::Observation;
///
/// // Two steps to the right at 1 m/s, with nobody near.
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
    /// The states up to the present, which is the last of them, and for each of them the sum of the
    /// neighbours' states, whose positions are relative to the same place.
    pub fn new(history: &[State], neighbours: &[State]) -> Result<Self> {
        if history.is_empty() {
            return Err(Error::data("history", "must have the present at least, but is empty"));
        }
        if history.len() != neighbours.len() {
            return Err(Error::data(
                "neighbours",
                format!(
                    "there must be {}, one for each step of the history, but there are {}",
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

    /// The number of states up to the present; more than a network looks at are no harm.
    pub fn steps(&self) -> usize {
        self.history.len()
    }

    /// The state at present.
    pub(super) fn present(&self) -> [f32; 6] {
        self.history[self.history.len() - 1]
    }

    /// The own state and the neighbours' so many steps ago, if it is known.
    pub(super) fn ago(&self, steps: usize) -> Option<[[f32; 6]; 2]> {
        let place = self.history.len().checked_sub(steps + 1)?;
        Some([self.history[place], self.neighbours[place]])
    }
}

/// What is known of a pedestrian at present, and what came after.
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

    /// What is known at present.
    pub fn observation(&self) -> &Observation {
        &self.observation
    }

    /// All its states: the history, the neighbours' and the future.
    pub(super) fn parts(&self) -> [&[[f32; 6]]; 3] {
        [&self.observation.history, &self.observation.neighbours, &self.future]
    }

    /// Turned about the present position by an angle, and so many times as large.
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

/// Whether a predictor of this shape can learn from them.
pub(super) fn check(examples: &[Example], config: &NetworkConfig) -> Result<()> {
    match examples.iter().position(|example| example.future.len() < config.future_steps) {
        None => Ok(()),
        Some(row) => Err(Error::data(
            "examples",
            format!(
                "number {row} has {} steps of future, but {} are predicted",
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
