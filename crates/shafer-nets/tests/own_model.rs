//! A network that is not part of the crate, with state, counts and a cyclic learning rate: against plain
//! loops in double precision.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use burn::module::{Module, Param};
use burn::tensor::{Tensor, TensorData};
use common::parameters;
use serde::{Deserialize, Serialize};
use shafer_nets::training::{
    Batch, Dataset, Initialiser, Length, Losses, Model, Pass, Plan, Schedule,
};
use shafer_nets::{Error, Optimiser, Parameters, Result, Trainer, cpu};

/// `y = x w + b`, and the moving average of the batches' mean `x`.
#[derive(Module, Debug)]
struct Line {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
    average: Param<Tensor<1>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Regression {
    batch_size: usize,
    epochs: usize,
}

impl Parameters for Line {
    type Config = Regression;

    const NAME: &'static str = "line";

    fn check(_: &Regression) -> Result<()> {
        Ok(())
    }

    fn make(_: &Regression, init: &mut Initialiser) -> Self {
        Self {
            weight: init.uniform([1], 1),
            bias: init.uniform([1], 1),
            average: init.state(0.0, [1]),
        }
    }
}

#[derive(Debug)]
struct Points([(f32, f32); 7]);

impl Dataset for &Points {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn fingerprint(&self) -> u64 {
        self.0.iter().map(|(x, y)| u64::from(x.to_bits()) ^ u64::from(y.to_bits())).sum()
    }
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Errors {
    squares: f64,
    /// The examples, in the order of their use.
    rows: Vec<u32>,
}

impl Losses for Errors {
    fn total(&self) -> f64 {
        self.squares
    }

    fn add(&mut self, batch: &Self) {
        self.squares += batch.squares;
        self.rows.extend(&batch.rows);
    }

    fn mean(&self, examples: usize) -> Self {
        Self { squares: self.squares / examples as f64, rows: self.rows.clone() }
    }
}

const RATE: Schedule = Schedule::Cyclic { low: 0.01, high: 0.04, iterations_up: 3 };
const NESTEROV: Optimiser = Optimiser::Nesterov { momentum: 0.8, weight_decay: 0.02 };
const NORM: f64 = 1.5;

impl Model for Regression {
    type Config = Self;
    type Examples<'a> = &'a Points;
    type Losses = Errors;
    type Network = Line;

    fn shape(config: &Self) -> &Self {
        config
    }

    fn check(config: &Self, _points: &&Points) -> Result<()> {
        assert!(config.batch_size > 0);
        Ok(())
    }

    fn plan(config: &Self) -> Plan {
        Plan {
            batch_size: config.batch_size,
            length: Length::Epochs(config.epochs),
            optimiser: NESTEROV,
            learning_rate: RATE,
            gradient_norm: Some(NORM),
        }
    }

