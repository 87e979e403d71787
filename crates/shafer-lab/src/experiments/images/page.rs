//! The page of the results: beside the paper's, and every figure.

use std::fmt::Write as _;

use anyhow::Result;

use super::claims::{self, Verdict};
use super::paper::{self, DataSet};
use super::results::{Final, ImageResults, TargetFrom, Training};
use super::{figures, tables, text};
use crate::drawing::Figure;
use crate::experiments::report::{Report, made};
use crate::page::figures::{document, figure_sections};
use crate::page::{escaped, filled};

const PAGE: &str = include_str!("page.html");

impl Report for ImageResults {
    fn name(&self) -> &str {
        &self.data_set
    }

    fn summary(&self) -> String {
        text::summary(self)
    }

    fn figures(&self) -> Vec<Figure> {
        figures::all(self)
    }

    fn page(&self, figures: &[Figure]) -> Result<String> {
        html(self, figures)
    }
}

fn html(results: &ImageResults, figures: &[Figure]) -> Result<String> {
    let title = paper::title(&results.data_set);
    let facts = format!(
        "Queries {}, {} latent classes, {} seeds of {} updates each. A conditional variational autoencoder \
         is trained once for each seed; every method reads the same logits.",
        results.queries.join(" and "),
        results.classes,
        results.seeds,
        results.steps
    );
    let target = match results.target {
        TargetFrom::LastCheckpoint => "The target comes from the last checkpoint.",
        TargetFrom::EachCheckpoint => "Each checkpoint has its own target.",
    };
    let title = format!("{title}: the paper's experiment and ours");
    let (revision, machine, seconds) = (&results.revision, &results.machine, results.wall_seconds);
    let made = made(revision, machine, seconds, &results.data_set, &results.config)?;
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
            ("figures", &figure_html(results, figures)?),
            ("seeds", &seeds(results)),
            ("made", &made),
        ],
    );
    Ok(document("report", &title, &body))
}

/// Caveats of the numbers.
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

/// A section for each figure.
pub(crate) fn figure_html(results: &ImageResults, figures: &[Figure]) -> Result<String> {
    let data_set = DataSet::named(&results.data_set);
    figure_sections(&results.data_set, figures, |name| data_set?.figure(name))
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
