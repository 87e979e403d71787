//! The training of an autoencoder, batch by batch.

use burn::tensor::{Device, Tensor, TensorData};
use serde::{Deserialize, Serialize};

use crate::config::{Config, DecoderBias};
use crate::examples::{Batches, Examples};
use crate::layers::Initialiser;
use crate::network::{Batch, Network, Terms};
use crate::optimiser::Descent;
use crate::random::{Purpose, Random};
use crate::weights::{Precision, Tensors, host};
use crate::{Cvae, Error, PriorSnapshot, Result};

/// A training in progress.
///
/// Everything that happens is a function of the configuration, the examples and the seed.
#[derive(Debug)]
pub struct Trainer<'a> {
    config: Config,
    examples: Examples<'a>,
    seed: u64,
    batches: Batches,
    /// Always there, but while it is being changed.
    network: Option<Network>,
    descent: Descent,
    /// Of the epoch so far.
    sums: Losses,
}

/// The means over the images of a batch or an epoch, in nats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// The negative log-likelihood of the pixels.
    pub reconstruction: f64,
    /// KL(q || p).
    pub kl: f64,
}

impl Losses {
    fn is_finite(self) -> bool {
        self.reconstruction.is_finite() && self.kl.is_finite()
    }

    fn scaled(self, by: f64) -> Self {
        Self { reconstruction: self.reconstruction * by, kl: self.kl * by }
    }

    fn plus(self, other: Self) -> Self {
        Self { reconstruction: self.reconstruction + other.reconstruction, kl: self.kl + other.kl }
    }
}

/// What one batch came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// The batch in its epoch, counted from 0.
    pub batch: usize,
    /// The number of images in it.
    pub images: usize,
    /// The losses before the parameters were changed.
    pub losses: Losses,
    /// Whether the prior is to be recorded now: see [`Checkpoints`](crate::Checkpoints).
    pub checkpoint: bool,
}

/// The prior after a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Checkpoint {
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// The batch in its epoch, counted from 0.
    pub batch: usize,
    /// What it was.
    pub prior: PriorSnapshot,
}

/// What one epoch came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Epoch {
    /// Which one, counted from 0.
    pub epoch: usize,
    /// The means over its images, each before its batch changed the parameters.
    pub losses: Losses,
    /// The checkpoints since the call began.
    pub checkpoints: Vec<Checkpoint>,
}

/// What the metadata of a saved training says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    training: Config,
    seed: u64,
    /// [`Examples::fingerprint`].
    examples: u64,
    epoch: usize,
    batch: usize,
    /// The bits of the sums of the epoch so far: decimals might lose some.
    sums: [u64; 2],
}

impl<'a> Trainer<'a> {
    /// A training at its beginning.
    pub fn new(config: &Config, examples: Examples<'a>, seed: u64) -> Result<Self> {
        config.check()?;
        examples.check(config.network.pixels(), config.network.conditions)?;
        let training = &config.training;
        let mut network = Network::new(&config.network, &mut Initialiser::new(seed));
        if training.decoder_bias == DecoderBias::MeanImage {
            network.set_decoder_bias(examples.mean_log_odds());
        }
        Ok(Self {
            config: config.clone(),
            examples,
            seed,
            batches: Batches::new(seed, examples.len(), training.batch_size),
            network: Some(network),
            descent: Descent::new(training.optimiser, training.learning_rate),
            sums: Losses::default(),
        })
    }

    fn network(&self) -> &Network {
        self.network.as_ref().expect("the network is only away while it is being changed")
    }

    /// Trains on the next batch; `None` when all epochs are done.
    pub fn step(&mut self) -> Result<Option<Step>> {
        let (epoch, batch) = (self.batches.epoch(), self.batches.batch());
        let training = &self.config.training;
        if epoch == training.epochs {
            return Ok(None);
        }
        let inputs = Batch::gather(&self.config.network, &self.examples, self.batches.rows());
        let noise = self.noise(inputs.len());
        let Terms { reconstruction, kl } =
            self.network().terms(&inputs, noise, training.temperature);
        let weight = training.objective.kl_weight(inputs.len());
        let loss = reconstruction.clone() + kl.clone().mul_scalar(weight);
        let images = inputs.len();
        let sum = |sum: Tensor<1>| f64::from(host(sum.inner())[0]);
        let sums = Losses { reconstruction: sum(reconstruction), kl: sum(kl) };
        if !sums.is_finite() {
            let loss = sums.reconstruction + sums.kl;
            return Err(Error::Diverged { epoch, batch, loss });
        }
        let gradients = loss.backward();
        // The graph holds on to the parameters, which are then copied rather than changed in place.
        drop(loss);
        self.network = self.network.take().map(|network| self.descent.step(network, gradients));
        let checkpoint = training.checkpoints.is_at(epoch, batch, self.batches.per_epoch());
        self.sums = if batch == 0 { sums } else { self.sums.plus(sums) };
        self.batches.advance();
        Ok(Some(Step {
            epoch,
            batch,
            images,
            losses: sums.scaled(1.0 / images as f64),
            checkpoint,
        }))
    }

