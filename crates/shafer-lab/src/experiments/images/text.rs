//! The summary for the terminal: the distances at the end of training.

use super::results::ImageResults;
use crate::experiments::text_table::row;
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

const WIDTHS: [usize; 4] = [26, 18, 18, 18];

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
    row(
        &mut text,
        &WIDTHS,
        ["distance to the target"].into_iter().chain(methods).map(str::to_owned),
    );
    for (distance, table) in [
        ("Bhattacharyya", &results.final_values.bhattacharyya),
        ("Wasserstein", &results.final_values.wasserstein),
    ] {
        for query in &results.queries {
            let cell = |method| Some(table.get(query)?.get(method)?.text(4));
            let cells = methods.map(|method| cell(method).unwrap_or_default());
            let label = format!("{distance}, {query}");
            row(&mut text, &WIDTHS, std::iter::once(label).chain(cells));
        }
    }
    text
}
