//! The same result in every output format, read by independent readers.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use common::{folder, json, last_floats, shafer};
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use safetensors::SafeTensors;
use zip::ZipArchive;

/// A row, a class and its probability.
type Entry = (usize, usize, f32);

/// Reads the whole file.
type Reader = fn(&Path) -> Vec<Entry>;

/// The entries of a CSR matrix.
fn entries(indptr: &[usize], indices: &[usize], values: &[f32]) -> Vec<Entry> {
    assert_eq!((indptr[0], indptr.last()), (0, Some(&indices.len())));
    assert_eq!(indices.len(), values.len());
    let rows = indptr.windows(2).enumerate();
    rows.flat_map(|(row, ends)| (ends[0]..ends[1]).map(move |at| (row, indices[at], values[at])))
        .collect()
}

fn dense(path: &Path) -> Vec<Entry> {
    let values = last_floats(path, 12).into_iter().enumerate();
    values.filter(|(_, value)| *value != 0.0).map(|(i, value)| (i / 4, i % 4, value)).collect()
}

fn floats(bytes: &[u8]) -> Vec<f32> {
    bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b)).collect()
}

/// Little-endian integers of `size` bytes.
fn integers(bytes: &[u8], size: usize) -> Vec<usize> {
    let number = |b: &[u8]| b.iter().rev().fold(0, |n, &byte| n << 8 | usize::from(byte));
    bytes.chunks_exact(size).map(number).collect()
}

fn npz(path: &Path) -> Vec<Entry> {
    let mut archive = ZipArchive::new(File::open(path).unwrap()).unwrap();
    let mut member = |name: &str, descr: &str| {
        let mut bytes = Vec::new();
        archive.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
        let start = 10 + usize::from(u16::from_le_bytes(bytes[8..10].try_into().unwrap()));
        let header = String::from_utf8(bytes[10..start].to_vec()).unwrap();
        assert!(header.contains(&format!("'descr': '{descr}'")), "{header}");
        bytes.split_off(start)
    };
    let values = floats(&member("data.npy", "<f4"));
    let indices = integers(&member("indices.npy", "<i4"), 4);
    entries(&integers(&member("indptr.npy", "<i4"), 4), &indices, &values)
}

fn tensors(path: &Path) -> Vec<Entry> {
    let bytes = std::fs::read(path).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let tensor = |name: &str, dtype| {
        let tensor = file.tensor(name).unwrap();
        assert_eq!(tensor.dtype(), dtype, "{name}");
        tensor.data().to_vec()
    };
    let values = floats(&tensor("values", safetensors::Dtype::F32));
    let indices = integers(&tensor("indices", safetensors::Dtype::I32), 4);
    entries(&integers(&tensor("indptr", safetensors::Dtype::I64), 8), &indices, &values)
}

fn table(path: &Path) -> Vec<Entry> {
    let reader = SerializedFileReader::new(File::open(path).unwrap()).unwrap();
    let rows = reader.get_row_iter(None).unwrap().enumerate().flat_map(|(number, row)| {
        let row = row.unwrap();
        let columns: Vec<&Field> = row.get_column_iter().map(|(_, field)| field).collect();
        let [Field::ListInternal(indices), Field::ListInternal(values)] = columns[..] else {
            panic!("{row:?}")
        };
        assert_eq!(indices.elements().len(), values.elements().len());
        let pairs = indices.elements().iter().zip(values.elements()).map(|pair| match pair {
            (Field::Int(class), Field::Float(value)) => (number, *class as usize, *value),
            other => panic!("{other:?}"),
        });
        pairs.collect::<Vec<_>>()
    });
    rows.collect()
}

fn text(path: &Path) -> Vec<Entry> {
    let text = std::fs::read_to_string(path).unwrap();
    let (names, lines) = text.split_once('\n').unwrap();
    assert_eq!(names, "row,class,probability");
    let entry = |line: &str| {
        let [row, class, value] = line.split(',').collect::<Vec<_>>()[..] else { panic!("{line}") };
        (row.parse().unwrap(), class.parse().unwrap(), value.parse().unwrap())
    };
    lines.lines().map(entry).collect()
}

#[test]
fn every_format_holds_the_same_rows() {
    let folder = folder();
    let e = 1.0 / (1.0 + (-2.0_f32).exp());
    let (quarter, third) = (0.25, 1.0 / 3.0);
    let expected = [
        [(0, 0, e), (0, 1, 1.0 - e)].to_vec(),
        (0..4).map(|class| (1, class, quarter)).collect(),
        (1..4).map(|class| (2, class, third)).collect(),
    ]
    .concat();
    let formats: [(&str, Reader); 5] = [
        ("dense.npy", dense),
        ("sparse.npz", npz),
        ("sparse.safetensors", tensors),
        ("sparse.parquet", table),
        ("sparse.csv", text),
    ];
    let mut first = None;
    for (file, read) in formats {
        let path = folder.path().join(file);
        assert!(shafer(folder.path(), &["sparsify", "logits.npy", "-o", file]).status.success());
        let found = read(&path);
        assert_eq!(found.len(), expected.len(), "{file}: {found:?}");
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!((found.0, found.1), (expected.0, expected.1), "{file}");
            assert!((found.2 - expected.2).abs() < 1e-6, "{file}: {found:?}, {expected:?}");
        }
        // Bit for bit.
        assert_eq!(*first.get_or_insert_with(|| found.clone()), found, "{file}");
    }
    // The tool reads its output.
    let again = json(folder.path(), &["sparsify", "dense.npy", "--method", "softmax", "--json"]);
    assert_eq!(again["rows"], 3);
    // Parquet stores the method in its metadata.
    let table = std::fs::read(folder.path().join("sparse.parquet")).unwrap();
    let has = |note: &[u8]| table.windows(note.len()).any(|part| part == note);
    assert!(has(b"shafer.method") && has(b"evidential"));
}
