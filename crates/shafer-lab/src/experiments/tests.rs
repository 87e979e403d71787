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

/// The runs behind the tables of the documents, as large as the paper's.
#[test]
fn the_results_in_the_repository_are_drawn() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let run = tempfile::tempdir().unwrap();
        std::fs::copy(&path, run.path().join(RESULTS)).unwrap();
        let results = read(run.path()).unwrap();
        let page = results.page(&results.figures()).unwrap();
        assert!(page.contains("<svg") && !page.contains("NaN"), "{}", path.display());
        names.push(path.file_stem().unwrap().to_str().unwrap().to_owned());
    }
    names.sort();
    assert_eq!(names, ["behaviour", "behaviour-backward", "fashion", "mnist", "notmnist"]);
}
