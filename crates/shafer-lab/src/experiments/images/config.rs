//! The configuration of an experiment with images.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use shafer_nets::{NetworkConfig, TrainingConfig};

use super::results::TargetFrom;

/// Everything that the numbers of a run depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Its name in `shafer data`.
    pub(crate) data_set: String,
    /// The number of trainings; their seeds are 0, 1 and so on.
    pub(crate) seeds: u64,
    /// Fractions of the training set, each trained on with every seed; 1 is the experiment, the others are reduced data.
    pub(crate) fractions: Vec<f64>,
    /// The share of the data set that is used at all.
    #[serde(default = "whole")]
    pub(crate) share: f64,
    /// Which prior defines the target distribution.
    #[serde(default)]
    pub(crate) target: TargetFrom,
    /// The number of samples shown for each query and method.
    #[serde(default = "samples")]
    pub(crate) samples: usize,
    pub(crate) network: NetworkConfig,
    pub(crate) training: TrainingConfig,
    pub(crate) classifier: ClassifierShape,
}

/// The classifier that labels decoded images.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassifierShape {
    pub(crate) hidden: usize,
    pub(crate) epochs: usize,
}

fn whole() -> f64 {
    1.0
}

fn samples() -> usize {
    25
}

impl Config {
    pub(crate) fn check(&self) -> Result<()> {
        if self.seeds == 0 {
            bail!("seeds is 0, but there must be at least one training");
        }
        for (key, &value) in
            self.fractions.iter().map(|value| ("fractions", value)).chain([("share", &self.share)])
        {
            if !(value > 0.0 && value <= 1.0) {
                bail!("{key}: {value} is not a share of the data: above 0 and at most 1");
            }
        }
        if !self.fractions.contains(&1.0) {
            bail!("fractions: 1.0 is missing; the others are compared with it");
        }
        let mut sorted = self.fractions.clone();
        sorted.sort_by(f64::total_cmp);
        if let Some([twice, _]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("fractions: {twice} is there twice");
        }
        self.nets().check()?;
        Ok(())
    }

    /// The part that the networks depend on.
    pub(crate) fn nets(&self) -> shafer_nets::Config {
        shafer_nets::Config { network: self.network.clone(), training: self.training.clone() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use shafer_nets::{DecoderBias, Optimiser};

    use super::*;
    use crate::experiments::images::{FASHION, MNIST, NOTMNIST};
    use crate::experiments::{Entry, preset};

    fn config(experiment: &Entry, preset: &str, changes: &[&str]) -> Result<Config> {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        let config: Config = preset::configured(experiment, preset, None, &changes)?;
        config.check()?;
        Ok(config)
    }

    #[test]
    fn every_preset_is_sound() {
        for experiment in [MNIST, FASHION, NOTMNIST] {
            for preset in experiment.presets {
                let config = config(&experiment, preset.name, &[]).unwrap();
                assert_eq!(config.data_set, experiment.name);
            }
        }
    }

    #[test]
    fn the_presets_are_the_papers() {
        let paper = |experiment| config(&experiment, "paper", &[]).unwrap();
        let mnist = paper(MNIST);
        assert_eq!(mnist.nets(), shafer_nets::Config::default());
        assert_eq!((mnist.seeds, mnist.fractions.len()), (25, 4));
        assert_eq!(paper(FASHION).training.optimiser, Optimiser::Adam);
        let mut stable = config(&FASHION, "stable", &[]).unwrap();
        assert_eq!(stable.training.decoder_bias, DecoderBias::MeanImage);
        // Nothing else differs.
        stable.training.decoder_bias = DecoderBias::Random;
        assert_eq!(stable, paper(FASHION));
        let notmnist = paper(NOTMNIST);
        assert_eq!((notmnist.seeds, notmnist.training.epochs), (5, 1000));
    }

    #[test]
    fn an_unknown_preset_is_refused_with_the_known_ones() {
        let error = config(&MNIST, "stable", &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--preset stable: mnist has none; choose from paper, quick, smoke"
        );
    }

    #[test]
    fn changes_are_made_and_checked() {
        let changed = |changes: &[&str]| config(&MNIST, "paper", changes);
        let config = changed(&["training.epochs=3", "training.optimiser=adam", "fractions=[1.0]"]);
        let config = config.unwrap();
        assert_eq!(config.training.epochs, 3);
        assert_eq!(config.training.optimiser, Optimiser::Adam);
        assert_eq!(config.fractions, [1.0]);
        for (change, expected) in [
            ("training.epoch=3", "unknown field `epoch`"),
            ("training.epochs=0", "epochs must be at least 1"),
            ("training.optimiser=lion", "unknown variant `lion`"),
            ("fractions=[0.0, 1.0]", "fractions: 0 is not a share"),
            ("fractions=[0.5]", "1.0 is missing"),
            ("fractions=[1.0, 1.0]", "fractions: 1 is there twice"),
            ("share=nan", "share: NaN is not a share"),
            ("seeds=0", "seeds is 0"),
            ("epochs", "must be key=value"),
            ("=3", "is not a key"),
        ] {
            let error = format!("{:#}", changed(&[change]).unwrap_err());
            assert!(error.contains(expected), "{change}: {error}");
        }
    }
}
