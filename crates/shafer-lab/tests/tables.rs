//! `shafer sparsify` of tables: parts with all their columns, and what is wrong with them.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use arrow_array::builder::{Int32Builder, MapBuilder, StringBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Int32Type, Int64Type, TimestampMicrosecondType, TimestampNanosecondType,
};
use arrow_array::{
    Array, ArrayRef, DictionaryArray, Int64Array, LargeListArray, ListArray, RecordBatch,
    StringArray, StructArray, TimestampMicrosecondArray,
};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_ipc::writer::{FileWriter, StreamWriter};
use arrow_schema::{DataType, Field, Schema};
use common::{complaint, json, shafer};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;

/// Row `i` of every table has three classes, of which class `i` mod 3 is by far the best.
fn logits(ids: &[i64]) -> ListArray {
    let row = |id: i64| (0..3).map(move |k| Some(if k == id % 3 { 5.0 } else { -1.0 }));
    ListArray::from_iter_primitive::<Float32Type, _, _>(ids.iter().map(|&id| Some(row(id))))
}

/// Columns of many kinds around that of logits, the second.
fn table(ids: &[i64]) -> RecordBatch {
    let words: DictionaryArray<Int32Type> =
        ids.iter().map(|id| (id % 2 == 0).then_some("even")).collect();
    let times = TimestampMicrosecondArray::from_iter_values(ids.iter().map(|id| id * 1000))
        .with_timezone("Europe/Berlin");
    let mut maps = MapBuilder::new(None, StringBuilder::new(), Int32Builder::new());
    for &id in ids {
        maps.keys().append_value("id");
        maps.values().append_value(id as i32);
        maps.append(id % 4 != 0).unwrap();
    }
    let inner: ArrayRef = Arc::new(logits(ids));
    let nested: ArrayRef = Arc::new(StructArray::from(vec![(
        Arc::new(Field::new("deep", inner.data_type().clone(), true)),
        inner.clone(),
    )]));
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(ids.to_vec()))),
        ("logits", inner),
        ("word", Arc::new(words)),
        ("time", Arc::new(times)),
        ("map", Arc::new(maps.finish())),
        ("nested", nested),
    ];
    let batch =
        RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(n, c)| (n, c, true)));
    let batch = batch.unwrap();
    let metadata = HashMap::from([("origin".to_owned(), "model 7".to_owned())]);
    let schema = Schema::new_with_metadata(batch.schema().fields().clone(), metadata);
    batch.with_schema(Arc::new(schema)).unwrap()
}

fn write(path: &Path, batch: &RecordBatch) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let file = File::create(path).unwrap();
    match path.extension().unwrap().to_str().unwrap() {
        "parquet" => {
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::default()))
                .set_max_row_group_row_count(Some(4.max(batch.num_rows() / 10)))
                .set_key_value_metadata(Some(vec![KeyValue::new(
                    "pandas".to_owned(),
                    "{\"a\": 1}".to_owned(),
                )]));
            let mut writer =
                ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
            writer.write(batch).unwrap();
            writer.close().unwrap();
        }
        "arrows" => {
            let mut writer = StreamWriter::try_new(file, &batch.schema()).unwrap();
            writer.write(batch).unwrap();
            writer.finish().unwrap();
        }
        _ => {
            let mut writer = FileWriter::try_new(file, &batch.schema()).unwrap();
            writer.write(batch).unwrap();
            writer.finish().unwrap();
        }
    }
}

/// All rows as one batch.
fn read(path: &Path) -> RecordBatch {
    let file = File::open(path).unwrap();
    let batches: Vec<RecordBatch> = match path.extension().unwrap().to_str().unwrap() {
        "parquet" => {
            let builder = ParquetRecordBatchReaderBuilder::try_new(file).unwrap();
            // The batches do not have the metadata of the file.
            let schema = Arc::clone(builder.schema());
            let batches = builder.build().unwrap();
            batches.map(|b| b.unwrap().with_schema(Arc::clone(&schema)).unwrap()).collect()
        }
        "arrows" => StreamReader::try_new(file, None).unwrap().collect::<Result<_, _>>().unwrap(),
        _ => FileReader::try_new(file, None).unwrap().collect::<Result<_, _>>().unwrap(),
    };
    // Tables here are shorter than a batch.
    assert!(batches.len() <= 1, "{}", batches.len());
    batches.into_iter().next().unwrap()
}

