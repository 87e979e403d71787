//! Draws `docs/figure.svg`: what softmax, sparsemax and the evidential transform make of one row.
//!
//! `cargo run -p shafer --example figure` writes the file again; the drawing is a function of the
//! logits below and of nothing else.

use std::error::Error;
use std::fmt::{self, Write};
use std::path::Path;

use shafer::Method;

/// Made up to show the method: half of ten latent classes answer a query.
const LOGITS: [f64; 10] = [-0.4, 1.7, -0.9, 0.7, -0.1, 2.0, -1.3, 1.2, -0.5, 1.0];

const WIDTH: f64 = 700.0;
const HEIGHT: f64 = 790.0;
const LEFT: f64 = 30.0;
/// The distance between the middles of two bars.
const PITCH: f64 = (WIDTH - 2.0 * LEFT) / LOGITS.len() as f64;
const BAR: f64 = 44.0;
const TOP: f64 = 84.0;
/// The height of a bar of probability 1, the same in every panel.
const UNIT: f64 = 220.0;

fn main() -> Result<(), Box<dyn Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/figure.svg");
    std::fs::write(path, figure()?)?;
    Ok(())
}

fn figure() -> Result<String, Box<dyn Error>> {
    let mean = LOGITS.iter().sum::<f64>() / LOGITS.len() as f64;
    let supported = LOGITS.map(|logit| logit > mean);
    // The paper's colours, from a palette that colour-blind readers can tell apart.
    let panels = [
        ("Softmax", "#56B4E9", Method::SOFTMAX),
        ("Sparsemax", "#E69F00", Method::SPARSEMAX),
        ("Evidential", "#009E73", Method::EVIDENTIAL),
    ];
    let mut svg = String::new();
    writeln!(
        svg,
        r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" font-family="sans-serif" font-size="18" fill="{INK}">"#
    )?;
    writeln!(svg, "<title>Softmax, sparsemax and evidential of one row of ten classes</title>")?;
    writeln!(svg, r#"<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>"#)?;
    let title = "One row of logits, three distributions";
    text(&mut svg, LEFT, 36.0, r#"font-size="24" font-weight="bold""#, title)?;
    let subtitle = "Ten latent classes. Evidence supports the five in bold.";
    text(&mut svg, LEFT, 64.0, GREY_TEXT, subtitle)?;
    let mut top = TOP;
    for (name, colour, method) in panels {
        let probabilities = method.row(&LOGITS)?;
        top = panel(&mut svg, top, name, colour, &probabilities, &supported)?;
    }
    legend(&mut svg, top + 24.0)?;
    svg.push_str("</svg>\n");
    Ok(svg)
}

const INK: &str = "#222222";
const LOST: &str = "#A33B00";
const GREY: &str = "#767676";
const GREY_TEXT: &str = r##"fill="#595959""##;

/// Draws one distribution; returns its lower edge.
fn panel(
    svg: &mut String,
    top: f64,
    name: &str,
    colour: &str,
    probabilities: &[f64],
    supported: &[bool],
) -> Result<f64, fmt::Error> {
    let largest = probabilities.iter().copied().fold(0.0, f64::max);
    let foot = (top + 70.0 + largest * UNIT).round();
    let count = |kept: bool, support: bool| {
        let both = probabilities.iter().zip(supported);
        both.filter(|&(&p, &supported)| (p > 0.0) == kept && supported == support).count()
    };
    let kept = count(true, true) + count(true, false);
    let summary = match (count(true, false), count(false, true)) {
        (0, 0) => format!("{name}: {kept} kept, exactly the supported"),
        (extra, 0) => format!("{name}: {kept} kept, {extra} of them unsupported"),
        (_, lost) => format!("{name}: {kept} kept, {lost} supported ones lost"),
    };
    writeln!(
        svg,
        r#"<rect x="{LEFT}" y="{:.0}" width="18" height="18" fill="{colour}"/>"#,
        top + 14.0
    )?;
    text(svg, LEFT + 28.0, top + 30.0, r#"font-size="20" font-weight="bold""#, &summary)?;
    writeln!(
        svg,
        r#"<path d="M{LEFT} {foot}H{}" stroke="{INK}" stroke-width="1.5"/>"#,
        WIDTH - LEFT
    )?;
    for (class, (&p, &supported)) in probabilities.iter().zip(supported).enumerate() {
        let x = LEFT + (class as f64 + 0.5) * PITCH;
        if p > 0.0 {
            let height = p * UNIT;
            writeln!(
                svg,
                r#"<rect x="{:.1}" y="{:.1}" width="{BAR}" height="{height:.1}" fill="{colour}"/>"#,
                x - BAR / 2.0,
                foot - height,
            )?;
            text(svg, x, foot - height - 6.0, MIDDLE, &format!("{p:.2}"))?;
        } else if supported {
            dropped(svg, x, foot - 16.0, true)?;
            let style = format!(r#"{MIDDLE} font-weight="bold" fill="{LOST}""#);
            text(svg, x, foot - 34.0, &style, "lost")?;
        } else {
            dropped(svg, x, foot - 16.0, false)?;
        }
        let weight = if supported { r#"font-weight="bold""# } else { GREY_TEXT };
        text(svg, x, foot + 22.0, &format!("{MIDDLE} {weight}"), &class.to_string())?;
    }
    Ok(foot + 40.0)
}

/// A cross for a class that got no probability, in a circle if the evidence supported it.
fn dropped(svg: &mut String, x: f64, y: f64, lost: bool) -> fmt::Result {
    let (colour, arm) = if lost { (LOST, 5.0) } else { (GREY, 6.0) };
    if lost {
        writeln!(
            svg,
            r#"<circle cx="{x}" cy="{y}" r="11" fill="none" stroke="{colour}" stroke-width="2"/>"#
        )?;
    }
    writeln!(
        svg,
        r#"<path d="M{} {}l{d} {d}m0 -{d}l-{d} {d}" stroke="{colour}" stroke-width="2"/>"#,
        x - arm,
        y - arm,
        d = 2.0 * arm,
    )
}

fn legend(svg: &mut String, y: f64) -> fmt::Result {
    dropped(svg, LEFT + 12.0, y, false)?;
    text(svg, LEFT + 32.0, y + 6.0, "", "dropped, no support")?;
    dropped(svg, LEFT + 262.0, y, true)?;
    text(svg, LEFT + 282.0, y + 6.0, "", "dropped, though supported")?;
    let note = "The logits are made up to show the method.";
    text(svg, LEFT, y + 32.0, GREY_TEXT, note)
}

const MIDDLE: &str = r#"text-anchor="middle""#;

fn text(svg: &mut String, x: f64, y: f64, style: &str, words: &str) -> fmt::Result {
    writeln!(svg, r#"<text x="{x:.1}" y="{y:.1}" {style}>{words}</text>"#)
}
