//! Round trips through every format and type, in blocks of every size.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::path::Path;

use half::{bf16, f16};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::Field;
use shafer_data::{
    ArrayInfo, ArrayReader, Dtype, Location, NpyWriter, RowWriter, SparseRows, TableOptions,
    Values, create, list, open, open_with,
};

const INDPTR: [usize; 5] = [0, 2, 2, 3, 6];
const INDICES: [u32; 6] = [0, 3, 1, 0, 2, 3];
const KEPT: [f64; 6] = [0.25, 0.75, 1.0, 0.5, 0.125, 0.375];
const DENSE: [f64; 16] =
    [0.25, 0.0, 0.0, 0.75, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.5, 0.0, 0.125, 0.375];
const TYPES: [Dtype; 4] = [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64];

fn typed(values: &[f64], dtype: Dtype) -> Values {
    match dtype {
        Dtype::F16 => Values::F16(values.iter().map(|&v| f16::from_f64(v)).collect()),
        Dtype::Bf16 => Values::Bf16(values.iter().map(|&v| bf16::from_f64(v)).collect()),
        Dtype::F32 => Values::F32(values.iter().map(|&v| v as f32).collect()),
        Dtype::F64 => Values::F64(values.to_vec()),
    }
}

fn plain(values: &Values) -> Vec<f64> {
    match values {
        Values::F16(v) => v.iter().map(|v| v.to_f64()).collect(),
        Values::Bf16(v) => v.iter().map(|v| v.to_f64()).collect(),
        Values::F32(v) => v.iter().map(|&v| f64::from(v)).collect(),
        Values::F64(v) => v.clone(),
    }
}

/// All values of an array, read in blocks.
fn read(path: &Path, name: Option<&str>, block: usize) -> (ArrayInfo, Vec<f64>) {
    let location = Location { path: Some(path.to_owned()), name: name.map(str::to_owned) };
    read_from(open(&location).unwrap(), block)
}

/// The values of a CSV file. Its columns are no classes, so they must be selected.
fn read_triples(path: &Path, block: usize) -> (ArrayInfo, Vec<f64>) {
    let location = Location { path: Some(path.to_owned()), name: None };
    assert!(open(&location).unwrap_err().to_string().contains("has a column `row`"));
    let options = TableOptions { columns: vec!["*".to_owned()], ..TableOptions::default() };
    read_from(open_with(&location, &options).unwrap(), block)
}

fn read_from(mut reader: Box<dyn ArrayReader>, block: usize) -> (ArrayInfo, Vec<f64>) {
    let (mut all, mut values) = (Vec::new(), Values::default());
    loop {
        reader.read(block, &mut values).unwrap();
        assert!(values.len() <= block);
        assert_eq!(values.dtype(), reader.info().dtype);
        if values.is_empty() {
            return (reader.info().clone(), all);
        }
        all.extend(plain(&values));
    }
}

/// Writes the rows twice: sparse, in two blocks, and dense.
fn write_both(ending: &str, dtype: Dtype, check: impl Fn(&Path)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("rows.{ending}"));
    fs::write(&path, "what was there before").unwrap();
    let (kept, dense) = (typed(&KEPT, dtype), typed(&DENSE, dtype));

    let mut writer = create(&path, 4, dtype).unwrap();
    let first = typed(&KEPT[..2], dtype);
    writer.write(SparseRows::new(&INDPTR[..3], &INDICES[..2], first.view())).unwrap();
    let second = typed(&KEPT[2..], dtype);
    writer.write(SparseRows::new(&[0, 1, 4], &INDICES[2..], second.view())).unwrap();
    writer.finish().unwrap();
    let sparse_bytes = fs::read(&path).unwrap();
    check(&path);

    let mut writer = create(&path, 4, dtype).unwrap();
    writer.write(SparseRows::new(&INDPTR, &INDICES, kept.view())).unwrap();
    writer.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), sparse_bytes);

    let mut writer = create(&path, 4, dtype).unwrap();
    writer.write_dense(dense.view()).unwrap();
    writer.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), sparse_bytes);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing is left beside it");
}

