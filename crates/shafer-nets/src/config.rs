//! Configuration of the autoencoders and their training.
//!
//! The defaults are those of the paper's MNIST experiment (section 3.1.1 and appendix C). Unknown keys are
//! errors.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Configuration of a [`Cvae`](crate::Cvae) and its training.
///
/// ```
/// use shafer_nets::{Config, Optimiser};
///
/// let config: Config = serde_json::from_str(r#"{ "training": { "optimiser": "adam" } }"#)?;
/// assert_eq!(config.training.optimiser, Optimiser::Adam);
/// assert_eq!(config.training.batch_size, 64);
/// assert!(serde_json::from_str::<Config>(r#"{ "training": { "optimizer": "adam" } }"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type Config = Setup<NetworkConfig, TrainingConfig>;

/// A network and its training.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Setup<N, T> {
    /// The shape of the network.
    pub network: N,
    /// How it is trained.
    pub training: T,
}

/// Shapes of the three networks of an autoencoder.
///
/// The prior `p(z|y)` is a perceptron with one hidden layer, whose outputs are the features `phi` of the
/// paper's linear layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// The kind of the posterior `q(z|x,y)` and the decoder `p(x|z)`.
    pub architecture: Architecture,
    /// Rows and columns of an image.
    pub image: [usize; 2],
    /// The number of conditions; `y` is below it.
    pub conditions: usize,
    /// The number of latent classes, `K`.
    pub latent_classes: usize,
    /// The number of hidden units of the prior, `J`.
    pub prior_hidden: usize,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            architecture: Architecture::Mlp { hidden: 256 },
            image: [28, 28],
            conditions: 2,
            latent_classes: 10,
            prior_hidden: 30,
        }
    }
}

/// The kind of the posterior and the decoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Architecture {
    /// Perceptrons with one hidden layer: from pixels and one-hot `y` to classes, and from classes to pixels.
    Mlp {
        /// The number of hidden units.
        hidden: usize,
    },
    /// Three convolutions to classes, and three transposed ones from classes (figure 9 of the paper).
    /// One-hot `y` enters as constant channels.
    Convolutional {
        /// Channels after each convolution, in reverse for the decoder.
        channels: [usize; 3],
    },
}

/// Configuration of the training of an autoencoder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    /// Temperature of the Gumbel-Softmax distribution.
    pub temperature: f32,
    /// Initial biases of the decoder's last layer.
    pub decoder_bias: DecoderBias,
    /// The objective.
    pub objective: Objective,
    /// The optimiser.
    pub optimiser: Optimiser,
    /// The learning rate.
    pub learning_rate: f64,
    /// Examples in a batch; the last batch of an epoch may have fewer.
    pub batch_size: usize,
    /// Passes over all examples.
    pub epochs: usize,
    /// When the prior is recorded.
    pub checkpoints: Checkpoints,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            temperature: 0.67,
            decoder_bias: DecoderBias::Random,
            objective: Objective::Published,
            optimiser: Optimiser::Sgd,
            learning_rate: 1e-3,
            batch_size: 64,
            epochs: 20,
            checkpoints: Checkpoints::PerEpoch(100),
        }
    }
}

/// Initial biases of the decoder's last layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DecoderBias {
    /// Small random numbers, as for all other parameters.
    Random,
    /// The log-odds of the mean image, as in Burda, Grosse and Salakhutdinov, "Importance Weighted
    /// Autoencoders" (2016). Otherwise the decoder learns that image first, during which one latent class
    /// can become the best for all images: posterior collapse.
    MeanImage,
}

/// The objective over a batch of `B` images.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Objective {
    /// The objective of the published experiments: binary cross-entropy summed over the batch, plus the
    /// *mean* of KL(q || p) over the batch. KL has the weight `1 / B`.
    Published,
    /// The negative evidence lower bound of the paper, summed over the batch: cross-entropy and KL with
    /// the same weight.
    Plain,
}

impl Objective {
    /// The weight of KL(q || p); that of the cross-entropy is 1.
    pub(crate) fn kl_weight(self, batch: usize) -> f64 {
        match self {
            Self::Published => 1.0 / batch as f64,
            Self::Plain => 1.0,
        }
    }
}

/// The rule that changes the parameters.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Optimiser {
    /// Stochastic gradient descent without momentum.
    Sgd,
    /// Adam with beta 0.9 and 0.999, and epsilon 1e-8.
    Adam,
    /// Stochastic gradient descent with Nesterov momentum and weight decay, as in `torch.optim.SGD`.
    Nesterov {
        /// At least 0 and below 1.
        momentum: f64,
        /// L2 penalty: this times the parameter is added to its gradient.
        weight_decay: f64,
    },
}

