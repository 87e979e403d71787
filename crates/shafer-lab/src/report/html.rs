//! The page: paper and ours side by side, and every figure.

use std::fmt::Write as _;

use anyhow::Result;

use super::claims::{self, Verdict};
use crate::experiment::{
    BOTH, Final, Gain, Gains, ImageResults, Improvement, Summary, Table, TargetFrom,
};
use crate::figure::colour::{GRID, INK, SOFT, WRONG, of_method};
use crate::figure::{Figure, Paper};
use crate::method::{SOFTMAX, SPARSEMAX};
use crate::page::{self, escaped, filled};
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
    Ok(filled(
        PAGE,
        &[
            ("title", &escaped(title)),
            ("style", &style()),
            ("facts", &escaped(&facts)),
            ("notes", &notes(results)),
            ("claims", &claims(results)),
            ("target", target),
            ("values", &values(results)),
            ("improvement", &improvements(results)),
            ("figures", &figure_sections(results, figures)?),
            ("seeds", &seeds(results)),
            ("provenance", &provenance(results)),
            ("config", &escaped(&serde_json::to_string_pretty(&results.config)?)),
        ],
    ))
}

/// The look. What figures draw in the colours of paper and ink follows the page, light or dark.
fn style() -> String {
    let mut style = [page::STYLE, STYLE].concat();
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
    notes.iter().map(|note| format!("<li>{}</li>", escaped(note))).collect()
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
            Some(Verdict::Open) => r#"<td class="verdict open">○ open</td>"#,
            Some(Verdict::Fails) => r#"<td class="verdict fails">✕ does not hold</td>"#,
            None => "<td></td>",
        };
        let number = if answer.number.is_empty() { "no number" } else { answer.number };
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

/// The tables of final values: over all seeds, and over those that did not collapse.
fn values(results: &ImageResults) -> String {
    let mut html = values_table(results, &results.final_values, "All seeds that did not diverge");
    if let Some(without) = &results.without_collapsed {
        html += &values_table(results, &without.final_values, "Without collapsed seeds");
    }
    html
}

