//! The plot of support size against miss rate.

use super::retained::{Curve, Found};
use crate::drawing::{Chart, Figure, Key, LineStyle, Marks, Measured, Panel, Series, Sign};
use crate::method::EVIDENTIAL;

/// The curves of all methods, with the paper's rule as a point.
pub(super) fn figure(name: &str, curves: &[Curve], paper: &Found) -> Figure {
    let percent = |share: f64| 100.0 * share;
    let measured = |&(miss, size): &(f64, f64)| Measured {
        x: percent(miss),
        mean: Some(size),
        ..Measured::default()
    };
    let title = |curve: &Curve| match curve.score.to_string().replace(":alpha=", " ") {
        title if title == "lac" => "min-probability".to_owned(),
        // The threshold of the weights of evidence.
        title if title == EVIDENTIAL => "min-evidence".to_owned(),
        title => title,
    };
    let mut series: Vec<Series> = curves
        .iter()
        .map(|curve| Series {
            line: LineStyle::of_method(&title(curve)),
            points: curve.points.iter().map(measured).collect(),
        })
        .collect();
    let mut legend: Vec<Key> =
        curves.iter().map(|curve| Key::method(&title(curve), true)).collect();
    let line = LineStyle::of_method(EVIDENTIAL);
    series.push(Series { line, points: vec![measured(&(paper.missed_share, paper.kept_mean))] });
    legend.push(Key { words: "the paper's rule".to_owned(), sign: Sign::Block(line.colour) });
    let reach = |value: fn(&(f64, f64)) -> f64| {
        let all = curves.iter().flat_map(|curve| &curve.points);
        all.map(value).fold(0.0, f64::max)
    };
    let chart = Chart {
        title: String::new(),
        x_label: "rows whose true class is dropped, %",
        y_label: "classes kept, mean".to_owned(),
        x_ticks: None,
        x_range: (0.0, percent(reach(|point| point.0).max(paper.missed_share))),
        y_most: reach(|point| point.1).max(paper.kept_mean),
        marks: Marks::Band,
        series,
    };
    let title = format!("Classes kept against true classes dropped: {name}");
    Figure {
        name: "guarantee",
        note: format!("{} rows. Lower and further left is better.", paper.rows),
        legend,
        columns: 1,
        panels: vec![Panel { title: title.clone(), drawing: chart.draw() }],
        title,
    }
}
