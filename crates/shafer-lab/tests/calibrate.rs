//! `shafer calibrate`, `shafer audit`, and calibrations in `sparsify`, `compare` and `predict`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;

use common::{complaint, json, npy, npy_of, shafer};
use serde_json::Value;
use shafer_data::Column;

const CLASSES: usize = 5;
const ROWS: usize = 200;

/// Deterministic noise in [0, 1).
fn noise(i: usize) -> f64 {
    (i as f64 * 0.618_033_988_749_895 + 0.3).fract()
}

/// The label has the largest logit, but for every eighth row.
fn logits() -> Vec<f32> {
    let logit = |i: usize| {
        let (row, class) = (i / CLASSES, i % CLASSES);
        let boost = match (class == label(row) as usize, row % 8) {
            (true, 0) => -1.0,
            (true, _) => 3.0,
            (false, _) => 0.0,
        };
        (boost + 2.0 * noise(i)) as f32
    };
    (0..ROWS * CLASSES).map(logit).collect()
}

fn label(row: usize) -> u8 {
    (row * 7 % CLASSES) as u8
}

fn group(row: usize) -> u8 {
    if row < 190 { 3 } else { 9 }
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    write("logits.npy", &npy(&[ROWS, CLASSES], &logits()));
    let labels: Vec<u8> = (0..ROWS).map(label).collect();
    write("y.npy", &npy_of("|u1", &[ROWS], &labels));
    let groups: Vec<u8> = (0..ROWS).map(group).collect();
    write("groups.npy", &npy_of("|u1", &[ROWS], &groups));
    folder
}

const CALIBRATE: [&str; 4] = ["calibrate", "logits.npy", "--labels", "y.npy"];

fn calibrate(folder: &Path, more: &[&str]) -> Value {
    json(folder, &[&CALIBRATE[..], more, &["--json"]].concat())
}

/// By hand: the score number `rank` of -w, in order.
fn threshold(rank: usize) -> f64 {
    let logits = logits();
    let mut scores: Vec<f64> = (0..ROWS)
        .map(|row| {
            let row_of = &logits[row * CLASSES..(row + 1) * CLASSES];
            let mean = row_of.iter().map(|&x| f64::from(x)).sum::<f64>() / CLASSES as f64;
            mean - f64::from(row_of[label(row) as usize])
        })
        .collect();
    scores.sort_by(f64::total_cmp);
    scores[rank - 1]
}

#[test]
fn a_calibration_is_written_and_used() {
    let folder = folder();
    let folder = folder.path();
    let found = calibrate(folder, &["--miss", "0.1", "-o", "c.json"]);
    let value = found["calibration"]["thresholds"][0]["threshold"].as_f64().unwrap();
    assert!((value - threshold(181)).abs() < 1e-12, "{value}");
    assert_eq!(found["calibration"]["measured_on"], "logits.npy");
    let written: Value =
        serde_json::from_str(&std::fs::read_to_string(folder.join("c.json")).unwrap()).unwrap();
    assert_eq!(written, found["calibration"]);
    // On its own rows it drops at most as many as it may.
    let audit = ["audit", "logits.npy", "-l", "y.npy", "--calibration", "c.json", "--json"];
    let audit = json(folder, &audit);
    let (paper, calibrated) = (&audit["methods"][0], &audit["methods"][1]);
    assert_eq!(paper["all"]["missed"], 23);
    assert_eq!(calibrated["all"]["missed"], 200 - 181);
    let sizes = |method: &Value| -> u64 {
        let parts = method["by_size"].as_array().unwrap();
        parts.iter().map(|part| part["rows"].as_u64().unwrap()).sum()
    };
    assert_eq!((sizes(paper), sizes(calibrated)), (200, 200));
    let mean = calibrated["all"]["kept_mean"].as_f64().unwrap();
    // sparsify keeps as many, dense and sparse.
    for output in ["p.npy", "p.npz", "p.csv"] {
        let sparsify =
            ["sparsify", "logits.npy", "--calibration", "c.json", "-o", output, "--json"];
        let kept = json(folder, &sparsify);
        assert!((kept["kept"]["mean"].as_f64().unwrap() - mean).abs() < 1e-12, "{output}");
        assert_eq!(kept["method"], "evidential calibrated for 0.1");
    }
    let entries = std::fs::read_to_string(folder.join("p.csv")).unwrap().lines().count() - 1;
    assert_eq!(entries, (mean * ROWS as f64).round() as usize);
    // Written again over itself, but not over another file.
    calibrate(folder, &["--miss", "0.2", "-o", "c.json"]);
    std::fs::write(folder.join("other.json"), "{}").unwrap();
    let refused = [&CALIBRATE[..], &["--miss", "0.1", "-o", "other.json"]].concat();
    assert!(complaint(folder, &refused).contains("exists and was not written by shafer"));
}

