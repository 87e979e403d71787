//! The networks of the experiment: one autoencoder for each seed and fraction, and the classifier.

use std::borrow::Cow;

use anyhow::Result;
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use serde::{Deserialize, Serialize};
use shafer_data::dataset::{Groups, Images, stratified};
use shafer_nets::training::CrossEntropy;
use shafer_nets::{
    Classifier, ClassifierConfig, Cvae, Error, Examples, PriorSnapshot, Step, Trainer,
};

use super::config::Config;
use super::judge::Judge;
use super::record::{Checkpoint, Losses, SeedRecord};
use crate::experiments::training::{Training, TrainingRecord};

/// One autoencoder.
pub(super) struct Autoencoder<'a> {
    pub(super) seed: u64,
    /// The fraction of the training set.
    pub(super) fraction: f64,
    pub(super) config: &'a Config,
    /// The training set, with classes as labels.
    pub(super) images: &'a Images,
    pub(super) groups: &'a Groups,
    pub(super) judge: &'a Judge<'a>,
}

/// The images of a training with their conditions.
pub(super) struct Subset<'a> {
    images: Cow<'a, Images>,
    conditions: Vec<u8>,
}

impl<'a> Training for Autoencoder<'a> {
    type Model = Cvae;
    type Record = SeedRecord;
    type Data = Subset<'a>;

    const DEPENDS_ON: &'static [&'static str] =
        &["data_set", "share", "network", "training", "classifier"];

    fn name(&self) -> String {
        if self.fraction == 1.0 {
            format!("seed-{:02}", self.seed)
        } else {
            format!("seed-{:02}-of-{}", self.seed, self.fraction)
        }
    }

    fn count(&self) -> usize {
        (self.fraction * self.images.len() as f64).round() as usize
    }

    fn config(&self) -> shafer_nets::Config {
        self.config.nets()
    }

    fn seed(&self) -> u64 {
        self.seed
    }

    /// Each seed has another part of the images.
    fn load(&self) -> Result<Subset<'a>> {
        let images = if self.fraction == 1.0 {
            Cow::Borrowed(self.images)
        } else {
            let mut random = ChaCha8Rng::seed_from_u64(self.seed);
            let indices = stratified(&self.images.labels, self.fraction, &mut random)?;
            Cow::Owned(self.images.select(&indices))
        };
        let conditions = self.groups.of_labels(&images.labels)?;
        Ok(Subset { images, conditions })
    }

    fn examples<'d>(&self, data: &'d Subset<'a>) -> Result<Examples<'d>> {
        let pixels = data.images.rows * data.images.columns;
        Ok(Examples::new(&data.images.pixels, &data.conditions, pixels)?)
    }

    fn record(&self) -> SeedRecord {
        SeedRecord {
            seed: self.seed,
            fraction: self.fraction,
            collapsed: false,
            diverged: false,
            steps: 0,
            wall_seconds: 0.0,
            losses: Losses::default(),
            checkpoints: Vec::new(),
            latents: None,
        }
    }

    fn observe(
        &self,
        record: &mut SeedRecord,
        step: &Step<shafer_nets::Losses>,
        trainer: &Trainer<'_, Cvae>,
    ) -> Result<()> {
        let iteration = step.iteration as u64 + 1;
        let checkpoints = self.config.training.checkpoints;
        if checkpoints.is_at(step.epoch, step.batch, trainer.batches_per_epoch()) {
            let logits = prior_logits(&trainer.model().prior())?;
            if !logits.iter().flatten().all(|logit| logit.is_finite()) {
                // The next loss would say so, but JSON has no such numbers for this checkpoint.
                let Step { epoch, batch, .. } = *step;
                return Err(Error::Diverged { epoch, batch, loss: f64::NAN }.into());
            }
            record.checkpoints.push(Checkpoint { iteration, logits });
        }
        if let Some(shafer_nets::Losses { reconstruction, kl }) = step.epoch_losses {
            record.losses = Losses {
                total: Some(reconstruction + kl),
                reconstruction: Some(reconstruction),
                kl: Some(kl),
            };
            record.steps = iteration;
        }
        Ok(())
    }

    fn finish(&self, record: &mut SeedRecord, cvae: &Cvae, data: &Subset<'a>) -> Result<()> {
        record.collapsed = cvae.diagnose(self.examples(data)?)?.collapsed();
        record.latents = Some(self.judge.latents(cvae)?);
        Ok(())
    }
}

impl TrainingRecord for SeedRecord {
    fn status(&mut self) -> (&mut bool, &mut f64) {
        (&mut self.diverged, &mut self.wall_seconds)
    }

    fn rewind(&mut self, iteration: usize, _: usize) {
        self.checkpoints.retain(|checkpoint| checkpoint.iteration <= iteration as u64);
    }
}

/// The prior's logits for every query.
pub(super) fn prior_logits(prior: &PriorSnapshot) -> Result<Vec<Vec<f32>>> {
    let row = |query| Ok(prior.logits(query)?.into_iter().map(|logit| logit as f32).collect());
    (0..prior.conditions()).map(row).collect()
}

/// The classifier that labels decoded images, trained on real images and their classes.
pub(super) struct ImageClassifier<'a> {
    pub(super) config: &'a Config,
    pub(super) images: &'a Images,
    pub(super) classes: usize,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ClassifierRecord {
    diverged: bool,
    wall_seconds: f64,
    /// Cross-entropy over the last epoch, in nats.
    loss: Option<f64>,
}

impl TrainingRecord for ClassifierRecord {
    fn status(&mut self) -> (&mut bool, &mut f64) {
        (&mut self.diverged, &mut self.wall_seconds)
    }
}

impl<'a> Training for ImageClassifier<'a> {
    type Model = Classifier;
    type Record = ClassifierRecord;
    type Data = &'a Images;

    const DEPENDS_ON: &'static [&'static str] = &["data_set", "share", "classifier"];

    fn name(&self) -> String {
        "classifier".to_owned()
    }

    fn count(&self) -> usize {
        self.images.len()
    }

    fn config(&self) -> ClassifierConfig {
        ClassifierConfig {
            pixels: self.images.rows * self.images.columns,
            hidden: self.config.classifier.hidden,
            classes: self.classes,
            epochs: self.config.classifier.epochs,
            ..ClassifierConfig::default()
        }
    }

    fn seed(&self) -> u64 {
        0
    }

    fn load(&self) -> Result<&'a Images> {
        Ok(self.images)
    }

    fn examples<'d>(&self, images: &'d &'a Images) -> Result<Examples<'d>> {
        Ok(Examples::new(&images.pixels, &images.labels, images.rows * images.columns)?)
    }

    fn record(&self) -> ClassifierRecord {
        ClassifierRecord::default()
    }

    fn observe(
        &self,
        record: &mut ClassifierRecord,
        step: &Step<CrossEntropy>,
        _: &Trainer<'_, Classifier>,
    ) -> Result<()> {
        if let Some(losses) = &step.epoch_losses {
            record.loss = Some(losses.cross_entropy);
        }
        Ok(())
    }
}
