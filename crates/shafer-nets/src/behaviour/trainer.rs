//! The training of a predictor, batch by batch.

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

use super::config::{Config, NetworkConfig, TrainingConfig};
use super::example::{self, Example};
use super::mixture;
use super::network::{Batch, Network, Noise, Terms, tensor};
use super::predictor::Predictor;
use crate::config::Optimiser;
use crate::examples::{Batches, Fingerprint};
use crate::layers::Initialiser;
use crate::optimiser::Descent;
use crate::random::{Purpose, Random};
use crate::weights::{Precision, Tensors, host};
use crate::{Error, Result};

/// A training in progress.
///
/// Everything that happens is a function of the configuration, the examples and the seed.
///
/// ```
/// use shafer_nets::behaviour::{Config, Example, Trainer};
///
/// // Some walk to the left, some to the right.
/// let walk = |v: f64, steps: std::ops::RangeInclusive<i32>| -> Vec<[f64; 6]> {
///     steps.map(|i| [v * 0.4 * f64::from(i), 0.0, v, 0.0, 0.0, 0.0]).collect()
/// };
/// let examples = [-1.0, 1.0, 1.2]
///     .map(|v| Example::new(&walk(v, -8..=0), &[[0.0; 6]; 9], &walk(v, 1..=12)))
///     .into_iter()
///     .collect::<Result<Vec<_>, _>>()?;
/// let mut config = Config::default();
/// config.training.iterations = 2;
/// config.network.decoder_width = 8;
///
/// let mut trainer = Trainer::new(&config, &examples, 7)?;
/// while let Some(step) = trainer.step()? {
///     assert!(step.losses.kl >= 0.0);
/// }
/// let saved = trainer.save()?;
/// assert!(Trainer::resume(&config, &examples, 7, &saved)?.is_finished());
/// assert_eq!(trainer.predictor().config(), &config.network);
/// # Ok::<(), shafer_nets::Error>(())
/// ```
#[derive(Debug)]
pub struct Trainer<'a> {
    config: Config,
    examples: &'a [Example],
    seed: u64,
    batches: Batches,
    /// Always there, but while it is being changed.
    network: Option<Network>,
    descent: Descent,
}

/// The means over a batch, in nats.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// The negative logarithm of the density of the future, added up over the steps.
    pub reconstruction: f64,
    /// KL(q || p), over all variables.
    pub kl: f64,
    /// The mutual information of the latent variables and the condition under p, over the batch.
    pub information: f64,
}

/// What one batch came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The iteration, counted from 0.
    pub iteration: usize,
    /// Before the parameters were changed.
    pub losses: Losses,
}

/// What the metadata of a saved training says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    behaviour_training: Config,
    seed: u64,
    /// Of the examples.
    examples: u64,
    epoch: usize,
    batch: usize,
}

impl<'a> Trainer<'a> {
    /// A training at its beginning.
    pub fn new(config: &Config, examples: &'a [Example], seed: u64) -> Result<Self> {
        config.check()?;
        example::check(examples, &config.network)?;
        Ok(Self {
            config: config.clone(),
            examples,
            seed,
            batches: Batches::new(seed, examples.len(), config.training.batch_size),
            network: Some(Network::new(&config.network, &mut Initialiser::new(seed))),
            descent: Descent::new(Optimiser::Adam, config.training.learning_rate.start),
        })
    }

    fn network(&self) -> &Network {
        self.network.as_ref().expect("the network is only away while it is being changed")
    }

    /// Trains on the next batch; `None` when all iterations are done.
    pub fn step(&mut self) -> Result<Option<Step>> {
        if self.is_finished() {
            return Ok(None);
        }
        let iteration = self.batches.iteration();
        let training = &self.config.training;
        let examples = self.next_examples();
        let inputs = Batch::gather(&examples, &self.config.network);
        let noise = self.noise(examples.len());
        let temperature = training.temperature.at(iteration);
        let Terms { log_likelihood, kl, information } =
            self.network().terms(&inputs, &noise, temperature, &self.config.network, training);
        let sum = |tensor: Tensor<1>| host(tensor.inner()).into_iter().map(f64::from).sum::<f64>();
        let losses = Losses {
            reconstruction: -sum(log_likelihood.clone()),
            kl: sum(kl.clone()),
            information: sum(information.clone()),
        };
        let loss = losses.reconstruction + losses.kl + losses.information;
        if !loss.is_finite() {
            let (epoch, batch) = (self.batches.epoch(), self.batches.batch());
            return Err(Error::Diverged { epoch, batch, loss });
        }
        let kl = kl.clamp_min(training.kl_floor).sum();
        let loss = kl.mul_scalar(training.kl_weight_at(iteration))
            - information.mul_scalar(training.information_weight)
            - log_likelihood;
        let gradients = loss.backward();
        // The graph holds on to the parameters, which are then copied rather than changed in place.
        drop(loss);
        self.descent.set_learning_rate(training.learning_rate.at(iteration));
        let longest = training.gradient_norm;
        self.network =
            self.network.take().map(|network| self.descent.clipped(network, gradients, longest));
        self.batches.advance();
        Ok(Some(Step { iteration: iteration as usize, losses }))
    }

