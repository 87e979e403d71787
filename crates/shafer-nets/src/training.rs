//! The training of any network, batch by batch.
//!
//! A network takes part by implementing [`Model`]; [`Trainer`] does the rest: order of the examples,
//! gradients, their clipping, the optimiser, the learning-rate schedule, divergence, save and resume.

use std::fmt::Debug;

use burn::tensor::{Device, Tensor};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::config::Optimiser;
use crate::examples::Batches;
pub use crate::layers::Initialiser;
use crate::net::{Net, Parameters};
use crate::optimiser::Descent;
use crate::random::{Purpose, Random};
pub use crate::schedule::{Annealed, Schedule};
use crate::weights::{Precision, Tensors};
use crate::{Error, Result};

/// What [`Trainer`] needs to know of a network.
///
/// A parameter with `require_grad` is changed by the optimiser. One without it (running statistics, counts
/// of an exponential moving average) is state: it is saved and restored with the network, and changed by
/// [`Pass::then`] only.
pub trait Model: Sized {
    /// The shape of the network, and how it is trained.
    type Config: Clone + Debug + PartialEq + Serialize + DeserializeOwned;
    /// What it learns from.
    type Examples<'a>: Dataset;
    /// What a step reports.
    type Losses: Losses;
    /// Its parameters and state.
    type Network: Parameters;

    /// The shape of the network.
    fn shape(config: &Self::Config) -> &<Self::Network as Parameters>::Config;

    /// Checks that the configuration is valid and fits the examples. Nothing else is called before.
    fn check(config: &Self::Config, examples: &Self::Examples<'_>) -> Result<()>;

    /// How it is trained.
    fn plan(config: &Self::Config) -> Plan;

    /// The network before its first step; it may depend on the examples.
    fn network(
        config: &Self::Config,
        _examples: &Self::Examples<'_>,
        init: &mut Initialiser,
    ) -> Self::Network {
        Self::Network::make(Self::shape(config), init)
    }

    /// The forward pass over a batch. It must be a function of its arguments.
    fn pass(
        config: &Self::Config,
        examples: &Self::Examples<'_>,
        network: &Self::Network,
        batch: &Batch<'_>,
    ) -> Result<Pass<Self>>;

    /// The configuration of a saved training with the length of another one, so that a training can be
    /// extended. The default allows no other length.
    fn extended(saved: Self::Config, _to: &Self::Config) -> Self::Config {
        saved
    }
}

/// What a network learns from.
pub trait Dataset {
    /// The number of examples.
    fn count(&self) -> usize;

    /// A hash of all of them: a training is resumed on the examples that it began with.
    fn fingerprint(&self) -> u64;
}

/// The terms of a loss, summed over examples.
pub trait Losses: Clone + Debug + Default + Serialize + DeserializeOwned {
    /// The sum of all terms. If it is not finite, the training has diverged.
    fn total(&self) -> f64;

    /// Adds those of another batch.
    fn add(&mut self, batch: &Self);

    /// The mean over this number of examples.
    #[must_use]
    fn mean(&self, examples: usize) -> Self;
}

/// The losses of a classifier: one term.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CrossEntropy {
    /// The negative log-likelihood of the true classes, in nats.
    pub cross_entropy: f64,
}

impl CrossEntropy {
    /// From the mean over a batch. The product is exact: single precision times a small integer.
    pub(crate) fn of_mean(mean: f32, examples: usize) -> Self {
        Self { cross_entropy: f64::from(mean) * examples as f64 }
    }
}

impl Losses for CrossEntropy {
    fn total(&self) -> f64 {
        self.cross_entropy
    }

    fn add(&mut self, batch: &Self) {
        self.cross_entropy += batch.cross_entropy;
    }

    fn mean(&self, examples: usize) -> Self {
        Self { cross_entropy: self.cross_entropy / examples as f64 }
    }
}

/// How a network is trained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Examples in a batch; the last batch of an epoch may have fewer.
    pub batch_size: usize,
    /// When the training ends.
    pub length: Length,
    /// The rule that changes the parameters.
    pub optimiser: Optimiser,
    /// The learning rate of every iteration.
    pub learning_rate: Schedule,
    /// Clips the global gradient norm to this.
    pub gradient_norm: Option<f64>,
}

impl Plan {
    /// Adam with a constant learning rate.
    pub fn adam(batch_size: usize, epochs: usize, learning_rate: f64) -> Self {
        Self {
            batch_size,
            length: Length::Epochs(epochs),
            optimiser: Optimiser::Adam,
            learning_rate: Schedule::Constant(learning_rate),
            gradient_norm: None,
        }
    }

