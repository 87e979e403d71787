//! The experiment on synthetic scenes with tiny networks.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod figures;
mod measures;
mod pages;
mod runs;

/// A network of a few hundred parameters, and a handful of paths.
const TINY: &[&str] = &[
    "network.history_width=4",
    "network.future_width=3",
    "network.edge_width=2",
    "network.prior_hidden=4",
    "network.decoder_width=6",
    "network.components=2",
    "training.iterations=4",
    "training.batch_size=3",
    "samples=30",
    "class_samples=5",
    "time_steps=6",
    "most_agents=3",
];

fn tiny() -> Vec<String> {
    TINY.iter().map(|&change| change.to_owned()).collect()
}
