//! `shafer reproduce` on a data set of sixty images.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{complaint, json, shafer};
use serde_json::Value;

/// Synthetic digits: a bright square at a position given by the class.
fn data_set(folder: &Path, name: &str) {
    let place = folder.join("data").join(name);
    std::fs::create_dir_all(&place).unwrap();
    let images = 60_u32;
    let mut pixels = Vec::new();
    let mut labels = Vec::new();
    for image in 0..images {
        let class = image % 10;
        let (top, left) = (4 + 10 * (class / 5), 1 + 5 * (class % 5));
        for y in 0..28 {
            for x in 0..28 {
                let inside = (top..top + 8).contains(&y) && (left..left + 5).contains(&x);
                pixels.push(if inside { 255 } else { (image % 7) as u8 });
            }
        }
        labels.push(class as u8);
    }
    let idx = |kind: u8, lengths: &[u32], values: &[u8]| {
        let mut bytes = vec![0, 0, 8, kind];
        bytes.extend(lengths.iter().flat_map(|length| length.to_be_bytes()));
        bytes.extend(values);
        bytes
    };
    for split in ["train", "t10k"] {
        std::fs::write(
            place.join(format!("{split}-images-idx3-ubyte")),
            idx(3, &[images, 28, 28], &pixels),
        )
        .unwrap();
        std::fs::write(
            place.join(format!("{split}-labels-idx1-ubyte")),
            idx(1, &[images], &labels),
        )
        .unwrap();
    }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    data_set(folder.path(), "mnist");
    folder
}

/// A small network with a training long enough to interrupt.
const SMALL: [&str; 19] = [
    "reproduce",
    "mnist",
    "--data-dir",
    "data",
    "--seeds",
    "2",
    "--set",
    "network.architecture={kind='mlp', hidden=8}",
    "--set",
    "training.batch_size=8",
    "--set",
    "classifier={hidden=16, epochs=10}",
    "--set",
    "fractions=[1.0, 0.5]",
    "--set",
    "training.checkpoints={per_epoch=5}",
    "--own-data",
    "--quiet",
    "--json",
];

fn arguments<'a>(more: &[&'a str]) -> Vec<&'a str> {
    SMALL.iter().chain(more).copied().collect()
}

/// The results of a run without its times.
fn numbers(path: &Path) -> Value {
    let mut results: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    results["wall_seconds"] = Value::Null;
    for training in results["trainings"].as_array_mut().unwrap() {
        training["wall_seconds"] = Value::Null;
    }
    results
}

#[test]
fn a_run_leaves_numbers_figures_and_a_report() {
    let folder = folder();
    let run = json(folder.path(), &arguments(&["--set", "training.epochs=4", "--out", "run"]));
    let out = folder.path().join("run");
    assert_eq!(run["report"], "run/report.html");
    let results = numbers(&out.join("results.json"));
    for distance in ["bhattacharyya", "wasserstein"] {
        for query in ["even", "odd"] {
            for method in ["softmax", "sparsemax", "evidential"] {
                let cell = &results["final"][distance][query][method];
                assert_eq!(cell["n"], 2, "{distance} {query} {method}");
            }
        }
    }
    // 8 batches per epoch: after the 1st, the 6th and the last.
    let iterations = results["evolution"]["iterations"].as_array().unwrap();
    assert_eq!(iterations.len(), 4 * 3);
    assert_eq!([&iterations[0], &iterations[2], &iterations[11]], [1, 8, 32]);
    assert_eq!(results["reduced"][0]["fraction"], 0.5);
    for file in ["report.html", "results.parquet", "figures/bars.svg", "figures/samples.png"] {
        assert!(out.join(file).is_file(), "{file}");
    }
    // The folder of a run has one configuration.
    let other = arguments(&["--set", "training.epochs=2", "--out", "run"]);
    assert!(complaint(folder.path(), &other).contains("holds a run with another configuration"));
}

/// The settings of the preset except the size of the network and the length of the training.
#[test]
fn the_stable_preset_trains_from_the_mean_image() {
    let folder = folder();
    let folder = folder.path();
    data_set(folder, "fashion");
    let mut run = arguments(&["--preset", "stable", "--set", "training.epochs=1", "--out", "run"]);
    run[1] = "fashion";
    json(folder, &run);
    let results = numbers(&folder.join("run/results.json"));
    assert_eq!(results["config"]["training"]["decoder_bias"], "mean_image");
    assert_eq!([&results["seeds"], &results["diverged"]], [2, 0]);
    assert!(results["collapsed"].is_u64());
    for experiment in ["mnist", "notmnist", "behaviour"] {
        let said = complaint(folder, &["reproduce", experiment, "--preset", "stable"]);
        let expected = format!("{experiment} has none; choose from paper, quick, smoke");
        assert!(said.contains(&expected), "{said}");
    }
}