#[test]
fn every_score_and_confidence() {
    let folder = folder();
    let folder = folder.path();
    let audit = ["audit", "logits.npy", "-l", "y.npy", "--calibration", "c.json", "--json"];
    for score in ["lac", "min-p", "top-p", "top-k", "top-n-sigma", "sparsemax", "entmax:alpha=1.5"]
    {
        calibrate(folder, &["--miss", "0.1", "--score", score, "-o", "c.json"]);
        let missed = json(folder, &audit)["methods"][1]["all"]["missed"].as_u64().unwrap();
        assert!(missed <= 19, "{score}: {missed}");
    }
    calibrate(folder, &["--miss", "0.1", "--confidence", "0.95", "-o", "c.json"]);
    // The smallest rank with P(Bin(200, 0.9) >= rank) <= 0.05 is 188, by SciPy.
    assert_eq!(json(folder, &audit)["methods"][1]["all"]["missed"], 200 - 188);
    let text = shafer(folder, &[&CALIBRATE[..], &["--miss", "0.1"]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("threshold       min-evidence:w="), "{text}");
    assert!(text.contains("exchangeable"), "{text}");
}

#[test]
fn groups_of_rows() {
    let folder = folder();
    let folder = folder.path();
    let by_group = ["--row-groups", "groups.npy"];
    let found = calibrate(folder, &[&["--miss", "0.05", "-o", "c.json"], &by_group[..]].concat());
    // The ten rows of group 9 are too few.
    assert_eq!(found["keep_all"], serde_json::json!([9]));
    assert_eq!(found["calibration"]["thresholds"][1]["threshold"], Value::Null);
    let audit = [
        &["audit", "logits.npy", "-l", "y.npy", "--calibration", "c.json"],
        &by_group[..],
        &["--json"],
    ];
    let audit = json(folder, &audit.concat());
    let parts = audit["methods"][1]["by_group"].as_array().unwrap();
    assert_eq!((&parts[0]["value"], &parts[1]["value"]), (&3.into(), &9.into()));
    assert_eq!(parts[1]["missed"], 0);
    let sparsify = ["sparsify", "logits.npy", "--calibration", "c.json"];
    let kept = json(folder, &[&sparsify[..], &by_group[..], &["--json", "-o", "p.npz"]].concat());
    assert_eq!(kept["kept"]["mean"], audit["methods"][1]["all"]["kept_mean"]);
    assert_eq!(
        complaint(folder, &sparsify),
        "shafer: the calibration is by group; give the group of each row with --row-groups or --row-group"
    );
    assert!(
        complaint(folder, &["audit", "logits.npy", "-l", "y.npy", "--calibration", "c.json"])
            .contains("the calibration is by group; give the group of each row")
    );
    let others: Vec<u8> = (0..ROWS).map(|row| if row == 7 { 4 } else { 3 }).collect();
    std::fs::write(folder.join("others.npy"), npy_of("|u1", &[ROWS], &others)).unwrap();
    let refused = [&sparsify[..], &["--row-groups", "others.npy"]].concat();
    assert_eq!(
        complaint(folder, &refused),
        "shafer: logits.npy: row 7: group 4 has no threshold, because it did not occur in calibration"
    );
}

/// By hand: a class is kept if `mean - logit` is at most the threshold of the class, and the best class always.
#[test]
fn classes_have_thresholds_of_their_own() {
    let folder = folder();
    let folder = folder.path();
    let found = calibrate(folder, &["--miss", "0.1", "--by", "class", "-o", "c.json"]);
    assert_eq!(found["calibration"]["by"], "class");
    let logits = logits();
    let scores = |row: usize| -> Vec<f64> {
        let row = &logits[row * CLASSES..(row + 1) * CLASSES];
        let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / CLASSES as f64;
        row.iter().map(|&x| mean - f64::from(x)).collect()
    };
    let mut thresholds = Vec::new();
    for class in 0..CLASSES {
        let of_class = (0..ROWS).filter(|&row| usize::from(label(row)) == class);
        let mut of_class: Vec<f64> = of_class.map(|row| scores(row)[class]).collect();
        of_class.sort_by(f64::total_cmp);
        // Each class has 40 rows: ceil(41 * 0.9) is 37.
        assert_eq!(of_class.len(), 40);
        thresholds.push(of_class[36]);
        let written = &found["calibration"]["thresholds"][class];
        assert_eq!((&written["stratum"], &written["rows"]), (&class.into(), &40.into()));
        assert!((written["threshold"].as_f64().unwrap() - of_class[36]).abs() < 1e-12);
    }
    let (mut kept, mut missed) = (0, [0; CLASSES]);
    for row in 0..ROWS {
        let scores = scores(row);
        let best = scores.iter().copied().fold(f64::INFINITY, f64::min);
        let keeps = |class: usize| scores[class] <= thresholds[class] || scores[class] == best;
        kept += (0..CLASSES).filter(|&class| keeps(class)).count();
        missed[usize::from(label(row))] += u64::from(!keeps(label(row).into()));
    }
    let sparsify = ["sparsify", "logits.npy", "--calibration", "c.json", "-o", "p.csv", "--json"];
    let mean = json(folder, &sparsify)["kept"]["mean"].as_f64().unwrap();
    assert!((mean - kept as f64 / ROWS as f64).abs() < 1e-12, "{mean}");
    let audit = ["audit", "logits.npy", "-l", "y.npy", "--calibration", "c.json"];
    let found = json(folder, &[&audit[..], &["--by", "class", "--json"]].concat());
    let parts = found["methods"][1]["by_class"].as_array().unwrap();
    for (class, part) in parts.iter().enumerate() {
        assert_eq!((&part["value"], &part["missed"]), (&class.into(), &missed[class].into()));
    }
    assert!(missed.iter().all(|&missed| missed <= 3) && missed.iter().sum::<u64>() > 5);
    let text = shafer(folder, &[&audit[..], &["--by", "class"]].concat());
    assert!(String::from_utf8(text.stdout).unwrap().contains("  class 4"));
    let text = shafer(folder, &[&CALIBRATE[..], &["--miss", "0.1", "--by", "class"]].concat());
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("class 4         40 rows, min-evidence:w="), "{text}");

    // Too few rows of each class; of one class; options that contradict each other.
    let refused = |more: &[&str]| complaint(folder, &[&CALIBRATE[..], more].concat());
    assert_eq!(
        refused(&["--miss", "0.02", "--by", "class"]),
        "shafer: logits.npy: 200 rows cannot give a miss rate of 0.02: at least 49 of a class are \
         needed; --keep-all accepts a threshold that keeps every class"
    );
    let labels: Vec<u8> = (0..ROWS).map(|row| label(row).min(3)).collect();
    std::fs::write(folder.join("four.npy"), npy_of("|u1", &[ROWS], &labels)).unwrap();
    let four = ["calibrate", "logits.npy", "-l", "four.npy", "--miss", "0.1", "--by", "class"];
    assert_eq!(
        json(folder, &[&four[..], &["--json"]].concat())["keep_all"],
        serde_json::json!([4])
    );
    let text = String::from_utf8(shafer(folder, &four).stdout).unwrap();
    assert!(text.contains("class 4         0 rows, always kept: too few rows"), "{text}");
    assert!(text.contains("1 class had too few rows"), "{text}");
    assert!(
        refused(&["--miss", "0.1", "--by", "class", "--score", "sparsemax"])
            .contains("the threshold of sparsemax is the temperature of a row")
    );
    assert!(refused(&["--miss", "0.1", "--by", "group"]).contains("give the group of each row"));
    let both = ["--miss", "0.1", "--by", "class", "--row-groups", "groups.npy"];
    assert!(refused(&both).contains("--by class has no groups of rows"));
    let groups = ["sparsify", "logits.npy", "--row-groups", "groups.npy"];
    assert!(complaint(folder, &groups).contains("are for a calibration by group"));
    let groups = [&groups[..], &["--calibration", "c.json"]].concat();
    assert!(complaint(folder, &groups).contains("the calibration is not by group"));
    let predict = ["predict", "street.txt", "--calibration", "c.json"];
    std::fs::write(folder.join("street.txt"), "0 1 0.0 0.0\n10 1 1.0 0.0\n").unwrap();
    assert!(complaint(folder, &predict).contains("each class has a threshold of its own"));
}

