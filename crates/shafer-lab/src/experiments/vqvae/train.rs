//! The three networks: VQ-VAE, prior over its codes, classifier that judges images.

use std::collections::BTreeMap;

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use shafer_nets::pixel_cnn::{CodeGrids, PixelCnn, PixelCnnTraining};
use shafer_nets::training::CrossEntropy;
use shafer_nets::vqvae::{self, VqVae};
use shafer_nets::wide_residual::{self, WideResidual};
use shafer_nets::{ColourImages, Error, Precision, Step, Trainer};

use super::candidates::Candidate;
use super::codes::Grids;
use super::config::Config;
use super::kept;
use super::pictures::Pictures;
use crate::experiments::training::{Training, TrainingRecord};

/// The names of the jobs.
pub(super) const VQVAE: &str = "vqvae";
pub(super) const PRIOR: &str = "prior";
pub(super) const CLASSIFIER: &str = "classifier";

/// A training and its epochs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Trained<E> {
    pub(crate) diverged: bool,
    pub(crate) wall_seconds: f64,
    pub(crate) epochs: Vec<E>,
}

impl<E> Trained<E> {
    fn new() -> Self {
        Self { diverged: false, wall_seconds: 0.0, epochs: Vec::new() }
    }

    /// Fails if there are no weights, which all later stages need.
    pub(super) fn converged(self, name: &str) -> Result<Self> {
        if self.diverged {
            bail!(
                "{name}: the training diverged in epoch {}; a smaller learning rate may help (--set)",
                self.epochs.len() + 1
            );
        }
        Ok(self)
    }
}

impl<E: Serialize + DeserializeOwned + Send> TrainingRecord for Trained<E> {
    fn status(&mut self) -> (&mut bool, &mut f64) {
        (&mut self.diverged, &mut self.wall_seconds)
    }

    fn rewind(&mut self, iteration: usize, batches_per_epoch: usize) {
        self.epochs.truncate(iteration / batches_per_epoch);
    }
}

/// An epoch of the VQ-VAE.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VqVaeEpoch {
    /// The mean squared error of a pixel's channel, from -1 to 1.
    pub(crate) reconstruction: f64,
    /// The mean squared distance of an encoding's channel from its code.
    pub(crate) quantisation: f64,
    /// The number of codes that were used.
    pub(crate) used: usize,
    pub(crate) perplexity: f64,
}

pub(super) struct VqVaeTraining<'a> {
    pub(super) config: &'a Config,
    pub(super) images: &'a Pictures,
}

impl<'a> Training for VqVaeTraining<'a> {
    type Model = VqVae;
    type Record = Trained<VqVaeEpoch>;
    type Data = &'a Pictures;

    const PRECISION: Precision = Precision::Single;
    const DEPENDS_ON: &'static [&'static str] = &["data_set", "share", "image", "seed", "vqvae"];

    fn name(&self) -> String {
        VQVAE.to_owned()
    }

    fn count(&self) -> usize {
        self.images.len()
    }

    fn config(&self) -> vqvae::Config {
        self.config.vqvae()
    }

    fn seed(&self) -> u64 {
        self.config.seed
    }

    fn load(&self) -> Result<&'a Pictures> {
        Ok(self.images)
    }

    fn examples<'d>(&self, images: &'d &'a Pictures) -> Result<&'d dyn ColourImages> {
        Ok(*images)
    }

    fn record(&self) -> Trained<VqVaeEpoch> {
        Trained::new()
    }

    fn observe(
        &self,
        record: &mut Trained<VqVaeEpoch>,
        step: &Step<vqvae::Losses>,
        _: &Trainer<'_, VqVae>,
    ) -> Result<()> {
        if let Some(losses) = &step.epoch_losses {
            record.epochs.push(VqVaeEpoch {
                reconstruction: losses.reconstruction,
                quantisation: losses.quantisation,
                used: losses.usage.used(),
                perplexity: losses.usage.perplexity(),
            });
        }
        Ok(())
    }
}

/// An epoch of the prior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriorEpoch {
    /// The negative log-likelihood of a code over the epoch, in nats.
    pub(crate) loss: f64,
    /// The same on held-out grids after the epoch.
    pub(crate) held_out: f64,
    /// By method: the mean number of kept codes on the same held-out grids.
    pub(crate) kept: BTreeMap<String, f64>,
}

pub(super) struct PriorTraining<'a> {
    pub(super) config: &'a Config,
    pub(super) classes: usize,
    pub(super) train: &'a Grids,
    /// A few held-out grids, which are measured after every epoch.
    pub(super) held_out: &'a Grids,
    /// The methods whose kept codes are counted.
    pub(super) candidates: &'a [&'a Candidate],
}

