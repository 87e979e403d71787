//! One training, from its seed to its weights.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use shafer_nets::behaviour::{Losses, Predictor};
use shafer_nets::{Error, Precision, Trainer, cpu};

use super::config::Config;
use super::folds::Fold;
use crate::interrupt::{self, Interrupted};
use crate::reproduce::{Folder, SECONDS_BETWEEN_STATES, read, training_file};

/// What one training came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct TrainingRecord {
    /// The scene that was left out.
    pub(crate) scene: String,
    pub(crate) seed: u64,
    /// Whether the loss stopped being a number. Such a training is named, and in no mean.
    pub(crate) diverged: bool,
    pub(crate) iterations: usize,
    pub(crate) wall_seconds: f64,
    /// Of the last batch.
    pub(crate) losses: Option<Losses>,
}

/// What its files are called.
pub(super) fn name(fold: &str, seed: u64) -> String {
    format!("{fold}-seed-{seed:02}")
}

/// Trains, or goes on with what an earlier run left, or takes its record. `progress` is told how many
/// iterations are done.
pub(super) fn train(
    fold: &Fold,
    seed: u64,
    config: &Config,
    folder: &Folder,
    progress: &(dyn Fn(usize) + Sync),
) -> Result<TrainingRecord> {
    let file = |ending| training_file(&name(&fold.name, seed), ending);
    let (record, state, part) = (file("json"), file("safetensors"), file("part.json"));
    if let Some(record) = folder.read::<TrainingRecord>(&record)? {
        progress(config.training.iterations);
        return Ok(record);
    }
    let left = folder.read_bytes(&state)?.zip(folder.read(&part)?);
    let (mut trainer, mut done) = if let Some((bytes, done)) = left {
        let trainer =
            Trainer::<Predictor>::resume(&config.nets(), &fold.examples[..], seed, &cpu(), &bytes)
                .with_context(|| {
                    let state = folder.path().join(&state);
                    format!("{}: remove it to train from the start", state.display())
                })?;
        (trainer, done)
    } else {
        let done = TrainingRecord {
            scene: fold.name.clone(),
            seed,
            diverged: false,
            iterations: 0,
            wall_seconds: 0.0,
            losses: None,
        };
        (Trainer::new(&config.nets(), &fold.examples[..], seed, &cpu())?, done)
    };
    progress(trainer.iteration());
    let before = done.wall_seconds;
    let start = Instant::now();
    let mut saved = Instant::now();
    loop {
        match trainer.step() {
            Ok(Some(step)) => done.losses = Some(step.losses),
            Ok(None) => break,
            Err(Error::Diverged { .. }) => {
                done.diverged = true;
                progress(config.training.iterations - trainer.iteration());
                break;
            }
            Err(error) => return Err(error.into()),
        }
        done.wall_seconds = before + start.elapsed().as_secs_f64();
        progress(1);
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
    done.iterations = trainer.iteration();
    if !done.diverged {
        let weights = trainer.model().to_safetensors(Precision::Half)?;
        folder.write_bytes(file("weights.safetensors"), &weights)?;
    }
    folder.write(&record, &done)?;
    folder.remove(&[state, part])?;
    Ok(done)
}

/// What an earlier run trained.
pub(super) struct Trained {
    record: TrainingRecord,
    /// Unless it diverged.
    weights: Option<Vec<u8>>,
}

impl Trained {
    /// All that is needed, if the networks and trainings are those that are asked for.
    pub(super) fn read(from: &Path, folds: &[Fold], config: &Config) -> Result<Vec<Self>> {
        let (theirs, ours) = (Folder::config_of(from)?, serde_json::to_value(config)?);
        for (key, what) in [
            ("network", "another network"),
            ("training", "another training"),
            ("differences", "other differences"),
        ] {
            if theirs[key] != ours[key] {
                bail!(
                    "{}: was trained with {what} than is asked for: {}, not {}",
                    from.display(),
                    theirs[key],
                    ours[key]
                );
            }
        }
        let all = folds.iter().flat_map(|fold| (0..config.seeds).map(move |seed| (fold, seed)));
        all.map(|(fold, seed)| {
            let file = |ending| from.join(training_file(&name(&fold.name, seed), ending));
            let path = file("json");
            let record: TrainingRecord = serde_json::from_slice(&read(&path)?)
                .with_context(|| format!("{}: is not what a training writes", path.display()))?;
            if record.diverged {
                return Ok(Self { record, weights: None });
            }
            let path = file("weights.safetensors");
            let weights = read(&path)?;
            let predictor = Predictor::from_safetensors(&weights)
                .with_context(|| path.display().to_string())?;
            if predictor.config() != &config.network {
                bail!("{}: is a network of another shape", path.display());
            }
            Ok(Self { record, weights: Some(weights) })
        })
        .collect()
    }

    /// Puts it where this run would have written it, unless it has trained that itself.
    pub(super) fn put(&self, folder: &Folder) -> Result<()> {
        let Self { record, weights } = self;
        let file = |ending| training_file(&name(&record.scene, record.seed), ending);
        if folder.read_bytes(file("json"))?.is_some() {
            return Ok(());
        }
        if let Some(weights) = weights {
            folder.write_bytes(file("weights.safetensors"), weights)?;
        }
        folder.write(file("json"), record)
    }
}

/// What a training left: from its file, whose numbers are rounded, so that a run that is taken up again
/// has the same.
pub(super) fn trained(fold: &str, seed: u64, folder: &Folder) -> Result<Predictor> {
    let file = training_file(&name(fold, seed), "weights.safetensors");
    let again = || {
        let path = folder.path().join(&file);
        format!("{}: remove the training's files to have it made again", path.display())
    };
    let weights = folder.read_bytes(&file)?.context("is not there").with_context(again)?;
    Predictor::from_safetensors(&weights).with_context(again)
}
