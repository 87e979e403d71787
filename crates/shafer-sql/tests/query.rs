//! The program: formats, the FROM clause, and bad input.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use common::{query, refused, run};
use datafusion::arrow::array::{Array as _, ArrayRef, AsArray as _, Float64Array, RecordBatch};
use datafusion::arrow::compute::concat_batches;
use datafusion::arrow::datatypes::{Float32Type, Int32Type, Int64Type};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use shafer::Method;

fn read(path: &Path) -> RecordBatch {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path).unwrap()).unwrap();
    let schema = reader.schema().clone();
    let batches: Vec<RecordBatch> = reader.build().unwrap().map(Result::unwrap).collect();
    concat_batches(&schema, &batches).unwrap()
}

#[test]
fn a_folder_and_a_pattern_to_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    common::write_parts(&folder.path().join("in"), 4, 250, 9);
    fs::write(at("in/_SUCCESS"), "").unwrap();
    for (from, out) in
        [("in", "a.parquet"), ("in/", "b.parquet"), ("in/part-*.parquet", "c.parquet")]
    {
        let sql = format!(
            "SELECT id, evidential(logits) AS p, support_size(logits) AS n, name FROM '{}' ORDER BY id",
            at(from)
        );
        query(&sql, &["-o", &at(out), "--threads", "2"]);
        let table = read(&folder.path().join(out));
        assert_eq!(table.num_rows(), 1000);
        let ids = table.column(0).as_primitive::<Int64Type>();
        let p = table.column(1).as_list::<i32>();
        let sizes = table.column(2).as_primitive::<Int32Type>();
        for row in 0..1000_u64 {
            let at = row as usize;
            assert_eq!(ids.value(at), row as i64);
            assert_eq!(table.column(3).as_string::<i32>().value(at), format!("n{row}"));
            // Each part begins its rows anew, so that the length is that of the row's number.
            if row % 7 == 3 {
                assert!(p.is_null(at) && sizes.is_null(at));
                continue;
            }
            let logits = common::logits(row, 1 + (row as usize * 5) % 9);
            let expected: Vec<f32> = Method::EVIDENTIAL.row(&logits).unwrap();
            let expected: Vec<(i32, f32)> = (0..).zip(expected).filter(|(_, p)| *p > 0.0).collect();
            let entries = p.value(at);
            let entries = entries.as_struct();
            let classes = entries.column(0).as_primitive::<Int32Type>().values().iter();
            let found = classes.zip(entries.column(1).as_primitive::<Float32Type>().values());
            assert!(found.map(|(class, p)| (*class, *p)).eq(expected.clone()), "row {row}");
            assert_eq!(sizes.value(at) as usize, expected.len());
        }
    }
}

