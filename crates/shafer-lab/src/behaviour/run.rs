//! `shafer reproduce behaviour`: from scenes to report.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;
use shafer::Transform;
use shafer_data::dataset::set;

use super::aggregate::Scene;
use super::config::Config;
use super::evaluation::{Evaluation, Evaluator};
use super::exemplar::Exemplar;
use super::folds::{Fold, Test};
use super::results::BehaviourResults;
use super::table::table;
use super::text::text;
use super::training::{self, Trained, TrainingRecord, train, trained};
use crate::experiment::{MethodName, VERSION};
use crate::interrupt;
use crate::method::Choice;
use crate::progress::Progress;
use crate::reproduce::{Folder, Reproduced, Request, machine, training_file};

/// The pedestrians of ETH and UCY.
const DATA_SET: &str = "ethucy";

/// Runs the experiment, or what is left of it, and draws its report.
pub(crate) fn reproduce(request: &Request<'_>) -> Result<Reproduced> {
    let start = Instant::now();
    let config = &Config::new(request.preset, request.seeds, request.changes)?;
    let set = set(DATA_SET)?;
    let folds = config
        .scenes
        .iter()
        .map(|scene| Fold::read(scene, set, request.folders, config))
        .collect::<Result<Vec<_>>>()?;
    // Before there is a folder that would hold on to a configuration which cannot be run.
    let taken = request.weights.map(|run| Trained::read(run, &folds, config)).transpose()?;
    let folder = &Folder::open(request.out, config)?;
    for trained in taken.iter().flatten() {
        trained.put(folder)?;
    }
    interrupt::hold();
    let trainings = train_all(&folds, config, folder, start, request.quiet)?;
    let methods = Choice::all()
        .iter()
        .map(|choice| choice.transform(config.network.classes))
        .collect::<Result<Vec<_>>>()?;
    let names: Vec<MethodName> = methods
        .iter()
        .map(|(title, method)| MethodName { name: method.name().to_owned(), title: title.clone() })
        .collect();
    let spent = || folder.spent(start.elapsed().as_secs_f64());
    let evaluated =
        Evaluated::all(&folds, &trainings, &methods, config, folder, &spent, request.quiet)?;
    let mut scenes = BTreeMap::new();
    for scene in &evaluated {
        let numbers = Scene {
            fold: scene.fold,
            methods: &names,
            classes: config.network.joint_classes(),
            distances: &config.distances,
            evaluations: &scene.evaluations,
        };
        scenes.insert(scene.name.to_owned(), numbers.results(scene.exemplars.clone()));
    }
    let numbers = BehaviourResults {
        version: VERSION,
        experiment: BehaviourResults::EXPERIMENT.to_owned(),
        methods: names,
        classes: config.network.joint_classes(),
        seeds: config.seeds as usize,
        diverged: trainings.iter().filter(|training| training.diverged).count(),
        wall_seconds: folder.seconds_before + start.elapsed().as_secs_f64(),
        revision: machine::revision(),
        machine: machine::machine(),
        config: serde_json::to_value(config)?,
        distances: config.distances.clone(),
        trainings,
        scenes,
    };
    let table =
        table(evaluated.iter().map(|scene| (scene.name, &scene.evaluations[..])), &numbers.methods);
    Reproduced::write(folder, &numbers, &table, text(&numbers))
}

/// All trainings, one a core, in the order of the folds and seeds.
fn train_all(
    folds: &[Fold],
    config: &Config,
    folder: &Folder,
    start: Instant,
    quiet: bool,
) -> Result<Vec<TrainingRecord>> {
    let trainings: Vec<(&Fold, u64)> =
        folds.iter().flat_map(|fold| (0..config.seeds).map(move |seed| (fold, seed))).collect();
    let iterations = (trainings.len() * config.training.iterations) as u64;
    let progress = Mutex::new(Progress::counted("behaviour", "iterations", iterations, quiet));
    let done = |iterations: usize| {
        if let Ok(mut progress) = progress.lock() {
            progress.add(iterations);
        }
    };
    let mut records = trainings
        .into_iter()
        .enumerate()
        .par_bridge()
        .map(|(place, (fold, seed))| {
            let record = train(fold, seed, config, folder, &done)
                .with_context(|| format!("{}, seed {seed}", fold.name))?;
            folder.spent(start.elapsed().as_secs_f64())?;
            Ok((place, record))
        })
        .collect::<Result<Vec<_>>>()?;
    records.sort_by_key(|&(place, _)| place);
    Ok(records.into_iter().map(|(_, record)| record).collect())
}

