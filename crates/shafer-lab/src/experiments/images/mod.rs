//! Section 3.1.1 and appendices C to G: autoencoders of small images, with a categorical latent variable.
//!
//! A training gives a [`SeedRecord`](record::SeedRecord); [`Evaluation`] makes results of all of them.

mod aggregate;
mod claims;
mod config;
mod demo;
mod figures;
mod judge;
mod measure;
mod page;
#[cfg(test)]
mod page_tests;
mod paper;
mod record;
mod results;
#[cfg(test)]
mod synthetic;
mod tables;
#[cfg(test)]
mod tests;
mod text;
mod train;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use shafer_data::dataset::{ImageSet, Images, Set, Split, set, stratified};

use self::aggregate::{Evaluation, Meta};
use self::config::Config;
pub(crate) use self::demo::demo_results;
pub(crate) use self::figures::of_exemplar;
use self::judge::Judge;
pub(crate) use self::page::figure_html;
pub(crate) use self::paper::title;
pub(crate) use self::results::{Exemplar, ImageResults, QueryBars};
use self::train::{Autoencoder, ImageClassifier};
use super::preset::{QUICK, SMOKE, presets};
use super::{Columns, Entry, Experiment, Run};

pub(super) const MNIST: Entry = Entry::new::<LatentImages>(
    "mnist",
    "Digits: even or odd",
    presets!("mnist", "quick": QUICK, "smoke": SMOKE),
);
pub(super) const FASHION: Entry = Entry::new::<LatentImages>(
    "fashion",
    "Clothing: tops, or bottoms and accessories",
    presets!(
        "fashion", "quick": QUICK, "smoke": SMOKE,
        "stable": "fashion: a training without posterior collapse, all seeds"
    ),
);
pub(super) const NOTMNIST: Entry = Entry::new::<LatentImages>(
    "notmnist",
    "Letters: with a bar or without",
    presets!("notmnist", "quick": QUICK, "smoke": SMOKE),
);

/// The seed of the share of the data that counts as all of it.
const SHARE_SEED: u64 = 0;

struct LatentImages;

/// The training set.
struct Data {
    about: &'static ImageSet,
    images: Images,
}

impl Experiment for LatentImages {
    type Config = Config;
    type Data = Data;
    type Results = ImageResults;

    fn check(config: &Config) -> Result<()> {
        config.check()
    }

    fn data_set(config: &Config) -> Result<Option<&'static Set>> {
        Ok(Some(set(&config.data_set)?))
    }

    fn load(config: &Config, folders: &[PathBuf]) -> Result<Data> {
        let set = set(&config.data_set)?;
        let about = set.images.as_ref().with_context(|| format!("{} has no images", set.name))?;
        let (queries, conditions) = (about.groups.names.len(), config.network.conditions);
        if conditions != queries {
            bail!("network.conditions is {conditions}, but {} has {queries} queries", set.name);
        }
        let mut images = set.images(Split::Train, folders)?;
        if config.share < 1.0 {
            let mut random = ChaCha8Rng::seed_from_u64(SHARE_SEED);
            images = images.select(&stratified(&images.labels, config.share, &mut random)?);
        }
        Ok(Data { about, images })
    }

    fn run(config: &Config, data: &Data, run: &Run<'_>) -> Result<(ImageResults, Columns)> {
        let Data { about, images } = data;
        let classifier = ImageClassifier { config, images, classes: about.classes.len() };
        run.parallel("classifier", "batches", &[classifier])?;
        let judge = &run.weights("classifier", |weights| Judge::new(weights, about))?;
        let trainings: Vec<Autoencoder<'_>> = config
            .fractions
            .iter()
            .flat_map(|&fraction| (0..config.seeds).map(move |seed| (fraction, seed)))
            .map(|(fraction, seed)| Autoencoder {
                seed,
                fraction,
                config,
                images,
                groups: &about.groups,
                judge,
            })
            .collect();
        let records = run.parallel(&config.data_set, "batches", &trainings)?;
        if records.iter().filter(|record| record.fraction == 1.0).all(|record| record.diverged) {
            bail!(
                "{}: every training diverged, so there is nothing to measure; try a smaller \
                 training.learning_rate, in another --out",
                run.path().display()
            );
        }
        let meta = Meta {
            data_set: config.data_set.clone(),
            queries: about.groups.names.clone(),
            origin: run.origin()?,
            target: config.target,
            exemplar: None,
            samples: config.samples,
        };
        let evaluation = Evaluation::new(&meta, &records)?;
        Ok((evaluation.results()?, evaluation.columns()))
    }
}
