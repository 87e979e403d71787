//! Section 3.2 and appendix I: the behaviour of pedestrians.
//!
//! A network gives logits over joint latent classes for each pedestrian; each method makes a distribution of them. The
//! experiment measures how well the paths of the classes predict the true one. Three stages: train, evaluate in
//! chunks of pedestrians, choose the examples to show.

mod aggregate;
mod config;
mod demo;
mod evaluate;
mod exemplar;
mod figures;
mod folds;
mod measure;
mod page;
mod paper;
mod results;
#[cfg(test)]
mod synthetic;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod train;

use std::path::PathBuf;

use anyhow::{Result, bail};
use shafer_data::dataset::{Set, set};

use self::aggregate::Scene;
use self::config::Config;
pub(super) use self::config::SceneChoice;
pub(crate) use self::demo::crossing;
use self::evaluate::{Evaluated, evaluate};
pub(crate) use self::exemplar::Exemplar;
pub(crate) use self::figures::paths;
use self::folds::Fold;
use self::results::PedestrianResults;
use self::table::table;
use self::train::PredictorTraining;
use super::methods::{self, MethodName};
use super::preset::{QUICK, SMOKE, presets};
use super::report::{Results as _, VERSION};
use super::{Columns, Entry, Experiment, Run};

pub(super) const BEHAVIOUR: Entry = Entry::new::<Pedestrians>(
    "behaviour",
    "Pedestrians: where they go",
    presets!("behaviour", "quick": QUICK, "smoke": SMOKE),
);

/// The pedestrians of ETH and UCY.
const DATA_SET: &str = "ethucy";

struct Pedestrians;

impl Experiment for Pedestrians {
    type Config = Config;
    type Data = Vec<Fold>;
    type Results = PedestrianResults;

    fn check(config: &Config) -> Result<()> {
        config.check()
    }

    fn data_set(_: &Config) -> Result<Option<&'static Set>> {
        Ok(Some(set(DATA_SET)?))
    }

    fn load(config: &Config, folders: &[PathBuf]) -> Result<Vec<Fold>> {
        let set = set(DATA_SET)?;
        config.scenes.iter().map(|scene| Fold::read(scene, set, folders, config)).collect()
    }

    fn run(
        config: &Config,
        folds: &Vec<Fold>,
        run: &Run<'_>,
    ) -> Result<(PedestrianResults, Columns)> {
        let seeds =
            |fold| (0..config.seeds).map(move |seed| PredictorTraining { fold, seed, config });
        let jobs: Vec<_> = folds.iter().flat_map(seeds).collect();
        let trainings = run.parallel("training", "batches", &jobs)?;
        for fold in folds {
            if trainings.iter().filter(|record| record.scene == fold.name).all(|t| t.diverged) {
                bail!(
                    "{}: all {} trainings diverged; a smaller training.learning_rate may help",
                    fold.name,
                    config.seeds
                );
            }
        }
        let methods = methods::all(config.network.classes)?;
        let evaluated = evaluate(folds, &trainings, &methods, config, run)?;
        let names: Vec<MethodName> = methods.iter().map(MethodName::of).collect();
        let results = |scene: &Evaluated<'_>| {
            let numbers = Scene {
                fold: &scene.fold.name,
                methods: &names,
                classes: config.network.joint_classes(),
                distances: &config.distances,
                evaluations: &scene.evaluations,
            };
            (scene.test.scene.clone(), numbers.results(scene.exemplars.clone()))
        };
        let origin = run.origin()?;
        let table = table(&evaluated, &names);
        let results = PedestrianResults {
            version: VERSION,
            experiment: PedestrianResults::KIND.to_owned(),
            classes: config.network.joint_classes(),
            seeds: config.seeds as usize,
            diverged: trainings.iter().filter(|training| training.diverged).count(),
            wall_seconds: origin.wall_seconds,
            revision: origin.revision,
            machine: origin.machine,
            config: origin.config,
            distances: config.distances.clone(),
            trainings,
            scenes: evaluated.iter().map(results).collect(),
            methods: names,
        };
        Ok((results, table))
    }
}
