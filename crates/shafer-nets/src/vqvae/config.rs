//! The shape of a VQ-VAE and the way it is trained.

use serde::{Deserialize, Serialize};

use crate::config::{Setup, finite_positive, positive, size};
use crate::{Error, Result};

/// A VQ-VAE and its training. The defaults are those of the paper's appendix.
///
/// ```
/// use shafer_nets::vqvae::{Codebook, Config};
///
/// let config: Config = serde_json::from_str(r#"{ "network": { "image": [32, 32] } }"#)?;
/// assert_eq!(config.network.grid(), [8, 8]);
/// assert_eq!((config.network.codes, config.network.codebook), (512, Codebook::Plain));
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type Config = Setup<NetworkConfig, TrainingConfig>;

/// The shape of a VQ-VAE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// Rows and columns of an image: multiples of 4. It has three channels.
    pub image: [usize; 2],
    /// The number of channels inside, and the size of a code's vector: `D`.
    pub width: usize,
    /// The number of codes, `K`: at most 65,536.
    pub codes: usize,
    /// The number of residual blocks of the encoder and of the decoder.
    pub residual_blocks: usize,
    /// How codes are learned.
    pub codebook: Codebook,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            image: [128, 128],
            width: 256,
            codes: 512,
            residual_blocks: 2,
            codebook: Codebook::Plain,
        }
    }
}

/// How codes are learned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Codebook {
    /// By gradient descent on the distance between codes and encodings, from uniform values within `1 / K`
    /// of 0: as the paper. Many codes may never come into use.
    Plain,
    /// As the exponential moving average of the encodings nearest to each code (van den Oord et al., 2017,
    /// appendix A.1). The codes start from encodings of the first batch. A code that falls out of use is
    /// replaced by a random encoding.
    Live {
        /// What the averages keep from one batch to the next.
        decay: f32,
        /// A code is replaced when its average count falls below this share of the mean over all codes.
        revive_below: f32,
    },
}

impl Codebook {
    /// A live codebook with decay 0.99, whose codes are replaced below a tenth of the mean count.
    pub const LIVE: Self = Self::Live { decay: 0.99, revive_below: 0.1 };
}

/// How a VQ-VAE is trained: with Adam.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    /// The weight of the commitment loss, `beta`.
    pub commitment: f64,
    /// The size of a step.
    pub learning_rate: f64,
    /// Images in a batch; the last batch of an epoch may have fewer.
    pub batch_size: usize,
    /// How often every image is used.
    pub epochs: usize,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self { commitment: 1.0, learning_rate: 2e-4, batch_size: 128, epochs: 100 }
    }
}

impl NetworkConfig {
    /// Rows and columns of the codes of an image.
    pub fn grid(&self) -> [usize; 2] {
        self.image.map(|side| side / 4)
    }

    /// The number of codes of an image.
    pub fn positions(&self) -> usize {
        self.grid().iter().product()
    }

    /// The number of values of an image: three for each pixel.
    pub fn image_size(&self) -> usize {
        3 * self.image[0] * self.image[1]
    }

    /// Checks that such a network can be made.
    pub fn check(&self) -> Result<()> {
        for side in self.image {
            size("image", side)?;
            if !side.is_multiple_of(4) {
                let problem = format!("must have sides that are multiples of 4, but has {side}");
                return Err(Error::config("image", problem));
            }
        }
        size("width", self.width)?;
        size("codes", self.codes)?;
        if self.residual_blocks > 64 {
            let problem = format!("must be at most 64, but is {}", self.residual_blocks);
            return Err(Error::config("residual_blocks", problem));
        }
        let Codebook::Live { decay, revive_below } = self.codebook else { return Ok(()) };
        for (key, value) in [("decay", decay), ("revive_below", revive_below)] {
            if !(0.0..1.0).contains(&value) {
                let problem = format!("must be at least 0 and below 1, but is {value}");
                return Err(Error::config(key, problem));
            }
        }
        Ok(())
    }
}

impl TrainingConfig {
    /// Checks that this training can be done.
    pub fn check(&self) -> Result<()> {
        positive("batch_size", self.batch_size)?;
        positive("epochs", self.epochs)?;
        finite_positive("commitment", self.commitment)?;
        finite_positive("learning_rate", self.learning_rate)
    }
}

impl Config {
    /// Checks that such a network can be made and trained.
    pub fn check(&self) -> Result<()> {
        self.network.check()?;
        self.training.check()
    }
}