    fn pass(_: &Self, points: &&Points, line: &Line, batch: &Batch<'_>) -> Result<Pass<Self>> {
        let column = |part: fn(&(f32, f32)) -> f32| {
            let values: Vec<f32> =
                batch.rows.iter().map(|&i| part(&points.0[i as usize])).collect();
            let count = values.len();
            Tensor::<1>::from_data(TensorData::new(values, [count]), batch.device)
        };
        let (x, y) = (column(|p| p.0), column(|p| p.1));
        let error = x.clone() * line.weight.val() + line.bias.val() - y;
        let squares = (error.clone() * error).sum();
        let losses = Errors {
            squares: squares.clone().inner().into_scalar::<f32>().into(),
            rows: batch.rows.to_vec(),
        };
        let last = batch.last;
        Ok(Pass::<Self>::new(squares, losses).then(move |mut line| {
            // At the end of an epoch it is doubled, so that a test sees that the end was seen.
            let factor = if last { 2.0 } else { 1.0 };
            line.average = line.average.map(|average| {
                let mean = Tensor::from_inner(x.mean().mul_scalar(0.1));
                (average.mul_scalar(0.9) + mean).mul_scalar(factor).detach()
            });
            line
        }))
    }
}

fn points() -> Points {
    Points([(0.1, 1.0), (0.5, 0.2), (-1.0, 2.0), (0.7, 0.7), (2.0, -1.5), (-0.4, 0.3), (1.1, 0.0)])
}

fn new(points: &Points) -> Trainer<'_, Regression> {
    Trainer::new(&Regression { batch_size: 3, epochs: 4 }, points, 9, &cpu()).unwrap()
}

/// The value of a tensor of one element.
fn value(trainer: &Trainer<'_, Regression>, name: &str) -> f64 {
    f64::from(parameters(&trainer.save().unwrap())[name].1[0])
}

#[test]
fn a_training_is_that_of_plain_loops() {
    let points = points();
    let mut trainer = new(&points);
    let [mut w, mut b] = ["weight", "bias"].map(|name| value(&trainer, name));
    let (mut average, mut velocity) = (0.0, [0.0; 2]);
    // Three batches an epoch; the peaks of the learning rate are at iterations 3 and 9.
    let rates = [0.01, 0.02, 0.03, 0.04, 0.03, 0.02, 0.01, 0.02, 0.03, 0.04, 0.03, 0.02];
    let mut clipped = 0;
    for (iteration, rate) in rates.into_iter().enumerate() {
        let step = trainer.step().unwrap().unwrap();
        assert_eq!(
            (step.iteration, step.epoch, step.batch),
            (iteration, iteration / 3, iteration % 3)
        );
        let rows = &step.losses.rows;
        assert_eq!((rows.len(), step.examples), if step.batch == 2 { (1, 1) } else { (3, 3) });
        let (mut squares, mut gradient, mut mean) = (0.0, [0.0; 2], 0.0);
        for &row in rows {
            let (x, y) = points.0[row as usize];
            let (x, y) = (f64::from(x), f64::from(y));
            let error = x * w + b - y;
            squares += error * error;
            gradient[0] += 2.0 * error * x;
            gradient[1] += 2.0 * error;
            mean += x / rows.len() as f64;
        }
        assert!((step.losses.squares - squares / rows.len() as f64).abs() < 1e-5);
        let norm = gradient[0].hypot(gradient[1]);
        if norm > NORM {
            clipped += 1;
            gradient = gradient.map(|g| g * NORM / norm);
        }
        for ((p, v), g) in [&mut w, &mut b].into_iter().zip(&mut velocity).zip(gradient) {
            let g = g + 0.02 * *p;
            *v = 0.8 * *v + g;
            *p -= rate * (g + 0.8 * *v);
        }
        average = (0.9 * average + 0.1 * mean) * if step.batch == 2 { 2.0 } else { 1.0 };
        for (name, expected) in [
            ("weight", w),
            ("bias", b),
            ("average", average),
            ("nesterov.velocity.weight", velocity[0]),
            ("nesterov.velocity.bias", velocity[1]),
        ] {
            let found = value(&trainer, name);
            assert!(
                (found - expected).abs() < 1e-5,
                "{iteration}, {name}: {found}, not {expected}"
            );
        }
        // What is summed over an epoch has every example once.
        let mut seen = step.epoch_losses.map_or_else(Vec::new, |losses| losses.rows);
        seen.sort_unstable();
        assert!(seen.into_iter().eq(0..if step.batch == 2 { 7 } else { 0 }));
    }
    assert!((1..12).contains(&clipped), "{clipped}");
    assert!(trainer.step().unwrap().is_none());
    // The optimiser has no state for what it does not train.
    assert_eq!(parameters(&trainer.save().unwrap()).len(), 5);
}

#[test]
fn state_and_counts_survive_a_kill() {
    let points = points();
    let mut whole = new(&points);
    let mut epochs = Vec::new();
    while let Some(losses) = whole.run_epoch().unwrap() {
        epochs.push(losses);
    }
    for steps in 0..=12 {
        let mut killed = new(&points);
        for _ in 0..steps {
            killed.step().unwrap();
        }
        let saved = killed.save().unwrap();
        let config = Regression { batch_size: 3, epochs: 4 };
        let mut resumed =
            Trainer::<Regression>::resume(&config, &points, 9, &cpu(), &saved).unwrap();
        assert!(resumed.save().unwrap() == saved);
        for expected in &epochs[steps / 3..] {
            assert_eq!(resumed.run_epoch().unwrap().as_ref(), Some(expected));
        }
        assert!(resumed.save().unwrap() == whole.save().unwrap(), "killed after {steps} steps");
    }
}

#[test]
fn a_length_that_the_model_does_not_extend_is_another_configuration() {
    let points = points();
    let saved = new(&points).save().unwrap();
    let longer = Regression { batch_size: 3, epochs: 5 };
    let error = Trainer::<Regression>::resume(&longer, &points, 9, &cpu(), &saved).unwrap_err();
    assert_eq!(
        error,
        Error::Format { problem: "the saved training has another configuration".into() }
    );
}