    /// The number of batches of a training on this number of examples.
    pub fn batches(&self, examples: usize) -> usize {
        match self.length {
            Length::Epochs(epochs) => epochs.saturating_mul(examples.div_ceil(self.batch_size)),
            Length::Iterations(iterations) => iterations,
        }
    }
}

/// When a training ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// After this number of passes over all examples.
    Epochs(usize),
    /// After this number of batches.
    Iterations(usize),
}

/// One batch: its place in the training, and its examples.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The seed of the training.
    pub seed: u64,
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// The batch in its epoch, counted from 0.
    pub number: usize,
    /// The batch in the whole training, counted from 0.
    pub iteration: u64,
    /// Whether it is the last of its epoch.
    pub last: bool,
    /// Its examples, as indices.
    pub rows: &'a [u32],
    /// Where its tensors belong.
    pub device: &'a Device,
}

impl Batch<'_> {
    /// The random numbers of this batch for one purpose.
    pub(crate) fn random(&self, purpose: Purpose) -> Random {
        Random::new(self.seed, purpose, self.iteration)
    }
}

type Update<N> = Box<dyn FnOnce(N) -> N>;

/// The result of a forward pass.
pub struct Pass<M: Model> {
    loss: Tensor<1>,
    losses: M::Losses,
    update: Option<Update<M::Network>>,
}

impl<M: Model> Pass<M> {
    /// What is minimised, a tensor of one element, and its terms summed over the examples of the batch.
    pub fn new(loss: Tensor<1>, losses: M::Losses) -> Self {
        Self { loss, losses, update: None }
    }

    /// Changes the network's state after the optimiser's step. Tensors that the function captures must be
    /// without gradients (`inner()`): others hold on to the parameters, which are then copied rather than
    /// changed in place.
    #[must_use]
    pub fn then(mut self, update: impl FnOnce(M::Network) -> M::Network + 'static) -> Self {
        self.update = Some(Box::new(update));
        self
    }
}

impl<M: Model> Debug for Pass<M> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Pass").field("losses", &self.losses).finish_non_exhaustive()
    }
}

/// The result of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct Step<L> {
    /// The epoch, counted from 0.
    pub epoch: usize,
    /// The batch in its epoch, counted from 0.
    pub batch: usize,
    /// The batch in the whole training, counted from 0.
    pub iteration: usize,
    /// The number of examples in it.
    pub examples: usize,
    /// Means over its examples, before the parameters were changed.
    pub losses: L,
    /// After the last batch of an epoch: the means over all examples, each before its batch changed the
    /// parameters.
    pub epoch_losses: Option<L>,
}

/// A training in progress.
///
/// On the CPU it is a function of the configuration, the examples and the seed, to the bit. See
/// [`device`](crate::device()) for what holds on a GPU.
#[derive(Debug)]
pub struct Trainer<'a, M: Model> {
    config: M::Config,
    examples: M::Examples<'a>,
    seed: u64,
    device: Device,
    plan: Plan,
    batches: Batches,
    /// `None` only while a step changes it.
    network: Option<M::Network>,
    descent: Descent,
    /// Of the epoch so far.
    sums: M::Losses,
}

/// The metadata of a saved training.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description<C, L> {
    training: C,
    seed: u64,
    /// [`Dataset::fingerprint`].
    examples: u64,
    epoch: usize,
    batch: usize,
    sums: L,
}

impl<'a, M: Model> Trainer<'a, M> {
    /// A training before its first step.
    pub fn new(
        config: &M::Config,
        examples: M::Examples<'a>,
        seed: u64,
        device: &Device,
    ) -> Result<Self> {
        let count = examples.count();
        if count == 0 {
            return Err(Error::data("examples", "there is not a single one"));
        }
        if u32::try_from(count).is_err() {
            return Err(Error::data("examples", "there are more than 2^32"));
        }
        M::check(config, &examples)?;
        let plan = M::plan(config);
        let network = M::network(config, &examples, &mut Initialiser::new(seed, device));
        Ok(Self {
            config: config.clone(),
            examples,
            seed,
            device: device.clone(),
            plan,
            batches: Batches::new(seed, count, plan.batch_size),
            network: Some(network),
            descent: Descent::new(plan.optimiser),
            sums: M::Losses::default(),
        })
    }

