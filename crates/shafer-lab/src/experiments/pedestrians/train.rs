//! The training of a predictor.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};
use shafer_nets::behaviour::{Example, Losses, Predictor};
use shafer_nets::{Precision, Step, Trainer};

use super::config::Config;
use super::folds::Fold;
use crate::experiments::training::Training;

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

    fn batches(&self) -> u64 {
        self.config.training.iterations as u64
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

    fn status<'r>(&self, record: &'r mut PedestrianRecord) -> (&'r mut bool, &'r mut f64) {
        (&mut record.diverged, &mut record.wall_seconds)
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

    fn finish(
        &self,
        _: &mut PedestrianRecord,
        predictor: &Predictor,
        _: &&[Example],
    ) -> Result<Vec<u8>> {
        Ok(predictor.to_safetensors(Precision::Half)?)
    }

    fn check_weights(&self, weights: &[u8]) -> Result<()> {
        if *Predictor::from_safetensors(weights)?.config() != self.config.network {
            bail!("is a network of another shape");
        }
        Ok(())
    }
}
