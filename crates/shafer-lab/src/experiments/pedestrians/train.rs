//! The training of a predictor.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use shafer_nets::behaviour::{Example, Losses, Predictor};
use shafer_nets::{Step, Trainer};

use super::config::Config;
use super::folds::Fold;
use crate::experiments::training::{Training, TrainingRecord};

/// The record of one training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PedestrianRecord {
    /// The scene that was left out.
    pub(crate) scene: String,
    pub(crate) seed: u64,
    pub(crate) diverged: bool,
    pub(crate) iterations: usize,
    pub(crate) wall_seconds: f64,
    /// Of the last batch.
    pub(crate) losses: Option<Losses>,
}

impl TrainingRecord for PedestrianRecord {
    fn status(&mut self) -> (&mut bool, &mut f64) {
        (&mut self.diverged, &mut self.wall_seconds)
    }
}

/// A training on all scenes but one.
pub(super) struct PredictorTraining<'a> {
    pub(super) fold: &'a Fold,
    pub(super) seed: u64,
    pub(super) config: &'a Config,
}

/// The name of a training's files.
pub(super) fn name(fold: &str, seed: u64) -> String {
    format!("{fold}-seed-{seed:02}")
}

impl<'a> Training for PredictorTraining<'a> {
    type Model = Predictor;
    type Record = PedestrianRecord;
    type Data = &'a [Example];

    const DEPENDS_ON: &'static [&'static str] = &["network", "training", "differences"];

    fn name(&self) -> String {
        name(&self.fold.name, self.seed)
    }

    fn count(&self) -> usize {
        self.fold.examples.len()
    }

    fn config(&self) -> shafer_nets::behaviour::Config {
        self.config.nets()
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    fn load(&self) -> Result<&'a [Example]> {
        Ok(&self.fold.examples)
    }

    fn examples<'d>(&self, data: &'d &'a [Example]) -> Result<&'d [Example]> {
        Ok(data)
    }

    fn record(&self) -> PedestrianRecord {
        PedestrianRecord {
            scene: self.fold.name.clone(),
            seed: self.seed,
            diverged: false,
            iterations: 0,
            wall_seconds: 0.0,
            losses: None,
        }
    }

    fn observe(
        &self,
        record: &mut PedestrianRecord,
        step: &Step<Losses>,
        trainer: &Trainer<'_, Predictor>,
    ) -> Result<()> {
        record.iterations = trainer.iteration();
        record.losses = Some(step.losses);
        Ok(())
    }
}