/// The parts a.parquet (ids 0 to 9), b.parquet (10 to 14) and sub/c.arrow (15 to 19).
fn parts() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    for (name, ids) in [("a.parquet", 0..10), ("b.parquet", 10..15), ("sub/c.arrow", 15..20)] {
        write(&folder.path().join("in").join(name), &table(&ids.collect::<Vec<i64>>()));
    }
    folder
}

#[test]
fn every_other_column_stays() {
    let folder = parts();
    write(&folder.path().join("in/d.arrows"), &table(&[20, 21]));
    let report = json(folder.path(), &["sparsify", "in", "-o", "out/", "--json"]);
    assert_eq!((&report["rows"], &report["parts"]), (&22.into(), &4.into()));
    assert_eq!((&report["kept_mean"], &report["column"]), (&1.0.into(), &"logits".into()));
    for name in ["a.parquet", "b.parquet", "sub/c.arrow", "d.arrows"] {
        let before = read(&folder.path().join("in").join(name));
        let after = read(&folder.path().join("out").join(name));
        assert_eq!(after.num_columns(), 6);
        for (i, field) in before.schema().fields().iter().enumerate() {
            if field.name() != "logits" {
                assert_eq!(after.column(i), before.column(i), "{name} {field}");
                assert_eq!(after.schema().field(i), field.as_ref(), "{name}");
            }
        }
        let lists = after.column(1).as_list::<i32>();
        let ids = before.column(0).as_primitive::<Int64Type>();
        for (row, id) in ids.values().iter().enumerate() {
            let row = lists.value(row);
            let classes = row.as_struct().column(0).as_primitive::<Int32Type>().values();
            let p = row.as_struct().column(1).as_primitive::<Float32Type>().values();
            assert_eq!((&classes[..], &p[..]), (&[(id % 3) as i32][..], &[1.0][..]));
        }
        let schema = after.schema();
        assert_eq!(schema.metadata()["origin"], "model 7");
        assert_eq!(schema.metadata()["shafer.method"], "evidential");
        if name.ends_with(".parquet") {
            assert_eq!(schema.metadata()["pandas"], "{\"a\": 1}");
        }
    }
    // The compression of the input.
    let file = File::open(folder.path().join("out/a.parquet")).unwrap();
    let metadata = ParquetRecordBatchReaderBuilder::try_new(file).unwrap().metadata().clone();
    let columns = metadata.row_group(0).columns();
    assert!(columns.iter().all(|c| matches!(c.compression(), Compression::ZSTD(_))));
}

/// Tables of pyarrow, polars, `DuckDB` and Spark; the scripts are beside them.
#[test]
fn tables_of_other_programs() {
    let folder = tempfile::tempdir().unwrap();
    let fixtures =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shafer-data/tests/fixtures/tables");
    for (name, columns) in [
        ("pages.parquet", 3),
        ("polars.parquet", 8),
        ("polars.arrow", 8),
        ("duckdb.parquet", 11),
        ("spark.parquet", 14),
    ] {
        let before = read(&fixtures.join(name));
        let input = fixtures.join(name);
        let out = format!("{name}.out/");
        let report =
            json(folder.path(), &["sparsify", input.to_str().unwrap(), "-o", &out, "--json"]);
        assert_eq!((&report["rows"], &report["column"]), (&40.into(), &"logits".into()), "{name}");
        let after = read(&folder.path().join(out).join(name));
        assert_eq!((after.num_columns(), before.num_columns()), (columns, columns), "{name}");
        for (i, field) in before.schema().fields().iter().enumerate() {
            if (name, field.name().as_str()) == ("spark.parquet", "time") {
                // Times of 96 bits: instants in microseconds, as Spark reads them.
                let after = after.column(i).as_primitive::<TimestampMicrosecondType>();
                let before = before.column(i).as_primitive::<TimestampNanosecondType>();
                assert_eq!(after.timezone(), Some("UTC"));
                let before = before.values().iter().map(|nanoseconds| nanoseconds / 1000);
                assert!(before.eq(after.values().iter().copied()));
            } else if field.name() != "logits" {
                assert_eq!(after.column(i), before.column(i), "{name} {field}");
                assert_eq!(after.schema().field(i), field.as_ref(), "{name}");
            }
        }
        for (key, value) in before.schema().metadata() {
            assert_eq!(&after.schema().metadata()[key], value, "{name}");
        }
    }
}

