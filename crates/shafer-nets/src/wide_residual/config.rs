//! The shape of a wide residual network and the way it is trained.

use serde::{Deserialize, Serialize};

use crate::config::{Optimiser, Setup, positive, size};
use crate::training::Schedule;
use crate::{Error, Result};

/// A wide residual network and its training.
///
/// The defaults are torchvision's `wide_resnet50_2` and the training of the paper's appendix.
///
/// ```
/// use shafer_nets::wide_residual::{Config, NetworkConfig};
///
/// let config = Config::default();
/// assert_eq!(config.network.features(), 2048);
/// // 16 layers, widened by 2, for images of 32 x 32.
/// let small = NetworkConfig::small([32, 32], 10);
/// assert_eq!(small.features(), 128);
/// ```
pub type Config = Setup<NetworkConfig, TrainingConfig>;

/// The shape of a wide residual network (Zagoruyko and Komodakis, 2016).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Rows and columns of an image. It has three channels.
    pub image: [usize; 2],
    /// The number of classes: labels are below it.
    pub classes: usize,
    /// The first layer.
    pub stem: Stem,
    /// What stages are made of.
    pub block: Block,
    /// The channels of the first layer.
    pub width: usize,
    /// The channels inside the blocks of the first stage, as a multiple of `width`. Each further stage has
    /// twice as many.
    pub widening: usize,
    /// The number of blocks of each stage. All stages but the first halve both sides of the image.
    pub blocks: Vec<usize>,
}

/// The first layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stem {
    /// A 3 x 3 convolution, for images of about 32 x 32.
    Small,
    /// A 7 x 7 convolution and a maximum over 3 x 3, both with stride 2: an image of a quarter of the side.
    Large,
}

/// What is added to its own input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Block {
    /// Two 3 x 3 convolutions.
    Basic,
    /// Convolutions of 1 x 1, 3 x 3 and 1 x 1. Its output has four channels for each of the first stage's
    /// `width`, whatever the widening.
    Bottleneck,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            image: [128, 128],
            classes: 64,
            stem: Stem::Large,
            block: Block::Bottleneck,
            width: 64,
            widening: 2,
            blocks: vec![3, 4, 6, 3],
        }
    }
}

/// How a wide residual network is trained.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    /// The rule that changes the parameters.
    pub optimiser: Optimiser,
    /// The learning rate of every iteration.
    pub learning_rate: Schedule,
    /// Images in a batch; the last batch of an epoch may have fewer.
    pub batch_size: usize,
    /// How often every image is used.
    pub epochs: usize,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            optimiser: Optimiser::Nesterov { momentum: 0.9, weight_decay: 1e-2 },
            learning_rate: Schedule::Cyclic { low: 1e-3, high: 1e-2, iterations_up: 2000 },
            batch_size: 128,
            epochs: 100,
        }
    }
}

impl NetworkConfig {
    /// A network of 16 layers for small images: three stages of two basic blocks, widened by 2.
    pub fn small(image: [usize; 2], classes: usize) -> Self {
        Self {
            image,
            classes,
            stem: Stem::Small,
            block: Block::Basic,
            width: 16,
            widening: 2,
            blocks: vec![2, 2, 2],
        }
    }

    /// The number of features before the last layer.
    pub fn features(&self) -> usize {
        self.output(self.blocks.len().saturating_sub(1))
    }

    /// The channels inside the blocks of a stage.
    pub(crate) fn inner(&self, stage: usize) -> usize {
        (self.width * self.widening) << stage
    }

    /// The channels of the output of a stage.
    pub(crate) fn output(&self, stage: usize) -> usize {
        match self.block {
            Block::Basic => self.inner(stage),
            Block::Bottleneck => (4 * self.width) << stage,
        }
    }

    /// Checks that such a network can be made.
    pub fn check(&self) -> Result<()> {
        self.image.iter().try_for_each(|&side| size("image", side))?;
        size("classes", self.classes)?;
        size("width", self.width)?;
        size("widening", self.widening)?;
        let stages = self.blocks.len();
        if !(1..=6).contains(&stages) {
            return Err(Error::config(
                "blocks",
                format!("must be 1 to 6 stages, but are {stages}"),
            ));
        }
        if let Some(blocks) = self.blocks.iter().find(|&blocks| !(1..=64).contains(blocks)) {
            let problem = format!("must be from 1 to 64 in each stage, but are {blocks}");
            return Err(Error::config("blocks", problem));
        }
        size("width", self.inner(stages - 1).max(self.output(stages - 1)))
    }
}

impl TrainingConfig {
    /// Checks that this training can be done.
    pub fn check(&self) -> Result<()> {
        positive("batch_size", self.batch_size)?;
        positive("epochs", self.epochs)?;
        self.optimiser.check()?;
        self.learning_rate.check("learning_rate")
    }
}

impl Config {
    /// Checks that such a network can be made and trained.
    pub fn check(&self) -> Result<()> {
        self.network.check()?;
        self.training.check()
    }
}
