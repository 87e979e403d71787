//! Section 3.1.2 and its appendix: images as grids of codes, sampled from an autoregressive prior.
//!
//! A VQ-VAE makes grids of codes of images; a PixelCNN is a distribution over such grids for each class. Each method
//! sparsifies the prior's distribution at every position. A classifier judges whether the sampled images still show
//! their class, and held-out grids tell what each method keeps and what it drops.

mod aggregate;
mod candidates;
mod codes;
mod config;
mod figures;
mod frechet;
mod judge;
mod kept;
mod page;
mod paper;
mod pictures;
mod results;
mod samples;
#[cfg(test)]
mod synthetic;
#[cfg(test)]
mod tests;
mod text;
mod train;

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context as _, Result};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use shafer_data::dataset::{ColourImages, Set, Split, stratified};
use shafer_nets::pixel_cnn::PixelCnn;
use shafer_nets::wide_residual::WideResidual;

use self::aggregate::Measured;
use self::codes::encode;
use self::config::Config;
pub(super) use self::config::DataChoice;
use self::judge::{Judge, Judged};
use self::pictures::Pictures;
use self::results::{ByMethod, Codebook, Trainings, VqVaeResults};
use self::train::{ClassifierTraining, PriorTraining, VqVaeTraining};
use super::methods::MethodName;
use super::preset::{SMOKE, presets};
use super::report::{Results as _, VERSION};
use super::{Columns, Entry, Experiment, Handle, Run, Task};
use crate::data::decoded_images;
use crate::method::{EVIDENTIAL, SPARSEMAX};

pub(super) const VQVAE: Entry = Entry::new::<VqVaeExperiment>(
    "vqvae",
    "Images: a large latent space",
    presets!(
        "vqvae",
        "small": "vqvae: for two cores, in hours",
        "small-live": "vqvae: as small, with a codebook of which all codes are in use",
        "smoke": SMOKE
    ),
);

struct VqVaeExperiment;

/// The images of a data set.
pub(super) struct Data {
    train: Arc<ColourImages>,
    held_out: Arc<ColourImages>,
}

/// The held-out grids that are measured after each epoch of the prior.
const GRIDS_PER_EPOCH: usize = 200;

impl Experiment for VqVaeExperiment {
    type Config = Config;
    type Data = Data;
    type Results = VqVaeResults;

    fn check(config: &Config) -> Result<()> {
        config.check()
    }

