//! The figures of an experiment with images.

mod bars;
mod curves;
mod reduced;
mod samples;
#[cfg(test)]
mod tests;

use super::results::ImageResults;
use crate::drawing::Figure;
use crate::words::counted;

/// The figures of one training.
pub(crate) fn of_exemplar(results: &ImageResults) -> Vec<Figure> {
    bars::bars(results).into_iter().chain(samples::samples(results)).collect()
}

/// All figures that the results have numbers for.
pub(super) fn all(results: &ImageResults) -> Vec<Figure> {
    let mut figures = Vec::new();
    figures.extend(bars::bars(results));
    figures.extend(curves::evolution(results));
    figures.extend(reduced::reduced(results));
    figures.extend(samples::samples(results));
    figures.push(curves::kept(results));
    figures.push(curves::evidence(results));
    figures
}

/// The number of seeds in a mean, in words.
fn seeds(results: &ImageResults) -> String {
    format!("mean over {}", counted(results.seeds - results.diverged, "seed"))
}
