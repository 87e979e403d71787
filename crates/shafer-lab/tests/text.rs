//! Text and tables: no line is lost, and only logits become classes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use common::{complaint, json, npy, shafer};
use serde_json::{Value, json};

const COMMANDS: [&str; 3] = ["sparsify", "explain", "compare"];

/// Runs the program with standard input.
fn piped(input: &[u8], arguments: &[&str]) -> (Option<i32>, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // Fails if the program refuses its arguments without reading.
    let _ = child.stdin.take().unwrap().write_all(input);
    let output = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn the_first_line_stays() {
    for text in ["1;2;3\n", "1,2,3", "1\t2\t3\r\n", "  1 2  3\n", "# a b c\n1 2 3\n"] {
        let (code, out, error) = piped(text.as_bytes(), &["sparsify", "-", "--json"]);
        assert_eq!(code, Some(0), "{error}");
        let report: Value = serde_json::from_str(&out).unwrap();
        assert_eq!((&report["rows"], &report["classes"]), (&json!(1), &json!(3)), "{text:?}");
        assert_eq!(report["kept"]["mean"], 1.0, "{text:?}");
    }
    // The output of `gzip` for "1|2|3\n".
    let packed = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x33\xac\x31\xaa\x31\xe6\
        \x02\x00\x55\x55\xb1\x51\x06\x00\x00\x00";
    let arguments = ["sparsify", "-", "--delimiter", "|", "--json"];
    let (code, out, error) = piped(packed, &arguments);
    assert_eq!((code, error.as_str()), (Some(0), ""), "{out}");
    let (code, _, error) = piped(b"1,5;2,5\n", &["sparsify", "-"]);
    assert_eq!(code, Some(2));
    assert_eq!(
        error,
        "shafer: standard input: line 1, column 1: `1,5` has a decimal comma (separated by \
         semicolons); write numbers with a decimal point\n"
    );
}

#[test]
fn no_rows_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("empty.npy"), npy(&[0, 4], &[])).unwrap();
    write(folder, "empty.tsv", "cat\tdog\n");
    for command in COMMANDS {
        let found = complaint(folder, &[command, "empty.npy"]);
        assert_eq!(found, "shafer: empty.npy: there are no rows: the array is f32 (0, 4)");
        let found = complaint(folder, &[command, "empty.tsv"]);
        assert_eq!(
            found,
            "shafer: empty.tsv: has no rows: line 1 is taken for a header (separated by tabs), and \
             nothing follows; write one row of numbers a line"
        );
    }
}

#[test]
fn summaries_say_which_columns_are_classes() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // An index written by pandas, beside a column that is not a logit.
    write(folder, "a.csv", ",lat,logit_0,logit_1,logit_2\n0,52.5,1,2,9\n1,48.1,3,4,9\n");
    for command in COMMANDS {
        let found = complaint(folder, &[command, "a.csv"]);
        assert_eq!(
            found,
            "shafer: a.csv: has `lat` beside logit_0, logit_1, logit_2; say which columns are \
             logits, as in --columns 'logit_*', or --exclude the others"
        );
        for choice in [["--exclude", "lat"], ["--columns", "logit_0..logit_2"]] {
            let arguments = [command, "a.csv", choice[0], choice[1]];
            let report = json(folder, &[&arguments[..], &["--json"]].concat());
            let expected =
                json!({ "taken": ["logit_0", "logit_1", "logit_2"], "left_out": ["", "lat"] });
            assert_eq!(report["columns"], expected, "{command}");
            let text = String::from_utf8(shafer(folder, &arguments).stdout).unwrap();
            let line = "\ncolumns         logit_0, logit_1, logit_2, left out: ``, lat\n";
            assert!(text.contains(line), "{text}");
        }
    }
    // The logits of the chosen columns.
    let row = json(folder, &["explain", "a.csv", "--columns", "logit_2,logit_0", "--json"]);
    let logit = |class: usize| row["classes"][class]["logit"].as_f64().unwrap();
    assert_eq!((logit(0), logit(1)), (9.0, 1.0));
    let found = complaint(folder, &["sparsify", "a.csv", "--columns", "absent"]);
    assert!(found.contains("has no column `absent`; it holds ``, `lat`, `logit_0`"), "{found}");
    std::fs::write(folder.join("b.npy"), npy(&[1, 3], &[1.0, 2.0, 3.0])).unwrap();
    let found = complaint(folder, &["sparsify", "b.npy", "--exclude", "lat"]);
    assert!(found.contains("b.npy: has no columns to choose from"), "{found}");
    assert!(json(folder, &["sparsify", "b.npy", "--json"]).get("columns").is_none());
}

#[test]
fn one_number_per_row_is_refused() {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shafer-data/tests/fixtures/tables");
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "lines.txt", "1.5\n2.5\n");
    write(folder, "named.csv", "score\n1.5\n2.5\n");
    for command in COMMANDS {
        let found = complaint(folder, &[command, "lines.txt"]);
        assert!(
            found.contains("lines.txt: has one number per line instead of one per class"),
            "{found}"
        );
        let found = complaint(folder, &[command, "named.csv"]);
        assert!(
            found.contains("named.csv: `score` has one number per row instead of one per class"),
            "{found}"
        );
        for table in ["columns.parquet", "columns.arrow"] {
            let path = tables.join(table);
            let path = path.to_str().unwrap();
            let named = format!("{path}:class 3");
            for arguments in
                [&[command, named.as_str()][..], &[command, path, "--columns", "class 3"]]
            {
                let found = complaint(folder, arguments);
                assert!(found.contains("`class 3` has one number per row"), "{found}");
            }
        }
    }
}

#[test]
fn columns_of_tables_are_chosen() {
    let tables = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shafer-data/tests/fixtures/tables");
    let folder = tempfile::tempdir().unwrap();
    for table in ["columns.parquet", "columns.arrow"] {
        let path = tables.join(table);
        let path = path.to_str().unwrap();
        let run = |more: &[&str]| {
            json(folder.path(), &[&["explain", path, "--row", "1", "--json"], more].concat())
        };
        let all = run(&[]);
        assert_eq!(all["columns"]["left_out"], json!(["id"]));
        // Row 1 is (5 + j) / 2 - 9.
        let some = run(&["--columns", "class 4,class 1"]);
        let logits: Vec<f64> = some["classes"]
            .as_array()
            .unwrap()
            .iter()
            .map(|class| class["logit"].as_f64().unwrap())
            .collect();
        assert_eq!(logits, [-4.5, -6.0]);
        let left_out = json!(["id", "class 0", "class 2", "class 3"]);
        assert_eq!(
            some["columns"],
            json!({ "taken": ["class 4", "class 1"], "left_out": left_out })
        );
        let found = complaint(folder.path(), &["sparsify", path, "--columns", "id,class 1"]);
        assert!(found.contains(":id: is a column of int64; those of f16"), "{found}");
    }
    let lists = tables.join("list-none.parquet");
    let report = json(folder.path(), &["sparsify", lists.to_str().unwrap(), "--json"]);
    assert_eq!(report["columns"], json!({ "taken": ["logits"], "left_out": ["id", "name"] }));
}
