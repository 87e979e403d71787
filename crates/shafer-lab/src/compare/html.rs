//! The comparison as one page that needs nothing but itself.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use serde::Serialize;

use super::sample::SampleRow;
use super::svg;
use super::table::COLUMNS;
use super::{Comparison, MethodReport};
use crate::figure::colour::{Colour, of_method};
use crate::page::{Document, escaped, filled};

const PAGE: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub(crate) fn html(comparison: &Comparison, labels: &[String]) -> Result<String> {
    let facts = format!(
        "{} rows of {} classes, {}, temperature {}. Computed in {:.3} s, threads {}.",
        comparison.rows,
        comparison.classes,
        comparison.dtype,
        comparison.temperature,
        comparison.seconds,
        comparison.threads
    );
    let mut notes = String::new();
    for note in comparison.notes() {
        let _ = write!(notes, "<li>{}</li>", escaped(&note));
    }
    let body = filled!(
        PAGE,
        &[
            ("input", &escaped(&comparison.input)),
            ("facts", &escaped(&facts)),
            ("notes", &notes),
            ("means", &means(comparison)),
            ("histograms", &histograms(comparison)),
            ("scale", scale(comparison)),
            ("table", &table(comparison)),
            ("help", &help()),
            ("data", &data(comparison, labels)?),
            ("script", SCRIPT),
        ],
    );
    let title = &format!("Methods compared: {}", comparison.input);
    Ok(Document { command: "compare", title, style: STYLE, scripts: true, body: &body }.html())
}

fn coloured(comparison: &Comparison) -> impl Iterator<Item = (&MethodReport, Colour)> {
    comparison.methods.iter().map(|method| (method, of_method(&method.name)))
}

fn means(comparison: &Comparison) -> String {
    let kept = |method: &MethodReport| method.kept.as_ref().map(|kept| (kept.mean, kept.p99));
    let largest = comparison
        .methods
        .iter()
        .filter_map(kept)
        .map(|(mean, p99)| mean.max(p99 as f64))
        .fold(0.0, f64::max);
    let mut html = String::new();
    for (method, colour) in coloured(comparison) {
        let name = escaped(&method.name);
        let (bar, text) = match kept(method) {
            Some((mean, p99)) => (
                svg::bar(mean, p99 as f64, largest, colour),
                format!("{mean:.2} <small>99%: {p99}</small>"),
            ),
            None => (String::new(), "–".to_owned()),
        };
        let _ = writeln!(
            html,
            r#"<div class="mean"><span class="name">{name}</span>{bar}<span class="number">{text}</span></div>"#
        );
    }
    html
}

fn scale(comparison: &Comparison) -> &'static str {
    if comparison.bins.iter().all(|(from, to)| from == to) {
        "One column for each size."
    } else {
        "Columns stand for ranges of sizes that grow by a quarter each, so the scale is close to \
         logarithmic."
    }
}

fn histograms(comparison: &Comparison) -> String {
    let mut html = String::new();
    for (method, colour) in coloured(comparison) {
        let counts = &method.histogram;
        let names: Vec<String> = comparison
            .bins
            .iter()
            .zip(counts)
            .map(|(&(from, to), count)| {
                let sizes = if from == to { from.to_string() } else { format!("{from} to {to}") };
                format!("{count} rows keep {sizes}")
            })
            .collect();
        let most = counts.iter().copied().max().unwrap_or(0);
        let _ = writeln!(
            html,
            r#"<figure class="small"><figcaption>{}</figcaption><div class="most">highest: {most} rows</div>{}<div class="axis"><span>1</span><span>classes kept</span><span>{}</span></div></figure>"#,
            escaped(&method.name),
            svg::histogram(counts, &names, colour),
            comparison.classes
        );
    }
    html
}

fn table(comparison: &Comparison) -> String {
    let mut html = r#"<table id="numbers"><thead><tr><th scope="col">method</th>"#.to_owned();
    for column in &COLUMNS {
        let (title, help) = (escaped(column.title), escaped(column.help));
        let _ = write!(html, r#"<th scope="col" title="{help}">{title}</th>"#);
    }
    html += "</tr></thead>\n<tbody>\n";
    for (method, colour) in coloured(comparison) {
        let _ = write!(
            html,
            r#"<tr><th scope="row"><i style="background:{colour}"></i>{}</th>"#,
            escaped(&method.name)
        );
        for column in &COLUMNS {
            // What is sorted by is the number, not its rounding.
            let value = (column.value)(method).map_or_else(String::new, |x| x.to_string());
            let _ = write!(html, r#"<td data-value="{value}">{}</td>"#, column.text(method));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table>"
}

/// What the columns are.
fn help() -> String {
    let mut html = String::new();
    for column in &COLUMNS {
        let (title, help) = (escaped(column.title), escaped(column.help));
        let _ = write!(html, "<div><dt>{title}</dt><dd>{help}</dd></div>");
    }
    html
}

/// What the page's program reads.
#[derive(Serialize)]
struct Data<'a> {
    classes: usize,
    methods: Vec<DataMethod<'a>>,
    /// Of the classes that occur in the rows.
    labels: BTreeMap<u32, &'a str>,
    rows: &'a [SampleRow],
}

#[derive(Serialize)]
struct DataMethod<'a> {
    name: &'a str,
    colour: String,
}

fn data(comparison: &Comparison, labels: &[String]) -> Result<String> {
    let rows = comparison.sample.rows();
    let label = |&class: &u32| Some((class, labels.get(class as usize)?.as_str()));
    let data = Data {
        classes: comparison.classes,
        methods: coloured(comparison)
            .map(|(method, colour)| DataMethod { name: &method.name, colour: colour.to_string() })
            .collect(),
        labels: rows.iter().flat_map(|row| &row.classes).filter_map(label).collect(),
        rows,
    };
    // Within a script, nothing is escaped but what could end it or begin another.
    Ok(serde_json::to_string(&data)?.replace('<', "\\u003c"))
}
