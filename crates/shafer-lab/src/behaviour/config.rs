//! What an experiment with pedestrians is.

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use shafer_data::dataset::{Differences, WindowShape};
use shafer_nets::behaviour::{NetworkConfig, TrainingConfig};

use crate::reproduce::{Experiment, Preset, configured};

/// Which scene to test on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SceneChoice {
    Eth,
    Hotel,
    Univ,
    Zara1,
    Zara2,
    /// Each of them, by networks of its own
    All,
}

impl SceneChoice {
    pub(crate) fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    /// What it changes in a configuration.
    pub(crate) fn change(self) -> String {
        let scenes: Vec<String> = match self {
            Self::All => Self::value_variants()
                .iter()
                .filter(|s| **s != Self::All)
                .map(|s| s.name())
                .collect(),
            scene => vec![scene.name()],
        };
        format!("scenes = {scenes:?}")
    }
}

/// Everything that the numbers of a run depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// Those that are tested on, each by networks that are trained on the others.
    pub(crate) scenes: Vec<String>,
    /// The number of trainings for each scene; their seeds are 0, 1 and so on.
    pub(crate) seeds: u64,
    /// How many paths are drawn from each method's own distribution.
    pub(crate) samples: usize,
    /// How many paths of each of the most likely joint classes.
    pub(crate) class_samples: usize,
    /// How many joint classes are the most likely ones.
    pub(crate) top: usize,
    /// The paper's slice: how many time steps of it.
    pub(crate) time_steps: usize,
    /// How many windows of a whole scene at most, evenly spaced; all if it is not said.
    pub(crate) most_agents: Option<usize>,
    /// Of the time steps and of every path.
    pub(crate) evaluation_seed: u64,
    /// In metres, between the end of a mode and the truth.
    pub(crate) distances: Vec<f64>,
    /// What velocities and accelerations are, in training and in tests.
    pub(crate) differences: Differences,
    pub(crate) network: NetworkConfig,
    pub(crate) training: TrainingConfig,
}

/// As many as there are numbers for, with room to spare; they would take hours.
const MOST_SAMPLES: usize = 1 << 20;

impl Config {
    /// A preset with changes, each a `key=value`.
    pub(crate) fn new(preset: Preset, seeds: Option<u64>, changes: &[String]) -> Result<Self> {
        let config: Self = configured(Experiment::Behaviour, preset, seeds, changes)?;
        config.check().context("the configuration")?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        if self.scenes.is_empty() {
            bail!("scenes is empty, but there must be one to test on");
        }
        for (place, scene) in self.scenes.iter().enumerate() {
            if self.scenes[..place].contains(scene) {
                bail!("scenes: {scene} is there twice");
            }
        }
        for (key, value) in [
            ("seeds", self.seeds as usize),
            ("samples", self.samples),
            ("class_samples", self.class_samples),
            ("top", self.top),
            ("time_steps", self.time_steps),
            ("most_agents", self.most_agents.unwrap_or(1)),
        ] {
            if !(1..=MOST_SAMPLES).contains(&value) {
                bail!("{key} is {value}, but must be at least 1 and at most {MOST_SAMPLES}");
            }
        }
        if let Some(distance) = self.distances.iter().find(|d| !(d.is_finite() && **d >= 0.0)) {
            bail!("distances: {distance} is not a distance in metres");
        }
        self.nets().check()?;
        Ok(())
    }

    /// As the networks take it.
    pub(crate) fn nets(&self) -> shafer_nets::behaviour::Config {
        shafer_nets::behaviour::Config {
            network: self.network.clone(),
            training: self.training.clone(),
        }
    }
}

/// Windows that a network of this shape looks at, with at least so many steps before and after the present.
pub(super) fn shape(network: &NetworkConfig, before: usize, after: usize) -> WindowShape {
    WindowShape {
        history: network.history_steps,
        least_history: before.min(network.history_steps),
        future: network.future_steps,
        least_future: after,
        radius: network.position_scale,
        differences: Differences::Backward,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn changed(changes: &[&str]) -> Result<Config> {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        Config::new(Preset::Paper, None, &changes)
    }

    #[test]
    fn every_preset_is_sound_and_the_papers_is_the_papers() {
        for &(preset, _) in Experiment::Behaviour.presets() {
            Config::new(preset, None, &[]).unwrap();
        }
        let paper = changed(&[]).unwrap();
        assert_eq!(paper.nets(), shafer_nets::behaviour::Config::default());
        assert_eq!((paper.samples, paper.class_samples, paper.top), (2000, 500, 5));
        assert_eq!((paper.time_steps, paper.seeds), (50, 3));
        assert_eq!(paper.most_agents, None);
        assert_eq!(shape(&paper.network, 1, 12), WindowShape::TRAINING);
        assert_eq!(shape(&paper.network, 7, 12), WindowShape::PUBLISHED);
        assert_eq!(shape(&paper.network, 1, 0), WindowShape::ANY_FUTURE);
        assert_eq!(shape(&paper.network, 8, 0), WindowShape::PAPER);
        assert_eq!(shape(&paper.network, 0, 0), WindowShape::PRESENT);
    }

    #[test]
    fn a_scene_is_a_change() {
        let change = SceneChoice::Univ.change();
        assert_eq!(changed(&[&change]).unwrap().scenes, ["univ"]);
        let all = changed(&[&SceneChoice::All.change()]).unwrap().scenes;
        assert_eq!(all, ["eth", "hotel", "univ", "zara1", "zara2"]);
    }

    #[test]
    fn changes_are_checked() {
        for (change, expected) in [
            ("scenes=[]", "scenes is empty"),
            ("scenes=[\"eth\", \"eth\"]", "eth is there twice"),
            ("samples=0", "samples is 0"),
            ("most_agents=0", "most_agents is 0"),
            ("class_samples=99999999", "class_samples is 99999999"),
            ("distances=[nan]", "NaN is not a distance"),
            ("distances=[-1.0]", "-1 is not a distance"),
            ("training.iterations=0", "iterations must be at least 1"),
            ("training.epochs=3", "unknown field `epochs`"),
            ("network.classes=0", "classes"),
        ] {
            let error = format!("{:#}", changed(&[change]).unwrap_err());
            assert!(error.contains(expected), "{change}: {error}");
        }
    }
}
