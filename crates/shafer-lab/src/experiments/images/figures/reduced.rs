//! Training on less data.

use crate::drawing::{Chart, Figure, Key, LineStyle, Marks, Measured, Panel, Series, largest};
use crate::experiments::images::paper;
use crate::experiments::images::results::{Final, ImageResults, Reduced, Table};
use crate::experiments::methods::{MethodName, groups};
use crate::experiments::statistics::Summary;

/// One of the distances.
type Metric = (&'static str, fn(&Final) -> &Table<Summary>);

const METRICS: [Metric; 2] = [
    ("Bhattacharyya distance", |values| &values.bhattacharyya),
    ("Wasserstein distance", |values| &values.wasserstein),
];

/// Final distances over the fraction of the training set, and the same without collapsed seeds if there are any; nothing
/// without reduced data.
pub(super) fn reduced(results: &ImageResults) -> impl Iterator<Item = Figure> {
    let title = paper::title(&results.data_set);
    let all = Shown {
        name: "reduced",
        title: format!("Less data, distance to the target after training: {title}"),
        values: |reduced| Some(&reduced.final_values),
        seeds: |reduced| reduced.seeds - reduced.diverged,
    };
    let without = Shown {
        name: "reduced-without-collapsed",
        title: format!("Less data, without collapsed seeds: {title}"),
        values: |reduced| match reduced.collapsed {
            0 => Some(&reduced.final_values),
            // None if there are no others.
            _ => reduced.without_collapsed.as_ref(),
        },
        seeds: |reduced| reduced.seeds - reduced.diverged - reduced.collapsed,
    };
    let collapsed = results.reduced.iter().any(|reduced| reduced.collapsed > 0);
    let without = collapsed.then(|| without.figure(results)).flatten();
    all.figure(results).into_iter().chain(without)
}

/// One of the figures.
struct Shown {
    name: &'static str,
    title: String,
    values: fn(&Reduced) -> Option<&Final>,
    /// The number of seeds in the means.
    seeds: fn(&Reduced) -> usize,
}

impl Shown {
    fn figure(self, results: &ImageResults) -> Option<Figure> {
        const X_LABEL: &str = "fraction of the training set";
        let (first, last) = (results.reduced.first()?, results.reduced.last()?);
        let [methods, ..] = groups(&results.methods);
        let x_ticks: Vec<(f64, String)> =
            results.reduced.iter().map(|r| (r.fraction, r.fraction.to_string())).collect();
        let room = 0.06 * (last.fraction - first.fraction);
        let mut panels = Vec::new();
        for (metric, table) in METRICS {
            let of_query = |query: &String| -> Vec<Series> {
                let series = |method: &&MethodName| {
                    let point = |reduced: &Reduced| {
                        let value = table((self.values)(reduced)?).get(query)?.get(&method.name)?;
                        let Summary { mean, se, infinite, .. } = *value;
                        Some(Measured { x: reduced.fraction, mean, se, infinite: infinite > 0 })
                    };
                    let points = results.reduced.iter().filter_map(point).collect();
                    Series { line: LineStyle::of_method(&method.title), points }
                };
                methods.iter().map(series).collect()
            };
            let rows: Vec<Vec<Series>> = results.queries.iter().map(of_query).collect();
            let y_most = largest(rows.iter().flatten());
            for (query, series) in results.queries.iter().zip(rows) {
                let chart = Chart {
                    title: query.clone(),
                    x_label: X_LABEL,
                    y_label: metric.to_owned(),
                    x_ticks: Some(x_ticks.clone()),
                    x_range: (first.fraction - room, last.fraction + room),
                    y_most,
                    marks: Marks::Bars,
                    series,
                };
                let title = format!("{query}: {metric} over {X_LABEL}");
                panels.push(Panel { title, drawing: chart.draw() });
            }
        }
        let seeds: Vec<String> = results
            .reduced
            .iter()
            .map(|r| format!("{} at {}", (self.seeds)(r), r.fraction))
            .collect();
        Some(Figure {
            name: self.name,
            title: self.title,
            note: format!(
                "Lower is better; mean over seeds ({}), bars: standard error.",
                seeds.join(", ")
            ),
            legend: methods.iter().map(|method| Key::method(&method.title, true)).collect(),
            columns: 4,
            panels,
        })
    }
}
