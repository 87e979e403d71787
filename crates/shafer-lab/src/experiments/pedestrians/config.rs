//! The configuration of the experiment with pedestrians.

use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};
use shafer_data::dataset::Differences;
use shafer_nets::behaviour::{NetworkConfig, TrainingConfig};

use crate::experiments::options::Meaning;

/// The scene to test on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum SceneChoice {
    Eth,
    Hotel,
    Univ,
    Zara1,
    Zara2,
    /// Each of them, by networks trained on the others
    All,
}

impl SceneChoice {
    fn name(self) -> String {
        self.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
    }

    pub(crate) fn meaning(self) -> Meaning {
        let scenes: Vec<String> = match self {
            Self::All => Self::value_variants()
                .iter()
                .filter(|s| **s != Self::All)
                .map(|s| s.name())
                .collect(),
            scene => vec![scene.name()],
        };
        Meaning { change: format!("scenes = {scenes:?}"), suffix: self.name() }
    }
}

/// Everything that the numbers of a run depend on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The test scenes, each with networks that are trained on the others.
    pub(crate) scenes: Vec<String>,
    /// The number of trainings for each scene; their seeds are 0, 1 and so on.
    pub(crate) seeds: u64,
    /// The number of paths drawn from each method's distribution.
    pub(crate) samples: usize,
    /// The number of paths of each of the most likely joint classes.
    pub(crate) class_samples: usize,
    /// The number of most likely joint classes that are evaluated.
    pub(crate) top: usize,
    /// The number of time steps of the paper's slice.
    pub(crate) time_steps: usize,
    /// At most this number of windows of a whole scene, evenly spaced; all by default.
    pub(crate) most_agents: Option<usize>,
    /// The seed of the time steps and of every path.
    pub(crate) evaluation_seed: u64,
    /// Distances in metres between the end of a mode and the true end.
    pub(crate) distances: Vec<f64>,
    /// How velocities and accelerations are computed, in training and in tests.
    pub(crate) differences: Differences,
    pub(crate) network: NetworkConfig,
    pub(crate) training: TrainingConfig,
}

/// Larger values would take days.
const MOST_SAMPLES: usize = 1 << 20;

impl Config {
    pub(crate) fn check(&self) -> Result<()> {
        if self.scenes.is_empty() {
            bail!("scenes is empty; name at least one test scene");
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

    /// The part that the networks depend on.
    pub(crate) fn nets(&self) -> shafer_nets::behaviour::Config {
        shafer_nets::behaviour::Config {
            network: self.network.clone(),
            training: self.training.clone(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use shafer_data::dataset::WindowShape;

    use super::*;
    use crate::experiments::pedestrians::BEHAVIOUR;
    use crate::experiments::preset;
    use crate::predict::window_shape;

    fn config(preset: &str, changes: &[&str]) -> Result<Config> {
        let changes: Vec<String> = changes.iter().map(|&change| change.to_owned()).collect();
        let config: Config = preset::configured(&BEHAVIOUR, preset, None, &changes)?;
        config.check()?;
        Ok(config)
    }

    fn changed(changes: &[&str]) -> Result<Config> {
        config("paper", changes)
    }

    #[test]
    fn every_preset_is_sound_and_the_papers_is_the_papers() {
        for preset in BEHAVIOUR.presets {
            config(preset.name, &[]).unwrap();
        }
        let paper = changed(&[]).unwrap();
        assert_eq!(paper.nets(), shafer_nets::behaviour::Config::default());
        assert_eq!((paper.samples, paper.class_samples, paper.top), (2000, 500, 5));
        assert_eq!((paper.time_steps, paper.seeds), (50, 3));
        assert_eq!(paper.most_agents, None);
        assert_eq!(window_shape(&paper.network, 1, 12), WindowShape::TRAINING);
        assert_eq!(window_shape(&paper.network, 7, 12), WindowShape::PUBLISHED);
        assert_eq!(window_shape(&paper.network, 1, 0), WindowShape::ANY_FUTURE);
        assert_eq!(window_shape(&paper.network, 8, 0), WindowShape::PAPER);
        assert_eq!(window_shape(&paper.network, 0, 0), WindowShape::PRESENT);
    }

    #[test]
    fn a_scene_is_a_change() {
        let Meaning { change, suffix } = SceneChoice::Univ.meaning();
        assert_eq!(changed(&[&change]).unwrap().scenes, ["univ"]);
        assert_eq!(suffix, "univ");
        let all = changed(&[&SceneChoice::All.meaning().change]).unwrap().scenes;
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
