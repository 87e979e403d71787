//! The tables of the page.

use std::fmt::Write as _;

use super::results::{self, BOTH, Final, Gains, ImageResults, Improvement};
use crate::experiments::statistics::{Gain, Summary};
use crate::method::{SOFTMAX, SPARSEMAX};
use crate::page::{Cell, Heading, Table, is_lowest};

const ALL_SEEDS: &str = "All seeds that did not diverge";
const HEALTHY_SEEDS: &str = "Without collapsed seeds";

/// Final values: over all seeds, and over those that did not collapse.
pub(super) fn values(results: &ImageResults) -> Vec<Table> {
    let mut tables = vec![values_table(results, &results.final_values, ALL_SEEDS)];
    if let Some(without) = &results.without_collapsed {
        tables.push(values_table(results, &without.final_values, HEALTHY_SEEDS));
    }
    tables
}

/// A group of columns: a number for each query.
struct Group<'a> {
    title: &'static str,
    table: &'a results::Table<Summary>,
    scale: f64,
    decimals: usize,
    lower_is_better: bool,
}

fn values_table(results: &ImageResults, values: &Final, caption: &str) -> Table {
    let group = |title, table, scale, decimals, lower_is_better| Group {
        title,
        table,
        scale,
        decimals,
        lower_is_better,
    };
    let mut groups = vec![
        group("Bhattacharyya distance", &values.bhattacharyya, 1.0, 4, true),
        group("Wasserstein distance", &values.wasserstein, 1.0, 4, true),
        group("classes kept", &values.kept, 1.0, 2, false),
    ];
    let wrong = values.wrong.as_ref();
    groups.extend(wrong.map(|table| group("wrong samples, %", table, 100.0, 1, true)));
    let queries = &results.queries;
    let over = groups.iter().map(|group| Heading::over(queries.len(), group.title));
    let mut table = Table::new("values", caption)
        .head(std::iter::once(Heading::tall("method")).chain(over))
        .head(groups.iter().flat_map(|_| queries));
    for method in &results.methods {
        let cells = groups
            .iter()
            .flat_map(|group| queries.iter().map(|query| group.cell(query, &method.name)));
        table.row(Cell::method(&method.title), cells);
    }
    table
}

impl Group<'_> {
    fn cell(&self, query: &str, method: &str) -> Cell {
        let row = self.table.get(query);
        let Some(summary) = row.and_then(|methods| methods.get(method)) else {
            return Cell::decimal(None, self.decimals);
        };
        let scaled = |x: f64| x * self.scale;
        // A method that is infinitely far from the target for a seed is not the best.
        let finite = row.into_iter().flat_map(|methods| methods.values());
        let finite = finite.filter(|summary| summary.infinite == 0);
        let means = finite.filter_map(|summary| summary.mean.map(scaled));
        let mean = summary.mean.map(scaled);
        let best =
            self.lower_is_better && summary.infinite == 0 && is_lowest(mean, means, self.decimals);
        Cell::mean(mean, summary.se.map(scaled), self.decimals)
            .infinite(summary.infinite)
            .bold_if(best)
    }
}

/// Improvements, for the same seeds.
pub(super) fn improvements(results: &ImageResults) -> Vec<Table> {
    let mut tables = vec![improvement_table(results, &results.improvement, ALL_SEEDS)];
    if let Some(without) = &results.without_collapsed {
        tables.push(improvement_table(results, &without.improvement, HEALTHY_SEEDS));
    }
    tables
}

/// One of the distances.
type Metric = (&'static str, fn(&Gains) -> &results::Table<Gain>);

const METRICS: [Metric; 2] =
    [("Bhattacharyya", |gains| &gains.bhattacharyya), ("Wasserstein", |gains| &gains.wasserstein)];

fn improvement_table(results: &ImageResults, improvement: &Improvement, caption: &str) -> Table {
    let mut table = Table::new("gains", caption).head([
        "distance, query",
        "over softmax, at the end",
        "over sparsemax, at the end",
        "over softmax, whole training",
        "over sparsemax, whole training",
    ]);
    for (metric, of) in METRICS {
        for query in results.queries.iter().map(String::as_str).chain([BOTH]) {
            let cells =
                [&improvement.final_values, &improvement.training].into_iter().flat_map(|gains| {
                    [SOFTMAX, SPARSEMAX].into_iter().map(move |baseline| {
                        let gain = of(gains).get(query).and_then(|methods| methods.get(baseline));
                        gain.map_or_else(|| "–".to_owned(), percent).into()
                    })
                });
            table.row(format!("{metric}, {query}"), cells);
        }
    }
    table
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

/// A row for each training.
pub(super) fn trainings(results: &ImageResults) -> Table {
    let mut table = Table::new("values", "Each training").head([
        "seed",
        "fraction",
        "state",
        "updates",
        "seconds",
        "loss",
        "reconstruction",
        "KL",
    ]);
    for training in &results.trainings {
        let losses = training.losses;
        let cells = [
            Cell::number(training.fraction),
            Cell::state(training.diverged, training.collapsed),
            Cell::number(training.steps),
            Cell::decimal(Some(training.wall_seconds), 1),
            Cell::decimal(losses.total, 4),
            Cell::decimal(losses.reconstruction, 4),
            Cell::decimal(losses.kl, 4),
        ];
        table.row(training.seed.to_string(), cells);
    }
    table
}
