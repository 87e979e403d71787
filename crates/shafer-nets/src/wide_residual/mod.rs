//! Wide residual networks (Zagoruyko and Komodakis, 2016): the classifier of colour images.
//!
//! The paper judges the images that a prior samples by such a classifier, trained on real ones. Its features
//! before the last layer also give a Fréchet distance between samples and real images.
//!
//! ```
//! use shafer_nets::wide_residual::{Config, NetworkConfig, TrainingConfig, WideResidual};
//! use shafer_nets::{ByteImages, ColourImages, Trainer, cpu};
//!
//! // Bright images are of class 1, dark ones of class 0.
//! let pixels: Vec<u8> = (0..8).flat_map(|i| [if i % 2 == 1 { 220 } else { 30 }; 8 * 8 * 3]).collect();
//! let images = ByteImages::new(&pixels, &[0, 1, 0, 1, 0, 1, 0, 1], [8, 8])?;
//! let network = NetworkConfig { width: 4, ..NetworkConfig::small([8, 8], 2) };
//! let training = TrainingConfig { batch_size: 8, epochs: 8, ..TrainingConfig::default() };
//! let mut trainer = Trainer::<WideResidual>::new(&Config { network, training }, &images, 0, &cpu())?;
//! while trainer.step()?.is_some() {}
//!
//! let judged = trainer.model().judge(&images.pixels(0, 0, &[0, 1, 2])?)?;
//! assert_eq!(judged.accuracy(&[0, 1, 0], 2)?, 1.0); // The class is always among the two most probable.
//! assert_eq!(judged.features().len(), 3 * 32);
//! # Ok::<(), shafer_nets::Error>(())
//! ```

mod config;
mod judged;
mod network;

use burn::tensor::activation::log_softmax;
use burn::tensor::{Int, Tensor, TensorData};

pub use config::{Block, Config, NetworkConfig, Stem, TrainingConfig};
pub use judged::Judged;
pub use network::Network;

use crate::batch_norm::{Mode, Updates};
use crate::colour_images::{self, ColourImages, at_once, channels_last};
use crate::net::Net;
use crate::training::{Batch, CrossEntropy, Length, Model, Pass, Plan};
use crate::weights::host;
use crate::{Error, Result};

/// A trained wide residual network.
pub type WideResidual = Net<Network>;

impl WideResidual {
    /// What images show, and their features. Images are as those of [`ColourImages`]: from -1 to 1,
    /// channels before rows and columns.
    pub fn judge(&self, images: &[f32]) -> Result<Judged> {
        let config = &self.config;
        let image = 3 * config.image[0] * config.image[1];
        colour_images::count(images, config.image)?;
        let side = if config.stem == Stem::Large { 4 } else { 1 };
        let largest = config.output(0).max(config.inner(0)) * image / (3 * side * side);
        let (mut logits, mut features) = (Vec::new(), Vec::new());
        for images in images.chunks(at_once(largest) * image) {
            let images = channels_last(images.to_vec(), config.image, &self.device);
            let seen = self.network.features(images, &mut Mode::Evaluation);
            logits.extend(host(self.network.logits(seen.clone())));
            features.extend(host(seen));
        }
        Ok(Judged::new(logits, config.classes, features))
    }
}

impl Model for WideResidual {
    type Config = Config;
    type Examples<'a> = &'a dyn ColourImages;
    type Losses = CrossEntropy;
    type Network = Network;

    fn shape(config: &Config) -> &NetworkConfig {
        &config.network
    }

    fn check(config: &Config, images: &&dyn ColourImages) -> Result<()> {
        config.check()?;
        colour_images::check(*images, config.network.image)?;
        let classes = config.network.classes;
        match images.labels().iter().position(|&label| usize::from(label) >= classes) {
            None => Ok(()),
            Some(row) => {
                let label = images.labels()[row];
                let problem =
                    format!("that of image {row} is {label}, but must be below {classes}");
                Err(Error::data("labels", problem))
            }
        }
    }

    fn plan(config: &Config) -> Plan {
        Plan {
            batch_size: config.training.batch_size,
            length: Length::Epochs(config.training.epochs),
            optimiser: config.training.optimiser,
            learning_rate: config.training.learning_rate,
            gradient_norm: None,
        }
    }

    fn pass(
        _: &Config,
        images: &&dyn ColourImages,
        network: &Network,
        batch: &Batch<'_>,
    ) -> Result<Pass<Self>> {
        let gathered = colour_images::gather(*images, batch)?;
        let mut updates = Updates::default();
        let features = network.features(gathered, &mut Mode::Training(&mut updates));
        let log_probabilities = log_softmax(network.logits(features), 1);
        let labels = batch.rows.iter().map(|&row| i32::from(images.labels()[row as usize]));
        let count = batch.rows.len();
        let labels = TensorData::new(labels.collect::<Vec<i32>>(), [count, 1]);
        let labels = Tensor::<2, Int>::from_data(labels, batch.device);
        let loss = log_probabilities.gather(1, labels).mean().neg();
        let losses = CrossEntropy::of_mean(host(loss.clone().inner())[0], count);
        Ok(Pass::new(loss, losses).then(|network| updates.apply(network)))
    }

    fn extended(mut saved: Config, to: &Config) -> Config {
        saved.training.epochs = to.training.epochs;
        saved
    }
}
