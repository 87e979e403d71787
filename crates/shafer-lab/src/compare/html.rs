//! Renders the comparison as a self-contained HTML page.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::Result;
use askama::Template;
use serde::Serialize;

use super::curve::{Curve, CurvePoint};
use super::sample::SampleRow;
use super::svg::{self, Point, Scale, Tick};
use super::top::Scored;
use super::{Comparison, MethodReport};
use crate::drawing::colour::{Colour, of_method};
use crate::drawing::ticks;
use crate::method::SOFTMAX;
use crate::page::{Document, escaped};
use crate::words::counted;

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Text, and markup where the template says that it is safe.
#[derive(Template)]
#[template(path = "compare/page.html")]
struct Page<'a> {
    input: &'a str,
    facts: &'a str,
    notes: &'a str,
    means: &'a str,
    mean_scale: &'a str,
    tradeoff: &'a str,
    sample: &'a str,
    histograms: &'a str,
    scale: &'a str,
    table: &'a str,
    help: &'a str,
    data: &'a str,
}

/// The page.
pub(crate) fn html(comparison: &Comparison, labels: &[String]) -> Result<String> {
    let facts = format!(
        "{} of {}, {}, temperature {}. Computed in {:.3} s, threads {}.",
        counted(comparison.rows, "row"),
        counted(comparison.classes, "class"),
        comparison.dtype,
        comparison.temperature,
        comparison.seconds,
        comparison.threads
    );
    let mut notes = String::new();
    for note in comparison.notes() {
        let _ = write!(notes, "<li>{}</li>", escaped(&note));
    }
    let page = Page {
        input: &comparison.input,
        facts: &facts,
        notes: &notes,
        means: &means(comparison),
        mean_scale: mean_scale(comparison),
        tradeoff: &tradeoff(comparison),
        sample: &comparison.sample.words(comparison.rows),
        histograms: &histograms(comparison),
        scale: scale(comparison),
        table: &table(comparison),
        help: &help(comparison),
        data: &data(comparison, labels)?,
    };
    let body = page.render()?;
    let title = &format!("Methods compared: {}", comparison.input);
    Document { command: "compare", title, style: STYLE, scripts: true, body: &body }.html()
}

fn coloured(comparison: &Comparison) -> impl Iterator<Item = (&MethodReport, Colour)> {
    comparison.methods.iter().map(|method| (method, of_method(&method.name)))
}

/// The largest ratio of two bars on a linear scale.
const VANISHING: f64 = 50.0;

/// The scale for classes kept: logarithmic if the shortest bar would vanish on a linear one.
fn kept_scale(comparison: &Comparison) -> Scale {
    let kept = || comparison.methods.iter().filter_map(|method| method.kept.as_ref());
    let largest = kept().map(|kept| kept.mean.max(kept.p99 as f64)).fold(0.0, f64::max);
    let smallest = kept().map(|kept| kept.mean).fold(f64::INFINITY, f64::min);
    if largest > VANISHING * smallest {
        // Starts below 1, so that a bar of one class is visible.
        Scale::Log(0.5, largest)
    } else {
        Scale::Linear(largest)
    }
}

fn kept_ticks(scale: Scale) -> Vec<Tick> {
    match scale {
        Scale::Log(..) => scale.decades(6),
        Scale::Linear(end) => linear_ticks(end, 5),
    }
}

/// Ticks at round numbers from 0.
fn linear_ticks(end: f64, wanted: usize) -> Vec<Tick> {
    let scale = Scale::Linear(end);
    let tick = |(value, label)| Tick { place: scale.place(value), label };
    ticks(0.0, end, wanted).into_iter().map(tick).collect()
}

fn means(comparison: &Comparison) -> String {
    let scale = kept_scale(comparison);
    let mut html = String::new();
    for (method, colour) in coloured(comparison) {
        let name = escaped(&method.name);
        let (bar, text) = match &method.kept {
            Some(kept) => (
                svg::bar(kept.mean, kept.p99 as f64, scale, colour),
                format!("{:.2} <small>99%: {}</small>", kept.mean, kept.p99),
            ),
            None => (String::new(), "–".to_owned()),
        };
        let _ = writeln!(
            html,
            r#"<div class="mean"><span class="name">{name}</span>{bar}<span class="number">{text}</span></div>"#
        );
    }
    let axis = svg::labels_below(&kept_ticks(scale));
    html + r#"<div class="mean ends">"# + &axis + "</div>\n"
}

