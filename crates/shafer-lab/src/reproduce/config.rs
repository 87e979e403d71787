//! What an experiment with images is.

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use shafer_nets::{NetworkConfig, TrainingConfig};

use super::preset::{self, Experiment, Preset};
use crate::experiment::TargetFrom;

/// Everything that the numbers of a run depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// As `shafer data` calls it.
    pub(crate) data_set: String,
    /// The number of trainings; their seeds are 0, 1 and so on.
    pub(crate) seeds: u64,
    /// Shares of the training set that there are trainings on, each with every seed. 1 must be there.
    pub(crate) fractions: Vec<f64>,
    /// The share of the training set that counts as all of it.
    #[serde(default = "whole")]
    pub(crate) share: f64,
    /// What the target distribution is made of.
    #[serde(default)]
    pub(crate) target: TargetFrom,
    /// How many samples to draw for each query and method.
    #[serde(default = "samples")]
    pub(crate) samples: usize,
    pub(crate) network: NetworkConfig,
    pub(crate) training: TrainingConfig,
    pub(crate) classifier: Judge,
}

/// The classifier that says what a decoded image shows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Judge {
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
    /// A preset with changes, each a `key=value`.
    pub(crate) fn new(
        experiment: Experiment,
        preset: Preset,
        seeds: Option<u64>,
        changes: &[String],
    ) -> Result<Self> {
        let config: Self = preset::configured(experiment, preset, seeds, changes)?;
        config.check().context("the configuration")?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        if self.seeds == 0 {
            bail!("seeds is 0, but there must be at least one training");
        }
        for (key, &value) in
            self.fractions.iter().map(|value| ("fractions", value)).chain([("share", &self.share)])
        {
            if !(value > 0.0 && value <= 1.0) {
                bail!("{key}: {value} is not a share of the data: more than 0, and at most 1");
            }
        }
        if !self.fractions.contains(&1.0) {
            bail!("fractions: 1.0 must be among them, as the others are compared with it");
        }
        let mut sorted = self.fractions.clone();
        sorted.sort_by(f64::total_cmp);
        if let Some([twice, _]) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            bail!("fractions: {twice} is there twice");
        }
        if self.network.conditions != 2 {
            bail!("network.conditions is {}, but there are two queries", self.network.conditions);
        }
        self.nets().check()?;
        Ok(())
    }

    /// As the networks take it.
    pub(crate) fn nets(&self) -> shafer_nets::Config {
        shafer_nets::Config { network: self.network.clone(), training: self.training.clone() }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use shafer_nets::{DecoderBias, Optimiser};

    use super::*;

    fn changed(changes: &[&str]) -> Result<Config> {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        Config::new(Experiment::Mnist, Preset::Paper, None, &changes)
    }

    #[test]
    fn every_preset_is_sound() {
        for experiment in [Experiment::Mnist, Experiment::Fashion, Experiment::Notmnist] {
            for &(preset, _) in experiment.presets() {
                let config = Config::new(experiment, preset, None, &[]).unwrap();
                assert_eq!(config.data_set, experiment.name());
            }
        }
    }

    #[test]
    fn the_presets_are_the_papers() {
        let paper = |experiment| Config::new(experiment, Preset::Paper, None, &[]).unwrap();
        let mnist = paper(Experiment::Mnist);
        assert_eq!(mnist.nets(), shafer_nets::Config::default());
        assert_eq!((mnist.seeds, mnist.fractions.len()), (25, 4));
        assert_eq!(paper(Experiment::Fashion).training.optimiser, Optimiser::Adam);
        let mut stable = Config::new(Experiment::Fashion, Preset::Stable, None, &[]).unwrap();
        assert_eq!(stable.training.decoder_bias, DecoderBias::MeanImage);
        // Nothing else differs.
        stable.training.decoder_bias = DecoderBias::Random;
        assert_eq!(stable, paper(Experiment::Fashion));
        let notmnist = paper(Experiment::Notmnist);
        assert_eq!((notmnist.seeds, notmnist.training.epochs), (5, 1000));
    }

    #[test]
    fn a_preset_that_an_experiment_does_not_have_is_refused_with_those_it_has() {
        let error = Config::new(Experiment::Mnist, Preset::Stable, None, &[]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "--preset stable: mnist has none; choose from paper, quick, smoke"
        );
    }

    #[test]
    fn changes_are_made_and_checked() {
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
            ("fractions=[0.5]", "1.0 must be among them"),
            ("fractions=[1.0, 1.0]", "fractions: 1 is there twice"),
            ("share=nan", "share: NaN is not a share"),
            ("seeds=0", "seeds is 0"),
            ("epochs", "must be key=value"),
            ("=3", "is not a key"),
            ("network.conditions=3", "there are two queries"),
        ] {
            let error = format!("{:#}", changed(&[change]).unwrap_err());
            assert!(error.contains(expected), "{change}: {error}");
        }
    }
}