#[test]
fn formats() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    common::write(&folder.path().join("a.parquet"), &common::batch(0, 5, 3, false));
    let sql = format!(
        "SELECT id, support_size(logits, 'top-k:k=2') AS n FROM '{}' ORDER BY id",
        at("a.parquet")
    );
    let csv = "id,n\n0,2\n1,2\n2,2\n3,\n4,2\n";
    assert_eq!(query(&sql, &["--format", "csv"]), csv);
    query(&sql, &["-o", &at("a.csv"), "--quiet"]);
    assert_eq!(fs::read_to_string(at("a.csv")).unwrap(), csv);
    let jsonl = query(&sql, &["--format", "jsonl"]);
    assert_eq!(jsonl.lines().nth(3), Some(r#"{"id":3,"n":null}"#));
    let json: serde_json::Value = serde_json::from_str(&query(&sql, &["--json"])).unwrap();
    assert_eq!(json[4], serde_json::json!({ "id": 4, "n": 2 }));
    let table = query(&sql, &[]);
    assert!(table.contains("│ 4    2 │") && table.ends_with("5 rows\n"), "{table}");
    let p =
        query(&format!("SELECT softmax([0.0, 0.0]) AS p FROM '{}' LIMIT 1", at("a.parquet")), &[]);
    assert!(p.contains("0: 0.5000, 1: 0.5000"), "{p}");
    let report = query(&sql, &["-o", &at("a.jsonl"), "--json"]);
    let report: serde_json::Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["rows"], 5);
    // No rows.
    let none = sql.replace("ORDER", "WHERE id > 9 ORDER");
    assert_eq!(query(&none, &["--format", "csv"]), "id,n\n");
    assert_eq!(query(&none, &["--json"]).trim(), "[]");
    query(&none, &["-o", &at("none.parquet")]);
    assert_eq!(read(&folder.path().join("none.parquet")).num_rows(), 0);
    // Lists have no place in CSV.
    let lists = sql.replace("support_size(logits, 'top-k:k=2')", "evidential(logits)");
    let error = refused(&lists, &["-o", &at("b.csv")]);
    assert!(error.contains("CSV cannot hold the lists of the column n"), "{error}");
    assert!(!folder.path().join("b.csv").exists());
    let nested = query(&lists, &["--format", "jsonl"]);
    assert!(nested.starts_with(r#"{"id":0,"n":[{"class":"#), "{nested}");
}

#[test]
fn outputs_that_are_inputs_and_files_that_exist() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    common::write_parts(&folder.path().join("in"), 2, 10, 3);
    let before = fs::read(at("in/part-00.parquet")).unwrap();
    for (from, out, expected) in [
        ("in", "in/part-00.parquet", "is one of the inputs"),
        ("in/part-00.parquet", "in/part-00.parquet", "is one of the inputs"),
        ("in", "in/new.parquet", "is inside the input folder"),
        ("in/*.parquet", "in/new.parquet", "would be an input of the next run"),
    ] {
        let sql = format!("SELECT id FROM '{}'", at(from));
        let error = refused(&sql, &["-o", &at(out), "--force"]);
        assert!(error.contains(expected), "{error}");
    }
    assert_eq!(fs::read(at("in/part-00.parquet")).unwrap(), before);
    fs::write(at("kept.csv"), "precious").unwrap();
    let sql = format!("SELECT count(*) AS n FROM '{}'", at("in"));
    let error = refused(&sql, &["-o", &at("kept.csv")]);
    assert!(error.ends_with("kept.csv: exists; --force replaces it"), "{error}");
    query(&sql, &["-o", &at("kept.csv"), "--force"]);
    assert_eq!(fs::read_to_string(at("kept.csv")).unwrap(), "n\n20\n");
}

#[test]
fn queries_that_cannot_be_answered() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    common::write_parts(&folder.path().join("in"), 2, 10, 3);
    let from = at("in");
    for (sql, expected) in [
        (
            format!("SELECT logit FROM '{from}'"),
            "there is no column logit; there are id, logits, name",
        ),
        (format!("SELECT evidental(logits) FROM '{from}'"), "Did you mean 'evidential'?"),
        (format!("SELECT evidential(name) FROM '{from}'"), "lists of logits are logits"),
        (format!("SELEC id FROM '{from}'"), "cannot parse the SQL"),
        (String::new(), "No SQL statements"),
        (format!("COPY '{from}' TO '{from}/x.csv'"), "this is no query"),
        ("CREATE TABLE x AS SELECT 1".to_owned(), "this is no query"),
        ("SELECT 1 FROM nowhere".to_owned(), "FROM 'nowhere': there is no such file or folder"),
        (format!("SELECT 1 FROM '{from}/*.arrow'"), "matches no file that"),
        (
            format!("SELECT 1 FROM '{}'", folder.path().display().to_string() + "/none.parquet"),
            "there is no such file",
        ),
    ] {
        let error = refused(&sql, &[]);
        assert!(error.contains(expected), "{sql}: {error}");
    }
    assert_eq!(run(&["query", "SELECT 1", "--format", "parquet"]).code, Some(2));
    assert_eq!(run(&["query", "SELECT 1", "--threads", "0"]).code, Some(2));
}

