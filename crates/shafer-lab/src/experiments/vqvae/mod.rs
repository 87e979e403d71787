//! Section 3.1.2 and its appendix: images as grids of codes, sampled from an autoregressive prior.
//!
//! A VQ-VAE makes grids of codes of images; a PixelCNN is a distribution over such grids for each class. Each method
//! sparsifies the prior's distribution at every position. A classifier judges whether the sampled images still show
//! their class, and held-out grids tell what each method keeps and what it drops.

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

use anyhow::{Context as _, Result, bail};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use shafer_data::Column;
use shafer_data::dataset::{ColourImages, Set, Split, stratified};
use shafer_nets::pixel_cnn::PixelCnn;
use shafer_nets::wide_residual::WideResidual;

use self::codes::encode;
use self::config::Config;
pub(super) use self::config::DataChoice;
use self::judge::{Judged, decode};
use self::kept::Kept;
use self::pictures::Pictures;
use self::results::{
    ByMethod, Codebook, KeptSummary, REAL, RECONSTRUCTED, Trainings, VqVaeResults,
};
use self::samples::Sampled;
use self::train::{ClassifierTraining, PriorTraining, VqVaeTraining};
use super::methods::MethodName;
use super::preset::{SMOKE, presets};
use super::report::{Results as _, VERSION};
use super::{Columns, Entry, Experiment, Handle, Run, Task};
use crate::data::decoded_images;
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

pub(super) const VQVAE: Entry = Entry::new::<VqVaeExperiment>(
    "vqvae",
    "Images: a large latent space",
    presets!(
        "vqvae",
        "small": "For two cores: hours",
        "small-live": "The same with a codebook of which all codes are in use",
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

        // Held-out images first: the others are compared with them.
        let by_class = held_out.by_class(classes.len());
        let positions = held_out_grids.positions();
        let pixels_of = |class: usize, _: &Handle<'_>| Ok(held_out.pixels(0, &by_class[class]));
        let reconstruction_of = |class: usize, handle: &Handle<'_>| {
            let grid = |&row: &u32| &held_out_grids.codes[row as usize * positions..][..positions];
            let codes: Vec<u16> = by_class[class].iter().flat_map(grid).copied().collect();
            decode(&vqvae, &codes, handle)
        };
        let sample_of = |of: &Sampled, class: usize, handle: &Handle<'_>| {
            decode(&vqvae, of.codes(class), handle)
        };
        type Source<'a> = Box<dyn Fn(usize, &Handle<'_>) -> Result<Vec<f32>> + Sync + 'a>;
        let mut sources: Vec<(&str, u64, Source<'_>)> = vec![
            (REAL, held_out.len() as u64, Box::new(pixels_of)),
            (RECONSTRUCTED, held_out.len() as u64, Box::new(reconstruction_of)),
        ];
        for (method, sampled) in methods.iter().zip(&sampled) {
            let images = (config.samples * classes.len()) as u64;
            let source = move |class: usize, handle: &Handle<'_>| sample_of(sampled, class, handle);
            sources.push((&method.name, images, Box::new(source)));
        }
        let mut tasks = Vec::new();
        for (name, size, source) in &sources {
            let (classifier, count) = (&classifier, classes.len());
            let judge = move |handle: &Handle<'_>| -> Result<Judged> {
                let on_device = classifier.clone().to(handle.device());
                Judged::of(&on_device, count, config.samples, handle, |class| source(class, handle))
            };
            tasks.push(Task { name: format!("judged.{name}"), size: *size, run: judge });
        }
        let judged = run.sequential("judging images", "images", &tasks)?;
        let distances =
            frechet_distances(&judged, &sources.iter().map(|s| s.0).collect::<Vec<_>>(), run)?;

        let judged: Vec<(&str, &Judged)> = sources.iter().map(|s| s.0).zip(&judged).collect();
        let table = table(&judged, classes);
        let number = |of: fn(&Judged) -> f64| -> ByMethod<f64> {
            judged.iter().map(|(name, judged)| ((*name).to_owned(), of(judged))).collect()
        };
        let diversity = judged
            .iter()
            .filter_map(|(name, judged)| Some(((*name).to_owned(), judged.diversity()?)))
            .collect();
        let maps = methods.iter().zip(&kept);
        let codes = config.vqvae.codes;
        let summaries = methods.iter().zip(kept.iter().zip(&sampled));
        let pictures =
            samples::pictures(config, &held_out, &held_out_grids, &vqvae, &methods, &sampled)?;
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
            accuracy: number(|judged| judged.top1().share),
            accuracy_se: number(|judged| judged.top1().se),
            top5: number(|judged| judged.top5().share),
            top5_se: number(|judged| judged.top5().se),
            diversity,
            frechet: distances,
            kept: summaries
                .map(|(m, (kept, sampled))| {
                    (m.name.clone(), summary(kept, sampled, codes, usage.used()))
                })
                .collect(),
            codebook: Codebook { codes, used: usage.used(), perplexity: usage.perplexity() },
            trainings: Trainings {
                vqvae: vqvae_training,
                prior: prior_training,
                classifier: classifier_training,
            },
            maps: maps
                .filter(|(method, _)| [SOFTMAX, SPARSEMAX, EVIDENTIAL].contains(&&*method.name))
                .map(|(method, kept)| (method.name.clone(), kept.map()))
                .collect(),
            pictures,
            methods,
        };
        Ok((results, table))
    }
}

