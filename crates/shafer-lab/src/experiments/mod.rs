//! The paper's experiments: `shafer reproduce` and `shafer report`.
//!
//! An experiment is a folder here and a line in [`ALL`]. It implements [`Experiment`]: load the data, run stages
//! of independent jobs ([`Run`]), and make results of their records; and [`Report`] for its results: table,
//! figures, page. CONTRIBUTING.md has the steps.

mod folder;
pub(crate) mod images;
mod methods;
mod options;
mod origin;
pub(crate) mod pedestrians;
pub(crate) mod preset;
mod report;
mod runner;
pub(crate) mod statistics;
#[cfg(test)]
mod tests;
mod text_table;
mod training;
mod vqvae;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use clap::builder::{PossibleValue, PossibleValuesParser};
use serde::Serialize;
use serde::de::DeserializeOwned;
use shafer_data::dataset::Set;
use shafer_data::{Column, write_table};

pub(crate) use self::options::Options;
use self::origin::OWN_DATA;
use self::preset::Preset;
pub(crate) use self::report::{Drawn, draw, read};
use self::report::{RESULTS, Report, Results, TABLE, write_json};
use self::runner::{Handle, Run, Task};

/// Every experiment.
pub(crate) const ALL: &[Entry] =
    &[images::MNIST, images::FASHION, images::NOTMNIST, pedestrians::BEHAVIOUR, vqvae::VQVAE];

/// An experiment: from data to results.
pub(crate) trait Experiment {
    /// Everything that the numbers of a run depend on.
    type Config: Serialize + DeserializeOwned;
    type Data;
    type Results: Results;

    /// Checks a configuration before anything is loaded.
    fn check(config: &Self::Config) -> Result<()>;

    /// The data set that [`load`](Self::load) reads; its checksums are verified first.
    fn data_set(config: &Self::Config) -> Result<Option<&'static Set>>;

    /// Loads the data, which is looked for in these folders.
    fn load(config: &Self::Config, folders: &[PathBuf]) -> Result<Self::Data>;

    /// Runs the stages. The results are a function of the records of their jobs.
    fn run(
        config: &Self::Config,
        data: &Self::Data,
        run: &Run<'_>,
    ) -> Result<(Self::Results, Columns)>;
}

/// The experiment of this name.
pub(crate) fn find(name: &str) -> Result<&'static Entry> {
    ALL.iter()
        .find(|entry| entry.name == name)
        .with_context(|| format!("{name}: no such experiment"))
}

/// The names of all experiments, for the command line.
pub(crate) fn names() -> PossibleValuesParser {
    ALL.iter()
        .map(|entry| PossibleValue::new(entry.name).help(entry.about))
        .collect::<Vec<_>>()
        .into()
}

/// The names of all presets, for the command line. Not every experiment has each.
pub(crate) fn preset_names() -> PossibleValuesParser {
    let mut presets: Vec<&Preset> = Vec::new();
    for preset in ALL.iter().flat_map(|entry| entry.presets) {
        if presets.iter().all(|known| known.name != preset.name) {
            presets.push(preset);
        }
    }
    let value = |preset: &Preset| PossibleValue::new(preset.name).help(preset.about);
    presets.into_iter().map(value).collect::<Vec<_>>().into()
}

/// A table of everything that was measured, for `results.parquet`.
pub(crate) type Columns = Vec<(&'static str, Column)>;

/// An experiment on the command line. Several may share their code, with other presets.
#[derive(Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// The first one is the default.
    pub(crate) presets: &'static [Preset],
    reproduce: fn(&Request<'_>) -> Result<Reproduced>,
    /// The `experiment` of its results files.
    kind: &'static str,
    parse: fn(&str) -> Result<Box<dyn Report>>,
}

impl Entry {
    const fn new<E: Experiment>(
        name: &'static str,
        about: &'static str,
        presets: &'static [Preset],
    ) -> Self
    where
        E::Results: 'static,
    {
        let (reproduce, parse) = (reproduce_as::<E>, report::parse_as::<E::Results>);
        Self { name, about, presets, reproduce, kind: E::Results::KIND, parse }
    }
}

/// The device that is not recorded, as it is the default.
pub(crate) const CPU: &str = "cpu";

/// The arguments of `shafer reproduce`.
pub(crate) struct Request<'a> {
    pub(crate) experiment: &'a Entry,
    pub(crate) preset: &'a str,
    pub(crate) seeds: Option<u64>,
    /// Changes of the preset, each a `key=value`.
    pub(crate) changes: &'a [String],
    pub(crate) out: &'a Path,
    /// The folders that data sets are looked for in.
    pub(crate) folders: &'a [PathBuf],
    /// Whether the data may differ from the catalogue's checksums.
    pub(crate) own_data: bool,
    /// The folder of a run whose trained networks are used.
    pub(crate) weights: Option<&'a Path>,
    /// Where networks are trained: `cpu` or `gpu`.
    pub(crate) device: &'a str,
    pub(crate) quiet: bool,
}

/// The files of a complete run.
#[derive(Serialize)]
pub(crate) struct Reproduced {
    pub(crate) results: PathBuf,
    pub(crate) report: PathBuf,
    /// The summary for the terminal.
    #[serde(skip)]
    pub(crate) text: String,
}

/// Runs an experiment, or what is left of it, and draws its report.
pub(crate) fn reproduce(request: &Request<'_>) -> Result<Reproduced> {
    (request.experiment.reproduce)(request)
}

fn reproduce_as<E: Experiment>(request: &Request<'_>) -> Result<Reproduced> {
    let Request {
        experiment, preset, seeds, changes, out, folders, weights, device, quiet, ..
    } = *request;
    let config: E::Config = preset::configured(experiment, preset, seeds, changes)?;
    E::check(&config).context("the configuration")?;
    let mut recorded = serde_json::to_value(&config)?;
    let on = shafer_nets::device(device).with_context(|| format!("--device {device}"))?;
    if device != CPU {
        // Its numbers are not those of the CPU.
        recorded["device"] = device.into();
    }
    if request.own_data {
        recorded[OWN_DATA] = true.into();
    } else if let Some(set) = E::data_set(&config)? {
        verify(set, folders)?;
    }
    let data = E::load(&config, folders)?;
    let run = Run::new(out, recorded, weights, &on, quiet);
    let (numbers, table) = E::run(&config, &data, &run)?;
    let results = out.join(RESULTS);
    write_json(&results, &numbers)?;
    write_table(&out.join(TABLE), &table)?;
    let report = draw(out, &numbers)?.report;
    let mut text = numbers.summary();
    let _ = write!(text, "\nresults: {}\nreport:  {}\n", results.display(), report.display());
    Ok(Reproduced { results, report, text })
}

/// Compares a data set with its checksums: numbers of other data are not those of the paper's experiment.
fn verify(set: &Set, folders: &[PathBuf]) -> Result<()> {
    let found = set.find(folders)?;
    let problem = found.verify().into_iter().find_map(|check| check.problem);
    match problem {
        None => Ok(()),
        Some(problem) => bail!(
            "{problem}. `shafer data fetch {}` replaces it; --own-data trains on it as it is",
            set.name
        ),
    }
}
