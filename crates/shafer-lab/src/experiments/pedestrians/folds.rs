//! Training examples and test pedestrians of each fold.

use std::path::PathBuf;

use anyhow::{Result, bail};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use shafer_data::dataset::{Scene, Set, Split, Window, WindowShape, windows_of};
use shafer_nets::behaviour::Example;

use super::config::Config;
use crate::predict::window_shape;

/// The fold of the paper's slice, and the name of the slice in results.
const PAPER_FOLD: &str = "eth";
pub(crate) const PAPER_SCENE: &str = "eth_paper";
const PAPER_FILE: &str = "biwi_eth_val";

/// A scene that is left out of the training, to test on.
pub(super) struct Fold {
    pub(super) name: String,
    pub(super) examples: Vec<Example>,
    pub(super) tests: Vec<Test>,
}

/// Pedestrians to test with.
pub(super) struct Test {
    /// Its name in results.
    pub(super) scene: String,
    pub(super) agents: Vec<Window>,
}

impl Fold {
    /// Reads the scenes of a fold. That of ETH tests on the paper's slice, too.
    pub(super) fn read(
        name: &str,
        set: &Set,
        folders: &[PathBuf],
        config: &Config,
    ) -> Result<Self> {
        let network = &config.network;
        let windows = |split: Split, least_history: usize| {
            let shape = window_shape(network, least_history, network.future_steps);
            let shape = WindowShape { differences: config.differences, ..shape };
            anyhow::Ok(windows_of(&set.scenes(name, split, folders)?, &shape)?)
        };
        let examples = windows(Split::Train, WindowShape::TRAINING.least_history)?
            .iter()
            .map(|window| Example::new(&window.history, &window.neighbours, &window.future))
            .collect::<Result<_, _>>()?;
        let mut tests = Vec::new();
        if name == PAPER_FOLD {
            let scene = set.scene(PAPER_FILE, folders)?;
            tests.push(Test { scene: PAPER_SCENE.to_owned(), agents: slice(&scene, config)? });
        }
        let mut agents = windows(Split::Test, WindowShape::PUBLISHED.least_history)?;
        if let Some(most) = config.most_agents {
            agents = spaced(agents, most);
        }
        tests.push(Test { scene: name.to_owned(), agents });
        Ok(Self { name: name.to_owned(), examples, tests })
    }
}

/// The paper's slice: the pedestrians at random time steps who have a whole history and at least one step of future.
fn slice(scene: &Scene, config: &Config) -> Result<Vec<Window>> {
    let mut random = ChaCha8Rng::seed_from_u64(config.evaluation_seed);
    let steps = scene.random_steps(config.time_steps, &mut random)?;
    let whole_history = window_shape(&config.network, config.network.history_steps, 1);
    let shape = WindowShape { differences: config.differences, ..whole_history };
    let agents = scene.windows_at(&steps, &shape)?;
    if agents.is_empty() {
        bail!("{}: no pedestrian is there at any of {} random time steps", scene.name, steps.len());
    }
    Ok(agents)
}

/// At most this number of elements, evenly spaced.
fn spaced<T>(all: Vec<T>, most: usize) -> Vec<T> {
    let count = all.len();
    if count <= most {
        return all;
    }
    let mut wanted = (0..most).map(|place| place * count / most).peekable();
    let chosen = |(place, _): &(usize, T)| wanted.next_if_eq(place).is_some();
    all.into_iter().enumerate().filter(chosen).map(|(_, one)| one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_evenly_spaced() {
        assert_eq!(spaced((0..10).collect(), 4), [0, 2, 5, 7]);
        assert_eq!(spaced((0..10).collect(), 1), [0]);
        assert_eq!(spaced((0..3).collect(), 3), [0, 1, 2]);
        assert_eq!(spaced((0..3).collect(), 9), [0, 1, 2]);
    }
}
