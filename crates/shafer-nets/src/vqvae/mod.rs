//! VQ-VAE (van den Oord, Vinyals and Kavukcuoglu, 2017): images as grids of discrete codes.
//!
//! The paper's section 3.1.2 samples such grids from an autoregressive prior, whose distributions over 512
//! codes are sparsified. A [`VqVae`] makes the codes of images, and images of codes. It is trained by
//! [`Trainer`](crate::Trainer), with a plain codebook as the paper's, or a live one: [`Codebook`].
//!
//! ```
//! use shafer_nets::vqvae::{Codebook, Config, NetworkConfig, TrainingConfig, VqVae};
//! use shafer_nets::{ByteImages, ColourImages, Trainer, cpu};
//!
//! let pixels: Vec<u8> = (0..4 * 8 * 8 * 3).map(|i| (i * 37 % 256) as u8).collect();
//! let images = ByteImages::new(&pixels, &[0; 4], [8, 8])?;
//! let config = Config {
//!     network: NetworkConfig {
//!         image: [8, 8],
//!         width: 4,
//!         codes: 16,
//!         codebook: Codebook::LIVE,
//!         ..NetworkConfig::default()
//!     },
//!     training: TrainingConfig { batch_size: 2, epochs: 2, ..TrainingConfig::default() },
//! };
//! let mut trainer = Trainer::<VqVae>::new(&config, &images, 0, &cpu())?;
//! while let Some(epoch) = trainer.run_epoch()? {
//!     assert!(epoch.usage.used() > 1);
//! }
//!
//! let vqvae = trainer.model();
//! let codes = vqvae.encode(&images.pixels(0, 0, &[0, 1])?)?; // 2 images of 2 x 2 codes.
//! assert_eq!(codes.len(), 8);
//! assert_eq!(vqvae.decode(&codes)?.len(), 2 * 3 * 8 * 8);
//! # Ok::<(), shafer_nets::Error>(())
//! ```

mod codebook;
mod config;
mod network;
mod usage;

use burn::tensor::Tensor;
use serde::{Deserialize, Serialize};

pub use config::{Codebook, Config, NetworkConfig, TrainingConfig};
pub use network::Network;
pub use usage::CodeUsage;

use crate::batch_norm::Updates;
use crate::colour_images::{self, ColourImages, at_once, channels_last};
use crate::net::Net;
use crate::random::Purpose;
use crate::training::{Batch, Model, Pass, Plan};
use crate::weights::host;
use crate::{Error, Result};

/// A trained VQ-VAE.
pub type VqVae = Net<Network>;

impl VqVae {
    /// The codes of images, row after row: images x grid rows x grid columns.
    ///
    /// Images are as those of [`ColourImages`]: from -1 to 1, channels before rows and columns.
    pub fn encode(&self, images: &[f32]) -> Result<Vec<u16>> {
        colour_images::count(images, self.config.image)?;
        let mut codes = Vec::new();
        for images in images.chunks(self.at_once() * self.config.image_size()) {
            let images = channels_last(images.to_vec(), self.config.image, &self.device);
            codes.extend(self.network.encode(images).into_iter().map(|code| code as u16));
        }
        Ok(codes)
    }

    /// The images of codes: from -1 to 1, images x channels x rows x columns.
    pub fn decode(&self, codes: &[u16]) -> Result<Vec<f32>> {
        let (grid, positions) = (self.config.grid(), self.config.positions());
        if !codes.len().is_multiple_of(positions) {
            let [rows, columns] = grid;
            let found = codes.len();
            let problem = format!("there are {found}, which is no multiple of {rows} x {columns}");
            return Err(Error::data("codes", problem));
        }
        if let Some(place) = codes.iter().position(|&code| usize::from(code) >= self.config.codes) {
            let (image, position) = (place / positions, place % positions);
            let problem = format!(
                "that of position {position} of image {image} is {}, but must be below {}",
                codes[place], self.config.codes,
            );
            return Err(Error::data("codes", problem));
        }
        let mut images = Vec::with_capacity(codes.len() / positions * self.config.image_size());
        for codes in codes.chunks(self.at_once() * positions) {
            let codes = codes.iter().copied().map(u32::from).collect();
            let decoded: Tensor<4> = self.network.decode(codes, grid);
            images.extend(host(decoded.permute([0, 3, 1, 2])));
        }
        Ok(images)
    }

    /// The vectors of the codes: codes x width.
    pub fn code_vectors(&self) -> Vec<f32> {
        host(self.network.code_vectors())
    }

    fn at_once(&self) -> usize {
        at_once(self.config.image_size() / 12 * self.config.width)
    }
}

/// The losses of a VQ-VAE, and the codes that it used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Losses {
    /// The mean squared error of a pixel's channel.
    pub reconstruction: f64,
    /// The mean squared distance of an encoding's channel from its code.
    pub quantisation: f64,
    /// How often each code was the nearest.
    pub usage: CodeUsage,
}

impl crate::training::Losses for Losses {
    fn total(&self) -> f64 {
        self.reconstruction + self.quantisation
    }

    fn add(&mut self, batch: &Self) {
        self.reconstruction += batch.reconstruction;
        self.quantisation += batch.quantisation;
        self.usage.merge(&batch.usage);
    }

    fn mean(&self, examples: usize) -> Self {
        let by = 1.0 / examples as f64;
        Self {
            reconstruction: self.reconstruction * by,
            quantisation: self.quantisation * by,
            usage: self.usage.clone(),
        }
    }
}

impl Model for VqVae {
    type Config = Config;
    type Examples<'a> = &'a dyn ColourImages;
    type Losses = Losses;
    type Network = Network;

    fn shape(config: &Config) -> &NetworkConfig {
        &config.network
    }

    fn check(config: &Config, images: &&dyn ColourImages) -> Result<()> {
        config.check()?;
        colour_images::check(*images, config.network.image)
    }

    fn plan(config: &Config) -> Plan {
        let TrainingConfig { batch_size, epochs, learning_rate, .. } = config.training;
        Plan::adam(batch_size, epochs, learning_rate)
    }

    fn pass(
        config: &Config,
        images: &&dyn ColourImages,
        network: &Network,
        batch: &Batch<'_>,
    ) -> Result<Pass<Self>> {
        let gathered = colour_images::gather(*images, batch)?;
        let mut updates = Updates::default();
        let random = batch.random(Purpose::Codes);
        let terms = network.terms(gathered, &config.network, random, &mut updates);
        let mut usage = CodeUsage::new(config.network.codes);
        let codes: Vec<u16> = terms.codes.iter().map(|&code| code as u16).collect();
        usage.count(&codes);
        let count = batch.rows.len() as f64;
        let sum = |mean: &Tensor<1>| f64::from(host(mean.clone().inner())[0]) * count;
        let losses = Losses {
            reconstruction: sum(&terms.reconstruction),
            quantisation: sum(&terms.commitment),
            usage,
        };
        let commitment = terms.commitment.mul_scalar(config.training.commitment);
        let loss = terms.reconstruction + commitment;
        let loss = match config.network.codebook {
            Codebook::Plain => loss + terms.codebook,
            Codebook::Live { .. } => loss,
        };
        Ok(Pass::new(loss, losses).then(|network| updates.apply(network)))
    }

    fn extended(mut saved: Config, to: &Config) -> Config {
        saved.training.epochs = to.training.epochs;
        saved
    }
}