/// The record of the only job of a stage.
fn only<R>(records: Vec<R>) -> Result<R> {
    records.into_iter().next().context("the stage has no record")
}

/// The configured share of the images of each class.
fn shared(images: ColourImages, config: &Config) -> Result<ColourImages> {
    let images = if config.share == 1.0 {
        images
    } else {
        let mut random = ChaCha8Rng::seed_from_u64(config.seed);
        let labels: Vec<u16> = images.labels.clone();
        images.select(&stratified(&labels, config.share, &mut random)?)
    };
    let empty = (0..images.classes.len()).find(|&class| !images.labels.contains(&(class as u16)));
    match empty {
        None => Ok(images),
        Some(class) => bail!(
            "class {} has no image with share = {}; a larger share gives it one",
            images.classes[class],
            config.share
        ),
    }
}

/// The distances of all images to the real ones, by the names of their sources.
fn frechet_distances(judged: &[Judged], names: &[&str], run: &Run<'_>) -> Result<ByMethod<f64>> {
    let Some(real) = judged.first().and_then(|real| real.moments.as_ref()) else {
        return Ok(ByMethod::new());
    };
    let named = names.iter().zip(judged).skip(1);
    let (names, tasks): (Vec<&str>, Vec<_>) = named
        .filter_map(|(&name, judged)| Some((name, judged.moments.as_ref()?)))
        .map(|(name, moments)| {
            let distance = move |_: &Handle<'_>| moments.distance(real);
            (name, Task { name: format!("frechet.{name}"), size: 1, run: distance })
        })
        .unzip();
    let distances = run.parallel("Fréchet distances", "methods", &tasks)?;
    Ok(names.into_iter().map(str::to_owned).zip(distances).collect())
}

fn summary(kept: &Kept, sampled: &Sampled, codes: usize, used: usize) -> KeptSummary {
    let (mean, max) = (kept.mean(), kept.quantile(1.0));
    let reduction = |kept: f64| 1.0 - kept / codes as f64;
    KeptSummary {
        mean,
        median: kept.quantile(0.5),
        p90: kept.quantile(0.9),
        p99: kept.quantile(0.99),
        max,
        reduction_mean: reduction(mean),
        reduction_max: reduction(max as f64),
        of_used_mean: mean / used as f64,
        mass: kept.mass(),
        missed: kept.missed(),
        sampled_mean: sampled.kept_mean(),
        sampled_max: sampled.kept_max(),
    }
}

/// A row for each class of each method.
fn table(judged: &[(&str, &Judged)], classes: &[String]) -> Columns {
    let (mut method, mut class_name) = (Vec::new(), Vec::new());
    let (mut images, mut top1, mut top5, mut diversity) =
        (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for (name, judged) in judged {
        for (class, judged) in classes.iter().zip(&judged.classes) {
            method.push((*name).to_owned());
            class_name.push(class.clone());
            images.push(judged.images as i64);
            top1.push(judged.top1 as i64);
            top5.push(judged.top5 as i64);
            diversity.push(judged.diversity.unwrap_or(f64::NAN));
        }
    }
    vec![
        ("method", Column::Words(method)),
        ("class", Column::Words(class_name)),
        ("images", Column::Integers(images)),
        ("top1", Column::Integers(top1)),
        ("top5", Column::Integers(top5)),
        ("diversity", Column::Numbers(diversity)),
    ]
}
