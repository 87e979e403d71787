//! `shafer predict` and `shafer reproduce behaviour` on the command line.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fmt::Write as _;

use common::{complaint, json, shafer};
use serde_json::Value;

/// Two pedestrians walking towards each other, one who appears in the last frame, and one who left earlier.
fn street() -> String {
    let mut text = String::new();
    for step in 0..12 {
        let x = 0.5 * f64::from(step);
        let _ = writeln!(text, "{} 1 {x} 2.0\n{} 2.0 {} 2.5", 10 * step, 10 * step, 6.0 - x);
        if step < 5 {
            let _ = writeln!(text, "{}\t7\t1\t{x}", 10 * step);
        }
    }
    text + "110 9 3.0 -1.0\n"
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("street.txt"), street()).unwrap();
    folder
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[test]
fn modes_have_probabilities_paths_and_covariances() {
    let folder = folder();
    let arguments = ["predict", "street.txt", "--json", "-o", "out.json"];
    let prediction =
        json(folder.path(), &[&arguments[..], &["-m", "evidential", "-m", "softmax"]].concat());
    let text = std::fs::read(folder.path().join("out.json")).unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&text).unwrap(), prediction);
    assert_eq!(prediction["frame"], 110);
    let agents = prediction["agents"].as_array().unwrap();
    let about: Vec<_> = agents.iter().map(|a| (a["agent"].clone(), a["seen"].clone())).collect();
    // The network sees nine frames.
    assert_eq!(about, [(1, 9), (2, 9), (9, 1)].map(|(a, b)| (Value::from(a), Value::from(b))));
    assert_eq!(numbers(&agents[0]["position"]), [5.5, 2.0]);
    for agent in agents {
        let position = numbers(&agent["position"]);
        for method in agent["methods"].as_array().unwrap() {
            let modes = method["modes"].as_array().unwrap();
            let probabilities: Vec<f64> =
                modes.iter().map(|mode| mode["probability"].as_f64().unwrap()).collect();
            assert!((probabilities.iter().sum::<f64>() - 1.0).abs() < 1e-9);
            assert!(probabilities.is_sorted_by(|a, b| a >= b));
            assert_eq!(method["method"] == "softmax", modes.len() == 25, "{}", modes.len());
            for mode in modes {
                let mean: Vec<Vec<f64>> =
                    mode["mean"].as_array().unwrap().iter().map(numbers).collect();
                assert_eq!(mean.len(), 12);
                // No pedestrian moves 4 m in 0.4 s.
                let first = (mean[0][0] - position[0]).hypot(mean[0][1] - position[1]);
                assert!(first < 4.0, "{position:?} {:?}", mean[0]);
                let covariances = mode["covariance"].as_array().unwrap();
                let mut area = 0.0;
                for covariance in covariances.iter().map(numbers) {
                    let now = covariance[0] * covariance[2] - covariance[1] * covariance[1];
                    assert!(now > area, "{covariance:?}");
                    area = now;
                }
            }
        }
    }
    // A class has the same path under every method that keeps it.
    let [ours, all] = [0, 1].map(|m| agents[0]["methods"][m]["modes"].as_array().unwrap());
    for mode in ours {
        let same = all.iter().find(|other| other["class"] == mode["class"]).unwrap();
        assert_eq!(same["mean"], mode["mean"]);
    }
}