    /// Everything there is to this training, as the bytes of a safetensors file: a training that is resumed
    /// from them goes on to the same bits.
    pub fn save(&self) -> Result<Vec<u8>> {
        let mut tensors = Tensors::of(self.network());
        self.descent.save(self.network(), &mut tensors);
        let description = Description {
            behaviour_training: self.config.clone(),
            seed: self.seed,
            examples: fingerprint(self.examples),
            epoch: self.batches.epoch(),
            batch: self.batches.batch(),
        };
        tensors.to_bytes(Precision::Single, &description)
    }

    /// Goes on from what [`save`](Self::save) gave. The configuration, the examples and the seed must be
    /// the ones that it had; the number of iterations may differ.
    pub fn resume(
        config: &Config,
        examples: &'a [Example],
        seed: u64,
        bytes: &[u8],
    ) -> Result<Self> {
        let mut trainer = Self::new(config, examples, seed)?;
        let (mut tensors, saved): (_, Description) = Tensors::from_bytes(bytes)?;
        let differs = |what| Err(Error::format(format!("the saved training has {what}")));
        let mut before = saved.behaviour_training;
        before.training.iterations = config.training.iterations;
        if before != *config {
            return differs("another configuration");
        }
        if saved.seed != seed {
            return differs("another seed");
        }
        if saved.examples != fingerprint(examples) {
            return differs("other examples");
        }
        let training = &config.training;
        let batches =
            Batches::at(seed, examples.len(), training.batch_size, saved.epoch, saved.batch);
        if saved.batch >= batches.per_epoch() || batches.iteration() > training.iterations as u64 {
            return differs("come to a batch that does not exist");
        }
        let network =
            tensors.take_all(Network::new(&config.network, &mut Initialiser::new(seed)))?;
        trainer.descent = Descent::load(
            Optimiser::Adam,
            training.learning_rate.start,
            batches.iteration(),
            &network,
            &mut tensors,
        )?;
        tensors.finish()?;
        trainer.batches = batches;
        trainer.network = Some(network);
        Ok(trainer)
    }

    /// Whether all iterations are done.
    pub fn is_finished(&self) -> bool {
        self.iteration() >= self.config.training.iterations
    }

    /// The number of the next iteration, counted from 0.
    pub fn iteration(&self) -> usize {
        self.batches.iteration() as usize
    }

    /// The predictor as it is now.
    pub fn predictor(&self) -> Predictor {
        Predictor::of(self.config.network.clone(), self.network())
    }

    fn next_examples(&self) -> Vec<Example> {
        let TrainingConfig { rotate, stretch, .. } = self.config.training;
        let mut random = Random::new(self.seed, Purpose::Augmentation, self.batches.iteration());
        let examples = self.batches.rows().iter().map(|&row| &self.examples[row as usize]);
        examples
            .map(|example| {
                let angle = if rotate { random.uniform() * std::f32::consts::TAU } else { 0.0 };
                let factor = if stretch > 1.0 {
                    (stretch.ln() as f32 * (2.0 * random.uniform() - 1.0)).exp()
                } else {
                    1.0
                };
                example.turned(angle, factor)
            })
            .collect()
    }

    fn noise(&self, rows: usize) -> Noise {
        let NetworkConfig { future_steps, .. } = self.config.network;
        let logits = self.config.network.logits();
        let iteration = self.batches.iteration();
        let mut random = Random::new(self.seed, Purpose::Noise, iteration);
        let gumbel = (0..rows * logits).map(|_| random.gumbel()).collect();
        let mut random = Random::new(self.seed, Purpose::Feedback, iteration);
        let mut step = || (0..rows).map(|_| mixture::draw(&mut random)).collect();
        Noise {
            gumbel: tensor(gumbel, [rows, logits]),
            feedback: (0..future_steps).map(|_| step()).collect(),
        }
    }
}

/// A number that other examples have with a probability of 2^-64.
fn fingerprint(examples: &[Example]) -> u64 {
    let mut fingerprint = Fingerprint::new(examples.len());
    for example in examples {
        for states in example.parts() {
            fingerprint.add(states.len() as u64);
            for x in states.as_flattened() {
                fingerprint.add(u64::from(x.to_bits()));
            }
        }
    }
    fingerprint.finish()
}