/// Labels and groups in columns of the table of the logits give the same as in files.
#[test]
fn columns_of_the_table() {
    let folder = folder();
    let folder = folder.path();
    let logits = logits();
    let names: Vec<String> = (0..CLASSES).map(|class| format!("logit_{class}")).collect();
    let of_class = |class: usize| {
        Column::Numbers(logits.chunks(CLASSES).map(|row| row[class].into()).collect())
    };
    let mut columns: Vec<(&str, Column)> =
        names.iter().enumerate().map(|(class, name)| (&name[..], of_class(class))).collect();
    columns.push(("y", Column::Integers((0..ROWS).map(|row| label(row).into()).collect())));
    columns.push(("scene", Column::Integers((0..ROWS).map(|row| group(row).into()).collect())));
    shafer_data::write_table(&folder.join("t.parquet"), &columns).unwrap();
    let files = calibrate(folder, &["--miss", "0.05", "--row-groups", "groups.npy"]);
    let table = ["t.parquet", "--columns", "logit_*"];
    let of_table = |command: &[&str], more: &[&str]| {
        json(folder, &[command, &table[..], more, &["--row-group", "scene", "--json"]].concat())
    };
    let label = ["--label", "y"];
    let miss = [&label[..], &["--miss", "0.05", "-o", "c.json"]].concat();
    let found = of_table(&["calibrate"], &miss);
    let thresholds = |found: &Value| -> Vec<(u64, Option<f64>)> {
        let all = found["calibration"]["thresholds"].as_array().unwrap().iter();
        all.map(|t| (t["stratum"].as_u64().unwrap(), t["threshold"].as_f64())).collect()
    };
    assert_eq!(thresholds(&found), thresholds(&files));
    let calibrated = ["--calibration", "c.json"];
    let kept = of_table(&["sparsify"], &calibrated);
    let audit = of_table(&["audit"], &[&label[..], &calibrated].concat());
    assert_eq!(audit["methods"][1]["all"]["kept_mean"], kept["kept"]["mean"]);
    let absent = [&["sparsify"][..], &table[..], &calibrated, &["--row-group", "absent"]].concat();
    assert!(complaint(folder, &absent).contains("absent"));
    let neither = shafer(folder, &["audit", "logits.npy"]);
    assert_eq!(neither.status.code(), Some(2));
    assert!(String::from_utf8(neither.stderr).unwrap().contains("--labels"));
}