fn values_table(results: &ImageResults, values: &Final, caption: &str) -> String {
    let percent = values.wrong.as_ref().map(|wrong| ("wrong samples, %", wrong, 100.0, 1, true));
    let groups: Vec<(&str, &Table<Summary>, f64, usize, bool)> = [
        Some(("Bhattacharyya distance", &values.bhattacharyya, 1.0, 4, true)),
        Some(("Wasserstein distance", &values.wasserstein, 1.0, 4, true)),
        Some(("classes kept", &values.kept, 1.0, 2, false)),
        percent,
    ]
    .into_iter()
    .flatten()
    .collect();
    let mut head = String::new();
    let mut queries = String::new();
    for (title, ..) in &groups {
        let _ = write!(head, r#"<th scope="colgroup" colspan="2">{title}</th>"#);
        for query in &results.queries {
            let _ = write!(queries, r#"<th scope="col">{}</th>"#, escaped(query));
        }
    }
    let mut html = format!(
        r#"<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table class="values"><caption>{caption}</caption><thead><tr><th scope="col" rowspan="2">method</th>{head}</tr><tr>{queries}</tr></thead><tbody>
"#
    );
    for method in &results.methods {
        let (name, title) = (&method.name, escaped(&method.title));
        let _ = write!(
            html,
            r#"<tr><th scope="row"><i style="background:{}"></i>{title}</th>"#,
            of_method(&method.title)
        );
        for (_, table, scale, decimals, lower_is_better) in &groups {
            for query in &results.queries {
                let summary = table.get(query).and_then(|methods| methods.get(name));
                let best = *lower_is_better && lowest(table, query) == Some(name);
                let text = summary.map_or_else(|| "–".to_owned(), |s| cell(s, *scale, *decimals));
                let text = if best { format!("<b>{text}</b>") } else { text };
                let _ = write!(html, "<td>{text}</td>");
            }
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

/// The method with the lowest mean. One that is infinitely far off for a seed is not a candidate.
fn lowest<'a>(table: &'a Table<Summary>, query: &str) -> Option<&'a String> {
    let finite = table.get(query)?.iter().filter(|(_, summary)| summary.infinite == 0);
    let means = finite.filter_map(|(name, summary)| Some((name, summary.mean?)));
    means.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(name, _)| name)
}

fn cell(summary: &Summary, scale: f64, decimals: usize) -> String {
    let mut text =
        summary.mean.map_or_else(|| "–".to_owned(), |m| format!("{:.decimals$}", m * scale));
    if let Some(se) = summary.se {
        let _ = write!(text, " <small>± {:.decimals$}</small>", se * scale);
    }
    if summary.infinite > 0 {
        let _ = write!(text, r#" <span class="infinite">+{}∞</span>"#, summary.infinite);
    }
    text
}

fn improvements(results: &ImageResults) -> String {
    let mut html =
        improvement_table(results, &results.improvement, "All seeds that did not diverge");
    if let Some(without) = &results.without_collapsed {
        html += &improvement_table(results, &without.improvement, "Without collapsed seeds");
    }
    html
}

fn improvement_table(results: &ImageResults, improvement: &Improvement, caption: &str) -> String {
    let mut html = format!(
        r#"<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table class="gains"><caption>{caption}</caption><thead><tr><th scope="col">distance, query</th><th scope="col">over softmax, at the end</th><th scope="col">over sparsemax, at the end</th><th scope="col">over softmax, whole training</th><th scope="col">over sparsemax, whole training</th></tr></thead><tbody>
"#
    );
    let metrics: [(&str, fn(&Gains) -> &Table<Gain>); 2] = [
        ("Bhattacharyya", |gains| &gains.bhattacharyya),
        ("Wasserstein", |gains| &gains.wasserstein),
    ];
    for (metric, table) in metrics {
        for query in results.queries.iter().map(String::as_str).chain([BOTH]) {
            let _ = write!(html, r#"<tr><th scope="row">{metric}, {}</th>"#, escaped(query));
            for gains in [&improvement.final_values, &improvement.training] {
                for baseline in [SOFTMAX, SPARSEMAX] {
                    let gain = table(gains).get(query).and_then(|methods| methods.get(baseline));
                    let text = gain.map_or_else(|| "–".to_owned(), percent);
                    let _ = write!(html, "<td>{}</td>", escaped(&text));
                }
            }
            html += "</tr>\n";
        }
    }
    html + "</tbody></table></div>\n"
}

/// A gain in words.
pub(super) fn percent(gain: &Gain) -> String {
    let Some(interval) = gain.percent else { return "not defined".to_owned() };
    // Minus signs, not hyphens.
    let signed = |x: f64| format!("{x:+.1}").replace('-', "−");
    let mut text = format!("{}%", signed(interval.value));
    if let Some((low, high)) = interval.low.zip(interval.high) {
        let _ = write!(text, " [{}, {}]", signed(low), signed(high));
    }
    if gain.infinite > 0 {
        let _ = write!(text, " without {} infinite", gain.infinite);
    }
    text
}

fn figure_sections(results: &ImageResults, figures: &[Figure]) -> Result<String> {
    let data_set = DataSet::named(&results.data_set);
    let mut html = String::new();
    for figure in figures {
        let number = data_set.and_then(|data_set| data_set.figure(figure.name));
        let beside =
            number.map_or_else(String::new, |n| format!(" <small>the paper's figure {n}</small>"));
        let _ = write!(
            html,
            r#"<section class="figure" id="{}"><h2>{}{beside}</h2><ul class="legend">"#,
            figure.name,
            escaped(&figure.title)
        );
        for key in &figure.legend {
            let sign = key.sign().svg(&key.words, Paper::None)?;
            let _ = write!(html, "<li>{sign}<span>{}</span></li>", escaped(&key.words));
        }
        html += r#"</ul><div class="panels">"#;
        for panel in &figure.panels {
            let _ = write!(html, "<div>{}</div>", panel.drawing.svg(&panel.title, Paper::None)?);
        }
        let _ = writeln!(html, r#"</div><p class="note">{}</p></section>"#, escaped(&figure.note));
    }
    Ok(html)
}

fn seeds(results: &ImageResults) -> String {
    let named = |what: fn(&crate::experiment::Training) -> bool| {
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

fn provenance(results: &ImageResults) -> String {
    let facts = [
        ("revision", results.revision.clone()),
        ("machine", results.machine.clone()),
        ("time", format!("{:.1} s for the whole run", results.wall_seconds)),
        ("data set", results.data_set.clone()),
    ];
    facts.iter().map(|(name, fact)| format!("<dt>{name}</dt><dd>{}</dd>", escaped(fact))).collect()
}