#[test]
fn npy() {
    for dtype in TYPES {
        write_both("npy", dtype, |path| {
            for block in [1, 3, 16, 100] {
                let (info, values) = read(path, None, block);
                assert_eq!(info.shape, [4, 4]);
                assert_eq!(values, DENSE);
                let read_as = if dtype == Dtype::Bf16 { Dtype::F32 } else { dtype };
                assert_eq!(info.dtype, read_as);
            }
        });
    }
}

#[test]
fn npz() {
    for dtype in TYPES {
        write_both("npz", dtype, |path| {
            let (info, values) = read(path, Some("data"), 4);
            assert_eq!(info.shape, [6]);
            assert_eq!(info.dtype, if dtype == Dtype::F64 { Dtype::F64 } else { Dtype::F32 });
            assert_eq!(values, KEPT);
            let (_, again) = read(path, Some("data.npy"), 100);
            assert_eq!(again, KEPT);
        });
    }
}

#[test]
fn safetensors() {
    for dtype in TYPES {
        write_both("safetensors", dtype, |path| {
            let (info, values) = read(path, Some("values"), 4);
            assert_eq!((info.dtype, info.shape), (dtype, vec![6]));
            assert_eq!(values, KEPT);
            assert_eq!(list(path).unwrap().len(), 1);
        });
    }
}

/// The classes and the values of each row of a Parquet file, as its own crate reads them.
fn parquet_rows(path: &Path) -> Vec<(Vec<u32>, Vec<f64>)> {
    let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
    let number = |field: &Field| match field {
        Field::Int(n) => f64::from(*n),
        Field::Float16(x) => x.to_f64(),
        Field::Float(x) => f64::from(*x),
        Field::Double(x) => *x,
        other => panic!("{other:?} is not a number"),
    };
    let rows = reader.get_row_iter(None).unwrap().map(|row| {
        let row = row.unwrap();
        let lists: Vec<(&String, &Field)> = row.get_column_iter().collect();
        let [("indices", Field::ListInternal(indices)), ("values", Field::ListInternal(values))] =
            [(lists[0].0.as_str(), lists[0].1), (lists[1].0.as_str(), lists[1].1)]
        else {
            panic!("{row:?}")
        };
        let indices = indices.elements().iter().map(|i| number(i) as u32).collect();
        (indices, values.elements().iter().map(number).collect())
    });
    rows.collect()
}

#[test]
fn parquet() {
    let expected: Vec<(Vec<u32>, Vec<f64>)> = INDPTR
        .windows(2)
        .map(|ends| (INDICES[ends[0]..ends[1]].to_vec(), KEPT[ends[0]..ends[1]].to_vec()))
        .collect();
    for dtype in TYPES {
        write_both("parquet", dtype, |path| {
            assert_eq!(parquet_rows(path), expected);
            let reader = SerializedFileReader::new(fs::File::open(path).unwrap()).unwrap();
            let notes = reader.metadata().file_metadata().key_value_metadata().unwrap();
            assert_eq!(notes[0].key, "shafer.classes");
            assert_eq!(notes[0].value.as_deref(), Some("4"));
            // Rows with different numbers of classes are no logits.
            let location = Location { path: Some(path.to_owned()), name: None };
            let error = open(&location).unwrap().read(16, &mut Values::default()).unwrap_err();
            assert!(error.to_string().contains("row 1 has 0 values, the first has 2"), "{error}");
        });
    }
}

