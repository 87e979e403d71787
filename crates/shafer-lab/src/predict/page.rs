//! Predictions as a page for a browser: a map of one frame, or of several to step through.

use std::fmt::Write as _;

use anyhow::Result;

use super::Prediction;
use super::map::figures;
use crate::page::figures::{figure_sections, style};
use crate::page::{Document, escaped, filled};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// How many frames a page has at most: a frame of a crowd takes a tenth of a megabyte.
const MOST: usize = 100;

/// Those of many frames that a page shows: all, or as many as it may have, evenly spaced.
pub(crate) fn shown(frames: &[u32]) -> Vec<u32> {
    let count = frames.len().min(MOST);
    (0..count).map(|place| frames[place * frames.len() / count]).collect()
}

/// The page of one frame or more, of so many.
pub(crate) fn page(predictions: &[Prediction], of: usize) -> Result<String> {
    let Some(first) = predictions.first() else { return Ok(String::new()) };
    let mut facts = format!(
        "{} frames per second, coordinates times {} are metres.",
        first.frames_per_second, first.metres_per_unit
    );
    if of > predictions.len() {
        let _ = write!(facts, " {} of {of} frames, evenly spaced.", predictions.len());
    }
    let mut warnings = String::new();
    for warning in &first.warnings {
        let _ = write!(warnings, "<li>{}</li>", escaped(warning));
    }
    let mut frames = String::new();
    for (prediction, figure) in predictions.iter().zip(figures(predictions)) {
        let of = format!("frame-{}", prediction.frame);
        frames += &figure_sections(&of, &[figure], |_| None)?;
    }
    let scripts = predictions.len() > 1;
    let script = if scripts { format!("<script>\n{SCRIPT}</script>") } else { String::new() };
    let title = format!("{}: where pedestrians go", first.scene);
    let body = filled!(
        PAGE,
        &[
            ("scene", &escaped(&first.scene)),
            ("facts", &facts),
            ("warnings", &warnings),
            ("frames", &frames),
            ("script", &script),
        ],
    );
    let style = style() + STYLE;
    Ok(Document { command: "predict", title: &title, style: &style, scripts, body: &body }.html())
}
