//! A run from made-up images to a page, and the results as a file.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use super::VQVAE;
use super::config::DataChoice;
use super::results::{REAL, RECONSTRUCTED, VqVaeResults};
use super::synthetic::{results, write_cifar};
use crate::drawing::tests::assert_no_faults;
use crate::experiments::report::{Report as _, parse_as};
use crate::experiments::{CPU, Reproduced, Request, draw, read, reproduce};

const TINY: [&str; 6] = [
    "share=1.0",
    "prior.epochs=2",
    "classifier.training.epochs=2",
    "vqvae.training.epochs=2",
    "vqvae.codebook={kind='live', decay=0.9, revive_below=0.1}",
    "samples=3",
];

fn run(
    folder: &Path,
    out: &str,
    more: &[&str],
    weights: Option<&str>,
) -> anyhow::Result<Reproduced> {
    let mut changes = vec![DataChoice::Cifar10.meaning().change];
    changes.extend(TINY.iter().chain(more).map(|&change| change.to_owned()));
    reproduce(&Request {
        experiment: &VQVAE,
        preset: "smoke",
        seeds: None,
        changes: &changes,
        out: &folder.join(out),
        folders: &[folder.to_owned()],
        own_data: true,
        weights: weights.map(|weights| folder.join(weights)).as_deref(),
        device: CPU,
        quiet: true,
    })
}

/// The results without the times.
fn numbers(run: &Reproduced) -> VqVaeResults {
    let mut results: VqVaeResults =
        serde_json::from_slice(&std::fs::read(&run.results).unwrap()).unwrap();
    results.wall_seconds = 0.0;
    let trainings = &mut results.trainings;
    trainings.vqvae.wall_seconds = 0.0;
    trainings.prior.wall_seconds = 0.0;
    trainings.classifier.wall_seconds = 0.0;
    results
}

#[test]
fn a_run_is_resumed_at_any_stage_and_drawn_again() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_cifar(folder);
    let complete = run(folder, "run", &[], None).unwrap();
    let whole = numbers(&complete);
    assert_eq!((whole.classes.len(), whole.held_out, whole.grid), (10, 20, [4, 4]));
    for name in whole.methods.iter().map(|method| method.name.as_str()) {
        let kept = &whole.kept[name];
        assert!(kept.mean >= 1.0 && kept.max <= 32 && kept.mass <= 1.0 + 1e-9, "{name}: {kept:?}");
        assert!((kept.reduction_mean - (1.0 - kept.mean / 32.0)).abs() < 1e-12);
        assert!(whole.frechet[name] >= 0.0 && whole.diversity.contains_key(name), "{name}");
    }
    assert_eq!((whole.kept["softmax"].mean, whole.kept["softmax"].missed), (32.0, 0.0));
    assert!((whole.kept["softmax"].mass - 1.0).abs() < 1e-9);
    assert_eq!(whole.kept["seen"].mean, whole.codebook.used as f64);
    assert_eq!([whole.kept["seen"].of_used_mean, whole.kept["softmax"].of_used_max], [1.0; 2]);
    assert!(whole.kept["evidential-seen"].max < whole.codebook.used);
    assert!(whole.kept["evidential-2"].mean <= whole.kept["evidential"].mean);
    assert!(whole.accuracy.contains_key(REAL) && whole.top5.contains_key(RECONSTRUCTED));
    assert_eq!(whole.trainings.prior.epochs.len(), 2);
    assert_eq!(whole.maps["evidential"].len(), 16);
    assert!(complete.text.contains("held-out images") && complete.text.contains("sparsemax"));

    // Jobs of every stage are run again.
    let jobs = folder.join("run/trainings");
    for file in [
        "codes.crops.1.000.json",
        "prior.json",
        "prior.weights.safetensors",
        "samples.evidential.004.json",
        "kept.000.json",
        "judged.sparsemax.json",
        "judged.real.json",
        "frechet.top-k.json",
    ] {
        std::fs::remove_file(jobs.join(file)).unwrap();
    }
    assert_eq!(numbers(&run(folder, "run", &[], None).unwrap()), whole);

    // The networks of another run.
    let fewer = numbers(&run(folder, "fewer", &["samples=2"], Some("run")).unwrap());
    assert_eq!(fewer.kept["entmax"].mean, whole.kept["entmax"].mean);
    assert!(!folder.join("fewer/trainings/prior.safetensors").exists());
    let error = run(folder, "other", &["vqvae.width=12"], Some("run")).err().unwrap();
    assert!(format!("{error:#}").contains("was trained with vqvae = "), "{error:#}");

    let page = std::fs::read(&complete.report).unwrap();
    std::fs::remove_file(&complete.report).unwrap();
    let stored = read(&folder.join("run")).unwrap();
    let drawn = draw(&folder.join("run"), stored.as_ref()).unwrap();
    assert_eq!(drawn.figures.len(), 8, "{:?}", drawn.figures);
    // But for the wall-clock time, which the second run added to.
    assert_eq!(std::fs::read(&drawn.report).unwrap().len() / 1000, page.len() / 1000);
}