impl<'a> Training for PriorTraining<'a> {
    type Model = PixelCnn;
    type Record = Trained<PriorEpoch>;
    type Data = &'a Grids;

    const PRECISION: Precision = Precision::Single;
    const DEPENDS_ON: &'static [&'static str] =
        &["data_set", "share", "image", "seed", "views", "vqvae", "prior"];

    fn name(&self) -> String {
        PRIOR.to_owned()
    }

    fn count(&self) -> usize {
        self.train.classes.len()
    }

    fn config(&self) -> PixelCnnTraining {
        self.config.prior(self.classes)
    }

    fn seed(&self) -> u64 {
        self.config.seed
    }

    fn load(&self) -> Result<&'a Grids> {
        Ok(self.train)
    }

    fn examples<'d>(&self, grids: &'d &'a Grids) -> Result<CodeGrids<'d>> {
        Ok(CodeGrids::new(&grids.codes, &grids.classes))
    }

    fn record(&self) -> Trained<PriorEpoch> {
        Trained::new()
    }

    fn observe(
        &self,
        record: &mut Trained<PriorEpoch>,
        step: &Step<CrossEntropy>,
        trainer: &Trainer<'_, PixelCnn>,
    ) -> Result<()> {
        let Some(losses) = &step.epoch_losses else { return Ok(()) };
        let (prior, grids) = (trainer.model(), self.held_out);
        let held_out = prior.negative_log_likelihood(&grids.codes, &grids.classes)?;
        if !held_out.is_finite() {
            // The next loss would say so, but JSON has no such number.
            let Step { epoch, batch, .. } = *step;
            return Err(Error::Diverged { epoch, batch, loss: held_out }.into());
        }
        let seen = vec![true; self.config.vqvae.codes];
        let kept = kept::measure(&prior, grids, self.candidates, &seen)?;
        let names = self.candidates.iter().map(|candidate| candidate.name.name.clone());
        record.epochs.push(PriorEpoch {
            loss: losses.cross_entropy,
            held_out,
            kept: names.zip(kept.iter().map(kept::Kept::mean)).collect(),
        });
        Ok(())
    }
}

/// An epoch of the classifier.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClassifierEpoch {
    /// Cross-entropy over the epoch, in nats.
    pub(crate) loss: f64,
    /// On held-out images after the epoch.
    pub(crate) accuracy: f64,
}

pub(super) struct ClassifierTraining<'a> {
    pub(super) config: &'a Config,
    pub(super) classes: usize,
    pub(super) images: &'a Pictures,
    pub(super) held_out: &'a Pictures,
}

/// The images that are transformed and judged together.
const IMAGES_AT_ONCE: usize = 256;

/// The share of images whose class a classifier finds.
fn accuracy(classifier: &WideResidual, images: &Pictures) -> Result<f64> {
    let rows: Vec<u32> = (0..images.len() as u32).collect();
    let mut hits = 0;
    for rows in rows.chunks(IMAGES_AT_ONCE) {
        let labels: Vec<u16> = rows.iter().map(|&row| images.labels()[row as usize]).collect();
        let judged = classifier.judge(&images.pixels(0, rows))?;
        hits += judged.hits(&labels, 1)?.into_iter().filter(|&hit| hit).count();
    }
    Ok(hits as f64 / rows.len() as f64)
}

impl<'a> Training for ClassifierTraining<'a> {
    type Model = WideResidual;
    type Record = Trained<ClassifierEpoch>;
    type Data = &'a Pictures;

    const PRECISION: Precision = Precision::Single;
    const DEPENDS_ON: &'static [&'static str] =
        &["data_set", "share", "image", "seed", "classifier"];

    fn name(&self) -> String {
        CLASSIFIER.to_owned()
    }

    fn count(&self) -> usize {
        self.images.len()
    }

    fn config(&self) -> wide_residual::Config {
        self.config.classifier(self.classes)
    }

    fn seed(&self) -> u64 {
        self.config.seed
    }

    fn load(&self) -> Result<&'a Pictures> {
        Ok(self.images)
    }

    fn examples<'d>(&self, images: &'d &'a Pictures) -> Result<&'d dyn ColourImages> {
        Ok(*images)
    }

    fn record(&self) -> Trained<ClassifierEpoch> {
        Trained::new()
    }

    fn observe(
        &self,
        record: &mut Trained<ClassifierEpoch>,
        step: &Step<CrossEntropy>,
        trainer: &Trainer<'_, WideResidual>,
    ) -> Result<()> {
        if let Some(losses) = &step.epoch_losses {
            let accuracy = accuracy(&trainer.model(), self.held_out).context("held-out images")?;
            record.epochs.push(ClassifierEpoch { loss: losses.cross_entropy, accuracy });
        }
        Ok(())
    }
}
