//! The configuration of the experiment with images as grids of codes.

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use shafer_data::dataset::{Set, Split, set};
use shafer_nets::pixel_cnn::{PixelCnnConfig, PixelCnnTraining};
use shafer_nets::vqvae::{self, Codebook};
use shafer_nets::wide_residual::{self, Block, Stem};

use crate::experiments::options::Meaning;

/// The data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "lowercase")]
pub(crate) enum DataChoice {
    /// 60,000 images of ten classes
    Cifar10,
    /// 38,400 images of 64 classes (the paper's)
    #[value(name = "miniimagenet")]
    MiniImageNet,
}

impl DataChoice {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cifar10 => "cifar10",
            Self::MiniImageNet => "miniimagenet",
        }
    }

    pub(super) fn set(self) -> Result<&'static Set> {
        Ok(set(self.name())?)
    }

    /// The images that nothing is trained on.
    pub(super) fn held_out(self) -> Split {
        match self {
            Self::Cifar10 => Split::Test,
            Self::MiniImageNet => Split::Val,
        }
    }

    pub(crate) fn meaning(self) -> Meaning {
        let name = self.name();
        Meaning { change: format!("data_set = {name:?}"), suffix: name.to_owned() }
    }
}

/// Everything that the numbers of a run depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Config {
    pub(super) data_set: DataChoice,
    /// The share of each class's images that is used, in training and held out.
    pub(super) share: f64,
    /// The side of an image in pixels; that of its grid of codes is a quarter of it.
    pub(super) image: usize,
    /// Of all trainings, crops and samples.
    pub(super) seed: u64,
    /// The number of images that each method samples for each class.
    pub(super) samples: usize,
    /// The number of grids of codes of each training image: one of the whole image, the others of random crops.
    pub(super) views: usize,
    pub(super) vqvae: VqVaeConfig,
    pub(super) prior: PriorConfig,
    pub(super) classifier: ClassifierConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct VqVaeConfig {
    pub(super) width: usize,
    pub(super) codes: usize,
    pub(super) residual_blocks: usize,
    pub(super) codebook: Codebook,
    pub(super) training: vqvae::TrainingConfig,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PriorConfig {
    pub(super) layers: usize,
    pub(super) width: usize,
    pub(super) head_width: usize,
    pub(super) learning_rate: f64,
    pub(super) batch_size: usize,
    pub(super) epochs: usize,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassifierConfig {
    pub(super) stem: Stem,
    pub(super) block: Block,
    pub(super) width: usize,
    pub(super) widening: usize,
    pub(super) blocks: Vec<usize>,
    pub(super) training: wide_residual::TrainingConfig,
}

impl Config {
    pub(super) fn check(&self) -> Result<()> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            bail!("share is {}, but must be above 0 and at most 1", self.share);
        }
        for (key, value, most) in [
            ("samples", self.samples, 10_000),
            ("views", self.views, 100),
            ("image", self.image, 1024),
        ] {
            if !(1..=most).contains(&value) {
                bail!("{key} is {value}, but must be from 1 to {most}");
            }
        }
        // Only the number of classes is not known here.
        self.vqvae().check()?;
        self.prior(1).network.check()?;
        self.classifier(1).check()?;
        Ok(())
    }

    pub(super) fn vqvae(&self) -> vqvae::Config {
        let VqVaeConfig { width, codes, residual_blocks, codebook, ref training } = self.vqvae;
        let image = [self.image; 2];
        vqvae::Config {
            network: vqvae::NetworkConfig { image, width, codes, residual_blocks, codebook },
            training: training.clone(),
        }
    }

    pub(super) fn prior(&self, classes: usize) -> PixelCnnTraining {
        let PriorConfig { layers, width, head_width, learning_rate, batch_size, epochs } =
            self.prior;
        let (latent, codes) = (self.vqvae().network.grid(), self.vqvae.codes);
        PixelCnnTraining {
            network: PixelCnnConfig { codes, classes, latent, layers, width, head_width },
            learning_rate,
            batch_size,
            epochs,
        }
    }

    pub(super) fn classifier(&self, classes: usize) -> wide_residual::Config {
        let ClassifierConfig { stem, block, width, widening, ref blocks, ref training } =
            self.classifier;
        let (image, blocks) = ([self.image; 2], blocks.clone());
        wide_residual::Config {
            network: wide_residual::NetworkConfig {
                image,
                classes,
                stem,
                block,
                width,
                widening,
                blocks,
            },
            training: training.clone(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::experiments::preset::configured;
    use crate::experiments::vqvae::VQVAE;

    fn preset(name: &str, changes: &[&str]) -> Result<Config> {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        let config: Config = configured(&VQVAE, name, None, &changes)?;
        config.check()?;
        Ok(config)
    }

    /// Against the defaults of the networks, which are the paper's.
    #[test]
    fn the_first_preset_is_the_papers() {
        let paper = preset("paper", &[]).unwrap();
        assert_eq!(paper.vqvae(), vqvae::Config::default());
        assert_eq!(paper.prior(64), PixelCnnTraining::default());
        assert_eq!(paper.classifier(64), wide_residual::Config::default());
        assert_eq!((paper.data_set, paper.samples), (DataChoice::MiniImageNet, 25));
    }

    #[test]
    fn every_preset_fits_both_data_sets() {
        for entry in VQVAE.presets {
            for (data, side) in [(DataChoice::Cifar10, 32), (DataChoice::MiniImageNet, 64)] {
                let config = preset(entry.name, &[&data.meaning().change]).unwrap();
                assert_eq!(config.data_set, data);
                let smaller = entry.name != "paper" || data == DataChoice::Cifar10;
                assert!(!smaller || config.image <= side, "{}: {}", entry.name, config.image);
            }
        }
        let [plain, live] = ["small", "small-live"].map(|name| preset(name, &[]).unwrap());
        assert_eq!(plain.vqvae.codebook, Codebook::Plain);
        assert_eq!(live.vqvae.codebook, Codebook::LIVE);
        let codebook = Codebook::Plain;
        assert_eq!(plain, Config { vqvae: VqVaeConfig { codebook, ..live.vqvae.clone() }, ..live });
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (change, expected) in [
            ("image=30", "image"),
            ("samples=0", "samples is 0"),
            ("share=nan", "share is NaN"),
            ("views=0", "views is 0"),
            ("data_set=imagenet", "unknown variant `imagenet`"),
            ("prior.layer=3", "unknown field `layer`"),
            ("vqvae.codes=0", "codes"),
            ("classifier.blocks=[]", "blocks"),
        ] {
            let error = format!("{:#}", preset("small", &[change]).unwrap_err());
            assert!(error.contains(expected), "{change}: {error}");
        }
    }
}