    fn data_set(config: &Config) -> Result<Option<&'static Set>> {
        Ok(Some(config.data_set.set()?))
    }

    fn load(config: &Config, folders: &[PathBuf]) -> Result<Data> {
        let (set, cache) = (config.data_set.set()?, decoded_images());
        let load = |split: Split| -> Result<Arc<ColourImages>> {
            let images = set.colour_images(split, folders, cache.as_deref())?;
            Ok(Arc::new(shared(images, config).with_context(|| format!("{}, {split}", set.name))?))
        };
        Ok(Data { train: load(Split::Train)?, held_out: load(config.data_set.held_out())? })
    }

    fn run(config: &Config, data: &Data, run: &Run<'_>) -> Result<(VqVaeResults, Columns)> {
        let classes = &data.train.classes;
        let side = config.image;
        let whole = Pictures::whole(&data.train, side)?;
        let crops = Pictures::random_crops(&data.train, side, config.seed)?;
        let held_out = Pictures::whole(&data.held_out, side)?;

        let job = VqVaeTraining { config, images: &crops };
        let vqvae_training =
            only(run.sequential("VQ-VAE", "batches", &[job])?)?.converged(train::VQVAE)?;
        let vqvae = codes::vqvae(run)?;
        let grids = codes::of_training(config, &whole, &crops, &vqvae, run)?;
        let held_out_grids = encode("held-out", &held_out, 0..1, &vqvae, run)?;
        let usage = grids.usage(config.vqvae.codes);
        let seen: Vec<bool> = usage.counts().iter().map(|&count| count > 0).collect();

        let candidates = candidates::all(config.vqvae.codes)?;
        let job = PriorTraining {
            config,
            classes: classes.len(),
            train: &grids,
            held_out: &held_out_grids.spaced(GRIDS_PER_EPOCH),
            candidates: &candidates::named(&candidates, &[EVIDENTIAL, SPARSEMAX]),
        };
        let prior_training =
            only(run.sequential("prior", "batches", &[job])?)?.converged(train::PRIOR)?;
        let job = ClassifierTraining {
            config,
            classes: classes.len(),
            images: &crops,
            held_out: &held_out,
        };
        let classifier_training =
            only(run.sequential("classifier", "batches", &[job])?)?.converged(train::CLASSIFIER)?;
        let prior = run.weights(train::PRIOR, PixelCnn::from_safetensors)?;
        let classifier = run.weights(train::CLASSIFIER, WideResidual::from_safetensors)?;

        let methods: Vec<MethodName> = candidates.iter().map(|c| c.name.clone()).collect();
        let all: Vec<&candidates::Candidate> = candidates.iter().collect();
        let kept = kept::on_held_out(&prior, &held_out_grids, &all, &seen, run)?;
        let sampled = samples::sample(config, classes.len(), &prior, &candidates, &seen, run)?;

        let judge = Judge {
            classifier: &classifier,
            vqvae: &vqvae,
            held_out: &held_out,
            grids: &held_out_grids,
            by_class: &held_out.by_class(classes.len()),
            compared: config.samples,
        };
        let judged = judge.judge(&methods, &sampled, run)?;
        let frechet = frechet_distances(&judged, run)?;

        let pictures =
            samples::pictures(config, &held_out, &held_out_grids, &vqvae, &methods, &sampled)?;
        let measured =
            Measured { methods: &methods, kept: &kept, sampled: &sampled, judged: &judged };
        let codebook =
            Codebook { codes: seen.len(), used: usage.used(), perplexity: usage.perplexity() };
        let origin = run.origin()?;
        let results = VqVaeResults {
            version: VERSION,
            experiment: VqVaeResults::KIND.to_owned(),
            data_set: config.data_set.name().to_owned(),
            image: side,
            grid: vqvae.config().grid(),
            classes: classes.clone(),
            samples: config.samples,
            held_out: held_out.len(),
            wall_seconds: origin.wall_seconds,
            revision: origin.revision,
            machine: origin.machine,
            config: origin.config,
            accuracy: measured.of_images(|judged| Some(judged.top1().share)),
            accuracy_se: measured.of_images(|judged| Some(judged.top1().se)),
            top5: measured.of_images(|judged| Some(judged.top5().share)),
            top5_se: measured.of_images(|judged| Some(judged.top5().se)),
            diversity: measured.of_images(Judged::diversity),
            frechet,
            kept: measured.kept(&codebook),
            codebook,
            trainings: Trainings {
                vqvae: vqvae_training,
                prior: prior_training,
                classifier: classifier_training,
            },
            maps: measured.maps(),
            pictures,
            methods: methods.clone(),
        };
        Ok((results, measured.table(classes)))
    }
}

/// The record of the only job of a stage.
fn only<R>(records: Vec<R>) -> Result<R> {
    records.into_iter().next().context("the stage has no record")
}

/// The configured share of the images of each class, and at least one.
fn shared(images: ColourImages, config: &Config) -> Result<ColourImages> {
    if config.share == 1.0 {
        return Ok(images);
    }
    let mut random = ChaCha8Rng::seed_from_u64(config.seed);
    Ok(images.select(&stratified(&images.labels, config.share, &mut random)?))
}

/// The distances of all images to the first ones, which are real.
fn frechet_distances(judged: &[(String, Judged)], run: &Run<'_>) -> Result<ByMethod<f64>> {
    let mut moments =
        judged.iter().filter_map(|(name, judged)| Some((name, judged.moments.as_ref()?)));
    let Some((_, real)) = moments.next() else { return Ok(ByMethod::new()) };
    let (mut names, mut tasks) = (Vec::new(), Vec::new());
    for (name, moments) in moments {
        let distance = move |_: &Handle<'_>| moments.distance(real);
        tasks.push(Task { name: format!("frechet.{name}"), size: 1, run: distance });
        names.push(name.clone());
    }
    let distances = run.parallel("Fréchet distances", "methods", &tasks)?;
    Ok(names.into_iter().zip(distances).collect())
}