#[test]
fn parts_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    common::write_parts(&at("in"), 3, 300, 8);
    let sql =
        format!("SELECT id, support_size(logits) AS n FROM '{}' ORDER BY id", at("in").display());
    let path = at("in/part-01.parquet");
    let whole = fs::read(&path).unwrap();
    // Damage in the middle of a part: every byte of a page of logits.
    let mut damaged = whole.clone();
    let middle = whole.len() / 3;
    damaged[middle..middle + 2000].fill(0xff);
    fs::write(&path, &damaged).unwrap();
    let error = refused(&sql, &["-o", &at("out.parquet").display().to_string()]);
    assert!(error.contains("part-01.parquet") && error.contains("damaged"), "{error}");
    // A part that ends early, and one that is empty.
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    let error = refused(&sql, &[]);
    assert!(error.contains("part-01.parquet"), "{error}");
    fs::write(&path, "").unwrap();
    let error = refused(&sql, &[]);
    assert!(error.contains("part-01.parquet") && error.contains("is empty"), "{error}");
    // A part without rows is fine.
    common::write(&path, &common::batch(300, 0, 8, true));
    assert_eq!(query(&sql, &["--format", "csv"]).lines().count(), 601);
    // Another column.
    let numbers: ArrayRef = Arc::new(Float64Array::from(vec![1.0]));
    common::write(&path, &RecordBatch::try_from_iter([("id", numbers)]).unwrap());
    let error = refused(&sql, &[]);
    assert!(
        error.contains("part-01.parquet: the column id is Float64, unlike Int64 of the first part"),
        "{error}"
    );
    assert!(!at("out.parquet").exists());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn nan_is_named_with_its_part_and_row() {
    let folder = tempfile::tempdir().unwrap();
    common::write_parts(folder.path(), 2, 300, 4);
    let rows =
        (0..250).map(|row| Some(vec![Some(0.5), Some(if row == 217 { f32::NAN } else { 1.0 })]));
    let lists = datafusion::arrow::array::ListArray::from_iter_primitive::<Float32Type, _, _>(rows);
    let template = common::batch(600, 250, 2, false);
    let columns = vec![template.column(0).clone(), Arc::new(lists), template.column(2).clone()];
    let part = RecordBatch::try_new(template.schema(), columns).unwrap();
    common::write(&folder.path().join("part-02.parquet"), &part);
    let from = folder.path().display();
    let error = refused(&format!("SELECT conflict(logits) FROM '{from}'"), &["--threads", "1"]);
    assert!(error.contains("conflict(logits): row ") && error.contains("NaN"), "{error}");
    assert!(error.contains("part-02.parquet: row 217, column 1: logit is NaN"), "{error}");
    let found = format!(
        "SELECT id, logits_error(logits) AS e FROM '{from}' WHERE logits_error(logits) IS NOT NULL"
    );
    let found = query(&found, &["--format", "csv"]);
    assert!(found.lines().nth(1).unwrap().starts_with("817,"), "{found}");
    assert_eq!(found.lines().count(), 2);
}

#[test]
fn help_lists_all_functions() {
    let help = run(&["query", "--help"]).out;
    for function in shafer_sql::functions() {
        assert!(help.contains(&format!("{}(", function.name())), "{}", function.name());
    }
    let list: serde_json::Value = serde_json::from_str(&run(&["functions", "--json"]).out).unwrap();
    assert_eq!(list.as_array().unwrap().len(), shafer_sql::functions().len());
}

#[test]
fn names_with_every_character() {
    let folder = tempfile::tempdir().unwrap();
    let odd = folder.path().join("a b%20é[1]");
    common::write_parts(&odd, 1, 10, 3);
    let sql = format!("SELECT count(*) AS n FROM '{}'", odd.display());
    assert_eq!(query(&sql, &["--format", "csv"]), "n\n10\n");
    let sql = format!("SELECT count(*) AS n FROM '{}/part-00.parquet'", odd.display());
    assert_eq!(query(&sql, &["--format", "csv"]), "n\n10\n");
}