    /// Continues a training from the bytes of [`save`](Self::save). Configuration, examples and seed must
    /// be those of the saved training; its length may differ if the [`Model`] allows that.
    pub fn resume(
        config: &M::Config,
        examples: M::Examples<'a>,
        seed: u64,
        device: &Device,
        bytes: &[u8],
    ) -> Result<Self> {
        let mut trainer = Self::new(config, examples, seed, device)?;
        let (mut tensors, saved): (_, Description<M::Config, M::Losses>) =
            Tensors::from_bytes(bytes)?;
        let differs = |what| Err(Error::format(format!("the saved training has {what}")));
        if M::extended(saved.training, config) != *config {
            return differs("another configuration");
        }
        if saved.seed != seed {
            return differs("another seed");
        }
        if saved.examples != trainer.examples.fingerprint() {
            return differs("other examples");
        }
        let iteration = (saved.epoch as u64)
            .saturating_mul(trainer.batches.per_epoch() as u64)
            .saturating_add(saved.batch as u64);
        if saved.batch >= trainer.batches.per_epoch() || iteration > trainer.iterations() as u64 {
            return differs("a position that does not exist");
        }
        trainer.batches = Batches::at(
            seed,
            trainer.examples.count(),
            trainer.plan.batch_size,
            saved.epoch,
            saved.batch,
        );
        if let Some(network) = trainer.network.take() {
            let network = tensors.take_all(network)?;
            trainer.descent.load(iteration, &network, &mut tensors)?;
            trainer.network = Some(network);
        }
        tensors.finish()?;
        trainer.sums = saved.sums;
        Ok(trainer)
    }

    fn network(&self) -> &M::Network {
        self.network.as_ref().expect("the network is only taken while a step changes it")
    }

    /// Trains on the next batch; `None` at the end of the training.
    ///
    /// After an error nothing has changed.
    pub fn step(&mut self) -> Result<Option<Step<M::Losses>>> {
        if self.is_finished() {
            return Ok(None);
        }
        let (epoch, number) = (self.batches.epoch(), self.batches.batch());
        let iteration = self.batches.iteration();
        let last = number + 1 == self.batches.per_epoch();
        let examples = self.batches.rows().len();
        let batch = Batch {
            seed: self.seed,
            epoch,
            number,
            iteration,
            last,
            rows: self.batches.rows(),
            device: &self.device,
        };
        let Pass { loss, losses, update } =
            M::pass(&self.config, &self.examples, self.network(), &batch)?;
        let total = losses.total();
        if !total.is_finite() {
            return Err(Error::Diverged { epoch, batch: number, loss: total });
        }
        let gradients = loss.backward();
        // The graph holds on to the parameters, which would be copied rather than changed in place.
        drop(loss);
        let learning_rate = self.plan.learning_rate.at(iteration);
        if let Some(network) = self.network.take() {
            let longest = self.plan.gradient_norm;
            let network = self.descent.step(network, gradients, learning_rate, longest);
            self.network = Some(match update {
                None => network,
                Some(update) => update(network),
            });
        }
        self.sums.add(&losses);
        let epoch_losses = last.then(|| std::mem::take(&mut self.sums).mean(self.examples.count()));
        self.batches.advance();
        let iteration = iteration as usize;
        let losses = losses.mean(examples);
        Ok(Some(Step { epoch, batch: number, iteration, examples, losses, epoch_losses }))
    }

    /// Trains to the end of the epoch: the means over its examples. `None` at the end of the training.
    pub fn run_epoch(&mut self) -> Result<Option<M::Losses>> {
        while let Some(step) = self.step()? {
            if step.epoch_losses.is_some() {
                return Ok(step.epoch_losses);
            }
        }
        Ok(None)
    }

    /// The whole state as the bytes of a safetensors file. A training that is resumed from them continues
    /// to the same bits.
    pub fn save(&self) -> Result<Vec<u8>> {
        let mut tensors = Tensors::of(self.network());
        self.descent.save(self.network(), &mut tensors);
        let description = Description {
            training: self.config.clone(),
            seed: self.seed,
            examples: self.examples.fingerprint(),
            epoch: self.batches.epoch(),
            batch: self.batches.batch(),
            sums: self.sums.clone(),
        };
        tensors.to_bytes(Precision::Single, &description)
    }

    /// The network as it is now.
    pub fn model(&self) -> Net<M::Network> {
        Net::of(M::shape(&self.config).clone(), self.network())
    }

    /// Whether the training has come to its end.
    pub fn is_finished(&self) -> bool {
        self.iteration() >= self.iterations()
    }

    /// The epoch of the next batch, counted from 0.
    pub fn epoch(&self) -> usize {
        self.batches.epoch()
    }

    /// The number of the next batch in its epoch, counted from 0.
    pub fn batch(&self) -> usize {
        self.batches.batch()
    }

    /// The number of the next batch in the whole training, counted from 0.
    pub fn iteration(&self) -> usize {
        self.batches.iteration() as usize
    }

    /// The number of batches of the whole training.
    pub fn iterations(&self) -> usize {
        self.plan.batches(self.examples.count())
    }

    /// The number of batches in an epoch.
    pub fn batches_per_epoch(&self) -> usize {
        self.batches.per_epoch()
    }
}