fn mean_scale(comparison: &Comparison) -> &'static str {
    match kept_scale(comparison) {
        Scale::Log(..) => " The scale is logarithmic.",
        Scale::Linear(_) => "",
    }
}

fn scale(comparison: &Comparison) -> &'static str {
    if comparison.bins.iter().all(|(from, to)| from == to) {
        "One column per size."
    } else {
        "Each column covers a range of sizes about 25% wider than the previous one, so the axis is \
         nearly logarithmic."
    }
}

/// Ticks at support sizes below the columns of a histogram.
fn size_ticks(bins: &[(usize, usize)]) -> Vec<Tick> {
    let last = bins.last().map_or(1, |bin| bin.1);
    let few = bins.iter().all(|(from, to)| from == to);
    let sizes: Vec<usize> = if few {
        let step = last.div_ceil(6);
        std::iter::once(1).chain((1..=last).filter(|size| size % step == 0 && *size > 1)).collect()
    } else {
        std::iter::successors(Some(1), |size| Some(size * 10)).take_while(|&s| s <= last).collect()
    };
    let tick = |size: usize| {
        let column = bins.iter().position(|&(from, to)| (from..=to).contains(&size))?;
        let place = 100.0 * (column as f64 + 0.5) / bins.len() as f64;
        Some(Tick { place, label: size.to_string() })
    };
    sizes.into_iter().filter_map(tick).collect()
}

fn histograms(comparison: &Comparison) -> String {
    let mut html = String::new();
    let xs = size_ticks(&comparison.bins);
    for (method, colour) in coloured(comparison) {
        let counts = &method.histogram;
        let names: Vec<String> = comparison
            .bins
            .iter()
            .zip(counts)
            .map(|(&(from, to), count)| {
                let sizes = if from == to { from.to_string() } else { format!("{from} to {to}") };
                let keep = if *count == 1 { "keeps" } else { "keep" };
                format!("{} {keep} {sizes}", counted(*count as usize, "row"))
            })
            .collect();
        let most = counts.iter().copied().max().unwrap_or(0).max(1) as f64;
        // Starts below 1, so that a column of one row is visible.
        let log = Scale::Log(0.5, most);
        let plot = |class, ys: &[Tick], scale| {
            svg::framed(class, ys, &xs, &svg::columns(counts, &names, scale, colour))
        };
        let _ = writeln!(
            html,
            r#"<figure class="small"><figcaption>{}</figcaption>{}{}</figure>"#,
            escaped(&method.name),
            plot("linear", &linear_ticks(most, 2), Scale::Linear(most)),
            plot("log", &log.decades(3), log)
        );
    }
    html
}

/// The lower end of the axis of dropped probability.
const LEAST_DROPPED: f64 = 1e-6;

/// Classes kept against probability dropped.
fn tradeoff(comparison: &Comparison) -> String {
    let points = || comparison.curves.iter().flat_map(|curve| &curve.points);
    let most_kept = points().map(|point| point.kept).fold(1.0, f64::max);
    let most_dropped = points().map(|point| point.softmax_mass_dropped).fold(0.0, f64::max);
    let (x, y) = (
        Scale::Log(0.9, most_kept * 1.1),
        Scale::Log(LEAST_DROPPED, most_dropped.max(10.0 * LEAST_DROPPED) * 1.5),
    );
    let (mut drawn, mut legend, mut rows) = (String::new(), String::new(), String::new());
    for curve in &comparison.curves {
        let colour = of_method(curve.method);
        let point = |point: &CurvePoint| {
            let name = format!("{} {}={}", curve.method, curve.parameter, point.value);
            let (kept, dropped) = (point.kept, point.softmax_mass_dropped);
            Point {
                x: x.place(kept),
                y: y.place(dropped),
                name: format!("{name}: {kept:.2} classes kept, {dropped:.3e} softmax mass dropped"),
                marked: is_papers(curve, point),
            }
        };
        drawn += &svg::curve(&curve.points.iter().map(point).collect::<Vec<_>>(), colour);
        let _ = write!(
            legend,
            r#"<span><i style="background:{colour}"></i>{}, by {}</span> "#,
            curve.method, curve.parameter
        );
        for point in &curve.points {
            let _ = write!(
                rows,
                r#"<tr><th scope="row">{}</th><td>{} {}{}</td><td>{:.2}</td><td>{:.3e}</td></tr>"#,
                curve.method,
                curve.parameter,
                point.value,
                if is_papers(curve, point) { " (the paper's rule)" } else { "" },
                point.kept,
                point.softmax_mass_dropped
            );
        }
    }
    let mut ys = y.decades(7);
    if let Some(least) = ys.first_mut() {
        least.label.insert(0, '≤');
    }
    let plot = svg::framed("curves", &ys, &x.decades(6), &drawn);
    format!(
        r#"<p class="legend">{legend}<span>◉ the paper's rule: evidential, one round</span></p>
<div class="ylabel">softmax mass dropped, mean over rows</div>
{plot}
<div class="xlabel">classes kept, mean over rows</div>
<details><summary>The numbers</summary><div class="scroll" tabindex="0" role="region" aria-label="The numbers of the curves"><table><thead><tr><th scope="col">method</th><th scope="col">parameter</th><th scope="col">kept, mean</th><th scope="col">softmax mass dropped, mean</th></tr></thead><tbody>{rows}</tbody></table></div></details>"#
    )
}

