//! Predictions as a page for a browser: a map of one frame, or of several to step through.

use anyhow::Result;
use askama::Template;

use super::Prediction;
use super::map::figures;
use crate::page::Document;
use crate::page::figures::{figure_sections, style};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The largest number of frames on a page: a frame of a crowd takes a tenth of a megabyte.
const MOST: usize = 100;

/// The frames that a page shows: all, or an evenly spaced selection.
pub(crate) fn shown(frames: &[u32]) -> Vec<u32> {
    let count = frames.len().min(MOST);
    (0..count).map(|place| frames[place * frames.len() / count]).collect()
}

#[derive(Template)]
#[template(path = "predict/page.html")]
struct Page<'a> {
    first: &'a Prediction,
    frames: usize,
    of: usize,
    /// Markup.
    figures: String,
}

/// The page of some of the frames of a scene, which has `of` frames.
pub(crate) fn page(predictions: &[Prediction], of: usize) -> Result<String> {
    let Some(first) = predictions.first() else { return Ok(String::new()) };
    let mut sections = String::new();
    for (prediction, figure) in predictions.iter().zip(figures(predictions)) {
        let frame = format!("frame-{}", prediction.frame);
        sections += &figure_sections(&frame, &[figure], |_| None)?;
    }
    let frames = predictions.len();
    let body = Page { first, frames, of, figures: sections }.render()?;
    let title = format!("{}: where pedestrians go", first.scene);
    let (style, scripts) = (style() + STYLE, frames > 1);
    Document { command: "predict", title: &title, style: &style, scripts, body: &body }.html()
}
