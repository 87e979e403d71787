//! Drawings as SVG.

use std::fmt::Write as _;

use anyhow::Result;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::canvas::{Anchor, Drawing, Fill, Item, Stroke, TextStyle};
use super::colour::{Colour, FAINT, GRID, INK, PAPER, SOFT};
use super::font;
use crate::page::escaped;

/// The background of a drawing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Background {
    White,
    /// White, or dark if the system is in dark mode.
    LightOrDark,
    None,
}

/// The colours of paper and ink in dark mode.
const DARK: [(Colour, &str); 5] = [
    (PAPER, "#17181b"),
    (INK, "#e9e9ec"),
    (SOFT, "#a9a9b2"),
    (GRID, "#3b3b42"),
    (FAINT, "#6a6a72"),
];

impl Drawing {
    /// The drawing as an SVG element with an alternative text.
    pub(crate) fn svg(&self, title: &str, background: Background) -> Result<String> {
        let (width, height) = (number(self.width), number(self.height));
        let mut svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" role="img" font-family="{}"><title>{}</title>"#,
            font::FAMILY,
            escaped(title)
        );
        if background == Background::LightOrDark {
            svg += "<style>@media (prefers-color-scheme: dark) {";
            for (colour, dark) in DARK {
                let _ = write!(
                    svg,
                    r#" [fill="{colour}"] {{ fill: {dark}; }} [stroke="{colour}"] {{ stroke: {dark}; }}"#
                );
            }
            svg += " }</style>";
        }
        if background != Background::None {
            let _ = write!(svg, r#"<path d="M0 0H{width}V{height}H0Z" fill="{PAPER}"/>"#);
        }
        for item in &self.items {
            write_item(&mut svg, item)?;
        }
        Ok(svg + "</svg>")
    }
}

fn write_item(svg: &mut String, item: &Item) -> Result<()> {
    match item {
        Item::Shape { points, closed, fill, stroke } => {
            let _ = write!(svg, r#"<path d=""#);
            for (place, [x, y]) in points.iter().enumerate() {
                let step = if place == 0 { 'M' } else { 'L' };
                let _ = write!(svg, "{step}{} {}", number(*x), number(*y));
            }
            let end = if *closed { "Z" } else { "" };
            let _ = write!(svg, r#"{end}"{}{}/>"#, filled(*fill), stroked(*stroke));
        }
        Item::Text { at, words, style } => text(svg, *at, words, style),
        Item::Picture { at: [x, y], width, height, image } => {
            let data = STANDARD.encode(image.png()?);
            let _ = write!(
                svg,
                r#"<image x="{}" y="{}" width="{}" height="{}" style="image-rendering:pixelated" href="data:image/png;base64,{data}"/>"#,
                number(*x),
                number(*y),
                number(*width),
                number(*height)
            );
        }
        Item::Titled { title, items } => {
            let _ = write!(svg, "<g><title>{}</title>", escaped(title));
            for item in items {
                write_item(svg, item)?;
            }
            *svg += "</g>";
        }
    }
    Ok(())
}

fn text(svg: &mut String, [x, y]: [f64; 2], words: &str, style: &TextStyle) {
    let (x, y) = (number(x), number(y));
    let anchor = match style.anchor {
        Anchor::Start => "",
        Anchor::Middle => r#" text-anchor="middle""#,
        Anchor::End => r#" text-anchor="end""#,
    };
    let bold = if style.bold { r#" font-weight="bold""# } else { "" };
    let turn =
        if style.upright { format!(r#" transform="rotate(-90 {x} {y})""#) } else { String::new() };
    let (size, colour, words) = (number(style.size), style.colour, escaped(words));
    let _ = write!(
        svg,
        r#"<text x="{x}" y="{y}" font-size="{size}" fill="{colour}"{anchor}{bold}{turn}>{words}</text>"#
    );
}

fn filled(fill: Option<Fill>) -> String {
    match fill {
        None => r#" fill="none""#.to_owned(),
        Some(Fill { colour, opacity }) if opacity < 1.0 => {
            format!(r#" fill="{colour}" fill-opacity="{}""#, number(opacity))
        }
        Some(Fill { colour, .. }) => format!(r#" fill="{colour}""#),
    }
}

fn stroked(stroke: Option<Stroke>) -> String {
    let Some(Stroke { colour, width, dash }) = stroke else { return String::new() };
    let mut text = format!(r#" stroke="{colour}" stroke-width="{}""#, number(width));
    if !dash.is_empty() {
        let dash: Vec<String> = dash.iter().map(|length| number(*length)).collect();
        let _ = write!(text, r#" stroke-dasharray="{}""#, dash.join(" "));
    }
    text + r#" stroke-linejoin="round""#
}

/// Two decimals, without trailing zeros.
fn number(x: f64) -> String {
    let text = format!("{x:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        let numbers = [1.0, 0.5, -0.001, 100.0, 12.345];
        assert_eq!(numbers.map(number), ["1", "0.5", "0", "100", "12.35"].map(str::to_owned));
    }
}