/// The file does not depend on the size of blocks, even with several row groups.
#[test]
fn groups_of_parquet() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.parquet");
    let rows = 1_100_000;
    let values: Vec<f32> = (0..rows * 2).map(|i| (i % 1000 + 1) as f32).collect();
    let mut files = Vec::new();
    for block in [2, 100_000, rows] {
        let mut writer = create(&path, 2, Dtype::F32).unwrap();
        for values in values.chunks(block * 2) {
            writer.write_dense(values.into()).unwrap();
        }
        writer.finish().unwrap();
        files.push(fs::read(&path).unwrap());
    }
    assert!(files[0] == files[1] && files[1] == files[2]);
    let reader = SerializedFileReader::new(fs::File::open(&path).unwrap()).unwrap();
    assert_eq!(reader.metadata().num_row_groups(), 3);
    // All rows keep both classes, and are read as rows of two.
    let (info, read) = read(&path, None, 999_999);
    assert_eq!(info.shape, [rows, 2]);
    assert!(read.iter().zip(&values).all(|(&a, &b)| a == f64::from(b)));
}

/// Every tensor is aligned to its element size, for any number of values.
#[test]
fn safetensors_are_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.safetensors");
    for dtype in TYPES {
        for n in 0..9 {
            let mut writer = create(&path, 9, dtype).unwrap();
            writer
                .write_dense(typed(&[vec![1.0; n], vec![0.0; 9 - n]].concat(), dtype).view())
                .unwrap();
            writer.finish().unwrap();
            let bytes = fs::read(&path).unwrap();
            let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
            assert_eq!((8 + length) % 8, 0);
            let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
            for (name, size) in [("values", dtype.size()), ("indices", 4), ("indptr", 8)] {
                let start = header[name]["data_offsets"][0].as_u64().unwrap() as usize;
                assert_eq!(start % size, 0, "{name} of {n} values of {dtype}");
            }
            assert_eq!(header["__metadata__"]["shape"], "[1, 9]");
        }
    }
}

#[test]
fn csv() {
    for dtype in TYPES {
        write_both("csv", dtype, |path| {
            let (info, values) = read_triples(path, 4);
            assert!(info.open_ended);
            assert_eq!(info.shape, [3]);
            let rows = [0.0, 0.0, 2.0, 3.0, 3.0, 3.0];
            let triples: Vec<f64> =
                (0..6).flat_map(|i| [rows[i], f64::from(INDICES[i]), KEPT[i]]).collect();
            assert_eq!(values, triples);
        });
    }
}

#[test]
fn csv_numbers_are_read_back_exactly() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    let values = [1.0 / 3.0, 1e-300, f64::MIN_POSITIVE / 4.0, 0.1 + 0.2, 1e-5];
    let mut writer = create(&path, 5, Dtype::F64).unwrap();
    writer.write_dense(values[..].into()).unwrap();
    writer.finish().unwrap();
    let (_, read) = read_triples(&path, 1000);
    assert!(read.iter().skip(2).step_by(3).eq(&values));
}

#[test]
fn csv_with_names_spaces_quotes_and_other_line_ends() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    for text in [
        "1,2.5\n-3,4e2\n",
        "a,b\r\n1,2.5\r\n-3,4e2",
        "\"a, b\",c\n 1 , 2.5\n\n\"-3\",400.0\n",
        "\u{feff}1,2.5\n-3,4e2\n",
    ] {
        fs::write(&path, text).unwrap();
        let (info, values) = read(&path, None, 3);
        assert_eq!(info.shape, [2], "{text:?}");
        assert_eq!(values, [1.0, 2.5, -3.0, 400.0], "{text:?}");
    }
    fs::write(&path, "nan,-inf\n").unwrap();
    let values = read(&path, None, 3).1;
    assert!(values[0].is_nan() && values[1] == f64::NEG_INFINITY);
}

