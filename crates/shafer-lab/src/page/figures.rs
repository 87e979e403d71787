//! Figures on a page.

use std::fmt::Write as _;

use anyhow::Result;
use askama::Template;

use super::Document;
use crate::drawing::colour::{GRID, INK, SOFT, WRONG};
use crate::drawing::{Background, Figure};

const STYLE: &str = include_str!("figures.css");

/// A page with figures and no script.
pub(crate) fn document(command: &str, title: &str, body: &str) -> Result<String> {
    Document { command, title, style: &style(), scripts: false, body }.html()
}

/// The style of such pages. Elements in the colours of paper and ink follow the light or dark page.
pub(crate) fn style() -> String {
    let mut style = STYLE.to_owned();
    for (colour, name) in [(INK, "ink"), (SOFT, "soft"), (GRID, "line"), (WRONG, "wrong")] {
        let _ = writeln!(style, r#"svg [fill="{colour}"] {{ fill: var(--{name}); }}"#);
        let _ = writeln!(style, r#"svg [stroke="{colour}"] {{ stroke: var(--{name}); }}"#);
    }
    style
}

#[derive(Template)]
#[template(path = "page/figures.html")]
struct Sections<'a> {
    of: &'a str,
    figures: Vec<Section<'a>>,
}

struct Section<'a> {
    name: &'a str,
    title: &'a str,
    note: &'a str,
    /// The number of the paper's figure that corresponds to this one.
    paper: Option<u8>,
    /// Signs as SVG, with their words.
    legend: Vec<(String, &'a str)>,
    columns: usize,
    /// The width below which panels are not scaled down but put below each other.
    least: f64,
    /// Each with its maximal width.
    panels: Vec<(f64, String)>,
}

/// A section for each figure. `of` makes the ids unique on the page; `paper` gives the number of the corresponding
/// figure of the paper.
pub(crate) fn figure_sections(
    of: &str,
    figures: &[Figure],
    paper: impl Fn(&str) -> Option<u8>,
) -> Result<String> {
    let mut sections = Vec::new();
    for figure in figures {
        let legend = figure
            .legend
            .iter()
            .map(|key| Ok((key.sign().svg(&key.words, Background::None)?, key.words.as_str())));
        let panels = figure.panels.iter().map(|panel| {
            let width = (1.4 * panel.drawing.width()).round();
            Ok((width, panel.drawing.svg(&panel.title, Background::None)?))
        });
        let width = figure.panels.iter().map(|panel| panel.drawing.width()).fold(0.0, f64::max);
        sections.push(Section {
            name: figure.name,
            title: &figure.title,
            note: &figure.note,
            paper: paper(figure.name),
            legend: legend.collect::<Result<_>>()?,
            columns: figure.columns,
            least: (0.9 * width).round(),
            panels: panels.collect::<Result<_>>()?,
        });
    }
    Ok(Sections { of, figures: sections }.render()?)
}
