//! Figures of results: a function of them and of nothing else.
//!
//! A figure is a list of panels and a legend. On a page each panel is a picture of its own, so that a
//! narrow screen shows them below each other; in a file they are one drawing, for a paper.

pub(crate) mod axis;
mod bars;
mod behaviour;
mod chart;
pub(crate) mod colour;
mod curves;
mod drawing;
mod font;
mod prediction;
mod raster;
mod reduced;
mod samples;
mod svg;
#[cfg(test)]
mod tests;

pub(crate) use behaviour::{of_behaviour, paths};
use chart::LineStyle;
use colour::{INK, SOFT};
pub(crate) use drawing::Drawing;
use drawing::{Stroke, TextStyle};
pub(crate) use prediction::of_predictions;
pub(crate) use svg::Paper;

use crate::experiment::{ImageResults, MethodName};
use crate::method;

/// A figure.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// The name of its files.
    pub(crate) name: &'static str,
    pub(crate) title: String,
    /// What one has to know to read it.
    pub(crate) note: String,
    pub(crate) legend: Vec<Key>,
    /// Panels beside each other in a file.
    pub(crate) columns: usize,
    pub(crate) panels: Vec<Panel>,
}

/// A part of a figure that can be looked at alone.
#[derive(Clone, Debug)]
pub(crate) struct Panel {
    /// In words, for who cannot see it.
    pub(crate) title: String,
    pub(crate) drawing: Drawing,
}

/// An entry of a legend.
#[derive(Clone, Debug)]
pub(crate) struct Key {
    pub(crate) words: String,
    sign: Sign,
}

#[derive(Clone, Copy, Debug)]
enum Sign {
    Line(LineStyle),
    Block(colour::Colour),
    /// A black line across a bar.
    Mark,
    /// A red frame.
    Frame,
}

/// What one training came to.
pub(crate) fn of_exemplar(results: &ImageResults) -> Vec<Figure> {
    bars::bars(results).into_iter().chain(samples::samples(results)).collect()
}

/// All figures that the results have numbers for.
pub(crate) fn all(results: &ImageResults) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(bars::bars(results));
    figures.extend(curves::evolution(results));
    figures.extend(reduced::reduced(results));
    figures.extend(samples::samples(results));
    figures.push(curves::kept(results));
    figures.push(curves::evidence(results));
    figures
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

    /// The legend in as many rows as it takes, and how high they are.
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
    fn method(title: &str, line: bool) -> Self {
        let style = line_of(title);
        let sign = if line { Sign::Line(style) } else { Sign::Block(style.colour) };
        Self { words: title.to_owned(), sign }
    }

    /// What the entry looks like.
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
                let stroke = Stroke::new(colour::WRONG, 2.0);
                drawing.frame([8.0, 1.0], 12.0, 12.0, stroke);
            }
        }
        drawing
    }
}

/// How a method is drawn. Colours alone are not enough for everybody: dashes and widths differ too.
fn line_of(title: &str) -> LineStyle {
    let dash: &[f64] = match title.split(' ').next().unwrap_or_default() {
        method::SOFTMAX | "sparsegen-hg" | "top-p" => &[7.0, 3.0],
        "entmax" | "min-p" => &[2.0, 2.5],
        "sparsegen-lin" | "top-k" => &[9.0, 3.0, 2.0, 3.0],
        _ => &[],
    };
    let width = if title == method::EVIDENTIAL { 2.2 } else { 1.6 };
    LineStyle { colour: colour::of_method(title), dash, width }
}

/// The paper's three, then the other projections onto the simplex, then the cut-offs; of each method
/// the name in the tables and what to show.
///
/// More than four curves with bands in one plot could not be told apart. Evidential is in each, at its end.
fn groups(methods: &[MethodName]) -> [Vec<(&str, &str)>; 3] {
    let projections = ["sparsegen-lin", "sparsegen-hg", "entmax"];
    let paper = [method::SOFTMAX, method::SPARSEMAX];
    let mut groups = [const { Vec::new() }; 3];
    for known in methods {
        let (name, title) = (known.name.as_str(), known.title.as_str());
        if name == method::EVIDENTIAL {
            continue;
        }
        let group = if paper.contains(&name) {
            0
        } else if projections.contains(&name) {
            1
        } else {
            2
        };
        groups[group].push((name, title));
    }
    let ours = methods.iter().find(|known| known.name == method::EVIDENTIAL);
    for group in groups.iter_mut().filter(|group| !group.is_empty()) {
        group.extend(ours.map(|ours| (ours.name.as_str(), ours.title.as_str())));
    }
    groups
}

/// How many seeds a mean is over, in words.
fn seeds(results: &ImageResults) -> String {
    let n = results.seeds - results.diverged;
    format!("mean over {n} {}", if n == 1 { "seed" } else { "seeds" })
}
