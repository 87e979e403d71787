//! Figures: drawings of results, as SVG and PNG.
//!
//! A figure is a list of panels and a legend. On a page each panel is a picture, so that a narrow screen shows them
//! below each other; in a file they are one drawing, for a paper.

mod axis;
mod canvas;
mod chart;
pub(crate) mod colour;
mod font;
mod image;
mod raster;
mod svg;
#[cfg(test)]
pub(crate) mod tests;

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

pub(crate) use self::axis::ticks;
pub(crate) use self::canvas::{Anchor, Drawing, Fill, Point, Stroke, TextStyle};
pub(crate) use self::chart::{Chart, LineStyle, Marks, Measured, Series, largest};
use self::colour::{Colour, INK, SOFT, WRONG};
pub(crate) use self::font::width as text_width;
pub(crate) use self::image::Image;
pub(crate) use self::svg::Background;
use crate::atomic;

const FIGURES: &str = "figures";

/// A figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// The name of its files.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    /// The explanation below it.
    pub(crate) note: String,
    pub(crate) legend: Vec<Key>,
    /// Panels beside each other in a file.
    pub(crate) columns: usize,
    pub(crate) panels: Vec<Panel>,
}

/// A part of a figure that can be looked at alone.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// Alternative text.
    pub(crate) title: String,
    pub(crate) drawing: Drawing,
}

/// An entry of a legend.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) words: String,
    pub(crate) sign: Sign,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Sign {
    Line(LineStyle),
    Block(Colour),
    /// A black line across a bar.
    Mark,
    /// A red frame.
    Frame,
}

const GAP: f64 = 16.0;
const MARGIN: f64 = 14.0;

impl Figure {
    /// All panels with the title, the legend and the note as one drawing.
    pub(crate) fn drawing(&self) -> Drawing {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let cell = |of: fn(&Drawing) -> f64| {
            self.panels.iter().map(|panel| of(&panel.drawing)).fold(0.0, f64::max)
        };
        let (wide, high) = (cell(|d| d.width), cell(|d| d.height));
        let width = 2.0 * MARGIN + columns as f64 * (wide + GAP) - GAP;
        let rows = self.panels.len().div_ceil(columns);
        let inner = width - 2.0 * MARGIN;
        let heading = font::wrapped(&self.title, 17.0, 0.9 * inner);
        let note = font::wrapped(&self.note, 11.5, inner);
        let (legend, legend_height) = self.legend_rows(inner);
        let head = 10.0 + 22.0 * heading.len() as f64 + legend_height;
        let foot = 17.0 * note.len() as f64 + 14.0;
        let mut drawing = Drawing::new(width, head + rows as f64 * (high + GAP) + foot);
        for (line, words) in heading.into_iter().enumerate() {
            let at = [MARGIN, 26.0 + 22.0 * line as f64];
            drawing.text(at, TextStyle::new(15.0, INK).bold(), words);
        }
        drawing.place(&legend, [MARGIN, head - legend_height]);
        for (place, panel) in self.panels.iter().enumerate() {
            let (row, column) = (place / columns, place % columns);
            let at = [MARGIN + column as f64 * (wide + GAP), head + row as f64 * (high + GAP)];
            drawing.place(&panel.drawing, at);
        }
        let foot = head + rows as f64 * (high + GAP);
        for (line, words) in note.into_iter().enumerate() {
            let at = [MARGIN, foot + 10.0 + 17.0 * line as f64];
            drawing.text(at, TextStyle::new(11.5, SOFT), words);
        }
        drawing
    }

    /// The legend in rows, and their height.
    fn legend_rows(&self, most: f64) -> (Drawing, f64) {
        const ROW: f64 = 24.0;
        const SIZE: f64 = 12.5;
        let mut drawing = Drawing::new(most, 0.0);
        let (mut x, mut row) = (0.0, 0.0);
        for key in &self.legend {
            let width = 34.0 + font::width(&key.words, SIZE, false);
            if x > 0.0 && x + width > most {
                (x, row) = (0.0, row + 1.0);
            }
            let middle = row * ROW + ROW / 2.0;
            drawing.place(&key.sign(), [x, middle - SIGN_HEIGHT / 2.0]);
            drawing.text([x + 34.0, middle + 4.5], TextStyle::new(SIZE, INK), key.words.as_str());
            x += width + 20.0;
        }
        let rows = if self.legend.is_empty() { 0.0 } else { row + 1.0 };
        (drawing, rows * ROW)
    }
}

const SIGN_HEIGHT: f64 = 14.0;

impl Key {
    pub(crate) fn method(title: &str, line: bool) -> Self {
        let style = LineStyle::of_method(title);
        let sign = if line { Sign::Line(style) } else { Sign::Block(style.colour) };
        Self { words: title.to_owned(), sign }
    }

    /// The sample of the line or colour.
    pub(crate) fn sign(&self) -> Drawing {
        const WIDTH: f64 = 28.0;
        let middle = SIGN_HEIGHT / 2.0;
        let mut drawing = Drawing::new(WIDTH, SIGN_HEIGHT);
        match self.sign {
            Sign::Line(line) => {
                drawing.line(&[[0.0, middle], [WIDTH, middle]], line.stroke());
            }
            Sign::Block(colour) => drawing.rectangle([7.0, 0.0], 14.0, SIGN_HEIGHT, colour),
            Sign::Mark => drawing.line(&[[4.0, middle], [24.0, middle]], Stroke::new(INK, 2.0)),
            Sign::Frame => {
                let stroke = Stroke::new(WRONG, 2.0);
                drawing.frame([8.0, 1.0], 12.0, 12.0, stroke);
            }
        }
        drawing
    }
}

/// Writes every figure as SVG and as PNG, into the folder `figures` of a run. The prefix keeps the files of several
/// sets of figures apart.
pub(crate) fn write_figures(
    folder: &Path,
    figures: &[Figure],
    prefix: &str,
) -> Result<Vec<PathBuf>> {
    let place = folder.join(FIGURES);
    std::fs::create_dir_all(&place)
        .with_context(|| format!("{}: cannot create the folder", place.display()))?;
    let mut files = Vec::new();
    for figure in figures {
        let drawing = figure.drawing();
        let svg = drawing.svg(&figure.title, Background::White)? + "\n";
        for (ending, bytes) in [("svg", svg.into_bytes()), ("png", drawing.png()?)] {
            let path = place.join(format!("{prefix}{}.{ending}", figure.name));
            atomic::write(&path, &bytes)?;
            files.push(path);
        }
    }
    Ok(files)
}
