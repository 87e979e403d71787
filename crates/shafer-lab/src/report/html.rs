//! The page: paper and ours side by side, and every figure.

use std::fmt::Write as _;

use anyhow::Result;

use super::claims::{self, Verdict};
use super::tables;
use crate::experiment::{Final, ImageResults, TargetFrom, Training};
use crate::figure::colour::{GRID, INK, SOFT, WRONG};
use crate::figure::{Figure, Paper};
use crate::page::{Document, escaped, filled};
use crate::paper::{self, DataSet};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");

pub(super) fn html(results: &ImageResults, figures: &[Figure]) -> Result<String> {
    let title = paper::title(&results.data_set);
    let facts = format!(
        "Queries {} and {}, {} latent classes, {} seeds of {} updates each. A conditional variational \
         autoencoder is trained once for each seed; every method reads the same logits.",
        results.queries[0], results.queries[1], results.classes, results.seeds, results.steps
    );
    let target = match results.target {
        TargetFrom::LastCheckpoint => "The target comes from the last checkpoint.",
        TargetFrom::EachCheckpoint => "Each checkpoint has a target of its own.",
    };
    let title = format!("{title}: the paper's experiment and ours");
    let made = made(
        &results.revision,
        &results.machine,
        results.wall_seconds,
        &results.data_set,
        &results.config,
    )?;
    let body = filled!(
        PAGE,
        &[
            ("title", &escaped(&title)),
            ("facts", &escaped(&facts)),
            ("notes", &notes(results)),
            ("claims", &claims(results)),
            ("target", target),
            ("values", &tables::values(results)),
            ("improvement", &tables::improvements(results)),
            ("figures", &image_figures(results, figures)?),
            ("seeds", &seeds(results)),
            ("made", &made),
        ],
    );
    Ok(document("report", &title, &body))
}

/// A page in the look of reports.
pub(crate) fn document(command: &str, title: &str, body: &str) -> String {
    Document { command, title, style: &style(), scripts: false, body }.html()
}

