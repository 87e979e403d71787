//! Predictions as a table: a row for each step of each mode.

use shafer_data::Column;

use super::{MethodModes, Prediction};

/// What the path of constant velocity is called among the methods. It has no class and no spread.
const CONSTANT_VELOCITY: &str = "constant-velocity";

/// The rows of some predictions.
#[derive(Default)]
pub(super) struct PredictionTable {
    frame: Vec<i64>,
    agent: Vec<i64>,
    method: Vec<String>,
    mode: Vec<i64>,
    class: Vec<String>,
    step: Vec<i64>,
    numbers: [Vec<f64>; NUMBERS.len()],
}

const NUMBERS: [&str; 7] = ["probability", "seconds", "x", "y", "xx", "xy", "yy"];

/// What the rows of one path have in common.
struct Path<'a> {
    frame: u32,
    agent: u32,
    method: &'a str,
    mode: usize,
    class: String,
    probability: f64,
    seconds_per_step: f64,
}

impl PredictionTable {
    pub(super) fn rows(&self) -> usize {
        self.frame.len()
    }

    pub(super) fn add(&mut self, prediction: &Prediction) {
        let (frame, seconds_per_step) = (prediction.frame, prediction.seconds_per_step);
        for agent in &prediction.agents {
            let straight = Path {
                frame,
                agent: agent.agent,
                method: CONSTANT_VELOCITY,
                mode: 0,
                class: String::new(),
                probability: 1.0,
                seconds_per_step,
            };
            let steps = agent.constant_velocity.iter().map(|&point| (point, [f64::NAN; 3]));
            self.add_path(&straight, steps);
            for MethodModes { method, modes } in &agent.methods {
                for (rank, mode) in modes.iter().enumerate() {
                    let class: Vec<String> = mode.class.iter().map(usize::to_string).collect();
                    let path = Path {
                        method,
                        mode: rank,
                        class: class.join(","),
                        probability: mode.probability,
                        ..straight
                    };
                    let steps = mode.mean.iter().copied().zip(mode.covariance.iter().copied());
                    self.add_path(&path, steps);
                }
            }
        }
    }

    fn add_path(&mut self, path: &Path<'_>, steps: impl Iterator<Item = ([f64; 2], [f64; 3])>) {
        for (step, ([x, y], [xx, xy, yy])) in (1_u32..).zip(steps) {
            self.frame.push(path.frame.into());
            self.agent.push(path.agent.into());
            self.method.push(path.method.to_owned());
            self.mode.push(path.mode as i64);
            self.class.push(path.class.clone());
            self.step.push(step.into());
            let seconds = f64::from(step) * path.seconds_per_step;
            let row = [path.probability, seconds, x, y, xx, xy, yy];
            for (column, value) in self.numbers.iter_mut().zip(row) {
                column.push(value);
            }
        }
    }

    /// The columns with their names.
    pub(super) fn columns(self) -> Vec<(&'static str, Column)> {
        let mut columns = vec![
            ("frame", Column::Integers(self.frame)),
            ("agent", Column::Integers(self.agent)),
            ("method", Column::Words(self.method)),
            ("mode", Column::Integers(self.mode)),
            ("class", Column::Words(self.class)),
            ("step", Column::Integers(self.step)),
        ];
        columns.extend(NUMBERS.into_iter().zip(self.numbers.map(Column::Numbers)));
        columns
    }
}