/// What is evaluated is written after so many pedestrians, about half a minute: a run that is killed loses
/// no more than that.
const EVALUATED_AT_ONCE: usize = 500;

/// Of so many of them, the time that their paths take is measured.
const TIMED: usize = 100;

/// A scene, with every network that was not trained on it.
struct Evaluated<'a> {
    name: &'a str,
    fold: &'a str,
    evaluations: Vec<Evaluation>,
    /// Of the first seed.
    exemplars: Vec<Exemplar>,
}

impl<'a> Evaluated<'a> {
    fn all(
        folds: &'a [Fold],
        trainings: &[TrainingRecord],
        methods: &[(String, Box<dyn Transform>)],
        config: &Config,
        folder: &Folder,
        spent: &dyn Fn() -> Result<()>,
        quiet: bool,
    ) -> Result<Vec<Self>> {
        let agents = |fold: &Fold| fold.tests.iter().map(|test| test.agents.len()).sum::<usize>();
        let all = folds.iter().map(agents).sum::<usize>() as u64 * config.seeds;
        let progress = Mutex::new(Progress::counted("evaluation", "pedestrians", all, quiet));
        let done = |agents: usize| {
            if let Ok(mut progress) = progress.lock() {
                progress.add(agents);
            }
        };
        let mut evaluated = Vec::new();
        for fold in folds {
            let mut scenes: Vec<Self> =
                fold.tests.iter().map(|test| Self::new(fold, test)).collect();
            for training in trainings.iter().filter(|t| t.scene == fold.name && !t.diverged) {
                let predictor = &trained(&fold.name, training.seed, folder)?;
                let evaluator = Evaluator { predictor, methods, config };
                for (scene, test) in scenes.iter_mut().zip(&fold.tests) {
                    scene.add(&evaluator, training.seed, test, folder, &done, spent)?;
                }
            }
            if scenes.iter().any(|scene| scene.evaluations.is_empty()) {
                bail!(
                    "{}: all {} trainings diverged; a smaller training.learning_rate may help",
                    fold.name,
                    config.seeds
                );
            }
            evaluated.extend(scenes);
        }
        Ok(evaluated)
    }

    fn new(fold: &'a Fold, test: &'a Test) -> Self {
        let (evaluations, exemplars) = (Vec::new(), Vec::new());
        Self { name: &test.scene, fold: &fold.name, evaluations, exemplars }
    }

    /// Evaluates one more network, or takes the record of an earlier run.
    fn add(
        &mut self,
        evaluator: &Evaluator<'_>,
        seed: u64,
        test: &Test,
        folder: &Folder,
        done: &(dyn Fn(usize) + Sync),
        spent: &dyn Fn() -> Result<()>,
    ) -> Result<()> {
        if self.exemplars.is_empty() {
            self.exemplars = Exemplar::chosen(evaluator, &test.agents)?;
        }
        let encoded = &evaluator.encode(&test.agents)?;
        let count = test.agents.len();
        let mut all = Evaluation { seed, agents: Vec::new(), decodings: Vec::new() };
        for first in (0..count).step_by(EVALUATED_AT_ONCE) {
            let places = first..count.min(first + EVALUATED_AT_ONCE);
            let name = format!("{}-{first:05}.json", self.name);
            let file = training_file(&training::name(self.fold, seed), &name);
            let part = if let Some(part) = folder.read::<Evaluation>(&file)? {
                done(places.len());
                part
            } else {
                let timed = first..places.end.min(first + TIMED);
                let part = Evaluation {
                    seed,
                    agents: evaluator
                        .agents(encoded, &test.agents, places, &|| done(1))
                        .with_context(|| format!("{}, seed {seed}", self.name))?,
                    decodings: evaluator.decodings(encoded, timed)?,
                };
                folder.write(&file, &part)?;
                spent()?;
                part
            };
            all.agents.extend(part.agents);
            all.decodings.extend(part.decodings);
        }
        self.evaluations.push(all);
        Ok(())
    }
}