#[test]
fn predictions_for_people_and_for_tables() {
    let folder = folder();
    let folder = folder.path();
    let output = shafer(folder, &["predict", "street.txt", "--frame", "30", "-o", "out.parquet"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("street.txt, frame 30: 3 pedestrians\n"), "{text}");
    assert!(text.contains("pedestrian 7 at (1.00, 1.50)") && text.contains("evidential keeps"));
    assert!(!text.contains("just appeared"));
    assert!(std::fs::read(folder.join("out.parquet")).unwrap().starts_with(b"PAR1"));
    let text = String::from_utf8(shafer(folder, &["predict", "street.txt"]).stdout).unwrap();
    assert!(text.contains("pedestrian 9 at (3.00, -1.00), has just appeared: taken to stand"));
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn scenes_that_are_none_are_refused_in_one_line() {
    let folder = folder();
    let folder = folder.path();
    let refused = |text: &str| {
        std::fs::write(folder.join("bad.txt"), text).unwrap();
        complaint(folder, &["predict", "bad.txt"])
    };
    for (text, expected) in [
        ("", "bad.txt: has no positions"),
        ("\n \n", "bad.txt: has no positions"),
        ("0 1 2", "line 1: has 3 of 4 values"),
        ("0 1 0 0\n10 1 nan 0", "line 2: the position (NaN, 0) is not finite"),
        ("0 1 0 0\n0 1 1 0", "line 2: pedestrian 1 has two positions in frame 0"),
        ("0 1 0 0\n3 1 1 0", "line 2: frame 3 is not a multiple of 10"),
        ("0 1 0 0\n10 1 1e300 0", "must be finite"),
        ("\u{1b}[2J 1 0 0", "is not a number"),
    ] {
        let found = refused(text);
        assert!(found.contains(expected), "{text:?}: {found}");
        assert!(!found.contains('\u{1b}'), "{found:?}");
    }
    let found = complaint(folder, &["predict", "street.txt", "--frame", "35"]);
    let expected = "street.txt: nobody is there at frame 35; its frames go from 0 to 110";
    assert!(found.ends_with(expected), "{found}");
    let found = complaint(folder, &["predict", "street.txt", "-o", "out.txt"]);
    assert!(found.contains("is written as .json, .csv, .parquet or .svg"), "{found}");
    let found = complaint(folder, &["predict", "street.txt", "--weights", "street.txt"]);
    assert!(found.contains("is no network of `shafer reproduce behaviour`"), "{found}");
    let found = complaint(folder, &["predict", "nowhere.txt"]);
    assert!(found.contains("nowhere.txt: cannot read"), "{found}");
    assert!(!folder.join("out.txt").exists());
}

#[test]
fn an_experiment_needs_its_data_and_its_own_arguments() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let found = complaint(folder, &["reproduce", "mnist", "--scene", "eth"]);
    assert_eq!(found, "shafer: --scene applies to behaviour only, not to mnist");
    let found = complaint(folder, &["reproduce", "behaviour", "--scene", "all"]);
    assert!(found.contains("run `shafer data fetch ethucy`"), "{found}");
    let found = complaint(folder, &["reproduce", "behaviour", "--set", "samples=0"]);
    assert!(found.contains("samples is 0"), "{found}");
}

/// A walk of 1.5 m/s along x has the same constant-velocity path in other units and at other frame rates.
#[test]
fn rates_units_and_the_path_at_constant_velocity() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let walk = |name: &str, frames_a_step: u32, units_a_metre: f64| {
        let line = |step: u32| {
            let x = f64::from(step) * 0.4 * 1.5 * units_a_metre;
            format!("{} 1 {x} 0", step * frames_a_step)
        };
        let lines: Vec<String> = (0..9).map(line).collect();
        std::fs::write(folder.join(name), lines.join("\n")).unwrap();
    };
    walk("metres.txt", 10, 1.0);
    walk("feet.txt", 12, 1.0 / 0.3048);
    let metres = json(folder, &["predict", "metres.txt", "--json"]);
    let feet = json(folder, &["predict", "feet.txt", "--fps", "30", "--units", "ft", "--json"]);
    for found in [&metres, &feet] {
        let path = found["agents"][0]["constant_velocity"].as_array().unwrap();
        assert_eq!(path.len(), 12);
        for (step, point) in path.iter().enumerate() {
            let x = (9 + step) as f64 * 0.6;
            let close =
                |found: &Value, expected: f64| (found.as_f64().unwrap() - expected).abs() < 1e-4;
            assert!(close(&point[0], x) && close(&point[1], 0.0), "{step}: {point}");
        }
    }
    // Feet read as metres.
    let output = shafer(folder, &["predict", "feet.txt", "--fps", "30"]);
    assert!(output.status.success());
    let warning = String::from_utf8(output.stderr).unwrap();
    assert!(warning.contains("feet.txt") && warning.contains("--units"), "{warning}");
}

#[test]
fn every_kind_of_output_is_written_again_over_itself() {
    let folder = folder();
    let folder = folder.path();
    for name in ["out.json", "out.csv", "out.parquet", "out.svg"] {
        for _ in 0..2 {
            let output = shafer(folder, &["predict", "street.txt", "-o", name, "--html", "p.html"]);
            assert!(output.status.success(), "{name}: {output:?}");
        }
        std::fs::write(folder.join(name), "mine").unwrap();
        let found = complaint(folder, &["predict", "street.txt", "-o", name]);
        assert!(found.contains("was not written by shafer; --force replaces it"), "{found}");
        assert_eq!(std::fs::read(folder.join(name)).unwrap(), b"mine");
    }
    let output = shafer(folder, &["predict", "street.txt", "-o", "out.svg", "--force"]);
    assert!(output.status.success(), "{output:?}");
    let picture = std::fs::read_to_string(folder.join("out.svg")).unwrap();
    let picture = roxmltree::Document::parse(&picture).unwrap();
    assert!(picture.descendants().any(|node| node.tag_name().name() == "path"));
    let all = shafer(folder, &["predict", "street.txt", "--frame", "all", "-o", "all.csv", "-Q"]);
    assert!(all.status.success(), "{all:?}");
    let table = std::fs::read_to_string(folder.join("all.csv")).unwrap();
    let frames: std::collections::BTreeSet<&str> =
        table.lines().skip(1).filter_map(|line| line.split(',').next()).collect();
    let expected: std::collections::BTreeSet<String> =
        street().lines().map(|line| line.split_whitespace().next().unwrap().to_owned()).collect();
    assert_eq!(frames, expected.iter().map(String::as_str).collect());
}