#[test]
fn chosen_columns_and_dense_lists() {
    let folder = parts();
    let arguments = ["in/*.parquet", "-o", "out/", "--keep", "time,id", "--dense", "--json"];
    let report = json(folder.path(), &[&["sparsify"][..], &arguments].concat());
    assert_eq!((&report["rows"], &report["kept_mean"]), (&15.into(), &1.0.into()));
    let out = read(&folder.path().join("out/b.parquet"));
    let schema = out.schema();
    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
    assert_eq!(names, ["id", "logits", "time"]);
    let first = out.column(1).as_list::<i32>().value(0);
    assert_eq!(first.as_primitive::<Float32Type>().values(), &[0.0, 1.0, 0.0]);
    // Without an output, a summary. Sparsemax keeps one class, too.
    let arguments = ["sparsify", "in", "--column", "logits", "--method", "sparsemax", "--json"];
    let report = json(folder.path(), &arguments);
    assert_eq!((&report["rows"], &report["kept_mean"]), (&20.into(), &1.0.into()));
    let text = shafer(folder.path(), &["sparsify", "in", "--column", "logits"]).stdout;
    let text = String::from_utf8(text).unwrap();
    assert!(
        text.starts_with(
            "20 rows in 3 parts, column logits, evidential\nkept per row    mean 1.00"
        ),
        "{text}"
    );
}

#[test]
fn finished_parts_are_not_done_again() {
    let folder = parts();
    let run = |more: &[&str]| {
        json(folder.path(), &[&["sparsify", "in", "-o", "out/", "--json"][..], more].concat())
    };
    let done = |report: &serde_json::Value| {
        (report["finished_before"].as_u64().unwrap(), report["rows"].as_u64().unwrap())
    };
    assert_eq!(done(&run(&[])), (0, 20));
    let out = |name: &str| folder.path().join("out").join(name);
    let time = |name: &str| fs::metadata(out(name)).unwrap().modified().unwrap();
    let before = time("a.parquet");
    fs::remove_file(out("b.parquet")).unwrap();
    assert_eq!(done(&run(&[])), (2, 5));
    assert_eq!(time("a.parquet"), before);
    // An input that was written anew is done anew.
    write(&folder.path().join("in/a.parquet"), &table(&[30, 31, 32]));
    assert_eq!(done(&run(&[])), (2, 3));
    // Other settings are another result.
    let arguments = ["sparsify", "in", "-o", "out/", "--method", "softmax"];
    let message = complaint(folder.path(), &arguments);
    assert!(
        message.ends_with(
            "out/a.parquet: exists and was made with other settings; --force replaces it"
        ),
        "{message}"
    );
    assert_eq!(done(&run(&["--method", "softmax", "--force"])), (0, 13));
    fs::write(out("b.parquet"), "something else").unwrap();
    let message =
        complaint(folder.path(), &["sparsify", "in", "-o", "out/", "--method", "softmax"]);
    assert!(message.contains("b.parquet: exists and was not written by this command; --force"));
}

#[test]
fn a_damaged_part_does_not_keep_the_others() {
    let folder = parts();
    let damaged = folder.path().join("in/b.parquet");
    let mut bytes = fs::read(&damaged).unwrap();
    // The pages, and not the metadata.
    bytes[4..200].fill(0xff);
    fs::write(&damaged, bytes).unwrap();
    fs::write(folder.path().join("in/e.parquet"), "PAR1").unwrap();
    let message = complaint(folder.path(), &["sparsify", "in", "-o", "out/"]);
    assert!(message.starts_with("shafer: in/b.parquet"), "{message}");
    assert!(
        message.contains(" | in/e.parquet: truncated: 8 bytes missing at the end"),
        "{message}"
    );
    let end = " | 2 of 4 parts are done, and the same command does the others";
    assert!(message.ends_with(end), "{message}");
    let mut left: Vec<_> =
        fs::read_dir(folder.path().join("out")).unwrap().map(|e| e.unwrap().file_name()).collect();
    left.sort();
    assert_eq!(left, ["a.parquet", "sub"]);
    // Repaired, the rest is done.
    write(&damaged, &table(&[1, 2]));
    fs::remove_file(folder.path().join("in/e.parquet")).unwrap();
    let report = json(folder.path(), &["sparsify", "in", "-o", "out/", "--json"]);
    assert_eq!((&report["rows"], &report["finished_before"]), (&2.into(), &2.into()));
}

