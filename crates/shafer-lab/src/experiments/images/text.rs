//! The summary for the terminal: the distances at the end of training.

use std::fmt::Write as _;

use super::results::ImageResults;
use crate::experiments::statistics::Summary;
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

pub(super) fn summary(results: &ImageResults) -> String {
    let mut text = format!(
        "{}: {} seeds ({} collapsed, {} diverged), {} updates each, {:.0} s\n\n",
        results.data_set,
        results.seeds,
        results.collapsed,
        results.diverged,
        results.steps,
        results.wall_seconds
    );
    let methods = [SOFTMAX, SPARSEMAX, EVIDENTIAL];
    let mut row = |label: &str, cells: [String; 3]| {
        let [first, second, third] = cells;
        let _ = writeln!(text, "{label:<26}{first:>18}{second:>18}{third:>18}");
    };
    row("distance to the target", methods.map(str::to_owned));
    for (distance, table) in [
        ("Bhattacharyya", &results.final_values.bhattacharyya),
        ("Wasserstein", &results.final_values.wasserstein),
    ] {
        for query in &results.queries {
            let cell = |method| table.get(query).and_then(|row| row.get(method)).map(cell);
            row(&format!("{distance}, {query}"), methods.map(|m| cell(m).unwrap_or_default()));
        }
    }
    text
}

/// The mean with its standard error, and the number of infinite distances.
fn cell(summary: &Summary) -> String {
    let mut text = match (summary.mean, summary.se) {
        (Some(mean), Some(se)) => format!("{mean:.4} ± {se:.4}"),
        (Some(mean), None) => format!("{mean:.4}"),
        (None, _) => String::new(),
    };
    if summary.infinite > 0 {
        let _ = write!(text, " {} inf", summary.infinite);
    }
    text
}
