//! Figures on a page.

use std::fmt::Write as _;

use anyhow::Result;

use super::{Document, escaped};
use crate::drawing::colour::{GRID, INK, SOFT, WRONG};
use crate::drawing::{Background, Figure};

const STYLE: &str = include_str!("figures.css");

/// A page with figures and no script.
pub(crate) fn document(command: &str, title: &str, body: &str) -> String {
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

/// A section for each figure, with its legend and note. `of` makes the ids unique on the page; `paper` gives
/// the number of the paper's figure that corresponds to one of ours, by its name.
pub(crate) fn figure_sections(
    of: &str,
    figures: &[Figure],
    paper: impl Fn(&str) -> Option<u8>,
) -> Result<String> {
    let mut html = String::new();
    for figure in figures {
        let number = paper(figure.name);
        let beside =
            number.map_or_else(String::new, |n| format!(" <small>the paper's figure {n}</small>"));
        let _ = write!(
            html,
            r#"<section class="figure" id="{}-{}"><h2>{}{beside}</h2><ul class="legend">"#,
            escaped(of),
            figure.name,
            escaped(&figure.title)
        );
        for key in &figure.legend {
            let sign = key.sign().svg(&key.words, Background::None)?;
            let _ = write!(html, "<li>{sign}<span>{}</span></li>", escaped(&key.words));
        }
        let width = figure.panels.iter().map(|panel| panel.drawing.width()).fold(0.0, f64::max);
        let _ = write!(
            html,
            r#"</ul><div class="panels" style="--columns:{};--least:{:.0}px">"#,
            figure.columns,
            0.9 * width
        );
        for panel in &figure.panels {
            let svg = panel.drawing.svg(&panel.title, Background::None)?;
            let most = 1.4 * panel.drawing.width();
            let _ = write!(html, r#"<div style="max-width:{most:.0}px">{svg}</div>"#);
        }
        let _ = writeln!(html, r#"</div><p class="note">{}</p></section>"#, escaped(&figure.note));
    }
    Ok(html)
}