#[test]
fn the_table_has_a_row_for_every_measurement() {
    let folder = folder();
    json(folder.path(), &arguments(&["--set", "training.epochs=1", "--out", "run"]));
    let listed =
        json(folder.path(), &["sparsify", "run/results.parquet", "--method", "softmax", "--json"]);
    // 2 seeds, 2 fractions with 3 and 2 checkpoints, 2 queries, all methods.
    let methods =
        numbers(&folder.path().join("run/results.json"))["methods"].as_array().unwrap().len();
    assert_eq!(listed["rows"], 2 * (3 + 2) * 2 * methods);
}

fn start(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(arguments)
        .current_dir(folder)
        .env_remove("SHAFER_DATA")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_mins(2), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Ctrl-C, which saves a checkpoint, then `kill -9`.
#[cfg(unix)]
#[test]
fn a_run_that_was_stopped_ends_with_the_same_numbers() {
    let folder = folder();
    let folder = folder.path();
    // More than a second of training, so that Ctrl-C arrives in the middle on a busy machine, too.
    let length = ["--set", "training.epochs=60", "--out"];
    let whole = arguments(&[&length[..], &["whole"]].concat());
    json(folder, &whole);
    let stopped = arguments(&[&length[..], &["stopped"]].concat());
    let trainings = folder.join("stopped/trainings");

    let mut child = start(folder, &stopped);
    // The classifier is trained; now the networks are.
    wait_until("nothing was begun", || trainings.join("classifier.json").exists());
    std::thread::sleep(Duration::from_millis(100));
    Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(!folder.join("stopped/results.json").exists());
    assert!(trainings.join("seed-00.safetensors").exists(), "no state was left");

    let mut child = start(folder, &stopped);
    wait_until("nothing was finished", || trainings.join("seed-00.json").exists());
    child.kill().unwrap();
    child.wait().unwrap();

    json(folder, &stopped);
    assert_eq!(
        numbers(&folder.join("stopped/results.json")),
        numbers(&folder.join("whole/results.json"))
    );
}

#[test]
fn a_training_that_diverges_is_kept_and_the_others_go_on() {
    let folder = folder();
    // A learning rate so large that every training ends in NaN.
    let wild = arguments(&["--set", "training.learning_rate=1e30", "--out", "wild"]);
    let said = complaint(folder.path(), &wild);
    assert!(said.contains("wild: every training diverged"), "{said}");
    let record = folder.path().join("wild/trainings/seed-01.json");
    let record: Value = serde_json::from_slice(&std::fs::read(record).unwrap()).unwrap();
    assert_eq!(record["diverged"], true);
}

#[test]
fn data_that_differs_is_refused_or_recorded() {
    let folder = folder();
    let folder = folder.path();
    let mut run = arguments(&["--set", "training.epochs=1", "--out", "run"]);
    json(folder, &run);
    let recorded: Value =
        serde_json::from_slice(&std::fs::read(folder.join("run/run.json")).unwrap()).unwrap();
    assert_eq!(recorded["config"]["own_data"], true);
    assert_eq!(numbers(&folder.join("run/results.json"))["config"]["own_data"], true);
    run.retain(|argument| *argument != "--own-data");
    let said = complaint(folder, &run);
    for part in ["train-images-idx3-ubyte: has", "`shafer data fetch mnist`", "--own-data"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn what_is_wrong_is_said_in_one_line() {
    let folder = folder();
    let folder = folder.path();
    for (more, expected) in [
        (&["--seeds", "0"][..], "seeds is 0"),
        (&["--set", "fractions=[0.0, 1.0]"], "fractions: 0 is not a share"),
        (&["--set", "training.epoch=3"], "unknown field `epoch`"),
    ] {
        let said =
            complaint(folder, &[&["reproduce", "mnist", "--data-dir", "data"], more].concat());
        assert!(said.contains(expected), "{said}");
    }
    let said = complaint(folder, &["reproduce", "fashion", "--data-dir", "data"]);
    assert!(said.contains("data/fashion") && said.contains("shafer data fetch fashion"), "{said}");

    // An invalid checkpoint and an invalid record.
    let short = arguments(&["--set", "training.epochs=1", "--out", "run"]);
    json(folder, &short);
    let trainings = folder.join("run/trainings");
    let record = trainings.join("seed-00.json");
    let good = std::fs::read(&record).unwrap();
    std::fs::write(&record, "{").unwrap();
    assert!(complaint(folder, &short).contains("seed-00.json: is damaged"));
    std::fs::remove_file(&record).unwrap();
    std::fs::write(trainings.join("seed-00.part.json"), &good).unwrap();
    std::fs::copy(
        trainings.join("classifier.weights.safetensors"),
        trainings.join("seed-00.safetensors"),
    )
    .unwrap();
    let said = complaint(folder, &short);
    assert!(said.contains("seed-00.safetensors: remove it"), "{said}");
    std::fs::write(trainings.join("classifier.weights.safetensors"), "nothing").unwrap();
    assert!(complaint(folder, &short).contains("classifier.weights.safetensors: remove it"));
    // A file instead of a folder.
    let output = shafer(folder, &arguments(&["--out", "data/mnist/t10k-labels-idx1-ubyte"]));
    assert_eq!(output.status.code(), Some(2));
}
