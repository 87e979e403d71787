//! Labels of every integer type, and errors for arrays that are no labels.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bytes;

use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, BooleanArray, Int8Array, Int32Array, Int64Array, RecordBatch, UInt16Array,
    UInt64Array,
};
use arrow_ipc::writer::FileWriter;
use bytes::{Member, zip};
use shafer_data::{Location, Values, open, open_labels, open_mask};

fn npy(descr: &str, count: usize, elements: &[u8]) -> Vec<u8> {
    let header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({count},), }}\n");
    bytes::npy(header, elements)
}

fn at(folder: &Path, name: &str, bytes: &[u8]) -> Location {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    Location { path: Some(path), name: None }
}

/// All values, in blocks of two.
fn all(location: &Location) -> Vec<f64> {
    let mut reader = open_labels(location).unwrap();
    let (mut all, mut block) = (Vec::new(), Values::default());
    loop {
        reader.read(2, &mut block).unwrap();
        match &block {
            values if values.is_empty() => return all,
            Values::F32(values) => all.extend(values.iter().map(|&x| f64::from(x))),
            Values::F64(values) => all.extend(values),
            other => panic!("{:?}", other.dtype()),
        }
    }
}

macro_rules! bytes_of {
    ($type:ty, $order:ident) => {
        [3 as $type, 0, <$type>::MIN, 100, 7].iter().flat_map(|x| x.$order()).collect::<Vec<u8>>()
    };
}

#[test]
fn every_integer_type_and_byte_order() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("|u1", bytes_of!(u8, to_le_bytes), 0.0),
        ("|i1", bytes_of!(i8, to_le_bytes), f64::from(i8::MIN)),
        ("<u2", bytes_of!(u16, to_le_bytes), 0.0),
        (">u2", bytes_of!(u16, to_be_bytes), 0.0),
        ("<i2", bytes_of!(i16, to_le_bytes), f64::from(i16::MIN)),
        ("<u4", bytes_of!(u32, to_le_bytes), 0.0),
        ("<i4", bytes_of!(i32, to_le_bytes), f64::from(i32::MIN)),
        (">i4", bytes_of!(i32, to_be_bytes), f64::from(i32::MIN)),
        ("<u8", bytes_of!(u64, to_le_bytes), 0.0),
        ("<i8", bytes_of!(i64, to_le_bytes), i64::MIN as f64),
        (">i8", bytes_of!(i64, to_be_bytes), i64::MIN as f64),
    ];
    for (descr, elements, least) in cases {
        let array = npy(descr, 5, &elements);
        let expected = [3.0, 0.0, least, 100.0, 7.0];
        assert_eq!(all(&at(folder.path(), "y.npy", &array)), expected, "{descr}");
        // In an archive, beside what is no label.
        let archive = zip(&[
            Member::deflated("y.npy", &array),
            Member::stored("names.npy", &npy("<U3", 1, &[0; 12])),
        ]);
        assert_eq!(all(&at(folder.path(), "y.npz", &archive)), expected, "{descr}");
    }
    let elements = bytes_of!(i64, to_le_bytes);
    let header = r#"{"y":{"dtype":"I64","shape":[5],"data_offsets":[0,40]}}"#;
    let mut tensors = bytes::safetensors(header, 0);
    tensors.extend(&elements);
    let expected = [3.0, 0.0, i64::MIN as f64, 100.0, 7.0];
    assert_eq!(all(&at(folder.path(), "y.safetensors", &tensors)), expected);
    assert_eq!(all(&at(folder.path(), "y.csv", b"label\n3\n0\n")), [3.0, 0.0]);
    let floats: Vec<u8> = [2.0_f64, 1.0].iter().flat_map(|x| x.to_le_bytes()).collect();
    assert_eq!(all(&at(folder.path(), "y.npy", &npy("<f8", 2, &floats))), [2.0, 1.0]);
}

#[test]
fn integers_of_tables() {
    let folder = tempfile::tempdir().unwrap();
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("a", Arc::new(Int8Array::from(vec![3, -1]))),
        ("b", Arc::new(UInt16Array::from(vec![3, 60_000]))),
        ("c", Arc::new(Int32Array::from(vec![3, -70_000]))),
        ("d", Arc::new(UInt64Array::from(vec![3, 1 << 50]))),
        ("e", Arc::new(Int64Array::from(vec![Some(3), None]))),
        ("f", Arc::new(BooleanArray::from(vec![true, false]))),
    ];
    let batch = RecordBatch::try_from_iter_with_nullable(
        columns.into_iter().map(|(name, column)| (name, column, true)),
    );
    let batch = batch.unwrap();
    let mut writer = FileWriter::try_new(Vec::new(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    let Location { path, .. } = at(folder.path(), "y.arrow", &writer.into_inner().unwrap());
    let named = |name: &str| Location { path: path.clone(), name: Some(name.to_owned()) };
    for (name, second) in [("a", -1.0), ("b", 60_000.0), ("c", -70_000.0), ("d", 2_f64.powi(50))] {
        assert_eq!(all(&named(name)), [3.0, second], "{name}");
        assert!(open(&named(name)).is_err(), "{name}");
    }
    let mut reader = open_labels(&named("e")).unwrap();
    let error = reader.read(2, &mut Values::default()).unwrap_err().to_string();
    assert!(error.contains("y.arrow:e: row 1 is null"), "{error}");
    let error = open_labels(&named("f")).unwrap_err().to_string();
    assert!(error.contains("is a column of boolean"), "{error}");
}

#[test]
fn integers_are_labels_only() {
    let folder = tempfile::tempdir().unwrap();
    let location = at(folder.path(), "y.npy", &npy("<i8", 5, &bytes_of!(i64, to_le_bytes)));
    let error = open(&location).unwrap_err().to_string();
    assert!(error.contains("has elements of type `<i8`"), "{error}");
    assert!(open_mask(&location).is_err());
    let location = at(folder.path(), "y.npy", &npy("<U3", 1, &[0; 12]));
    let error = open_labels(&location).unwrap_err().to_string();
    assert!(error.contains("type `<U3`") && error.contains("astype('i8')"), "{error}");
}