/// The look. What figures draw in the colours of paper and ink follows the page, light or dark.
pub(crate) fn style() -> String {
    let mut style = STYLE.to_owned();
    for (colour, name) in [(INK, "ink"), (SOFT, "soft"), (GRID, "line"), (WRONG, "wrong")] {
        let _ = writeln!(style, r#"svg [fill="{colour}"] {{ fill: var(--{name}); }}"#);
        let _ = writeln!(style, r#"svg [stroke="{colour}"] {{ stroke: var(--{name}); }}"#);
    }
    style
}

/// What a reader of the numbers has to know besides.
fn notes(results: &ImageResults) -> String {
    let mut notes = Vec::new();
    if results.collapsed > 0 {
        notes.push(format!(
            "The posterior of {} of {} seeds collapsed. Numbers are over all seeds unless they say \
             otherwise.",
            results.collapsed, results.seeds
        ));
    }
    if results.diverged > 0 {
        notes.push(format!(
            "{} of {} seeds diverged. They have no distribution to measure and are in no mean.",
            results.diverged, results.seeds
        ));
    }
    let infinite = |values: &Final| {
        let summaries = values.bhattacharyya.values().flat_map(|methods| methods.values());
        summaries.map(|summary| summary.infinite).sum::<usize>() > 0
    };
    if infinite(&results.final_values) {
        notes.push(
            "A distribution that has no class in common with the target is infinitely far from it, \
             measured by Bhattacharyya. Means are over the finite distances; +n∞ counts the others."
                .to_owned(),
        );
    }
    let paper = DataSet::named(&results.data_set).map(DataSet::seeds);
    if let Some(paper) = paper.filter(|paper| *paper > results.seeds) {
        notes.push(format!("The paper has {paper} seeds, this run {}.", results.seeds));
    }
    let mut html = String::new();
    for note in notes {
        let _ = write!(html, "<li>{}</li>", escaped(&note));
    }
    html
}

fn claims(results: &ImageResults) -> String {
    let answers = claims::answers(results);
    if answers.is_empty() {
        return "<p>The paper has no experiment on this data set.</p>".to_owned();
    }
    let mut html = r#"<p>What the paper says, and what this run says to it. A claim holds here if the 95% confidence interval over seeds, paired, says so; it is open if the interval includes 0.</p>
<table class="claims"><thead><tr><th scope="col">claim</th><th scope="col">paper</th><th scope="col">ours</th><th scope="col"></th></tr></thead><tbody>
"#
    .to_owned();
    for answer in answers {
        let verdict = match answer.verdict {
            Some(Verdict::Holds) => r#"<td class="verdict holds">✓ holds</td>"#,
            Some(Verdict::OtherNumber) => {
                r#"<td class="verdict holds">✓ better, another number</td>"#
            }
            Some(Verdict::Open) => r#"<td class="verdict open">○ open</td>"#,
            Some(Verdict::Fails) => r#"<td class="verdict fails">✕ does not hold</td>"#,
            None => "<td></td>",
        };
        let number = if answer.number.is_empty() { "no number" } else { &answer.number };
        let _ = writeln!(
            html,
            r#"<tr><th scope="row">{}</th><td data-label="paper">{} <small>{}</small></td><td data-label="ours">{}</td>{verdict}</tr>"#,
            escaped(&answer.claim),
            escaped(number),
            escaped(answer.place),
            escaped(&answer.found)
        );
    }
    html + "</tbody></table>"
}

/// The figures of an experiment with images.
pub(crate) fn image_figures(results: &ImageResults, figures: &[Figure]) -> Result<String> {
    let data_set = DataSet::named(&results.data_set);
    figure_sections(&results.data_set, figures, |name| data_set?.figure(name))
}

/// The figures, each with its legend and what one has to know. The paper may have figures beside which
/// ours stand, by their names.
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
            let sign = key.sign().svg(&key.words, Paper::None)?;
            let _ = write!(html, "<li>{sign}<span>{}</span></li>", escaped(&key.words));
        }
        let wide = figure.panels.iter().map(|panel| panel.drawing.width()).fold(0.0, f64::max);
        let _ = write!(
            html,
            r#"</ul><div class="panels" style="--columns:{};--least:{:.0}px">"#,
            figure.columns,
            0.9 * wide
        );
        for panel in &figure.panels {
            let svg = panel.drawing.svg(&panel.title, Paper::None)?;
            let most = 1.4 * panel.drawing.width();
            let _ = write!(html, r#"<div style="max-width:{most:.0}px">{svg}</div>"#);
        }
        let _ = writeln!(html, r#"</div><p class="note">{}</p></section>"#, escaped(&figure.note));
    }
    Ok(html)
}

fn seeds(results: &ImageResults) -> String {
    let named = |what: fn(&Training) -> bool| {
        let found: Vec<String> = results
            .trainings
            .iter()
            .filter(|training| what(training))
            .map(|training| {
                let part = if training.fraction < 1.0 {
                    format!(" (fraction {})", training.fraction)
                } else {
                    String::new()
                };
                format!("{}{part}", training.seed)
            })
            .collect();
        if found.is_empty() { "none".to_owned() } else { found.join(", ") }
    };
    let mut html = format!(
        "<p>Collapsed: {}. Diverged: {}.</p>\n<details><summary>Each training</summary><div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Each training\"><table><thead><tr><th scope=\"col\">seed</th><th scope=\"col\">fraction</th><th scope=\"col\">state</th><th scope=\"col\">updates</th><th scope=\"col\">seconds</th><th scope=\"col\">loss</th><th scope=\"col\">reconstruction</th><th scope=\"col\">KL</th></tr></thead><tbody>\n",
        named(|training| training.collapsed && !training.diverged),
        named(|training| training.diverged)
    );
    for training in &results.trainings {
        let state = match (training.diverged, training.collapsed) {
            (true, _) => r#"<span class="fails">diverged</span>"#,
            (_, true) => r#"<span class="fails">collapsed</span>"#,
            _ => "trained",
        };
        let loss = |x: Option<f64>| x.map_or_else(|| "–".to_owned(), |x| format!("{x:.4}"));
        let _ = writeln!(
            html,
            r#"<tr><th scope="row">{}</th><td>{}</td><td>{state}</td><td>{}</td><td>{:.1}</td><td>{}</td><td>{}</td><td>{}</td></tr>"#,
            training.seed,
            training.fraction,
            training.steps,
            training.wall_seconds,
            loss(training.losses.total),
            loss(training.losses.reconstruction),
            loss(training.losses.kl)
        );
    }
    html + "</tbody></table></div></details>"
}

/// The section that says where the numbers come from.
pub(crate) fn made(
    revision: &str,
    machine: &str,
    wall_seconds: f64,
    data_set: &str,
    config: &serde_json::Value,
) -> Result<String> {
    let time = format!("{wall_seconds:.1} s for the whole run");
    let facts =
        [("revision", revision), ("machine", machine), ("time", &time), ("data set", data_set)];
    let mut html = "<section>\n<h2>How it was made</h2>\n<dl class=\"facts\">".to_owned();
    for (name, fact) in facts {
        let _ = write!(html, "<dt>{name}</dt><dd>{}</dd>", escaped(fact));
    }
    let config = escaped(&serde_json::to_string_pretty(config)?);
    let _ = writeln!(
        html,
        "</dl>\n<details><summary>Configuration</summary><pre>{config}</pre></details>\n</section>"
    );
    Ok(html)
}
