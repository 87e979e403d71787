//! Masks of every type, in every format and order, and errors for invalid ones.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bytes;

use std::path::Path;

use bytes::{Member, zip};
use shafer_data::{Location, MaskReader, open, open_mask};

fn npy(descr: &str, fortran: bool, shape: &str, elements: &[u8]) -> Vec<u8> {
    let order = if fortran { "True" } else { "False" };
    let header = format!("{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}\n");
    bytes::npy(header, elements)
}

/// Tensors of one axis.
fn safetensors(tensors: &[(&str, &str, &[u8])]) -> Vec<u8> {
    let (mut entries, mut data) = (Vec::new(), Vec::<u8>::new());
    for (name, dtype, elements) in tensors {
        let (start, end) = (data.len(), data.len() + elements.len());
        let n = if *dtype == "I64" { elements.len() / 8 } else { elements.len() };
        entries.push(format!(
            r#""{name}":{{"dtype":"{dtype}","shape":[{n}],"data_offsets":[{start},{end}]}}"#
        ));
        data.extend(*elements);
    }
    let mut bytes = bytes::safetensors(format!("{{{}}}", entries.join(",")), 0);
    bytes.extend(data);
    bytes
}

fn at(folder: &Path, name: &str, bytes: &[u8]) -> Location {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    Location { path: Some(path), name: None }
}

/// All values, in blocks of three.
fn all(mut mask: MaskReader, count: usize) -> Vec<bool> {
    let (mut all, mut block) = (Vec::new(), Vec::new());
    while all.len() < count {
        mask.read((count - all.len()).min(3), &mut block).unwrap();
        all.extend_from_slice(&block);
    }
    mask.finish().unwrap();
    all
}

const MASK: [bool; 6] = [true, false, true, true, false, false];
const BYTES: [u8; 6] = [1, 0, 1, 1, 0, 0];

#[test]
fn every_type_and_order() {
    let folder = tempfile::tempdir().unwrap();
    let check = |name: &str, bytes: &[u8]| {
        assert_eq!(all(open_mask(&at(folder.path(), name, bytes)).unwrap(), 6), MASK, "{name}");
    };
    for descr in ["|b1", "|u1", "|i1"] {
        check("c.npy", &npy(descr, false, "(2, 3)", &BYTES));
        // Column by column: (1, 1), (0, 0), (1, 0).
        check("f.npy", &npy(descr, true, "(2, 3)", &[1, 1, 0, 0, 1, 0]));
    }
    let floats: Vec<u8> = BYTES.iter().flat_map(|&x| f32::from(x).to_le_bytes()).collect();
    check("floats.npy", &npy("<f4", false, "(6,)", &floats));
    check("text.csv", b"1,0,1\n1,0,0.0\n");
    // Arrays of other types are not candidates.
    let mask = Member::deflated("mask.npy", &npy("|b1", false, "(6,)", &BYTES));
    let counts = Member::stored("counts.npy", &npy("<i2", false, "(6,)", &[0; 12]));
    check("m.npz", &zip(&[mask, counts]));
    for dtype in ["BOOL", "U8", "I8"] {
        let other = ("count", "I64", &[0; 8][..]);
        check("m.safetensors", &safetensors(&[("mask", dtype, &BYTES), other]));
    }
}

#[test]
fn fortran_order_of_three_axes() {
    let (a, b, c) = (40, 7, 11);
    let value = |i: usize, j: usize, k: usize| (i * 31 + j * 17 + k * 7).is_multiple_of(3);
    let mut fortran = vec![0; a * b * c];
    let mut expected = Vec::new();
    for (i, j, k) in (0..a).flat_map(|i| (0..b).flat_map(move |j| (0..c).map(move |k| (i, j, k)))) {
        fortran[i + a * (j + b * k)] = u8::from(value(i, j, k));
        expected.push(value(i, j, k));
    }
    let folder = tempfile::tempdir().unwrap();
    let bytes = npy("|b1", true, "(40, 7, 11)", &fortran);
    let mask = open_mask(&at(folder.path(), "mask.npy", &bytes)).unwrap();
    assert_eq!(mask.info().shape, [a, b, c]);
    assert_eq!(all(mask, a * b * c), expected);
}

