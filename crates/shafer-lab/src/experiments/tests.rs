//! The skeleton, with an experiment of two stages, and what holds for every experiment.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod toy;

use std::path::Path;

use super::ALL;
use super::report::{RESULTS, read};

#[test]
fn folders_without_results_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let error = read(folder.path()).unwrap_err().to_string();
    assert!(error.contains("has no results.json"), "{error}");
    let error = read(&folder.path().join("nowhere")).unwrap_err().to_string();
    assert!(error.contains("no such folder"), "{error}");
}

#[test]
fn experiments_have_unique_names_and_a_default_preset() {
    for (place, entry) in ALL.iter().enumerate() {
        assert!(ALL[..place].iter().all(|other| other.name != entry.name), "{}", entry.name);
        assert_eq!(entry.presets[0].name, "paper");
    }
}

/// A page without its images, whose base64 can spell anything.
fn without_images(page: &str) -> String {
    let mut parts = page.split("base64,");
    let first = parts.next().unwrap().to_owned();
    parts.fold(first, |text, part| text + part.trim_start_matches(|c| c != '"'))
}

/// Results of other commands, which have no page.
const NO_EXPERIMENTS: &[&str] =
    &["vqvae-sampler", "guarantee", "behaviour-calibration", "behaviour-distance-calibration"];

/// The runs behind the tables of the documents, as large as the paper's.
#[test]
fn the_results_in_the_repository_are_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if NO_EXPERIMENTS.contains(&name.as_str()) {
            continue;
        }
        let run = tempfile::tempdir().unwrap();
        std::fs::copy(&path, run.path().join(RESULTS)).unwrap();
        let results = read(run.path()).unwrap();
        let page = without_images(&results.page(&results.figures()).unwrap());
        assert!(page.contains("<svg") && !page.contains("NaN"), "{}", path.display());
        names.push(name);
    }
    names.sort();
    let behaviour = ["behaviour", "behaviour-backward"];
    let images = ["fashion", "fashion-stable", "mnist", "notmnist"];
    let codes = ["vqvae-cifar10", "vqvae-cifar10-live", "vqvae-miniimagenet"];
    assert_eq!(names, [&behaviour[..], &images, &codes].concat());
}
