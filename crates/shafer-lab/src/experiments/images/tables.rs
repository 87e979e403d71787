//! The numbers of a report in tables.

use std::fmt::Write as _;

use super::results::{BOTH, Final, Gains, ImageResults, Improvement, Table};
use crate::drawing::colour::of_method;
use crate::experiments::statistics::{Gain, Summary};
use crate::method::{SOFTMAX, SPARSEMAX};
use crate::page::escaped;

/// The tables of final values: over all seeds, and over those that did not collapse.
pub(super) fn values(results: &ImageResults) -> String {
    let mut html = values_table(results, &results.final_values, "All seeds that did not diverge");
    if let Some(without) = &results.without_collapsed {
        html += &values_table(results, &without.final_values, "Without collapsed seeds");
    }
    html
}

/// The numbers of both queries.
struct Columns<'a> {
    title: &'a str,
    table: &'a Table<Summary>,
    scale: f64,
    decimals: usize,
    lower_is_better: bool,
}

fn values_table(results: &ImageResults, values: &Final, caption: &str) -> String {
    let distance =
        |title, table| Columns { title, table, scale: 1.0, decimals: 4, lower_is_better: true };
    let mut groups = vec![
        distance("Bhattacharyya distance", &values.bhattacharyya),
        distance("Wasserstein distance", &values.wasserstein),
        Columns {
            title: "classes kept",
            table: &values.kept,
            scale: 1.0,
            decimals: 2,
            lower_is_better: false,
        },
    ];
    groups.extend(values.wrong.as_ref().map(|table| Columns {
        title: "wrong samples, %",
        table,
        scale: 100.0,
        decimals: 1,
        lower_is_better: true,
    }));
    let mut head = String::new();
    let mut queries = String::new();
    for Columns { title, .. } in &groups {
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
        let _ = write!(
            html,
            r#"<tr><th scope="row"><i style="background:{}"></i>{}</th>"#,
            of_method(&method.title),
            escaped(&method.title)
        );
        for columns in &groups {
            for query in &results.queries {
                let _ = write!(html, "<td>{}</td>", columns.cell(query, &method.name));
            }
        }
        html += "</tr>\n";
    }
    html + "</tbody></table></div>\n"
}

impl Columns<'_> {
    fn cell(&self, query: &str, method: &str) -> String {
        let Some(summary) = self.table.get(query).and_then(|methods| methods.get(method)) else {
            return "–".to_owned();
        };
        let number = |x: f64| format!("{:.*}", self.decimals, x * self.scale);
        let mut text = summary.mean.map_or_else(|| "–".to_owned(), number);
        if let Some(se) = summary.se {
            let _ = write!(text, " <small>± {}</small>", number(se));
        }
        if summary.infinite > 0 {
            let _ = write!(text, r#" <span class="infinite">+{}∞</span>"#, summary.infinite);
        }
        // Of those that look alike none is better.
        let best = self.lower_is_better
            && summary.infinite == 0
            && summary.mean.is_some()
            && summary.mean.map(number) == self.lowest(query).map(number);
        if best { format!("<b>{text}</b>") } else { text }
    }

    /// The lowest mean. A method that is infinitely far off for a seed is no candidate.
    fn lowest(&self, query: &str) -> Option<f64> {
        let finite = self.table.get(query)?.values().filter(|summary| summary.infinite == 0);
        finite.filter_map(|summary| summary.mean).min_by(f64::total_cmp)
    }
}

/// The tables of improvements, for the same seeds.
pub(super) fn improvements(results: &ImageResults) -> String {
    let mut html =
        improvement_table(results, &results.improvement, "All seeds that did not diverge");
    if let Some(without) = &results.without_collapsed {
        html += &improvement_table(results, &without.improvement, "Without collapsed seeds");
    }
    html
}

/// One of the distances.
type Metric = (&'static str, fn(&Gains) -> &Table<Gain>);

const METRICS: [Metric; 2] =
    [("Bhattacharyya", |gains| &gains.bhattacharyya), ("Wasserstein", |gains| &gains.wasserstein)];

fn improvement_table(results: &ImageResults, improvement: &Improvement, caption: &str) -> String {
    let mut html = format!(
        r#"<div class="scroll" tabindex="0" role="region" aria-label="{caption}"><table class="gains"><caption>{caption}</caption><thead><tr><th scope="col">distance, query</th><th scope="col">over softmax, at the end</th><th scope="col">over sparsemax, at the end</th><th scope="col">over softmax, whole training</th><th scope="col">over sparsemax, whole training</th></tr></thead><tbody>
"#
    );
    for (metric, table) in METRICS {
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
        let _ = write!(text, " ({}∞ left out)", gain.infinite);
    }
    text
}