#[test]
fn what_is_left_can_be_looked_at() {
    let folder = tempfile::tempdir().unwrap();
    let location = at(folder.path(), "mask.npy", &npy("|b1", false, "(6,)", &BYTES));
    let mut mask = open_mask(&location).unwrap();
    assert_eq!(mask.at_most(5).unwrap(), None);
    assert_eq!(mask.at_most(6).unwrap(), Some(&MASK[..]));
    let mut block = Vec::new();
    mask.read(4, &mut block).unwrap();
    assert_eq!(block, MASK[..4]);
    assert_eq!(mask.at_most(2).unwrap(), Some(&MASK[4..]));
    mask.read(2, &mut block).unwrap();
    assert_eq!(block, MASK[4..]);
    mask.finish().unwrap();
}

#[test]
fn what_is_no_mask() {
    let folder = tempfile::tempdir().unwrap();
    let refused = |name: &str, bytes: &[u8], expected: &str| {
        let location = at(folder.path(), name, bytes);
        let read = |mut mask: MaskReader| {
            mask.read(6, &mut Vec::new())?;
            mask.finish()
        };
        let error = open_mask(&location).and_then(read).unwrap_err().to_string();
        let file = folder.path().join(name).display().to_string();
        assert_eq!(error, format!("{file}{expected}"));
    };
    let only = "a mask has only 0 and 1";
    let two = [1, 0, 1, 1, 2, 0];
    refused(
        "a.npy",
        &npy("|u1", false, "(2, 3)", &two),
        &format!(": the value at (1, 1) is 2; {only}"),
    );
    // A bool that is neither 0 nor 1.
    refused(
        "a.npy",
        &npy("|b1", false, "(6,)", &two),
        &format!(": the value at (4,) is 2; {only}"),
    );
    let minus = [1, 0, 255, 1, 0, 0];
    refused(
        "a.npy",
        &npy("|i1", false, "(6,)", &minus),
        &format!(": the value at (2,) is -1; {only}"),
    );
    refused("a.csv", b"1,0,1\n0.5,1,1\n", &format!(": the value at (1, 0) is 0.5; {only}"));
    refused("a.csv", b"1,0,1\n1,NaN,1\n", &format!(": the value at (1, 1) is NaN; {only}"));
    refused(
        "a.npy",
        &npy("<i8", false, "(1,)", &[0; 8]),
        ": has elements of type `<i8`; convert it to bool, as in numpy.save(path, array.astype(bool))",
    );
    refused(
        "a.safetensors",
        &safetensors(&[("a", "I64", &[0; 8])]),
        ": has no array of type bool, u8, i8, f16, bf16, f32 or f64; it holds `a` I64 (1,)",
    );
    refused(
        "a.safetensors",
        &safetensors(&[("a", "BOOL", &BYTES), ("b", "U8", &BYTES)]),
        ": holds several arrays: `a` BOOL (6,), `b` U8 (6,); name one, as in `FILE:NAME`",
    );
    refused(
        "a.npy",
        &npy("|b1", false, "(5,)", &BYTES[..5]),
        ": has 5 values, but the array that it masks 6 or more",
    );
    refused(
        "a.npy",
        &npy("|b1", false, "(7,)", &[1; 7]),
        ": has more values than the 6 of the array that it masks",
    );
    refused(
        "a.npy",
        &npy("|b1", false, "(6,)", &BYTES[..5]),
        ": truncated: 1 byte missing at the end; copy or write the file again",
    );
}

#[test]
fn numbers_are_not_read_from_masks() {
    let folder = tempfile::tempdir().unwrap();
    let location = at(folder.path(), "mask.npy", &npy("|b1", false, "(6,)", &BYTES));
    let error = open(&location).unwrap_err().to_string();
    assert!(error.contains("has elements of type `|b1`; convert it to float32"), "{error}");
    let location = at(folder.path(), "mask.safetensors", &safetensors(&[("a", "BOOL", &BYTES)]));
    let error = open(&location).unwrap_err().to_string();
    assert!(
        error.contains("has no array of type f16, bf16, f32 or f64; it holds `a` BOOL"),
        "{error}"
    );
}
