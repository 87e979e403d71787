//! `shafer report`: results as figures and as one page, drawn again without running anything.

mod claims;
mod html;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use html::{document, figure_sections, image_figures, made, style};

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::{Deserialize, Serialize};
use shafer_data::AtomicFile;

use crate::behaviour::BehaviourResults;
use crate::experiment::{ImageResults, VERSION};
use crate::figure::{self, Figure, Paper};

/// What a run leaves its numbers in.
pub(crate) const RESULTS: &str = "results.json";
/// What was measured of every training at every checkpoint.
pub(crate) const TABLE: &str = "results.parquet";
const PAGE: &str = "report.html";
const FIGURES: &str = "figures";

/// What was drawn for a run.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Drawn {
    pub(crate) data_set: String,
    pub(crate) report: PathBuf,
    pub(crate) figures: Vec<PathBuf>,
}

/// Results that figures and a page can be made of.
pub(crate) trait Drawable: std::fmt::Debug {
    /// What they are of.
    fn name(&self) -> &str;
    fn figures(&self) -> Vec<Figure>;
    fn page(&self, figures: &[Figure]) -> Result<String>;
}

impl Drawable for ImageResults {
    fn name(&self) -> &str {
        &self.data_set
    }

    fn figures(&self) -> Vec<Figure> {
        figure::all(self)
    }

    fn page(&self, figures: &[Figure]) -> Result<String> {
        html::html(self, figures)
    }
}

/// What has to fit before the rest is looked at.
#[derive(Deserialize)]
struct Header {
    version: Option<u32>,
    experiment: Option<String>,
}

/// The results of a run.
pub(crate) fn read(folder: &Path) -> Result<Box<dyn Drawable>> {
    let path = folder.join(RESULTS);
    if !folder.is_dir() {
        bail!("{}: there is no such folder; name the folder of a run", folder.display());
    }
    if !path.exists() {
        bail!("{}: has no {RESULTS}; name the folder of a run that is complete", folder.display());
    }
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("{}: cannot read the results", path.display()))?;
    parse(&text).with_context(|| path.display().to_string())
}

fn parse(text: &str) -> Result<Box<dyn Drawable>> {
    let header: Header = serde_json::from_str(text).context("not a file of results")?;
    match header.version {
        Some(VERSION) => {}
        Some(version) => bail!(
            "the results have layout {version}, but this program reads layout {VERSION}; use the \
             program that wrote them, or run the experiment again"
        ),
        None => bail!("not a file of results: it has no version"),
    }
    match header.experiment.as_deref() {
        Some(ImageResults::EXPERIMENT) => Ok(Box::new(ImageResults::parse(text)?)),
        Some(BehaviourResults::EXPERIMENT) => Ok(Box::new(BehaviourResults::parse(text)?)),
        Some(other) => bail!(
            "results of {other:?}, but only those of {:?} and {:?} are known",
            ImageResults::EXPERIMENT,
            BehaviourResults::EXPERIMENT
        ),
        None => bail!("not a file of results: it does not say of which experiment"),
    }
}

/// Draws the figures of results, and their page, into the folder of their run.
pub(crate) fn draw(folder: &Path, results: &dyn Drawable) -> Result<Drawn> {
    let figures = results.figures();
    let files = write_figures(folder, &figures, "")?;
    let report = folder.join(PAGE);
    write(&report, results.page(&figures)?.as_bytes())?;
    Ok(Drawn { data_set: results.name().to_owned(), report, figures: files })
}

/// Writes every figure as SVG and as PNG, with something before its name.
pub(crate) fn write_figures(
    folder: &Path,
    figures: &[Figure],
    before: &str,
) -> Result<Vec<PathBuf>> {
    let place = folder.join(FIGURES);
    std::fs::create_dir_all(&place)
        .with_context(|| format!("{}: cannot make the folder", place.display()))?;
    let mut files = Vec::new();
    for figure in figures {
        let drawing = figure.drawing();
        let svg = drawing.svg(&figure.title, Paper::White)? + "\n";
        for (ending, bytes) in [("svg", svg.into_bytes()), ("png", drawing.png()?)] {
            let path = place.join(format!("{before}{}.{ending}", figure.name));
            write(&path, &bytes)?;
            files.push(path);
        }
    }
    Ok(files)
}

/// Writes a value as a file of JSON, aside first.
pub(crate) fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let mut bytes = serde_json::to_vec(value)?;
    bytes.push(b'\n');
    write(path, &bytes)
}

/// Writes a file, aside first.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).with_context(|| format!("{}: cannot write", path.display()))?;
    Ok(file.commit()?)
}
