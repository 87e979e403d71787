//! Over the training: distances, classes kept, and properties of the evidence.

use super::seeds;
use crate::drawing::colour::SERIES;
use crate::drawing::{Chart, Figure, Key, LineStyle, Marks, Panel, Series, Sign, largest};
use crate::experiments::images::paper;
use crate::experiments::images::results::{Evolution, ImageResults, Table};
use crate::experiments::methods::{MethodName, groups};
use crate::experiments::statistics::Curve;

const X_LABEL: &str = "training iterations";

/// The distances to the target distribution: of the paper's three methods, of the other methods beside ours, and of the
/// paper's three without collapsed seeds if there are any.
pub(super) fn evolution(results: &ImageResults) -> Vec<Figure> {
    let [paper, projections, cutoffs] = groups(&results.methods);
    let n = seeds(results);
    let all = &results.evolution;
    let data_set = paper::title(&results.data_set);
    let groups = [
        ("evolution", "", &paper),
        ("evolution-projections", ", other projections", &projections),
        ("evolution-cutoffs", ", cut-offs", &cutoffs),
    ];
    let figure = |(name, of, methods): (_, &str, &Vec<_>)| {
        let title = format!("Distance to the target{of}: {data_set}");
        distances(name, title, all, results, methods, &n)
    };
    let mut figures: Vec<Figure> = groups.into_iter().map(figure).collect();
    if let Some(without) = &results.without_collapsed {
        let healthy = results.seeds - results.diverged - results.collapsed;
        let title = format!("Distance to the target without collapsed seeds: {data_set}");
        let n = format!("mean over the {healthy} seeds that did not collapse");
        let name = "evolution-without-collapsed";
        figures.push(distances(name, title, &without.evolution, results, &paper, &n));
    }
    figures.retain(|figure| !figure.legend.is_empty());
    figures
}

fn distances(
    name: &'static str,
    title: String,
    evolution: &Evolution,
    results: &ImageResults,
    methods: &[&MethodName],
    n: &str,
) -> Figure {
    let metrics = [
        ("Bhattacharyya distance", &evolution.bhattacharyya),
        ("Wasserstein distance", &evolution.wasserstein),
    ];
    let mut panels = Vec::new();
    let mut infinite = false;
    for (metric, table) in metrics {
        let rows: Vec<Vec<Series>> =
            results.queries.iter().map(|q| of_methods(evolution, table, q, methods)).collect();
        // One scale for all queries, so that they can be compared.
        let y_most = largest(rows.iter().flatten());
        for (query, series) in results.queries.iter().zip(rows) {
            infinite |= series.iter().flat_map(|s| &s.points).any(|point| point.infinite);
            panels.push(panel(evolution, query, metric, y_most, series));
        }
    }
    let mut note = format!("Lower is better; {n}, bands: standard error.");
    if infinite {
        note += " Ticks above a plot mark checkpoints at which the distance of a seed is infinite, \
                 having no class in common with the target; the mean is over the others.";
    }
    let legend = methods.iter().map(|method| Key::method(&method.title, true)).collect();
    Figure { name, title, note, legend, columns: 4, panels }
}

/// The number of classes kept.
pub(super) fn kept(results: &ImageResults) -> Figure {
    let evolution = &results.evolution;
    let groups = groups(&results.methods);
    let mut panels = Vec::new();
    for query in &results.queries {
        for methods in groups.iter().filter(|methods| !methods.is_empty()) {
            let series = of_methods(evolution, &evolution.kept, query, methods);
            panels.push(panel(evolution, query, "classes kept", results.classes as f64, series));
        }
    }
    // Ours is in each group, and once in the legend.
    let ours = groups[0].last();
    let others = groups.iter().flat_map(|group| group.iter().rev().skip(1).rev());
    let legend =
        ours.into_iter().chain(others).map(|method| Key::method(&method.title, true)).collect();
    Figure {
        name: "kept",
        title: format!("Classes kept of {}: {}", results.classes, paper::title(&results.data_set)),
        note: format!("The {}, bands: standard error.", seeds(results)),
        legend,
        columns: 3,
        panels,
    }
}

/// Ignorance and internal conflict.
pub(super) fn evidence(results: &ImageResults) -> Figure {
    let evolution = &results.evolution;
    let parts = [
        ("Ignorance m(Z)", "mass on no class in particular", &evolution.ignorance),
        ("Internal conflict", "conflict between classes", &evolution.internal_conflict),
    ];
    let dashes: [&[f64]; 3] = [&[], &[7.0, 3.0], &[2.0, 2.5]];
    let styles = SERIES.into_iter().zip(dashes.into_iter().cycle());
    let styles = styles.map(|(colour, dash)| LineStyle { colour, dash, width: 1.8 });
    let queries = || results.queries.iter().zip(styles.clone().cycle());
    let panels = parts.map(|(title, label, curves)| {
        let of_query =
            |(query, line): (&String, LineStyle)| Some(series(evolution, curves.get(query)?, line));
        let series = queries().filter_map(of_query).collect();
        panel(evolution, title, label, 1.0, series)
    });
    Figure {
        name: "evidence",
        title: format!(
            "Ignorance and conflict of the evidence: {}",
            paper::title(&results.data_set)
        ),
        note: format!(
            "The {}, bands: standard error. Internal conflict near 1 means several modes.",
            seeds(results)
        ),
        legend: queries().map(|(q, s)| Key { words: q.clone(), sign: Sign::Line(s) }).collect(),
        columns: 2,
        panels: panels.into(),
    }
}

fn panel(
    evolution: &Evolution,
    title: &str,
    label: &str,
    y_most: f64,
    series: Vec<Series>,
) -> Panel {
    let ends = evolution.iterations.first().zip(evolution.iterations.last());
    let chart = Chart {
        title: title.to_owned(),
        x_label: X_LABEL,
        y_label: label.to_owned(),
        x_ticks: None,
        x_range: ends.map_or((0.0, 1.0), |(first, last)| (*first as f64, *last as f64)),
        y_most,
        marks: Marks::Band,
        series,
    };
    Panel { title: format!("{title}: {label} over {X_LABEL}"), drawing: chart.draw() }
}

fn of_methods(
    evolution: &Evolution,
    table: &Table<Curve>,
    query: &str,
    methods: &[&MethodName],
) -> Vec<Series> {
    let curve = |method: &&MethodName| {
        let line = LineStyle::of_method(&method.title);
        Some(series(evolution, table.get(query)?.get(&method.name)?, line))
    };
    methods.iter().filter_map(curve).collect()
}

fn series(evolution: &Evolution, curve: &Curve, line: LineStyle) -> Series {
    curve.series(line, evolution.iterations.iter().map(|iteration| *iteration as f64))
}
