//! Tables written by other programs, read in blocks of every size.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::types::Float32Type;
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Int64Array, ListArray, RecordBatch, StringArray,
};
use arrow_ipc::writer::StreamWriter;
use parquet::arrow::ArrowWriter;
use parquet::basic::Encoding;
use parquet::file::properties::{WriterProperties, WriterVersion};
use shafer_data::{ArrayInfo, Dtype, Location, Table, Values, list, open};

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tables").join(name)
}

fn read(path: &Path, name: Option<&str>, block: usize) -> (ArrayInfo, Vec<f64>) {
    let location = Location { path: Some(path.to_owned()), name: name.map(str::to_owned) };
    let mut reader = open(&location).unwrap();
    let (mut all, mut values) = (Vec::new(), Values::default());
    loop {
        reader.read(block, &mut values).unwrap();
        assert!(values.len() <= block);
        match &values {
            Values::F16(v) => all.extend(v.iter().map(|v| v.to_f64())),
            Values::Bf16(_) => panic!("tables have none"),
            Values::F32(v) => all.extend(v.iter().map(|&v| f64::from(v))),
            Values::F64(v) => all.extend(v),
        }
        if values.is_empty() {
            return (reader.info().clone(), all);
        }
    }
}

/// The numbers of the fixtures of `make_tables.py`, `make_others.py` and `make_spark.py`.
fn numbers() -> Vec<f64> {
    (0..200).map(|i| f64::from(i % 37) / 2.0 - 9.0).collect()
}

#[test]
fn every_fixture_has_the_same_rows() {
    let mut count = 0;
    for entry in fs::read_dir(fixture("")).unwrap() {
        let path = entry.unwrap().path();
        for block in [1, 7, 85, 1000] {
            let (info, values) = read(&path, None, block);
            assert_eq!(info.shape, [40, 5], "{}", path.display());
            assert_eq!(values, numbers(), "{}", path.display());
        }
        count += 1;
    }
    assert_eq!(count, 20);
}

#[test]
fn columns_have_their_names_and_types() {
    let shown =
        |name: &str| list(&fixture(name)).unwrap().iter().map(ArrayInfo::to_string).collect();
    let lists: Vec<String> = shown("list-none.parquet");
    assert_eq!(lists, ["logits: f32 (40, 5)"]);
    let lists: Vec<String> = shown("list-zstd.arrow");
    assert_eq!(lists, ["logits: f32 (40, 5)"]);
    let halves: Vec<String> = shown("half.parquet");
    assert_eq!(halves, ["logits: f16 (40, 5)"]);
    let large: Vec<String> = shown("large.arrow");
    assert_eq!(large, ["logits: f64 (40, 5)"]);
    let mut all = vec!["f32 (40, 5)".to_owned()];
    all.extend((0..5).map(|i| format!("class {i}: f32 (40,)")));
    for name in ["columns.parquet", "columns.arrow"] {
        let columns: Vec<String> = shown(name);
        assert_eq!(columns, all);
        // A single column is an array with one axis. All together are rows.
        let (info, values) = read(&fixture(name), Some("class 3"), 9);
        assert_eq!((info.dtype, info.shape), (Dtype::F32, vec![40]));
        assert!(values.iter().eq(numbers().iter().skip(3).step_by(5)));
        assert_eq!(read(&fixture(name), None, 9).0.name, None);
    }
    assert_eq!(read(&fixture("list-none.parquet"), Some("logits"), 9).1, numbers());
}

/// Files without an extension are recognised by their first bytes.
#[test]
fn tables_are_told_by_their_contents() {
    let folder = tempfile::tempdir().unwrap();
    for name in ["list-gzip.parquet", "list-lz4.arrow", "stream.arrows"] {
        let path = folder.path().join("table");
        fs::copy(fixture(name), &path).unwrap();
        assert_eq!(read(&path, None, 100).1, numbers(), "{name}");
    }
}

fn stream(batches: &[RecordBatch]) -> Vec<u8> {
    let mut writer = StreamWriter::try_new(Vec::new(), &batches[0].schema()).unwrap();
    for batch in batches {
        writer.write(batch).unwrap();
    }
    writer.into_inner().unwrap()
}

