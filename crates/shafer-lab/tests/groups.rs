//! `--groups`: several variables side by side.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use common::{complaint, json, last_floats, npy, npy_of, shafer};

/// Two rows of three and two classes.
const LOGITS: [f32; 10] = [3.0, 2.0, -5.0, 0.0, 1.0, 4.0, 4.0, 4.0, 2.0, -2.0];

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("logits.npy"), npy(&[2, 5], &LOGITS)).unwrap();
    folder
}

/// Kept: of the first group 0 and 1, then all of a vacuous row; of the second group the larger class.
fn expected() -> [f32; 10] {
    let e = 1.0 / (1.0 + (-1.0_f32).exp());
    let third = 1.0 / 3.0;
    [e, 1.0 - e, 0.0, 0.0, 1.0, third, third, third, 1.0, 0.0]
}

fn close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (a, b) in found.iter().zip(expected) {
        assert!((a - b).abs() < 1e-6, "{found:?}");
    }
}

const GROUPED: [&str; 4] = ["sparsify", "logits.npy", "--groups", "3,2"];

fn write(folder: &Path, output: &str) {
    let arguments = [&GROUPED[..], &["-o", output]].concat();
    let output = shafer(folder, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn every_format_holds_the_distributions_side_by_side() {
    let folder = folder();
    let folder = folder.path();
    write(folder, "dense.npy");
    close(&last_floats(&folder.join("dense.npy"), 10), &expected());
    write(folder, "sparse.csv");
    let text = std::fs::read_to_string(folder.join("sparse.csv")).unwrap();
    let mut spread = [0.0; 10];
    for line in text.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        let place = cells[0].parse::<usize>().unwrap() * 5 + cells[1].parse::<usize>().unwrap();
        spread[place] = cells[2].parse().unwrap();
    }
    close(&spread, &expected());
    let kept: Vec<f32> = expected().into_iter().filter(|&p| p > 0.0).collect();
    write(folder, "sparse.safetensors");
    // The f32 values come first.
    let bytes = std::fs::read(folder.join("sparse.safetensors")).unwrap();
    let start = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let values = bytes[start..start + 4 * kept.len()].chunks_exact(4);
    let values: Vec<f32> = values.map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect();
    close(&values, &kept);
    write(folder, "sparse.npz");
    assert!(folder.join("sparse.npz").is_file());
}

#[test]
fn the_joint_space_is_summed_up() {
    let folder = folder();
    let report = json(folder.path(), &[&GROUPED[..], &["--json"]].concat());
    assert_eq!((&report["rows"], &report["classes"]), (&2.into(), &5.into()));
    assert_eq!((&report["kept"]["mean"], &report["vacuous"]), (&3.5.into(), &1.into()));
    assert_eq!(report["groups"][0]["kept"]["mean"], 2.5);
    assert_eq!(report["groups"][1]["classes"], 2);
    let joint = &report["joint"];
    assert_eq!((&joint["classes"], &joint["kept"]["mean"]), (&6.into(), &2.5.into()));
    assert_eq!((&joint["kept"]["smallest"], &joint["kept"]["largest"]), (&2.into(), &3.into()));
    let reduction = joint["kept"]["reduction_percent"].as_f64().unwrap();
    assert!((reduction - 100.0 * 3.5 / 6.0).abs() < 1e-12);
    let text = String::from_utf8(shafer(folder.path(), &GROUPED).stdout).unwrap();
    assert!(text.starts_with("2 rows of 5 classes in 2 groups, evidential\n"), "{text}");
    assert!(text.contains("joint kept      mean 2.50, median 2"), "{text}");
    assert!(text.contains("vacuous         1 group (all logits are equal"), "{text}");
    // The same with and without output.
    let arguments = [&GROUPED[..], &["--json", "-o", "out.npz"]].concat();
    assert_eq!(json(folder.path(), &arguments)["joint"], *joint);
    let plain = json(folder.path(), &["sparsify", "logits.npy", "--json"]);
    assert!(plain.get("joint").is_none() && plain.get("groups").is_none());
}

#[test]
fn along_another_axis_and_with_masks() {
    let folder = folder();
    let folder = folder.path();
    let columns: Vec<f32> = (0..10).map(|i| LOGITS[i % 2 * 5 + i / 2]).collect();
    std::fs::write(folder.join("columns.npy"), npy(&[5, 2], &columns)).unwrap();
    let arguments =
        ["sparsify", "columns.npy", "--axis", "0", "--groups", "3,2", "-o", "dense.npy"];
    assert!(shafer(folder, &arguments).status.success());
    let found = last_floats(&folder.join("dense.npy"), 10);
    let found: Vec<f32> = (0..10).map(|i| found[i % 5 * 2 + i / 5]).collect();
    close(&found, &expected());

    // Class 0 masked in all rows; classes 0 and 4 masked in the first row.
    std::fs::write(folder.join("classes.npy"), npy_of("|b1", &[5], &[0, 1, 1, 1, 1])).unwrap();
    let each = [0, 1, 1, 1, 0, 1, 1, 1, 1, 1];
    std::fs::write(folder.join("each.npy"), npy_of("|b1", &[2, 5], &each)).unwrap();
    let third = 1.0 / 3.0;
    let masked = |mask: &str| {
        let arguments = [&GROUPED[..], &["--mask", mask, "-o", "dense.npy"]].concat();
        assert!(shafer(folder, &arguments).status.success());
        last_floats(&folder.join("dense.npy"), 10)
    };
    close(&masked("classes.npy"), &[0.0, 1.0, 0.0, 0.0, 1.0, 0.0, 0.5, 0.5, 1.0, 0.0]);
    close(&masked("each.npy"), &[0.0, 1.0, 0.0, 1.0, 0.0, third, third, third, 1.0, 0.0]);
}

#[test]
fn a_row_of_groups_is_explained() {
    let folder = folder();
    let folder = folder.path();
    std::fs::write(folder.join("names.txt"), "walk\nrun\nstop\nleft\nright\n").unwrap();
    let arguments = ["explain", "logits.npy", "--groups", "3,2", "--class-names", "names.txt"];
    let row = json(folder, &[&arguments[..], &["--json", "--best", "1"]].concat());
    assert_eq!((&row["groups"][0]["kept"], &row["groups"][1]["kept"]), (&2.into(), &1.into()));
    assert_eq!(row["groups"][1]["classes"][0]["label"], "right");
    assert_eq!((&row["joint"]["classes"], &row["joint"]["kept"]), (&6.into(), &2.into()));
    let best = row["joint"]["best"].as_array().unwrap();
    assert_eq!(best.len(), 1);
    assert_eq!(best[0]["classes"], serde_json::json!([0, 1]));
    assert_eq!(best[0]["labels"], serde_json::json!(["walk", "right"]));
    let p = best[0]["probability"].as_f64().unwrap();
    assert!((p - f64::from(expected()[0])).abs() < 1e-7, "{p}");
    let text = String::from_utf8(shafer(folder, &arguments).stdout).unwrap();
    assert!(text.contains("row 0, group 1: evidential keeps 1 of 2 classes"), "{text}");
    assert!(text.contains("together: 2 of 6 joint classes are kept"), "{text}");
    assert!(text.contains("walk, right"), "{text}");
}

#[test]
fn groups_that_do_not_fit() {
    let folder = folder();
    let folder = folder.path();
    let wrong = |groups: &str, more: &[&str]| {
        complaint(folder, &[&["sparsify", "logits.npy", "--groups", groups], more].concat())
    };
    assert_eq!(
        wrong("3,3", &[]),
        "shafer: logits.npy: --groups 3,3: has 6 classes in total, but the axis has 5"
    );
    assert!(wrong("5,0", &[]).ends_with("group 1 has no classes, but needs at least one"));
    assert_eq!(
        wrong("3,2", &["-m", "top-k", "-k", "3"]),
        "shafer: logits.npy: group 1 (classes 3 to 4): k is 3, but must not be greater than the \
         number of classes"
    );
    let mut logits = LOGITS;
    logits[9] = f32::NAN;
    std::fs::write(folder.join("logits.npy"), npy(&[2, 5], &logits)).unwrap();
    let message = wrong("3,2", &["-o", "out.npy"]);
    assert!(message.starts_with("shafer: logits.npy: row 1, column 4: logit is NaN"), "{message}");
    assert!(!folder.join("out.npy").exists());
}
