//! The command line: inputs, outputs, messages, exit codes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use common::{complaint, folder, json, last_floats, npy, npy_of, shafer};

#[test]
fn a_summary_counts_what_is_kept() {
    let folder = folder();
    let report = json(folder.path(), &["sparsify", "logits.npy", "--json"]);
    assert_eq!(report["rows"], 3);
    assert_eq!(report["classes"], 4);
    // 2, 4 (a vacuous row) and 3.
    assert_eq!(report["kept"]["mean"], 3.0);
    assert_eq!(report["kept"]["largest"], 4);
    assert_eq!(report["vacuous"], 1);
    let text = shafer(folder.path(), &["sparsify", "logits.npy"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("mean 3.00, median 3"), "{text}");
    assert!(shafer(folder.path(), &["sparsify", "logits.npy", "-Q"]).stdout.is_empty());
}

#[test]
fn tables_give_the_rows_that_they_hold() {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shafer-data/tests/fixtures/tables");
    let at = |name: &str| tables.join(name).to_str().unwrap().to_owned();
    let folder = folder();
    let logits: Vec<f32> = (0..200).map(|i| (i % 37) as f32 / 2.0 - 9.0).collect();
    std::fs::write(folder.path().join("same.npy"), npy(&[40, 5], &logits)).unwrap();
    for command in ["sparsify", "explain", "compare"] {
        let run = |input: &str| {
            let mut report = json(folder.path(), &[command, input, "--json"]);
            // The name of the input and the times differ.
            let keys = ["input", "seconds", "microseconds_per_row", "columns"];
            let strip = |part: &mut Value| {
                part.as_object_mut().unwrap().retain(|key, _| !keys.contains(&key.as_str()));
            };
            strip(&mut report);
            report
                .get_mut("methods")
                .and_then(Value::as_array_mut)
                .into_iter()
                .flatten()
                .for_each(strip);
            report
        };
        let expected = run("same.npy");
        for name in ["list-gzip.parquet", "columns.parquet", "stream.arrows", "columns.arrow"] {
            assert_eq!(run(&at(name)), expected, "{command} {name}");
        }
        assert_eq!(run(&at("list-zstd.arrow:logits")), expected, "{command}");
    }
    let message = complaint(folder.path(), &["sparsify", &at("list-none.parquet:absent")]);
    assert!(message.contains("has no column `absent`; it holds `id` int64, "), "{message}");
    let message = complaint(folder.path(), &["sparsify", &at("list-none.parquet:name")]);
    assert!(message.contains("list-none.parquet:name: is a column of utf8view; "), "{message}");
}

#[test]
fn classes_along_another_axis() {
    let folder = folder();
    // Along the first axis there are 4 rows of 3 classes.
    let report = json(folder.path(), &["sparsify", "logits.npy", "--axis", "0", "--json"]);
    assert_eq!((&report["rows"], &report["classes"]), (&4.into(), &3.into()));
    let row =
        json(folder.path(), &["explain", "logits.npy", "--axis", "0", "--row", "2", "--json"]);
    let logits: Vec<f64> =
        row["classes"].as_array().unwrap().iter().map(|c| c["logit"].as_f64().unwrap()).collect();
    assert_eq!(logits, [3.0, 0.0, -1.0]);
    // Dense output has the shape of the input, and each column sums to 1.
    let arguments = ["sparsify", "logits.npy", "--axis", "0", "-o", "columns.npy"];
    assert!(shafer(folder.path(), &arguments).status.success());
    let values = last_floats(&folder.path().join("columns.npy"), 12);
    for column in 0..4 {
        let sum: f32 = (0..3).map(|row| values[row * 4 + column]).sum();
        assert!((sum - 1.0).abs() < 1e-6, "{values:?}");
    }
    let message = complaint(folder.path(), &["sparsify", "logits.npy", "--axis", "2"]);
    assert!(message.contains("there is no axis 2"), "{message}");
}

#[test]
fn a_row_is_explained() {
    let folder = folder();
    std::fs::write(folder.path().join("names.txt"), "walk\nrun\nturn\nstop\n").unwrap();
    let arguments = ["explain", "logits.npy", "--class-names", "names.txt", "--json"];
    let row = json(folder.path(), &arguments);
    assert_eq!(row["kept"], 2);
    assert_eq!(row["classes"][0]["label"], "walk");
    assert_eq!(row["classes"][0]["weight"], 3.0);
    assert_eq!(row["classes"][3]["kept"], false);
    assert_eq!(row["kept_above_one_percent"], 2);
    let (kept, dropped) = (&row["softmax_mass_kept"], &row["softmax_mass_dropped"]);
    assert!((kept.as_f64().unwrap() + dropped.as_f64().unwrap() - 1.0).abs() < 1e-15);
    let message = complaint(folder.path(), &["explain", "logits.npy", "--row", "3"]);
    assert_eq!(message, "shafer: logits.npy: there is no row 3: the file has 3, counted from 0");
}

#[test]
fn methods_are_compared() {
    let folder = folder();
    let report = json(folder.path(), &["compare", "logits.npy", "--json"]);
    assert_eq!((&report["rows"], &report["classes"]), (&3.into(), &4.into()));
    assert_eq!(report["vacuous"], 1);
    let methods = report["methods"].as_array().unwrap();
    assert_eq!(methods.len(), 11);
    // k is 5, but there are only 4 classes.
    assert_eq!(methods[6]["name"], "top-k 4");
    let evidential = &methods[0];
    assert_eq!(evidential["name"], "evidential");
    assert_eq!(evidential["kept"]["mean"], 3.0);
    assert_eq!(evidential["histogram"], serde_json::json!([0, 1, 1, 1]));
    assert_eq!(evidential["evidential_support_kept"], 1.0);
    let total: f64 = [3.0_f64, 1.0, -1.0, -3.0].iter().map(|x| x.exp()).sum();
    let first = (3.0_f64.exp() + 1.0_f64.exp()) / total;
    let last = 1.0 / (1.0 + (-12.0_f64).exp() / 3.0);
    let mass = evidential["softmax_mass_kept"].as_f64().unwrap();
    assert!((mass - (first + 1.0 + last) / 3.0).abs() < 1e-12, "{mass}");
    assert_eq!(methods[1]["kept"]["reduction_percent"], 0.0);

    // Along the first axis.
    let columns = json(folder.path(), &["compare", "logits.npy", "--axis", "0", "--json"]);
    assert_eq!((&columns["rows"], &columns["classes"]), (&4.into(), &3.into()));
    let kept = json(folder.path(), &["sparsify", "logits.npy", "--axis", "0", "--json"]);
    assert_eq!(columns["methods"][0]["kept"], kept["kept"]);

    // With the first class masked.
    std::fs::write(folder.path().join("mask.npy"), npy(&[4], &[0.0, 1.0, 1.0, 1.0])).unwrap();
    let masked = ["compare", "logits.npy", "--mask", "mask.npy", "--json"];
    let masked = json(folder.path(), &masked);
    let kept = json(folder.path(), &["sparsify", "logits.npy", "--mask", "mask.npy", "--json"]);
    assert_eq!(masked["methods"][0]["kept"], kept["kept"]);
    assert_eq!(masked["vacuous"], kept["vacuous"]);

    let text = shafer(folder.path(), &["compare", "logits.npy"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(text.contains("3 rows of 4 classes") && text.contains("sparsegen-hg 1"), "{text}");
    assert!(shafer(folder.path(), &["compare", "logits.npy", "-Q"]).stdout.is_empty());
}

#[test]
fn the_table_has_the_columns_that_fit() {
    let folder = folder();
    let table = |width: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shafer"));
        command.args(["compare", "logits.npy"]).current_dir(folder.path());
        let text = command.env("COLUMNS", width).output().unwrap().stdout;
        let text = String::from_utf8(text).unwrap();
        let mut lines = text.lines().filter(|line| line.starts_with('│'));
        assert!(lines.all(|line| line.chars().count() <= width.parse().unwrap()), "{text}");
        text
    };
    let narrow = table("50");
    assert!(narrow.contains("reduction") && !narrow.contains("variation"), "{narrow}");
    let usual = table("80");
    assert!(usual.contains("effective") && !usual.contains("median"), "{usual}");
    assert!(usual.contains("more columns in a wider terminal"), "{usual}");
    let wide = table("200");
    assert!(wide.contains("failed") && !wide.contains("more columns"), "{wide}");
}

#[test]
fn methods_and_their_parameters_can_be_chosen() {
    let folder = folder();
    let methods = "top-k:k=1,top-k:k=3,evidential:rounds=2,entmax:alpha=1.3";
    let report = json(folder.path(), &["compare", "logits.npy", "--methods", methods, "--json"]);
    let methods = report["methods"].as_array().unwrap();
    let names: Vec<&str> = methods.iter().map(|method| method["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["top-k 1", "top-k 3", "evidential 2", "entmax 1.3"]);
    assert_eq!(
        (&methods[0]["kept"]["mean"], &methods[1]["kept"]["mean"]),
        (&1.0.into(), &3.0.into())
    );
    // The second round drops one more class of the first row; the evidential support is that of one round.
    assert_eq!(methods[2]["evidential_support_kept"], 0.75);
    let message = complaint(folder.path(), &["compare", "logits.npy", "-m", "top-k:k=5"]);
    assert!(message.contains("k is 5, but must not be greater"), "{message}");
    let output = shafer(folder.path(), &["compare", "logits.npy", "-m", "top-k:alpha=2"]);
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("the parameter of top-k is k, not alpha"), "{text}");
}

#[test]
fn the_page_needs_nothing_and_trusts_no_name() {
    let folder = folder();
    let names = "</script><script>alert(1)</script>\n<b>run\n{{script}}\nstop\n";
    std::fs::write(folder.path().join("names.txt"), names).unwrap();
    std::fs::copy(folder.path().join("logits.npy"), folder.path().join("<i>&.npy")).unwrap();
    let arguments =
        ["compare", "<i>&.npy", "--html", "page.html", "--class-names", "names.txt", "-Q"];
    assert!(shafer(folder.path(), &arguments).status.success());
    let page = std::fs::read_to_string(folder.path().join("page.html")).unwrap();
    assert!(!page.contains("alert(1)</script>") && !page.contains("<i>&.npy"));
    assert!(page.contains("&#60;i&#62;&#38;.npy"));
    assert_eq!(page.matches("<script").count(), 2);
    for outside in ["http:", "https:", "//cdn", "@import", "url("] {
        assert!(!page.contains(outside), "{outside}");
    }
    let (_, data) = page.split_once(r#"id="data">"#).unwrap();
    let data: Value = serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    assert_eq!(data["labels"]["0"], "</script><script>alert(1)</script>");
    assert_eq!(data["labels"]["2"], "{{script}}");
    assert_eq!(data["rows"][0]["classes"], serde_json::json!([0, 1, 2, 3]));
    assert_eq!(data["rows"][0]["methods"][0]["kept"], 2);
    assert_eq!(data["rows"][0]["methods"][0]["probabilities"][2], Value::Null);

    // A failed run leaves the existing page.
    let mut logits = vec![0.5_f32; 40];
    logits[23] = f32::NAN;
    std::fs::write(folder.path().join("nan.npy"), npy(&[10, 4], &logits)).unwrap();
    let message = complaint(folder.path(), &["compare", "nan.npy", "--html", "page.html"]);
    assert!(message.starts_with("shafer: nan.npy: row 5, column 3: logit is NaN"), "{message}");
    assert_eq!(std::fs::read_to_string(folder.path().join("page.html")).unwrap(), page);
    std::fs::create_dir(folder.path().join("f.html")).unwrap();
    let message = complaint(folder.path(), &["compare", "logits.npy", "--html", "f.html"]);
    assert!(message.contains("is a folder"), "{message}");
    std::fs::write(folder.path().join("names.txt"), "a\nb\n").unwrap();
    let arguments = ["compare", "logits.npy", "--html", "other.html", "--class-names", "names.txt"];
    let message = complaint(folder.path(), &arguments);
    assert!(message.contains("--class-names has 2 names, but there are 4 classes"), "{message}");

    std::fs::write(folder.path().join("empty.npy"), npy(&[0, 4], &[])).unwrap();
    let message = complaint(folder.path(), &["compare", "empty.npy", "--html", "empty.html"]);
    assert_eq!(message, "shafer: empty.npy: there are no rows: the array is f32 (0, 4)");
    assert!(!folder.path().join("empty.html").exists());
}

#[test]
fn methods_are_judged_by_labels() {
    let folder = folder();
    let write = |name: &str, bytes: &[u8]| std::fs::write(folder.path().join(name), bytes).unwrap();
    let labels: Vec<u8> = [0_i64, 1, 0].iter().flat_map(|x| x.to_le_bytes()).collect();
    write("y.npy", &npy_of("<i8", &[3], &labels));
    write("y.csv", b"class\n0\n1\n0\n");
    let run = |labels: &str| {
        let arguments = ["compare", "logits.npy", "-m", "evidential", "--labels", labels, "--json"];
        json(folder.path(), &arguments)["methods"][0]["truth"].take()
    };
    let truth = run("y.npy");
    assert_eq!(truth, run("y.csv"));
    // Correct; tied with an earlier class; dropped.
    assert_eq!(truth["accuracy"], 1.0 / 3.0);
    assert_eq!((&truth["dropped"], &truth["dropped_share"]), (&1.into(), &(1.0 / 3.0).into()));
    let loss = f64::midpoint(f64::ln_1p((-2.0_f64).exp()), 4.0_f64.ln());
    assert!((truth["log_loss_of_kept"].as_f64().unwrap() - loss).abs() < 1e-7, "{truth}");
    // binomtest(1, 3).proportion_ci(0.95, "exact") of SciPy.
    for (found, expected) in [(0, 0.008_403_758_659_612_647), (1, 0.905_700_675_949_286_6)] {
        let found = truth["dropped_interval"][found].as_f64().unwrap();
        assert!((found - expected).abs() < 1e-9, "{truth}");
    }
    let text = shafer(folder.path(), &["compare", "logits.npy", "--labels", "y.npy"]).stdout;
    assert!(String::from_utf8(text).unwrap().contains("accuracy"));

    let refused = |labels: &str| complaint(folder.path(), &["compare", "logits.npy", "-l", labels]);
    write("few.csv", b"0\n1\n");
    assert_eq!(refused("few.csv"), "shafer: few.csv: has only 2 labels, none for row 2");
    write("many.csv", b"0\n1\n0\n2\n");
    assert_eq!(
        refused("many.csv"),
        "shafer: many.csv: has more labels than the input, which has 3 rows"
    );
    write("large.csv", b"0\n4\n0\n");
    assert_eq!(
        refused("large.csv"),
        "shafer: large.csv: the label of row 1 is 4, but classes are 0 to 3"
    );
    write("half.csv", b"0\n1\n0.5\n");
    let message = refused("half.csv");
    assert!(message.contains("the label of row 2 is 0.5, which is not an integer"), "{message}");
    write("names.csv", b"walk\nrun\nturn\nstop\n");
    let message = refused("names.csv");
    assert!(
        message.starts_with("shafer: names.csv: ") && message.contains("--class-names"),
        "{message}"
    );
    write("names.txt", b"walk\nrun\nturn\nstop\n");
    let message = refused("names.txt");
    assert!(
        message.starts_with("shafer: names.txt: ") && message.contains("--class-names"),
        "{message}"
    );
    assert!(refused("-").contains("cannot be standard input"));
}

#[test]
fn thousands_of_classes_give_a_hint() {
    let folder = folder();
    let mut logits: Vec<f32> = (0..2000).map(|class| (class % 2) as f32).collect();
    logits[0] = 50.0;
    std::fs::write(folder.path().join("many.npy"), npy(&[1, 2000], &logits)).unwrap();
    for command in ["sparsify", "explain", "compare"] {
        let text = |input: &str| {
            String::from_utf8(shafer(folder.path(), &[command, input]).stdout).unwrap()
        };
        let hint = "min-p or entmax keep fewer";
        assert_eq!(text("many.npy").matches(hint).count(), 1, "{command}");
        assert!(!text("logits.npy").contains(hint), "{command}");
    }
}

/// Results of two seeds, two checkpoints and two methods.
fn results() -> Value {
    let by_method = |value: Value| {
        let methods = json!({ "softmax": value, "evidential": value });
        json!({ "even": methods, "odd": methods })
    };
    let summary = json!({ "mean": 0.25, "se": 0.125, "n": 2, "infinite": 0 });
    let curve = json!({ "mean": [0.5, 0.25], "se": [0.125, null] });
    let gain = json!({
        "percent": { "value": 0.0, "low": -1.0, "high": 1.0 }, "difference": null, "n": 2, "infinite": 0
    });
    let gains = json!({ "even": { "softmax": gain }, "odd": {}, "both": { "softmax": gain } });
    let gains = json!({ "bhattacharyya": gains, "wasserstein": gains });
    let (summaries, curves) = (by_method(summary.clone()), by_method(curve.clone()));
    json!({
        "version": 1, "experiment": "image", "data_set": "mnist", "queries": ["even", "odd"],
        "methods": [
            { "name": "evidential", "title": "evidential" }, { "name": "softmax", "title": "softmax" }
        ],
        "classes": 10, "seeds": 2, "collapsed": 0, "diverged": 0, "steps": 100, "wall_seconds": 1.5,
        "revision": "abc", "machine": "two cores", "config": { "epochs": 1 }, "target": "last_checkpoint",
        "final": {
            "bhattacharyya": summaries, "wasserstein": summaries, "kept": summaries,
            "ignorance": { "even": summary, "odd": summary },
            "internal_conflict": { "even": summary, "odd": summary }
        },
        "improvement": { "confidence": 0.95, "final": gains, "training": gains },
        "evolution": {
            "iterations": [0, 100], "bhattacharyya": curves, "wasserstein": curves, "kept": curves,
            "ignorance": { "even": curve, "odd": curve },
            "internal_conflict": { "even": curve, "odd": curve }
        },
        "reduced": [], "trainings": []
    })
}

#[test]
fn reports_are_drawn_from_results() {
    let folder = tempfile::tempdir().unwrap();
    let run = folder.path().join("run");
    std::fs::create_dir(&run).unwrap();
    let refused = complaint(folder.path(), &["report", "run"]);
    assert!(refused.contains("run: has no results.json"), "{refused}");
    std::fs::write(run.join("results.json"), results().to_string()).unwrap();
    let drawn = json(folder.path(), &["report", "run", "--json"]);
    assert_eq!(
        (&drawn[0]["data_set"], &drawn[0]["report"]),
        (&json!("mnist"), &json!("run/report.html"))
    );
    let page = std::fs::read_to_string(run.join("report.html")).unwrap();
    assert!(page.contains("0.2500 <small>± 0.1250</small>") && page.contains("two cores"));
    for figure in drawn[0]["figures"].as_array().unwrap() {
        let bytes = std::fs::read(folder.path().join(figure.as_str().unwrap())).unwrap();
        assert!(bytes.starts_with(b"<svg") || bytes.starts_with(b"\x89PNG"), "{figure}");
    }
    let said = shafer(folder.path(), &["report", "run"]);
    assert_eq!(String::from_utf8_lossy(&said.stdout), "mnist: run/report.html, 3 figures\n");
}

#[test]
fn results_that_cannot_be_understood_leave_what_was_drawn() {
    let folder = tempfile::tempdir().unwrap();
    let write = |json: &Value| std::fs::write(folder.path().join("results.json"), json.to_string());
    std::fs::write(folder.path().join("report.html"), "drawn before").unwrap();
    let mut other = results();
    other["version"] = json!(2);
    write(&other).unwrap();
    let refused = complaint(folder.path(), &["report", "."]);
    assert!(refused.contains("./results.json: the results have layout 2"), "{refused}");
    let mut other = results();
    other["final"]["colour"] = json!(1);
    write(&other).unwrap();
    let refused = complaint(folder.path(), &["report", "."]);
    assert!(refused.contains("unknown field `colour`"), "{refused}");
    let page = std::fs::read_to_string(folder.path().join("report.html")).unwrap();
    assert_eq!(page, "drawn before");
}

#[test]
fn heads_give_the_logits_of_their_model() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shafer-data/tests/fixtures");
    let tiny: Value =
        serde_json::from_str(&std::fs::read_to_string(fixtures.join("tiny.json")).unwrap())
            .unwrap();
    let matrix = |name: &str| -> (Vec<usize>, Vec<f32>) {
        let rows = tiny[name].as_array().unwrap();
        let values: Vec<f32> = rows
            .iter()
            .flat_map(|row| row.as_array().unwrap())
            .map(|x| x.as_f64().unwrap() as f32)
            .collect();
        (vec![rows.len(), values.len() / rows.len()], values)
    };
    let folder = tempfile::tempdir().unwrap();
    for name in ["features", "logits"] {
        let (shape, values) = matrix(name);
        std::fs::write(folder.path().join(name).with_extension("npy"), npy(&shape, &values))
            .unwrap();
    }
    let expected = json(folder.path(), &["explain", "logits.npy", "--row", "1", "--json"]);
    for model in ["tiny.pt", "tiny.safetensors", "tiny.onnx"] {
        let model = fixtures.join(model);
        let model = model.to_str().unwrap();
        let arguments =
            ["explain", "--head", model, "--features", "features.npy", "--row", "1", "--json"];
        let found = json(folder.path(), &arguments);
        let pairs = found["classes"]
            .as_array()
            .unwrap()
            .iter()
            .zip(expected["classes"].as_array().unwrap());
        for (a, b) in pairs {
            assert_eq!((&a["class"], &a["kept"]), (&b["class"], &b["kept"]), "{model}");
            let (a, b) = (a["logit"].as_f64().unwrap(), b["logit"].as_f64().unwrap());
            assert!((a - b).abs() < 1e-6, "{model}: {a} and {b}");
        }
    }
    let message = complaint(
        folder.path(),
        &[
            "sparsify",
            "--head",
            fixtures.join("tiny.pt").to_str().unwrap(),
            "--features",
            "logits.npy",
        ],
    );
    assert!(message.contains("but the head needs rows of 8 features"), "{message}");
}

#[test]
fn bad_input_is_named_and_leaves_no_file() {
    let folder = folder();
    let mut logits = vec![0.5_f32; 40];
    logits[23] = f32::NAN;
    std::fs::write(folder.path().join("nan.npy"), npy(&[10, 4], &logits)).unwrap();
    let message = complaint(folder.path(), &["sparsify", "nan.npy", "-o", "out.npz"]);
    assert_eq!(
        message,
        "shafer: nan.npy: row 5, column 3: logit is NaN, but must be finite, or -inf for a masked class"
    );
    assert!(!folder.path().join("out.npz").exists());
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(left.len(), 2, "{left:?}");

    let message = complaint(folder.path(), &["sparsify", "missing.npy"]);
    assert!(message.starts_with("shafer: missing.npy:"), "{message}");
    let message = complaint(folder.path(), &["sparsify", "."]);
    assert!(message.contains("directory") || message.contains("folder"), "{message}");
    let message = complaint(folder.path(), &["sparsify", "logits.npy", "-o", "out.xyz"]);
    assert!(message.contains("out.xyz"), "{message}");
    let message = complaint(folder.path(), &["sparsify", "logits.npy", "--temperature", "0"]);
    assert!(message.contains("temperature is 0"), "{message}");
    let message = complaint(folder.path(), &["sparsify", "logits.npy", "--alpha", "2"]);
    assert_eq!(message, "shafer: alpha is a parameter of entmax, not of evidential");
    let message = complaint(folder.path(), &["sparsify", "logits.npy", "-m", "top-k", "-k", "9"]);
    assert!(message.contains("k is 9, but must not be greater"), "{message}");
}

#[test]
fn standard_input_and_text() {
    use std::io::Write as _;
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(["sparsify", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"a,b,c\n1,2,6\n5,5,5\n").unwrap();
    let report: Value = serde_json::from_slice(&child.wait_with_output().unwrap().stdout).unwrap();
    assert_eq!((&report["rows"], &report["vacuous"]), (&2.into(), &1.into()));
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    use std::process::Stdio;
    let mut child = Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(["completions", "bash"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
}

#[test]
fn help_has_examples() {
    let folder = folder();
    for command in ["sparsify", "explain", "compare", "heads", "data", "report", "completions"] {
        let text = shafer(folder.path(), &[command, "--help"]).stdout;
        assert!(String::from_utf8(text).unwrap().contains("Example"), "{command}");
    }
    for action in ["list", "fetch", "verify", "path"] {
        let text = shafer(folder.path(), &["data", action, "--help"]).stdout;
        assert!(String::from_utf8(text).unwrap().contains("Example"), "{action}");
    }
    assert!(shafer(folder.path(), &["man"]).stdout.starts_with(b".ie"));
}

/// The error names the output, not the input, and gives the reason once.
#[test]
#[cfg(unix)]
fn an_output_that_cannot_be_written_is_the_one_that_is_named() {
    let folder = folder();
    let message = complaint(folder.path(), &["sparsify", "logits.npy", "-o", "none/out.npz"]);
    assert!(message.starts_with("shafer: none/out.npz: cannot"), "{message}");
    assert_eq!(message.matches("No such file").count(), 1, "{message}");
}

/// A square weight given by name is read in the orientation of its graph, with its bias.
#[test]
fn named_weights_lie_as_their_graph_has_them() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shafer-data/tests/fixtures");
    let text = std::fs::read_to_string(fixtures.join("graphs.json")).unwrap();
    let graphs: Value = serde_json::from_str(&text).unwrap();
    let row = |matrix: &Value| -> Vec<f32> {
        let numbers = matrix[0].as_array().unwrap().iter();
        numbers.map(|x| x.as_f64().unwrap() as f32).collect()
    };
    let folder = tempfile::tempdir().unwrap();
    let features = row(&graphs["features"]);
    std::fs::write(folder.path().join("phi.npy"), npy(&[1, features.len()], &features)).unwrap();
    let model = |name: &str| fixtures.join("graphs").join(name).to_str().unwrap().to_owned();
    let logits = |name: &str, more: &[&str]| -> Vec<f64> {
        let head = model(name) + ":W";
        let arguments = ["explain", "--head", &head, "--features", "phi.npy", "--json"];
        let found = json(folder.path(), &[&arguments, more].concat());
        let mut classes = found["classes"].as_array().unwrap().clone();
        classes.sort_by_key(|class| class["class"].as_u64());
        classes.iter().map(|class| class["logit"].as_f64().unwrap()).collect()
    };
    let close = |found: &[f64], expected: &[f32]| {
        assert_eq!(found.len(), expected.len());
        found.iter().zip(expected).all(|(a, &b)| (a - f64::from(b)).abs() < 1e-5)
    };
    let expected = row(&graphs["graphs"]["matmul_square_bias"]["logits"]);
    assert!(close(&logits("matmul_square_bias.onnx", &[]), &expected));
    assert!(close(&logits("matmul_square_bias.onnx", &["--transpose"]), &expected));
    assert!(!close(&logits("matmul_square_bias.onnx", &["--transpose=false"]), &expected));
    assert!(!close(&logits("matmul_square_bias.onnx", &["--bias", "none"]), &expected));

    let head = model("gathered.onnx") + ":W";
    let unknown = ["explain", "--head", &head, "--features", "phi.npy"];
    let message = complaint(folder.path(), &unknown);
    assert!(message.contains("no Gemm, MatMul or Conv multiplies by `W`; give --transpose"));
    let told = [&unknown[..], &["--transpose", "--bias", "none"]].concat();
    assert!(shafer(folder.path(), &told).status.success());
    let message = complaint(folder.path(), &["heads", &model("qgemm.onnx")]);
    assert!(message.contains("the QGemm `product`, a quantised operator"), "{message}");
}

#[test]
fn every_tensor_and_what_is_no_head() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shafer-data/tests/fixtures");
    let folder = tempfile::tempdir().unwrap();
    for file in ["tiny.pt", "tiny.safetensors", "graphs/encoder.onnx"] {
        let file = fixtures.join(file);
        let tensors = json(folder.path(), &["heads", file.to_str().unwrap(), "--all", "--json"]);
        let tensors = tensors.as_array().unwrap();
        assert!(!tensors.is_empty());
        for tensor in tensors {
            assert!(tensor["name"].is_string() && tensor["dtype"].is_string(), "{tensor}");
            assert!(tensor["shape"].is_array(), "{tensor}");
        }
    }
    let regressor = fixtures.join("graphs/one_value.onnx");
    let output = shafer(folder.path(), &["heads", regressor.to_str().unwrap()]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("W (4 features, 1 value)"), "{text}");
    assert!(text.contains("but gives one value, as a regressor does, and no classes"), "{text}");
}