/// One round is what the paper has.
fn is_papers(curve: &Curve, point: &CurvePoint) -> bool {
    curve.parameter == "rounds" && point.value == 1.0
}

fn table(comparison: &Comparison) -> String {
    let mut html = r#"<table id="numbers"><thead><tr><th scope="col">method</th>"#.to_owned();
    for column in comparison.columns() {
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
        for column in comparison.columns() {
            // Sorts by the exact value, not by the rounded text.
            let value = (column.value)(method).map_or_else(String::new, |x| x.to_string());
            let _ = write!(html, r#"<td data-value="{value}">{}</td>"#, column.text(method));
        }
        html += "</tr>\n";
    }
    html + "</tbody></table>"
}

/// The descriptions of the columns.
fn help(comparison: &Comparison) -> String {
    let mut html = String::new();
    for column in comparison.columns() {
        let (title, help) = (escaped(column.title), escaped(column.help));
        let _ = write!(html, "<div><dt>{title}</dt><dd>{help}</dd></div>");
    }
    html
}

/// The data of the page's script.
#[derive(Serialize)]
struct Data<'a> {
    classes: usize,
    /// The colour of softmax, which is shown even if it is not among the methods.
    softmax: String,
    methods: Vec<DataMethod<'a>>,
    /// The names of the classes that occur in the rows.
    labels: BTreeMap<u32, &'a str>,
    rows: &'a [SampleRow],
    find: Vec<Find<'a>>,
}

/// A list of interesting rows.
#[derive(Serialize)]
struct Find<'a> {
    title: String,
    /// The method to select with the row, if the list is about one.
    method: Option<usize>,
    rows: &'a [Scored],
}

#[derive(Serialize)]
struct DataMethod<'a> {
    name: &'a str,
    colour: String,
}

fn find(comparison: &Comparison) -> Vec<Find<'_>> {
    let list = |title: &str, rows| Find { title: title.to_owned(), method: None, rows };
    let mut lists = vec![
        list("most disagreement between methods (probability)", &comparison.most_disagreement),
        list("most conflict of evidence (-ln(1 - conflict))", &comparison.most_conflict),
    ];
    for (number, method) in comparison.methods.iter().enumerate() {
        let title = format!("most softmax mass dropped by {}", method.name);
        lists.push(Find { title, method: Some(number), rows: &method.most_dropped });
    }
    lists.retain(|list| !list.rows.is_empty());
    lists
}

fn data(comparison: &Comparison, labels: &[String]) -> Result<String> {
    let rows = comparison.sample.rows();
    let label = |&class: &u32| Some((class, labels.get(class as usize)?.as_str()));
    let data = Data {
        classes: comparison.classes,
        softmax: of_method(SOFTMAX).to_string(),
        methods: coloured(comparison)
            .map(|(method, colour)| DataMethod { name: &method.name, colour: colour.to_string() })
            .collect(),
        find: find(comparison),
        labels: rows.iter().flat_map(|row| &row.classes).filter_map(label).collect(),
        rows,
    };
    // Within a script element, only `<` could start a tag.
    Ok(serde_json::to_string(&data)?.replace('<', "\\u003c"))
}
