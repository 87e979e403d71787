//! `shafer reproduce`: the paper's experiments with images, from data to report; and what all experiments
//! share: presets, the folder of a run, and how a run ends.

mod config;
mod folder;
pub(crate) mod machine;
mod preset;
mod training;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;
use serde::Serialize;
use shafer_data::dataset::{ImageSet, Images, Split, set, stratified};
use shafer_data::{Column, write_table};
use shafer_nets::{Classifier, ClassifierConfig, Examples, Precision, Trainer, cpu};

use self::config::Config;
pub(crate) use self::folder::{Folder, SECONDS_BETWEEN_STATES, read, training_file};
pub(crate) use self::preset::{Experiment, Preset, configured};
pub(crate) use self::training::prior_logits;
use self::training::{Sweep, Training};
use crate::experiment::{self, ImageResults, Meta, Summary};
use crate::interrupt;
use crate::judge::Judge;
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};
use crate::progress::Progress;
use crate::report::{self, Drawable, RESULTS, TABLE};

/// What is asked for.
pub(crate) struct Request<'a> {
    pub(crate) experiment: Experiment,
    pub(crate) preset: Preset,
    pub(crate) seeds: Option<u64>,
    pub(crate) changes: &'a [String],
    pub(crate) out: &'a Path,
    /// Where data sets are looked for.
    pub(crate) folders: &'a [PathBuf],
    /// The folder of a run whose networks are taken.
    pub(crate) weights: Option<&'a Path>,
    pub(crate) quiet: bool,
}

/// What a run came to.
#[derive(Serialize)]
pub(crate) struct Reproduced {
    pub(crate) results: PathBuf,
    pub(crate) report: PathBuf,
    /// For people.
    #[serde(skip)]
    pub(crate) text: String,
}

impl Reproduced {
    /// Writes the numbers of a run and its table, and draws its report.
    pub(crate) fn write(
        folder: &Folder,
        numbers: &(impl Drawable + Serialize),
        table: &[(&str, Column)],
        mut text: String,
    ) -> Result<Self> {
        let results = folder.path().join(RESULTS);
        report::write_json(&results, numbers)?;
        write_table(&folder.path().join(TABLE), table)?;
        let report = report::draw(folder.path(), numbers)?.report;
        let _ = write!(text, "\nresults: {}\nreport:  {}\n", results.display(), report.display());
        Ok(Self { results, report, text })
    }
}

/// Seeds of what does not belong to one training.
const SHARE_SEED: u64 = 0;
const CLASSIFIER_SEED: u64 = 0;

/// Runs an experiment, or what is left of it, and draws its report.
pub(crate) fn reproduce(request: &Request<'_>) -> Result<Reproduced> {
    let start = Instant::now();
    let config = &Config::new(request.experiment, request.preset, request.seeds, request.changes)?;
    let set = set(&config.data_set)?;
    let about = set.images.as_ref().with_context(|| format!("{} has no images", set.name))?;
    let images = set.images(Split::Train, request.folders)?;
    let images = if config.share < 1.0 {
        let mut random = ChaCha8Rng::seed_from_u64(SHARE_SEED);
        images.select(&stratified(&images.labels, config.share, &mut random)?)
    } else {
        images
    };
    let folder = &Folder::open(request.out, config)?;
    let judge = judge(config, folder, &images, about, request.quiet)?;
    let trainings: Vec<Training> = config
        .fractions
        .iter()
        .flat_map(|&fraction| (0..config.seeds).map(move |seed| Training { seed, fraction }))
        .collect();
    let work: f64 = config.fractions.iter().sum::<f64>() * config.seeds as f64;
    let work = work * (config.training.epochs * images.len()) as f64;
    let progress =
        Mutex::new(Progress::counted(&config.data_set, "images", work as u64, request.quiet));
    let sweep = Sweep {
        config,
        folder,
        images: &images,
        groups: &about.groups,
        judge: &judge,
        progress: &|images| {
            if let Ok(mut progress) = progress.lock() {
                progress.add(images);
            }
        },
    };
    // From here on there is something to be saved when somebody asks to stop.
    interrupt::hold();
    // One a core, in this order: what matters most comes first.
    let mut records = trainings
        .into_iter()
        .enumerate()
        .par_bridge()
        .map(|(place, training)| {
            let record = training.run(&sweep).with_context(|| {
                format!("seed {}, fraction {}", training.seed, training.fraction)
            })?;
            folder.spent(start.elapsed().as_secs_f64())?;
            Ok((place, record))
        })
        .collect::<Result<Vec<_>>>()?;
    records.sort_by_key(|&(place, _)| place);
    let records: Vec<_> = records.into_iter().map(|(_, record)| record).collect();
    if records.iter().filter(|record| record.fraction == 1.0).all(|record| record.diverged) {
        bail!(
            "{}: every training diverged, so there is nothing to measure; try a smaller \
             training.learning_rate, in another --out",
            folder.path().display()
        );
    }
    let queries = [0, 1].map(|query| about.groups.names[query].clone());
    let meta = Meta {
        data_set: config.data_set.clone(),
        queries,
        config: serde_json::to_value(config)?,
        machine: machine::machine(),
        revision: machine::revision(),
        wall_seconds: folder.seconds_before + start.elapsed().as_secs_f64(),
        target: config.target,
        exemplar: None,
        samples: config.samples,
    };
    let numbers = ImageResults::aggregate(&meta, &records)?;
    let table = experiment::table(&meta, &records)?;
    Reproduced::write(folder, &numbers, &table, text(&numbers))
}