/// The bytes of a `.npy` with elements counted from 0 in the order of the file.
fn npy_bytes(descr: &str, fortran: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    let text = format!("{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
    let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(data);
    bytes
}

#[test]
fn orders_and_types_of_npy() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let little: Vec<u8> = (0..6).flat_map(|v| (v as f32).to_le_bytes()).collect();
    let big: Vec<u8> = (0..6).flat_map(|v| f64::from(v).to_be_bytes()).collect();
    let brain: Vec<u8> = (0..6).flat_map(|v| bf16::from_f32(v as f32).to_le_bytes()).collect();
    let c = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let f = [0.0, 2.0, 4.0, 1.0, 3.0, 5.0];
    for (descr, data, name) in
        [("<f4", &little, None), (">f8", &big, None), ("<V2", &brain, Some("bfloat16"))]
    {
        for (fortran, expected) in [("False", c), ("True", f)] {
            fs::write(&path, npy_bytes(descr, fortran, "(2, 3)", data)).unwrap();
            for block in [1, 4, 100] {
                let (info, values) = read(&path, name, block);
                assert_eq!((info.shape, &values[..]), (vec![2, 3], &expected[..]));
            }
        }
    }
    // A scalar, an array of one axis, and one of none.
    fs::write(&path, npy_bytes("<f4", "True", "()", &little[4..8])).unwrap();
    assert_eq!(read(&path, None, 9).1, [1.0]);
    fs::write(&path, npy_bytes("<f4", "True", "(6,)", &little)).unwrap();
    assert_eq!(read(&path, None, 9).1, c);
    fs::write(&path, npy_bytes("<f4", "True", "(0, 18446744073709551615, 9)", &[])).unwrap();
    assert_eq!(read(&path, None, 9).1, [0.0; 0]);
}

#[test]
fn a_shape_of_more_axes() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npy");
    let make = || NpyWriter::create(&path, 4, Dtype::F64).unwrap();
    let mut writer = Box::new(make().shaped(&[2, 2, 4]).unwrap());
    writer.write_dense(DENSE[..].into()).unwrap();
    writer.finish().unwrap();
    assert_eq!(list(&path).unwrap()[0].shape, [2, 2, 4]);

    let mut writer = Box::new(make().shaped(&[3, 4]).unwrap());
    writer.write_dense(DENSE[..].into()).unwrap();
    let error = writer.finish().unwrap_err().to_string();
    assert!(error.ends_with("16 values were written for an array of shape (3, 4)"), "{error}");
    // The previous file is unchanged.
    assert_eq!(list(&path).unwrap()[0].shape, [2, 2, 4]);
}

#[test]
fn no_rows() {
    let folder = tempfile::tempdir().unwrap();
    let text = folder.path().join("a.csv");
    create(&text, 3, Dtype::F32).unwrap().finish().unwrap();
    assert_eq!(fs::read_to_string(text).unwrap(), "row,class,probability\n");
    for ending in ["npy", "npz", "safetensors", "parquet"] {
        let path = folder.path().join(format!("a.{ending}"));
        create(&path, 3, Dtype::F32).unwrap().finish().unwrap();
        let name = match ending {
            "npz" => Some("data"),
            "safetensors" => Some("values"),
            _ => None,
        };
        assert_eq!(read(&path, name, 10).1, [0.0; 0]);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_are_told_by_their_contents() {
    use std::process::{Command, Stdio};

    let folder = tempfile::tempdir().unwrap();
    for (ending, name, expected) in
        [("npy", None, &DENSE[..]), ("npz", Some("data"), &KEPT), ("safetensors", None, &KEPT)]
    {
        let path = folder.path().join(format!("a.{ending}"));
        let mut writer = create(&path, 4, Dtype::F32).unwrap();
        writer.write(SparseRows::new(&INDPTR, &INDICES, typed(&KEPT, Dtype::F32).view())).unwrap();
        writer.finish().unwrap();
        let mut child = Command::new("cat").arg(&path).stdout(Stdio::piped()).spawn().unwrap();
        let pipe = std::os::fd::AsRawFd::as_raw_fd(child.stdout.as_ref().unwrap());
        let (_, values) = read(Path::new(&format!("/proc/self/fd/{pipe}")), name, 5);
        assert_eq!(values, expected, "{ending}");
        child.wait().unwrap();
    }
}