/// Named before any work: nothing is written.
#[test]
fn what_does_not_fit() {
    let folder = parts();
    let refused = |arguments: &[&str], expected: &str| {
        let message = complaint(folder.path(), &[&["sparsify"][..], arguments].concat());
        assert!(message.starts_with(&format!("shafer: {expected}")), "{message}\n{expected}");
        assert!(!folder.path().join("out").exists());
    };
    let all = "it holds `id`, `logits`, `word`, `time`, `map`, `nested`";
    refused(
        &["in", "-o", "out/", "--column", "logit"],
        &format!("in/a.parquet: has no column `logit`; {all}"),
    );
    refused(
        &["in", "-o", "out/", "--keep", "id,times"],
        &format!("in/a.parquet: has no column `times`; {all}"),
    );
    refused(
        &["in", "-o", "out/", "--column", "id"],
        "in/a.parquet, column `id`: the logits are Int64, but must be lists of f16, f32 or f64",
    );
    refused(&["in", "-o", "in/out/"], "in/out/: the output folder is inside the input folder ");
    refused(&["in/*.parquet", "-o", "in/"], "in/a.parquet: is one of the inputs; name another");
    refused(&["in", "-o", "out"], "out: the output of a table is a folder; write out/ for a new");
    refused(
        &["none/*.parquet", "-o", "out/"],
        "none/*.parquet: matches no file that ends in .parquet,",
    );
    refused(&["in", "-o", "out/", "--groups", "1,2"], "--groups is not for tables with all their");
    refused(&["in/a.parquet:logits", "-o", "out/", "--column", "logits"], "in/a.parquet:logits: ");

    let ids = |name: &str, column: ArrayRef| {
        let batch = RecordBatch::try_from_iter([
            ("id", column),
            ("logits", Arc::new(logits(&[1])) as ArrayRef),
        ]);
        write(&folder.path().join("mixed").join(name), &batch.unwrap());
    };
    ids("a.parquet", Arc::new(Int64Array::from(vec![1])));
    ids("b.parquet", Arc::new(StringArray::from(vec!["one"])));
    refused(
        &["mixed", "-o", "out/"],
        "mixed/b.parquet: column `id` is Utf8, but Int64 in mixed/a.parquet; write all parts with one",
    );
    let only =
        RecordBatch::try_from_iter([("logits", Arc::new(logits(&[1])) as ArrayRef)]).unwrap();
    write(&folder.path().join("mixed/b.parquet"), &only);
    refused(
        &["mixed", "-o", "out/"],
        "mixed/b.parquet: has no column `id`, which mixed/a.parquet has; it holds `logits`",
    );
    let turned = RecordBatch::try_from_iter([
        ("logits", Arc::new(logits(&[1])) as ArrayRef),
        ("id", Arc::new(Int64Array::from(vec![1]))),
    ]);
    write(&folder.path().join("mixed/b.parquet"), &turned.unwrap());
    refused(
        &["mixed", "-o", "out/"],
        "mixed/b.parquet: has its columns in another order than mixed/a.parquet; write all parts",
    );
    let wide = LargeListArray::from_iter_primitive::<Float32Type, _, _>([Some([Some(1.0)])]);
    let wide = RecordBatch::try_from_iter([
        ("id", Arc::new(Int64Array::from(vec![1])) as ArrayRef),
        ("logits", Arc::new(wide)),
    ]);
    write(&folder.path().join("mixed/b.parquet"), &wide.unwrap());
    refused(&["mixed", "-o", "out/"], "mixed/b.parquet: column `logits` is LargeList(");
    write(&folder.path().join("mixed/b.parquet"), &only);
    let b = folder.path().join("mixed/b.parquet");
    fs::rename(b, folder.path().join("mixed/0.parquet")).unwrap();
    refused(
        &["mixed", "-o", "out/"],
        "mixed/a.parquet: has a column `id`, which mixed/0.parquet lacks; choose columns with --keep",
    );

    let field = only.schema().field(0).clone();
    let schema = Arc::new(Schema::new(vec![field.clone(), field]));
    let twice = vec![Arc::clone(only.column(0)), Arc::clone(only.column(0))];
    let twice = RecordBatch::try_new(schema, twice).unwrap();
    write(&folder.path().join("twice.arrow"), &twice);
    refused(
        &["twice.arrow", "-o", "out/", "--column", "logits"],
        "twice.arrow: has two columns `logits`; rename one, or choose others with --keep",
    );
    fs::create_dir(folder.path().join("empty")).unwrap();
    refused(&["empty", "-o", "out/"], "empty: no file in this folder ends in .parquet, .arrow,");
}