impl Optimiser {
    /// Checks its values.
    pub fn check(self) -> Result<()> {
        let Self::Nesterov { momentum, weight_decay } = self else { return Ok(()) };
        if !(0.0..1.0).contains(&momentum) {
            let problem = format!("must be at least 0 and below 1, but is {momentum}");
            return Err(Error::config("momentum", problem));
        }
        if !(weight_decay.is_finite() && weight_decay >= 0.0) {
            let problem = format!("must be a number of at least 0, but is {weight_decay}");
            return Err(Error::config("weight_decay", problem));
        }
        Ok(())
    }
}

/// The batches after which the prior is recorded, counted from 0.
///
/// ```
/// use shafer_nets::Checkpoints;
///
/// // An epoch of 60,000 images in batches of 64.
/// let recorded = (0..938).filter(|&batch| Checkpoints::PerEpoch(100).is_at(3, batch, 938));
/// assert!(recorded.eq([0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 937]));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Checkpoints {
    /// In each epoch: batches 0, n, 2n, ... of the epoch, and the last.
    PerEpoch(usize),
    /// Batches 0, n, 2n, ... of the whole training, and the last of each epoch.
    Overall(usize),
}

impl Checkpoints {
    /// Whether the prior is recorded after this batch of this epoch; an epoch has `batches`.
    pub fn is_at(self, epoch: usize, batch: usize, batches: usize) -> bool {
        let (number, interval) = match self {
            Self::PerEpoch(interval) => (batch, interval),
            Self::Overall(interval) => (epoch * batches + batch, interval),
        };
        number.is_multiple_of(interval) || batch + 1 == batches
    }
}

impl NetworkConfig {
    /// The number of pixels of an image.
    pub fn pixels(&self) -> usize {
        self.image[0] * self.image[1]
    }

    /// Checks all values.
    pub fn check(&self) -> Result<()> {
        self.image.iter().try_for_each(|&side| size("image", side))?;
        size("conditions", self.conditions)?;
        size("prior_hidden", self.prior_hidden)?;
        size("latent_classes", self.latent_classes)?;
        match self.architecture {
            Architecture::Mlp { hidden } => size("architecture.hidden", hidden),
            Architecture::Convolutional { channels } => {
                channels.iter().try_for_each(|&n| size("architecture.channels", n))?;
                self.image.iter().try_for_each(|&side| crate::convolution::check_side(side))
            }
        }
    }
}

impl TrainingConfig {
    /// Checks all values.
    pub fn check(&self) -> Result<()> {
        positive("batch_size", self.batch_size)?;
        positive("epochs", self.epochs)?;
        let (Checkpoints::PerEpoch(interval) | Checkpoints::Overall(interval)) = self.checkpoints;
        positive("checkpoints", interval)?;
        self.optimiser.check()?;
        finite_positive("temperature", f64::from(self.temperature))?;
        finite_positive("learning_rate", self.learning_rate)
    }
}

impl Config {
    /// Checks all values, and that network and training fit each other.
    pub fn check(&self) -> Result<()> {
        self.network.check()?;
        self.training.check()?;
        match (self.training.decoder_bias, &self.network.architecture) {
            (DecoderBias::MeanImage, Architecture::Convolutional { .. }) => Err(Error::config(
                "decoder_bias",
                "must be random: a convolutional decoder has no bias for each pixel",
            )),
            _ => Ok(()),
        }
    }
}

/// Sizes are bounded, so that products of them do not overflow.
pub(crate) fn size(key: &'static str, value: usize) -> Result<()> {
    const LARGEST: usize = 1 << 16;
    if (1..=LARGEST).contains(&value) {
        Ok(())
    } else {
        Err(Error::config(key, format!("must be from 1 to {LARGEST}, but is {value}")))
    }
}

pub(crate) fn positive(key: &'static str, value: usize) -> Result<()> {
    if value > 0 { Ok(()) } else { Err(Error::config(key, "must be at least 1, but is 0")) }
}

pub(crate) fn finite_positive(key: &'static str, value: f64) -> Result<()> {
    if value.is_finite() && value > 0.0 {
        Ok(())
    } else {
        Err(Error::config(key, format!("must be a number greater than 0, but is {value}")))
    }
}
