//! The stages after the trainings: every network is evaluated on the scene that it was not trained on.

use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use shafer_nets::behaviour::{Encoded, Predictor};

use super::config::Config;
use super::exemplar::Exemplar;
use super::folds::{Fold, Test};
use super::measure::{Evaluation, Evaluator};
use super::train::{PedestrianRecord, name};
use crate::experiments::methods::Method;
use crate::experiments::{Handle, Run, Task};

/// The pedestrians of one job: about half a minute.
const CHUNK: usize = 500;

/// The pedestrians of each job whose decoding is timed.
const TIMED: usize = 100;

/// A test scene with the evaluations of all its networks.
pub(super) struct Evaluated<'a> {
    pub(super) fold: &'a Fold,
    pub(super) test: &'a Test,
    /// By seed.
    pub(super) evaluations: Vec<Evaluation>,
    /// With the network of the first seed.
    pub(super) exemplars: Vec<Exemplar>,
}

/// A network with a scene that it is evaluated on.
struct Case<'a> {
    fold: &'a Fold,
    test: &'a Test,
    seed: u64,
    /// The network and what it encodes, read by the first job that needs them. All pedestrians are encoded together:
    /// their places determine their random numbers.
    loaded: OnceLock<(Predictor, Encoded)>,
}

/// What all jobs share.
struct Shared<'a> {
    methods: &'a [Method],
    config: &'a Config,
    run: &'a Run<'a>,
}

/// Evaluates the networks that did not diverge. The jobs run one after the other, as they measure times, too.
pub(super) fn evaluate<'a>(
    folds: &'a [Fold],
    trainings: &[PedestrianRecord],
    methods: &[Method],
    config: &Config,
    run: &Run<'_>,
) -> Result<Vec<Evaluated<'a>>> {
    let shared = &Shared { methods, config, run };
    let mut scenes: Vec<Vec<Case<'a>>> = Vec::new();
    for fold in folds {
        for test in &fold.tests {
            let trainings = trainings.iter().filter(|t| t.scene == fold.name && !t.diverged);
            let case =
                |t: &PedestrianRecord| Case { fold, test, seed: t.seed, loaded: OnceLock::new() };
            scenes.push(trainings.map(case).collect());
        }
    }
    let jobs: Vec<_> = scenes.iter().flatten().flat_map(|case| case.chunks(shared)).collect();
    let mut chunks = run.sequential("evaluation", "pedestrians", &jobs)?.into_iter();
    let firsts: Vec<_> =
        scenes.iter().filter_map(|cases| Some(cases.first()?.exemplars(shared))).collect();
    let exemplars = run.sequential("examples", "pedestrians", &firsts)?;
    let mut evaluated = Vec::new();
    for (cases, exemplars) in scenes.iter().zip(exemplars) {
        let Some(&Case { fold, test, .. }) = cases.first() else { continue };
        let mut evaluations = Vec::new();
        for case in cases {
            let mut all = Evaluation { seed: case.seed, agents: Vec::new(), decodings: Vec::new() };
            for part in chunks.by_ref().take(test.agents.len().div_ceil(CHUNK)) {
                all.agents.extend(part.agents);
                all.decodings.extend(part.decodings);
            }
            evaluations.push(all);
        }
        evaluated.push(Evaluated { fold, test, evaluations, exemplars });
    }
    Ok(evaluated)
}

impl Case<'_> {
    fn chunks<'s>(
        &'s self,
        shared: &'s Shared<'_>,
    ) -> impl Iterator<Item = Task<impl Fn(&Handle<'_>) -> Result<Evaluation> + Sync>> {
        let count = self.test.agents.len();
        (0..count).step_by(CHUNK).map(move |first| {
            let places = first..count.min(first + CHUNK);
            let timed = first..places.end.min(first + TIMED);
            Task {
                name: self.file(&format!("{first:05}")),
                size: places.len() as u64,
                run: move |handle: &Handle<'_>| {
                    let (evaluator, encoded) = self.load(shared)?;
                    let done = || handle.advance(1);
                    let agents =
                        evaluator.agents(encoded, &self.test.agents, places.clone(), &done)?;
                    let decodings = evaluator.decodings(encoded, timed.clone())?;
                    Ok(Evaluation { seed: self.seed, agents, decodings })
                },
            }
        })
    }

    fn exemplars<'s>(
        &'s self,
        shared: &'s Shared<'_>,
    ) -> Task<impl Fn(&Handle<'_>) -> Result<Vec<Exemplar>> + Sync> {
        Task {
            name: self.file("exemplars"),
            size: self.test.agents.len() as u64,
            run: move |_: &Handle<'_>| {
                let (evaluator, encoded) = self.load(shared)?;
                Exemplar::chosen(&evaluator, encoded, &self.test.agents)
            },
        }
    }

    fn file(&self, part: &str) -> String {
        format!("{}.{}-{part}", name(&self.fold.name, self.seed), self.test.scene)
    }

    fn load<'s>(&'s self, shared: &Shared<'s>) -> Result<(Evaluator<'s>, &'s Encoded)> {
        let Shared { methods, config, run } = *shared;
        if self.loaded.get().is_none() {
            let training = name(&self.fold.name, self.seed);
            let predictor = run.weights(&training, Predictor::from_safetensors)?;
            let encoded =
                Evaluator { predictor: &predictor, methods, config }.encode(&self.test.agents)?;
            let _ = self.loaded.set((predictor, encoded));
        }
        let (predictor, encoded) = self.loaded.get().context("the network was not loaded")?;
        Ok((Evaluator { predictor, methods, config }, encoded))
    }
}
