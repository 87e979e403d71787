//! The training of a predictor.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::config::{Config, NetworkConfig, TrainingConfig};
use super::example::{self, Example};
use super::mixture;
use super::network::{Inputs, Network, Noise, Terms};
use super::predictor::Predictor;
use crate::Result;
use crate::config::Optimiser;
use crate::examples::Fingerprint;
use crate::random::Purpose;
use crate::training::{Batch, Dataset, Length, Model, Pass, Plan, Schedule};
use crate::weights::{host, tensor};

/// The terms of the objective, in nats: means over a batch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// The negative log-density of the future, summed over its steps.
    pub reconstruction: f64,
    /// KL(q || p), summed over the variables.
    pub kl: f64,
    /// The mutual information of the latent variables and the condition under p, over the batch.
    pub information: f64,
}

impl Losses {
    fn map(self, f: impl Fn(f64) -> f64) -> Self {
        Self {
            reconstruction: f(self.reconstruction),
            kl: f(self.kl),
            information: f(self.information),
        }
    }
}

impl crate::training::Losses for Losses {
    fn total(&self) -> f64 {
        self.reconstruction + self.kl + self.information
    }

    fn add(&mut self, batch: &Self) {
        self.reconstruction += batch.reconstruction;
        self.kl += batch.kl;
        self.information += batch.information;
    }

    fn mean(&self, examples: usize) -> Self {
        self.map(|sum| sum / examples as f64)
    }
}

impl Dataset for &[Example] {
    fn count(&self) -> usize {
        self.len()
    }

    fn fingerprint(&self) -> u64 {
        let mut fingerprint = Fingerprint::new(self.len());
        for example in *self {
            for states in example.parts() {
                fingerprint.add(states.len() as u64);
                for x in states.as_flattened() {
                    fingerprint.add(u64::from(x.to_bits()));
                }
            }
        }
        fingerprint.finish()
    }
}

impl Model for Predictor {
    type Config = Config;
    type Examples<'a> = &'a [Example];
    type Losses = Losses;
    type Network = Network;

    fn shape(config: &Config) -> &NetworkConfig {
        &config.network
    }

    fn check(config: &Config, examples: &&[Example]) -> Result<()> {
        config.check()?;
        example::check(examples, &config.network)
    }

    fn plan(config: &Config) -> Plan {
        let training = &config.training;
        Plan {
            batch_size: training.batch_size,
            length: Length::Iterations(training.iterations),
            optimiser: Optimiser::Adam,
            learning_rate: Schedule::Annealed(training.learning_rate),
            gradient_norm: Some(training.gradient_norm),
        }
    }

    fn pass(
        config: &Config,
        examples: &&[Example],
        network: &Network,
        batch: &Batch<'_>,
    ) -> Result<Pass<Self>> {
        let Config { network: shape, training } = config;
        let examples = augmented(training, examples, batch);
        let rows = examples.len();
        let inputs = Inputs::gather(&examples, shape, batch.device);
        let mut random = batch.random(Purpose::Noise);
        let gumbel = (0..rows * shape.logits()).map(|_| random.gumbel()).collect();
        let mut random = batch.random(Purpose::Feedback);
        let mut step = || (0..rows).map(|_| mixture::draw(&mut random)).collect();
        let noise = Noise {
            gumbel: tensor(gumbel, [rows, shape.logits()], batch.device),
            feedback: (0..shape.future_steps).map(|_| step()).collect(),
        };
        let temperature = training.temperature.at(batch.iteration);
        let Terms { log_likelihood, kl, information } =
            network.terms(&inputs, &noise, temperature, shape, training);
        let sum = |tensor: Tensor<1>| host(tensor.inner()).into_iter().map(f64::from).sum::<f64>();
        let losses = Losses {
            reconstruction: -sum(log_likelihood.clone()),
            kl: sum(kl.clone()),
            information: sum(information.clone()),
        };
        let kl = kl.clamp_min(training.kl_floor).sum();
        let loss = kl.mul_scalar(training.kl_weight_at(batch.iteration))
            - information.mul_scalar(training.information_weight)
            - log_likelihood;
        // From means to sums. The products are exact: sums of a few single-precision numbers times a
        // small integer.
        Ok(Pass::new(loss, losses.map(|mean| mean * rows as f64)))
    }

    fn extended(mut saved: Config, to: &Config) -> Config {
        saved.training.iterations = to.training.iterations;
        saved
    }
}

/// The examples of a batch, turned and scaled at random.
fn augmented(training: &TrainingConfig, examples: &[Example], batch: &Batch<'_>) -> Vec<Example> {
    let mut random = batch.random(Purpose::Augmentation);
    let examples = batch.rows.iter().map(|&row| &examples[row as usize]);
    examples
        .map(|example| {
            let angle =
                if training.rotate { random.uniform() * std::f32::consts::TAU } else { 0.0 };
            let factor = if training.stretch > 1.0 {
                (training.stretch.ln() as f32 * (2.0 * random.uniform() - 1.0)).exp()
            } else {
                1.0
            };
            example.turned(angle, factor)
        })
        .collect()
}