    /// Trains to the end of the epoch; `None` when all are done.
    pub fn run_epoch(&mut self) -> Result<Option<Epoch>> {
        let mut checkpoints = Vec::new();
        while let Some(step) = self.step()? {
            let Step { epoch, batch, .. } = step;
            if step.checkpoint {
                checkpoints.push(Checkpoint { epoch, batch, prior: self.prior_snapshot() });
            }
            if batch + 1 == self.batches.per_epoch() {
                let losses = self.sums.scaled(1.0 / self.examples.len() as f64);
                return Ok(Some(Epoch { epoch, losses, checkpoints }));
            }
        }
        Ok(None)
    }

    /// Everything there is to this training, as the bytes of a safetensors file: a training that is resumed
    /// from them goes on to the same bits.
    pub fn save(&self) -> Result<Vec<u8>> {
        let mut tensors = Tensors::of(self.network());
        self.descent.save(self.network(), &mut tensors);
        let description = Description {
            training: self.config.clone(),
            seed: self.seed,
            examples: self.examples.fingerprint(),
            epoch: self.batches.epoch(),
            batch: self.batches.batch(),
            sums: [self.sums.reconstruction.to_bits(), self.sums.kl.to_bits()],
        };
        tensors.to_bytes(Precision::Single, &description)
    }

    /// Goes on from what [`save`](Self::save) gave. The configuration, the examples and the seed must be
    /// the ones that it had; the number of epochs may differ.
    pub fn resume(
        config: &Config,
        examples: Examples<'a>,
        seed: u64,
        bytes: &[u8],
    ) -> Result<Self> {
        let mut trainer = Self::new(config, examples, seed)?;
        let (mut tensors, saved): (_, Description) = Tensors::from_bytes(bytes)?;
        let differs = |what| Err(Error::format(format!("the saved training has {what}")));
        let epochs = config.training.epochs;
        let mut before = saved.training;
        before.training.epochs = epochs;
        if before != *config {
            return differs("another configuration");
        }
        if saved.seed != seed {
            return differs("another seed");
        }
        if saved.examples != examples.fingerprint() {
            return differs("other examples");
        }
        if saved.epoch > epochs || saved.batch >= trainer.batches.per_epoch() {
            return differs("come to a batch that does not exist");
        }
        let training = &config.training;
        let network =
            tensors.take_all(Network::new(&config.network, &mut Initialiser::new(seed)))?;
        trainer.batches =
            Batches::at(seed, examples.len(), training.batch_size, saved.epoch, saved.batch);
        trainer.descent = Descent::load(
            training.optimiser,
            training.learning_rate,
            trainer.batches.iteration(),
            &network,
            &mut tensors,
        )?;
        tensors.finish()?;
        trainer.network = Some(network);
        let [reconstruction, kl] = saved.sums.map(f64::from_bits);
        trainer.sums = Losses { reconstruction, kl };
        Ok(trainer)
    }

    /// Whether all epochs are done.
    pub fn is_finished(&self) -> bool {
        self.batches.epoch() == self.config.training.epochs
    }

    /// The epoch of the next batch, counted from 0.
    pub fn epoch(&self) -> usize {
        self.batches.epoch()
    }

    /// The number of the next batch in its epoch, counted from 0.
    pub fn batch(&self) -> usize {
        self.batches.batch()
    }

    /// The number of batches in an epoch.
    pub fn batches_per_epoch(&self) -> usize {
        self.batches.per_epoch()
    }

    fn noise(&self, images: usize) -> Tensor<2> {
        let classes = self.config.network.latent_classes;
        let mut random = Random::new(self.seed, Purpose::Noise, self.batches.iteration());
        let noise: Vec<f32> = (0..images * classes).map(|_| random.gumbel()).collect();
        Tensor::from_data(TensorData::new(noise, [images, classes]), &Device::flex())
    }

    /// The networks as they are now.
    pub fn cvae(&self) -> Cvae {
        Cvae::of(self.config.network.clone(), self.network())
    }

    /// The prior as it is now.
    pub fn prior_snapshot(&self) -> PriorSnapshot {
        self.cvae().prior()
    }
}
