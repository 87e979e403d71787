//! `shafer report`: draws results as figures and a page, without running anything.

use std::fmt::Debug;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use askama::Template;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ALL;
use crate::atomic::write;
use crate::drawing::{Figure, write_figures};

/// The numbers of a run.
pub(crate) const RESULTS: &str = "results.json";
/// Everything that was measured, row by row.
pub(crate) const TABLE: &str = "results.parquet";
const PAGE: &str = "report.html";

/// The layout of results files; a change that an older program cannot read raises it.
pub(crate) const VERSION: u32 = 1;

/// Results of any experiment, as they are shown.
pub(crate) trait Report: Debug {
    /// What the results are about.
    fn name(&self) -> &str;
    /// For the terminal.
    fn summary(&self) -> String;
    fn figures(&self) -> Vec<Figure>;
    fn page(&self, figures: &[Figure]) -> Result<String>;
}

/// The results of an experiment, as they are stored.
pub(crate) trait Results: Report + Serialize + DeserializeOwned {
    /// The value of `experiment` in the file.
    const KIND: &'static str;

    /// Checks what a file must satisfy besides its types, so that it can be drawn.
    fn check(&self) -> Result<()>;
}

/// The files that were drawn for a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Drawn {
    pub(crate) data_set: String,
    pub(crate) report: PathBuf,
    pub(crate) figures: Vec<PathBuf>,
}

/// What is checked before the rest of a file is parsed.
#[derive(Deserialize)]
struct Header {
    version: Option<u32>,
    experiment: Option<String>,
}

/// Reads the results in the folder of a run.
pub(crate) fn read(folder: &Path) -> Result<Box<dyn Report>> {
    let path = folder.join(RESULTS);
    if !folder.is_dir() {
        bail!("{}: there is no such folder; name the folder of a run", folder.display());
    }
    if !path.exists() {
        bail!("{}: has no {RESULTS}; name the folder of a complete run", folder.display());
    }
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: cannot read the results", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Box<dyn Report>> {
    let header: Header = serde_json::from_str(text).context("not a results file")?;
    match header.version {
        Some(VERSION) => {}
        Some(version) => bail!(
            "the results have layout {version}, but this program reads layout {VERSION}; use the \
             program that wrote them, or run the experiment again"
        ),
        None => bail!("not a results file: it has no version"),
    }
    let Some(kind) = header.experiment else {
        bail!("not a results file: it does not name its experiment");
    };
    let mut kinds: Vec<&str> = ALL.iter().map(|entry| entry.kind).collect();
    kinds.dedup();
    match ALL.iter().find(|entry| entry.kind == kind) {
        Some(entry) => (entry.parse)(text),
        None => bail!("results of {kind:?}, but this program knows {}", kinds.join(", ")),
    }
}

/// Parses results whose version and experiment were checked.
pub(crate) fn parse_as<R: Results + 'static>(text: &str) -> Result<Box<dyn Report>> {
    let results: R = serde_json::from_str(text).context("cannot parse the results")?;
    results.check()?;
    Ok(Box::new(results))
}

/// Draws the figures of results, and their page, into the folder of their run.
pub(crate) fn draw(folder: &Path, results: &dyn Report) -> Result<Drawn> {
    let figures = results.figures();
    let files = write_figures(folder, &figures, "")?;
    let report = folder.join(PAGE);
    write(&report, results.page(&figures)?.as_bytes())?;
    Ok(Drawn { data_set: results.name().to_owned(), report, figures: files })
}

/// Writes a JSON file atomically, with a line break at its end.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    write(path, &bytes)
}

/// The last section of a page.
#[derive(Template)]
#[template(path = "experiments/made.html")]
pub(super) struct Made<'a> {
    revision: &'a str,
    machine: &'a str,
    wall_seconds: f64,
    data_set: &'a str,
    /// JSON.
    config: String,
}

impl<'a> Made<'a> {
    pub(super) fn new(
        revision: &'a str,
        machine: &'a str,
        wall_seconds: f64,
        data_set: &'a str,
        config: &Value,
    ) -> Result<Self> {
        let config = serde_json::to_string_pretty(config)?;
        Ok(Self { revision, machine, wall_seconds, data_set, config })
    }
}
