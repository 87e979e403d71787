//! One training of a sweep, from its seed to its record.

use std::borrow::Cow;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use shafer_data::dataset::{Groups, Images, stratified};
use shafer_nets::{Cvae, Error, Examples, Precision, PriorSnapshot, Trainer, cpu};

use super::config::Config;
use super::folder::{Folder, SECONDS_BETWEEN_STATES, training_file};
use crate::experiment::{Checkpoint, Losses, SeedRecord};
use crate::interrupt::{self, Interrupted};
use crate::judge::Judge;

/// Which one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Training {
    pub(super) seed: u64,
    /// The share of the training set that it gets.
    pub(super) fraction: f64,
}

/// What all trainings of a sweep share.
pub(super) struct Sweep<'a> {
    pub(super) config: &'a Config,
    pub(super) folder: &'a Folder,
    /// All there are, with their classes as labels.
    pub(super) images: &'a Images,
    pub(super) groups: &'a Groups,
    pub(super) judge: &'a Judge<'a>,
    /// Is told how many images have been learnt from.
    pub(super) progress: &'a (dyn Fn(usize) + Sync),
}

impl Training {
    /// What its files are called.
    fn name(self) -> String {
        if self.fraction == 1.0 {
            format!("seed-{:02}", self.seed)
        } else {
            format!("seed-{:02}-of-{}", self.seed, self.fraction)
        }
    }

    /// Trains, or goes on with what an earlier run left, or takes its record.
    pub(super) fn run(self, sweep: &Sweep<'_>) -> Result<SeedRecord> {
        let Sweep { config, folder, .. } = *sweep;
        let file = |ending| training_file(&self.name(), ending);
        let (record, state, part) = (file("json"), file("safetensors"), file("part.json"));
        let subset = self.subset(sweep)?;
        let conditions = sweep.groups.of_labels(&subset.labels)?;
        let examples = Examples::new(&subset.pixels, &conditions, subset.rows * subset.columns)?;
        let all = config.training.epochs * subset.len();
        if let Some(record) = folder.read::<SeedRecord>(&record)? {
            (sweep.progress)(all);
            return Ok(record);
        }
        let (mut trainer, mut done) = match (folder.read_bytes(&state)?, folder.read(&part)?) {
            (Some(bytes), Some(done)) => {
                let trainer =
                    Trainer::<Cvae>::resume(&config.nets(), examples, self.seed, &cpu(), &bytes)
                        .with_context(|| {
                            let state = folder.path().join(&state);
                            format!("{}: remove it to train from the start", state.display())
                        })?;
                (trainer, done)
            }
            _ => (Trainer::new(&config.nets(), examples, self.seed, &cpu())?, self.record()),
        };
        // The record is written before the state, so that it may be ahead of it, but never behind.
        let reached = (trainer.epoch() * trainer.batches_per_epoch()) as u64;
        done.checkpoints.retain(|checkpoint| checkpoint.iteration <= reached);
        (sweep.progress)(trainer.epoch() * subset.len());
        let before = done.wall_seconds;
        let start = Instant::now();
        let mut saved = Instant::now();
        let mut checkpoints = Vec::new();
        loop {
            let step = match trainer.step() {
                Ok(Some(step)) => step,
                Ok(None) => break,
                Err(Error::Diverged { epoch, .. }) => {
                    done.diverged = true;
                    (sweep.progress)((config.training.epochs - epoch) * subset.len());
                    break;
                }
                Err(error) => return Err(error.into()),
            };
            let per_epoch = trainer.batches_per_epoch();
            if config.training.checkpoints.is_at(step.epoch, step.batch, per_epoch) {
                let logits = prior_logits(&trainer.model().prior())?;
                checkpoints.push(Checkpoint { iteration: step.iteration as u64 + 1, logits });
            }
            let Some(shafer_nets::Losses { reconstruction, kl }) = step.epoch_losses else {
                continue;
            };
            done.checkpoints.append(&mut checkpoints);
            done.losses = Losses {
                total: Some(reconstruction + kl),
                reconstruction: Some(reconstruction),
                kl: Some(kl),
            };
            done.steps = (trainer.epoch() * per_epoch) as u64;
            done.wall_seconds = before + start.elapsed().as_secs_f64();
            (sweep.progress)(subset.len());
            let stopped = interrupt::check().is_err();
            if stopped || saved.elapsed().as_secs_f64() > SECONDS_BETWEEN_STATES {
                folder.write(&part, &done)?;
                folder.write_bytes(&state, &trainer.save()?)?;
                saved = Instant::now();
            }
            if stopped {
                bail!(Interrupted("the same command goes on from here"));
            }
        }
        if !done.diverged {
            let cvae = trainer.model();
            done.collapsed = cvae.diagnose(examples)?.collapsed();
            done.latents = Some(sweep.judge.latents(&cvae)?);
            folder
                .write_bytes(file("weights.safetensors"), &cvae.to_safetensors(Precision::Half)?)?;
        }
        folder.write(&record, &done)?;
        folder.remove(&[state, part])?;
        Ok(done)
    }

    fn record(self) -> SeedRecord {
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

    /// Its part of the images: another one for each seed.
    fn subset<'a>(self, sweep: &Sweep<'a>) -> Result<Cow<'a, Images>> {
        if self.fraction == 1.0 {
            return Ok(Cow::Borrowed(sweep.images));
        }
        let mut random = ChaCha8Rng::seed_from_u64(self.seed);
        let indices = stratified(&sweep.images.labels, self.fraction, &mut random)?;
        Ok(Cow::Owned(sweep.images.select(&indices)))
    }
}

/// The logits of both queries.
pub(crate) fn prior_logits(prior: &PriorSnapshot) -> Result<[Vec<f32>; 2]> {
    let row = |query| -> Result<Vec<f32>> {
        Ok(prior.logits(query)?.into_iter().map(|logit| logit as f32).collect())
    };
    Ok([row(0)?, row(1)?])
}
