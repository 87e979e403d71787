//! `shafer report`: results as figures and as one page, drawn again without running anything.

mod claims;
mod html;
mod tables;
#[cfg(test)]
mod tests;

pub(crate) use html::{figure_sections, style};

use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use shafer_data::AtomicFile;

use crate::experiment::ImageResults;
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

/// The results of a run.
pub(crate) fn read(folder: &Path) -> Result<ImageResults> {
    let path = folder.join(RESULTS);
    if !folder.is_dir() {
        bail!("{}: there is no such folder; name the folder of a run", folder.display());
    }
    if !path.exists() {
        bail!("{}: has no {RESULTS}; name the folder of a run that is complete", folder.display());
    }
    ImageResults::read(&path)
}

/// Draws the figures of results, and their page, into the folder of their run.
pub(crate) fn draw(folder: &Path, results: &ImageResults) -> Result<Drawn> {
    let figures = figure::all(results);
    let files = write_figures(folder, &figures, "")?;
    let report = folder.join(PAGE);
    write(&report, html::html(results, &figures)?.as_bytes())?;
    Ok(Drawn { data_set: results.data_set.clone(), report, figures: files })
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

/// Writes a file, aside first.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(bytes).with_context(|| format!("{}: cannot write", path.display()))?;
    Ok(file.commit()?)
}