fn batch(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter(columns).unwrap()
}

/// More columns than are interleaved at a time, in batches of different lengths, some of them empty.
#[test]
fn many_columns_and_batches() {
    let value = |row: usize, column: usize| (row * 100 + column) as f32;
    let some = |rows: std::ops::Range<usize>| {
        let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows.clone().map(|i| i as i64)));
        let mut columns = vec![("id".to_owned(), ids)];
        for column in 0..37 {
            let numbers =
                Float32Array::from_iter_values(rows.clone().map(|row| value(row, column)));
            columns.push((format!("c{column}"), Arc::new(numbers) as ArrayRef));
        }
        RecordBatch::try_from_iter(columns).unwrap()
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.arrow");
    let batches = [some(0..3), some(3..3), some(3..1000), some(1000..1001)];
    fs::write(&path, stream(&batches)).unwrap();
    for block in [1, 36, 38, 5000, 100_000] {
        let (info, values) = read(&path, None, block);
        assert_eq!(info.shape, [1001, 37]);
        let expected = (0..1001 * 37).map(|i| f64::from(value(i / 37, i % 37)));
        assert!(values.iter().copied().eq(expected), "in blocks of {block}");
    }
}

/// Values outside of a slice, and those of other columns, are not read.
#[test]
fn lists_that_begin_in_the_middle_of_their_values() {
    let rows = (0..10).map(|row| Some((0..3).map(move |i| Some((row * 3 + i) as f32))));
    let lists = ListArray::from_iter_primitive::<Float32Type, _, _>(rows).slice(4, 5);
    // Keeps the values before the slice, as other writers do.
    let (field, offsets, values, _) = lists.into_parts();
    let lists = ListArray::new(field, offsets, values, None);
    let fixed = FixedSizeListArray::from_iter_primitive::<Float32Type, _, _>(
        (0..5).map(|row| Some([Some(row as f32), Some(0.5)])),
        2,
    );
    let names = StringArray::from(vec![Some("a"), None, Some("c"), None, Some("e")]);
    let columns: Vec<(&str, ArrayRef)> =
        vec![("name", Arc::new(names)), ("fixed", Arc::new(fixed)), ("lists", Arc::new(lists))];
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.arrows");
    fs::write(&path, stream(&[batch(columns)])).unwrap();
    let expected: Vec<f64> = (12..27).map(f64::from).collect();
    assert_eq!(read(&path, Some("lists"), 4).1, expected);
    let expected: Vec<f64> = (0..5).flat_map(|row| [f64::from(row), 0.5]).collect();
    assert_eq!(read(&path, Some("fixed"), 4).1, expected);
}

/// Texts in all encodings, with nulls: the lengths of delta encodings are followed before they are trusted.
#[test]
fn texts_of_every_encoding() {
    let word = |i: usize| (i % 5 != 3).then(|| format!("{}{}", "long ".repeat(i % 40), i / 7));
    for count in [0, 1, 2, 33, 129, 1000, 40_000] {
        let words: ArrayRef = Arc::new((0..count).map(word).collect::<StringArray>());
        let batch = batch(vec![("word", words)]);
        for encoding in
            [Encoding::PLAIN, Encoding::DELTA_LENGTH_BYTE_ARRAY, Encoding::DELTA_BYTE_ARRAY]
        {
            for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
                let properties = WriterProperties::builder()
                    .set_dictionary_enabled(false)
                    .set_encoding(encoding)
                    .set_writer_version(version)
                    .build();
                let mut writer =
                    ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties)).unwrap();
                writer.write(&batch).unwrap();
                let folder = tempfile::tempdir().unwrap();
                let path = folder.path().join("a.parquet");
                fs::write(&path, writer.into_inner().unwrap()).unwrap();
                let table = Table::open(&path).unwrap();
                let (mut batches, mut rows) = (table.batches(&[0]).unwrap(), 0);
                while let Some(found) = batches.next().unwrap() {
                    let expected = batch.column(0).slice(rows, found.num_rows());
                    assert_eq!(found.column(0), &expected, "{encoding}, {version:?}");
                    rows += found.num_rows();
                }
                assert_eq!(rows, count);
            }
        }
    }
}