#[test]
fn methods_at_equal_guarantee() {
    let folder = folder();
    let folder = folder.path();
    let found =
        json(folder, &["compare", "logits.npy", "-l", "y.npy", "-m", "evidential", "--json"]);
    let equal = &found["equal_guarantee"];
    assert_eq!(equal["calibration_rows"], 100);
    assert_eq!(equal["evidential"]["rows"], 100);
    let methods = equal["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 8 * 3);
    for method in methods {
        let (low, miss) =
            (method["interval"][0].as_f64().unwrap(), method["miss"].as_f64().unwrap());
        assert!(low <= miss, "{method}");
    }
    let text = shafer(folder, &["compare", "logits.npy", "-l", "y.npy", "-m", "evidential"]);
    let text = String::from_utf8(text.stdout).unwrap();
    assert!(text.contains("at equal guarantee: calibrated on 100 random rows"), "{text}");
    let without = json(folder, &["compare", "logits.npy", "-m", "evidential", "--json"]);
    assert!(without.get("equal_guarantee").is_none());
}

#[test]
fn a_plot_with_the_papers_rule_as_a_point() {
    let folder = folder();
    let folder = folder.path();
    let audit = ["audit", "logits.npy", "-l", "y.npy", "--plot", "plot.svg"];
    assert!(shafer(folder, &audit).status.success());
    let svg = std::fs::read_to_string(folder.join("plot.svg")).unwrap();
    let parsed = roxmltree::Document::parse(&svg).unwrap();
    let words: String = parsed.descendants().filter_map(|node| node.text()).collect();
    for name in ["paper's rule", "sparsemax", "entmax 1.5", "min-evidence", "min-p", "top-p"] {
        assert!(words.contains(name), "{name}");
    }
    // Once more over itself.
    assert!(shafer(folder, &audit).status.success());
    let refused = ["audit", "logits.npy", "-l", "y.npy", "--plot", "plot.txt"];
    assert!(complaint(folder, &refused).contains("is not an .svg name"));
}

#[test]
fn bad_input_is_named() {
    let folder = folder();
    let folder = folder.path();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    let refused = |more: &[&str]| complaint(folder, &[&CALIBRATE[..], more].concat());
    assert_eq!(
        refused(&["--miss", "0.001"]),
        "shafer: logits.npy: 200 rows cannot give a miss rate of 0.001: at least 999 are needed; \
         --keep-all accepts a threshold that keeps every class"
    );
    let kept = calibrate(folder, &["--miss", "0.001", "--keep-all"]);
    assert_eq!(kept["calibration"]["thresholds"][0]["threshold"], Value::Null);
    assert_eq!(
        refused(&["--miss", "1.5"]),
        "shafer: logits.npy: --miss is 1.5, but must be between 0 and 1, both excluded"
    );
    assert_eq!(
        refused(&["--miss", "0.1", "--score", "aps"]),
        "shafer: logits.npy: aps gives sets of classes only; choose a score that belongs to a method"
    );
    assert!(refused(&["--miss", "0.1", "-o", "c.txt"]).contains("is not a .json name"));
    let labels = |values: &[u8]| write("bad.npy", &npy_of("|u1", &[values.len()], values));
    let calibrate_bad = ["calibrate", "logits.npy", "--labels", "bad.npy", "--miss", "0.1"];
    labels(&[5; ROWS]);
    assert_eq!(
        complaint(folder, &calibrate_bad),
        "shafer: bad.npy: the label of row 0 is 5, but classes are 0 to 4"
    );
    labels(&[0; ROWS - 1]);
    assert_eq!(
        complaint(folder, &calibrate_bad),
        "shafer: bad.npy: has only 199 labels, none for row 199"
    );
    let mut masked = logits();
    masked[3 * CLASSES + usize::from(label(3))] = f32::NEG_INFINITY;
    write("masked.npy", &npy(&[ROWS, CLASSES], &masked));
    for command in ["audit", "calibrate"] {
        let mut arguments = vec![command, "masked.npy", "--labels", "y.npy"];
        if command == "calibrate" {
            arguments.extend(["--miss", "0.1"]);
        }
        assert_eq!(
            complaint(folder, &arguments),
            "shafer: masked.npy: row 3: label 1 is a masked class, which no method can keep"
        );
    }
    let mut nan = logits();
    nan[12] = f32::NAN;
    write("nan.npy", &npy(&[ROWS, CLASSES], &nan));
    let nan = ["calibrate", "nan.npy", "--labels", "y.npy", "--miss", "0.1"];
    assert!(complaint(folder, &nan).contains("row 2, column 2: logit is NaN"));

    calibrate(folder, &["--miss", "0.1", "-o", "c.json"]);
    write("wide.npy", &npy(&[1, 6], &[0.0; 6]));
    assert_eq!(
        complaint(folder, &["sparsify", "wide.npy", "--calibration", "c.json"]),
        "shafer: wide.npy: a row of logits has length 6, but 5 is needed"
    );
    write("broken.json", b"{\"version\": 1}");
    let broken = complaint(folder, &["sparsify", "logits.npy", "--calibration", "broken.json"]);
    assert!(broken.starts_with("shafer: broken.json: is no calibration of shafer calibrate"));
    let both = ["sparsify", "logits.npy", "--calibration", "c.json", "--method", "softmax"];
    assert_eq!(shafer(folder, &both).status.code(), Some(2));
}

#[test]
fn predictions_with_a_calibration() {
    let folder = folder();
    let folder = folder.path();
    let walk: Vec<String> = (0..12).map(|i| format!("{} 1 {i}.0 0.0", 10 * i)).collect();
    std::fs::write(folder.join("street.txt"), walk.join("\n")).unwrap();
    // Logits of five classes, as each variable of the network has them.
    calibrate(folder, &["--miss", "0.004", "--keep-all", "-o", "all.json"]);
    let predict = ["predict", "street.txt", "--calibration", "all.json", "--json"];
    let found = json(folder, &predict);
    let methods = found["agents"][0]["methods"].as_array().unwrap();
    assert_eq!(methods[0]["method"], "evidential");
    assert_eq!(methods[1]["method"], "evidential calibrated for 0.004");
    assert_eq!(methods[1]["modes"].as_array().unwrap().len(), 25);
    assert!(methods[0]["modes"].as_array().unwrap().len() < 25);
    let six: Vec<f32> = (0..60).map(|i| i as f32).collect();
    std::fs::write(folder.join("six.npy"), npy(&[10, 6], &six)).unwrap();
    std::fs::write(folder.join("few.npy"), npy_of("|u1", &[10], &[5; 10])).unwrap();
    let six = ["calibrate", "six.npy", "-l", "few.npy", "--miss", "0.5", "-o", "six.json"];
    assert!(shafer(folder, &six).status.success());
    let refused = complaint(folder, &["predict", "street.txt", "--calibration", "six.json"]);
    assert!(refused.contains("the calibration is for 6 classes"), "{refused}");
}