/// Null rows stay null, lengths may differ, and parts may be empty. A null inside a row is an error.
#[test]
fn rows_that_are_null_or_ragged() {
    let folder = tempfile::tempdir().unwrap();
    let lists = |rows: Vec<Option<Vec<Option<f32>>>>| -> RecordBatch {
        let lists = ListArray::from_iter_primitive::<Float32Type, _, _>(rows);
        RecordBatch::try_from_iter_with_nullable([("logits", Arc::new(lists) as ArrayRef, true)])
            .unwrap()
    };
    let ragged = vec![
        Some(vec![Some(4.0), Some(0.0)]),
        None,
        Some(vec![Some(1.0), Some(9.0), Some(1.0), Some(1.0)]),
    ];
    write(&folder.path().join("in/a.parquet"), &lists(ragged));
    write(&folder.path().join("in/b.parquet"), &lists(vec![]));
    let report = json(folder.path(), &["sparsify", "in", "-o", "out/", "--json"]);
    assert_eq!((&report["rows"], &report["null_rows"]), (&3.into(), &1.into()));
    assert_eq!(report["kept_mean"], 1.0);
    let out = read(&folder.path().join("out/a.parquet"));
    let out = out.column(0).as_list::<i32>();
    assert!(out.is_null(1) && out.value_length(0) == 1 && out.value_length(2) == 1);
    let empty = File::open(folder.path().join("out/b.parquet")).unwrap();
    let empty = ParquetRecordBatchReaderBuilder::try_new(empty).unwrap();
    assert_eq!(empty.metadata().file_metadata().num_rows(), 0);
    assert!(matches!(empty.schema().field(0).data_type(), DataType::List(_)));

    let rows = vec![Some(vec![Some(1.0)]), Some(vec![Some(1.0), None])];
    write(&folder.path().join("null.parquet"), &lists(rows));
    let message = complaint(folder.path(), &["sparsify", "null.parquet", "-o", "out/"]);
    assert_eq!(
        message,
        "shafer: null.parquet:logits: row 1, column 1 is null; write -inf for a masked class"
    );
}

/// A full disk concerns all parts: what is done stays, nothing is half-written, and with room the rest is done.
#[cfg(unix)]
#[test]
fn a_full_disk() {
    for ending in ["arrow", "arrows", "parquet"] {
        let folder = tempfile::tempdir().unwrap();
        let long: Vec<i64> = (0..200_000).collect();
        let [a, b] = ["a", "b"].map(|name| format!("{name}.{ending}"));
        write(&folder.path().join("in").join(&a), &table(&[1]));
        write(&folder.path().join("in").join(&b), &table(&long));
        let program = env!("CARGO_BIN_EXE_shafer");
        // The limit of the shell on the size of files stands for the disk.
        let script =
            format!("trap '' XFSZ; ulimit -f 100; exec {program} sparsify in -o out/ --threads 1");
        let output = std::process::Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}");
        assert!(text.starts_with(&format!("shafer: out/{b}: cannot write: ")), "{text}");
        assert!(
            text.ends_with("1 of 2 parts are done, and the same command does the others\n"),
            "{text}"
        );
        let left = fs::read_dir(folder.path().join("out")).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, [a.as_str()]);
        let report = json(folder.path(), &["sparsify", "in", "-o", "out/", "--json"]);
        let counts = (&report["finished_before"], &report["rows"]);
        assert_eq!(counts, (&1.into(), &200_000.into()));
        assert_eq!(fs::read_dir(folder.path().join("out")).unwrap().count(), 2);
    }
}