#[test]
fn a_class_without_images_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write_cifar(folder.path());
    let file = folder.path().join("cifar10/test_batch.bin");
    let bytes = std::fs::read(&file).unwrap();
    std::fs::write(&file, &bytes[..3073 * 9]).unwrap();
    let error = format!("{:#}", run(folder.path(), "run", &[], None).err().unwrap());
    assert!(error.contains("class truck has no image"), "{error}");
}

#[test]
fn a_training_that_diverges_is_named() {
    let folder = tempfile::tempdir().unwrap();
    write_cifar(folder.path());
    let wild = ["vqvae.training.learning_rate=1e30", "vqvae.codebook={kind='plain'}"];
    let error = format!("{:#}", run(folder.path(), "run", &wild, None).err().unwrap());
    assert!(error.contains("vqvae: the training diverged in epoch"), "{error}");
}

#[test]
fn results_survive_their_file_and_broken_ones_do_not() {
    let results = results();
    let json = serde_json::to_value(&results).unwrap();
    assert_eq!(serde_json::from_value::<VqVaeResults>(json.clone()).unwrap(), results);
    assert_eq!(json["kept"]["evidential"]["reduction_max"], 0.5);
    for (pointer, value, expected) in [
        ("/grid", serde_json::json!([0, 2]), "has no positions"),
        ("/grid", serde_json::json!([3, 2]), "has 4 values for a grid of 3 x 2"),
        ("/pictures/classes", serde_json::json!([0]), "has 2 classes instead of 1"),
        ("/pictures/classes", serde_json::json!([0, 2]), "2 is not below 2"),
        ("/accuracy", serde_json::json!({}), "is not in every table"),
    ] {
        let mut broken = json.clone();
        *broken.pointer_mut(pointer).unwrap() = value;
        let error = format!("{:#}", parse_as::<VqVaeResults>(&broken.to_string()).unwrap_err());
        assert!(error.contains(expected), "{pointer}: {error}");
    }
}

#[test]
fn the_page_and_the_text_have_the_papers_numbers_and_ours() {
    let results = results();
    let figures = results.figures();
    let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
    assert_eq!(names, ["samples", "map", "trainings", "reconstructions"]);
    assert_no_faults(&figures);
    let page = results.page(&figures).unwrap();
    for words in
        ["20.7, 47.8", "25.0 <small>± 6.2</small>", "&lt;cat&gt;", "undertrained", "0.9700"]
    {
        assert!(page.contains(words), "{words}");
    }
    assert!(!page.contains("<cat>") && !page.contains("NaN"));
    // Every number stands below its heading.
    let kept = &page[page.find("Kept codes of held-out images").unwrap()..];
    let column = |words: &str| {
        let head = &kept[..kept.find(words).unwrap()];
        head.matches("<th").count()
    };
    let row = &kept[kept.find("<tbody").unwrap()..];
    let row = &row[..row.find("</tr>").unwrap()];
    let cell = |place: usize| row.split("<td").nth(place - column("kept, mean") + 1).unwrap();
    assert!(cell(column("the paper, %")).contains("89"), "{row}");
    assert!(cell(column("kept of those in use, %")).contains("50.0"), "{row}");
    let text = results.summary();
    for words in [
        "25.0 ± 6.2",
        "the paper",
        "7 of 16 codes occur",
        "More than half",
        "from 2.500 to 2.000",
        // 16 - 3.5 are dropped, 16 - 7 are unused, all of which are dropped with 3.5 of 7.
        "Of the 12.5 codes that evidential drops on average, 9.0 (72.0%) are not in use. Of the 7 in use it keeps 3.5 (50.0%)",
    ] {
        assert!(text.contains(words), "{words} in {text}");
    }
}