/// One that is trained on the real labels, or the one that an earlier run trained.
fn judge<'a>(
    config: &Config,
    folder: &Folder,
    images: &Images,
    set: &'a ImageSet,
    quiet: bool,
) -> Result<Judge<'a>> {
    const WEIGHTS: &str = "classifier.safetensors";
    let weights = if let Some(weights) = folder.read_bytes(WEIGHTS)? {
        weights
    } else {
        let weights = classifier(config, images, set.classes.len(), quiet)?;
        folder.write_bytes(WEIGHTS, &weights)?;
        weights
    };
    // From its weights in any case, which are rounded: a run that is taken up again has the same.
    Judge::new(&weights, set).with_context(|| {
        let path = folder.path().join(WEIGHTS);
        format!("{}: remove it to have it made again", path.display())
    })
}

/// The weights of a classifier.
fn classifier(config: &Config, images: &Images, classes: usize, quiet: bool) -> Result<Vec<u8>> {
    let pixels = images.rows * images.columns;
    let examples = Examples::new(&images.pixels, &images.labels, pixels)?;
    let shape = ClassifierConfig {
        pixels,
        hidden: config.classifier.hidden,
        classes,
        epochs: config.classifier.epochs,
        ..ClassifierConfig::default()
    };
    let all_images = shape.epochs * images.len();
    let mut progress = Progress::counted("classifier", "images", all_images as u64, quiet);
    let mut trainer = Trainer::<Classifier>::new(&shape, examples, CLASSIFIER_SEED, &cpu())?;
    while trainer.step()?.is_some() {
        let done = trainer.iteration() * all_images / trainer.iterations();
        progress.reach(done as u64);
    }
    let classifier = trainer.model();
    Ok(classifier.to_safetensors(Precision::Half)?)
}

/// The distances at the end, for people.
fn text(results: &ImageResults) -> String {
    let mut text = format!(
        "{}: {} seeds ({} collapsed, {} diverged), {} updates each, {:.0} s\n\n",
        results.data_set,
        results.seeds,
        results.collapsed,
        results.diverged,
        results.steps,
        results.wall_seconds
    );
    let methods = [SOFTMAX, SPARSEMAX, EVIDENTIAL];
    let _ = writeln!(
        text,
        "{:<26}{:>18}{:>18}{:>18}",
        "distance to the target", methods[0], methods[1], methods[2]
    );
    let tables = [
        ("Bhattacharyya", &results.final_values.bhattacharyya),
        ("Wasserstein", &results.final_values.wasserstein),
    ];
    for (distance, table) in tables {
        for query in &results.queries {
            let _ = write!(text, "{:<26}", format!("{distance}, {query}"));
            for method in methods {
                let cell = table.get(query).and_then(|row| row.get(method));
                let _ = write!(text, "{:>18}", cell.map_or_else(String::new, cell_text));
            }
            text.push('\n');
        }
    }
    text
}

/// The mean and its standard error; infinite ones are counted.
fn cell_text(summary: &Summary) -> String {
    let mut text = match (summary.mean, summary.se) {
        (Some(mean), Some(se)) => format!("{mean:.4} ± {se:.4}"),
        (Some(mean), None) => format!("{mean:.4}"),
        (None, _) => String::new(),
    };
    if summary.infinite > 0 {
        let _ = write!(text, " {} inf", summary.infinite);
    }
    text
}
