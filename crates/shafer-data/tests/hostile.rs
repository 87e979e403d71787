//! Damaged and hostile files: each is an error of one line, without a panic, and without memory beyond the
//! requested block.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bytes;
mod refused;

use std::fs;

use bytes::{Member, npy, safetensors, zip};
use refused::{damage_everywhere, message, read_all, refused};
use shafer_data::{Dtype, SparseRows, ValuesRef, create, list};

fn npy_of(descr: &str, shape: &str, data: &[u8]) -> Vec<u8> {
    npy(format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n"), data)
}

#[test]
fn npy_that_is_none() {
    refused("npy", b"", None, "FILE: is empty; write the file again");
    refused(
        "npy",
        b"PK\x03\x04 this is a zip archive",
        None,
        r#"FILE: begins with "PK\x03\x04 t", not with "\x93NUMPY"; the file is damaged"#,
    );
    refused("npy", b"\x93NUM", None, "FILE: ends within the NumPy header; copy");
    refused("npy", b"\x93NUMPY\x01\x00\x76", None, "FILE: ends within the NumPy header");
    refused("npy", b"\x93NUMPY\x09\x00\x76\x00", None, "FILE: has version 9 of the NumPy format");
    refused(
        "npy",
        b"\x93NUMPY\x02\x00\xff\xff\xff\xff{",
        None,
        "FILE: claims a header of 4294967295 bytes, more than 1048576; the file is damaged",
    );
    refused(
        "npy",
        &npy_of("<f4", "(2, 2)", &[0; 16])[..40],
        None,
        "FILE: ends within the NumPy header; copy or write the file again",
    );
}

#[test]
fn npy_with_another_header() {
    let cases = [
        ("[1, 2]", "FILE: the NumPy header has `[1, 2]` instead of `{`; the file is damaged"),
        ("{}", "FILE: the NumPy header has no key `descr`"),
        ("{'descr': '<f4', 'shape': (1,)}", "FILE: the NumPy header has no key `fortran_order`"),
        ("{'descr': '<f4', 'fortran_order': False}", "FILE: the NumPy header has no key `shape`"),
        ("{'descr': '<f4", "FILE: the NumPy header has a text without an end"),
        ("{'descr': [('a', ", "FILE: the NumPy header has a list without an end"),
        ("{'descr': '<f4', 'descr': '<f8'}", "FILE: the NumPy header has the key `descr` twice"),
        ("{'fortran_order': Maybe}", "FILE: the NumPy header has `Maybe}` instead of True or False"),
        ("{'shape': (-1, 2)}", "FILE: the NumPy header has `-1, 2)}` instead of the length of an axis"),
        (
            "{'shape': (99999999999999999999,)}",
            "FILE: the NumPy header has `99999999999999999999,)}` instead of the length of an axis",
        ),
        ("{'owner': 'me'}", "FILE: the NumPy header has an unknown key `owner`"),
        ("{'\u{1b}[2J\n': 1}", r"FILE: the NumPy header has an unknown key `\u{1b}[2J\n`"),
        (
            &format!("{{'shape': ({})}}", "1, ".repeat(65)),
            "FILE: the NumPy header has a shape of more than 64 axes",
        ),
        (
            "{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} + 1",
            "FILE: the NumPy header has text after its end: `+ 1`",
        ),
    ];
    for (header, expected) in cases {
        refused("npy", &npy(header, &[0; 4]), None, expected);
    }
    let long = format!("{{'{}': 1}}", "k".repeat(60_000));
    refused("npy", &npy(&long, &[]), None, "FILE: the NumPy header has an unknown key `kkkkkkkk");
}

#[test]
fn npy_of_other_types() {
    for descr in ["<i4", "|b1", "<c8", "|O", "<U3", "<f16", "", "<", "<V3", "|S1"] {
        let expected = format!("FILE: has elements of type `{descr}`; convert it to float32");
        refused("npy", &npy_of(descr, "(1,)", &[0; 16]), None, &expected);
    }
    refused(
        "npy",
        &npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", &[0; 4]),
        None,
        "FILE: has elements of type `[('a', '<f4')]`; convert it to float32",
    );
    refused(
        "npy",
        &npy_of("<V2", "(1,)", &[0; 2]),
        None,
        "FILE: has elements of two bytes without a type, as NumPy stores bfloat16; if that is \
         what they are, add `:bfloat16` to the name",
    );
}

#[test]
fn npy_of_another_length() {
    let bytes = npy_of("<f4", "(3, 2)", &[0; 24]);
    let n = bytes.len();
    refused("npy", &bytes[..n - 1], None, "FILE: truncated: 1 byte missing at the end; copy");
    refused("npy", &bytes[..n - 24], None, "FILE: truncated: 24 bytes missing at the end; copy");
    refused(
        "npy",
        &[&bytes[..], &[0; 5]].concat(),
        None,
        "FILE: 5 bytes left over after the last element of shape (3, 2); write the file again",
    );
    refused(
        "npy",
        &npy_of("<f4", "(1000000, 1000000)", &[0; 24]),
        None,
        "FILE: truncated: 3999999999976 bytes missing at the end",
    );
    for shape in ["(4294967296, 4294967296)", "(18446744073709551615,)", "(4611686018427387904,)"] {
        let expected = format!("FILE: no file can hold the shape {shape} of f32; the header");
        refused("npy", &npy_of("<f4", shape, &[]), None, &expected);
    }
    refused(
        "npy",
        &npy("{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2)}", &[0; 23]),
        None,
        "FILE: truncated: 1 byte missing at the end",
    );
    refused(
        "npy",
        &bytes,
        Some("logits"),
        "FILE: holds one array without a name; leave `:logits` out",
    );
}

#[test]
fn the_archives_of_these_tests_are_right() {
    let array = npy_of("<f4", "(2, 2)", &[0; 16]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.npz");
    let members = [Member::stored("a.npy", &array), Member::deflated("b.npy", &array)];
    fs::write(&path, zip(&members)).unwrap();
    assert_eq!(read_all(&path, Some("a")).unwrap(), 4);
    assert_eq!(read_all(&path, Some("b.npy")).unwrap(), 4);
    // The ending is a part of the name if it is there twice.
    fs::write(&path, zip(&[Member::stored("a.npy.npy", &array)])).unwrap();
    assert_eq!(list(&path).unwrap()[0].name.as_deref(), Some("a.npy"));
    for name in [None, Some("a.npy"), Some("a.npy.npy")] {
        assert_eq!(read_all(&path, name).unwrap(), 4);
    }
}

#[test]
fn npz_and_its_members() {
    let array = npy_of("<f4", "(2, 2)", &[0; 16]);
    let whole = npy_of("<i8", "(1,)", &[0; 8]);
    let good = zip(&[Member::stored("a.npy", &array)]);
    refused("npz", b"", None, "FILE: is empty");
    refused("npz", &array, None, "FILE: the directory of the archive is invalid (");
    refused("npz", &good[..good.len() - 30], None, "FILE: the directory of the archive is invalid");
    refused("npz", &good[40..], None, "FILE: the directory of the archive is invalid (");
    refused("npz", &zip(&[]), None, "FILE: holds no arrays; name another file");
    refused("npz", &good, Some("b"), "FILE: has no array `b`; it holds `a` f32 (2, 2)");
    refused(
        "npz",
        &zip(&[
            Member::stored("a.npy", &array),
            Member::deflated("b.npy", &array),
            Member::stored("c.npy", &whole),
            Member::stored("notes.txt", b"hello"),
        ]),
        None,
        "FILE: holds several arrays: `a` f32 (2, 2), `b` f32 (2, 2), `c` <i8 (1,), `notes.txt` \
         (no array) (); name one, as in `FILE:NAME`",
    );
    refused(
        "npz",
        &zip(&[Member::stored("c.npy", &whole)]),
        None,
        "FILE: has no array of type f16, bf16, f32 or f64; it holds `c` <i8 (1,)",
    );
    refused(
        "npz",
        &zip(&[Member::stored("c.npy", &whole)]),
        Some("c"),
        "FILE:c: has elements of type `<i8`; convert it to float32",
    );
    refused(
        "npz",
        &zip(&[Member::stored("notes.txt", b"hello world")]),
        Some("notes.txt"),
        r#"FILE:notes.txt: begins with "hello ", not with"#,
    );
    let sparse = ["data.npy", "indices.npy", "indptr.npy", "format.npy"];
    refused(
        "npz",
        &zip(&sparse.map(|name| Member::stored(name, &array))),
        None,
        "FILE: is a sparse matrix of SciPy; logits are dense",
    );
    let mut many: Vec<Member<'_>> = Vec::new();
    let names: Vec<String> = (0..500).map(|i| format!("{i}.npy")).collect();
    many.extend(names.iter().map(|name| Member::stored(name, &array)));
    let found = message("npz", &zip(&many), None);
    assert!(found.ends_with("and 480 more; name one, as in `FILE:NAME`"), "{found}");
}

#[test]
fn npz_that_lies() {
    let array = npy_of("<f4", "(2, 2)", &[0; 16]);
    let wrong = Member { crc: 1, ..Member::deflated("a.npy", &array) };
    refused("npz", &zip(&[wrong]), None, "FILE:a: cannot read: the checksum of the archive does");
    let wrong = Member { packed: vec![0xff; 40], ..Member::deflated("a.npy", &array) };
    refused("npz", &zip(&[wrong]), None, "FILE:a: cannot read: corrupt deflate stream");
    // An array that is not read sequentially.
    let fortran = npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 2)}", &[0; 16]);
    let wrong = Member { crc: 1, ..Member::stored("a.npy", &fortran) };
    refused("npz", &zip(&[wrong]), None, "FILE:a: cannot read: the checksum of the archive does");
    let encrypted = Member { flags: 1, ..Member::stored("a.npy", &array) };
    refused("npz", &zip(&[encrypted]), Some("a"), "FILE:a: is encrypted; write it without");
    let other = Member { method: 14, ..Member::stored("a.npy", &array) };
    refused("npz", &zip(&[other]), Some("a"), "FILE:a: uses an unsupported compression method");

    // A terabyte claimed by the header, and one claimed by the directory.
    let tera = npy_of("<f4", "(268435456, 1024)", &[0; 64]);
    let missing = "FILE:a: truncated: 1099511627712 bytes missing at the end";
    refused("npz", &zip(&[Member::stored("a.npy", &tera)]), None, missing);
    let size = (1 << 40) + tera.len() as u64 - 64;
    let lie = Member { size, ..Member::deflated("a.npy", &tera) };
    refused("npz", &zip(&[lie]), None, missing);
    let lie = Member { size, ..Member::deflated("a.npy", &array) };
    let left = size - array.len() as u64;
    let expected = format!("FILE:a: {left} bytes left over after the last element of shape (2, 2)");
    refused("npz", &zip(&[lie]), None, &expected);

    // A hundred megabytes of zeros in some hundred kilobytes, behind an array of four numbers.
    let mut bomb = array.clone();
    bomb.resize(100 << 20, 0);
    let packed = Member::deflated("a.npy", &bomb);
    assert!(packed.packed.len() < 1 << 20);
    let honest = zip(&[Member { size: 100 << 20, ..packed }]);
    let left = (100 << 20) - array.len();
    refused(
        "npz",
        &honest,
        None,
        &format!("FILE:a: {left} bytes left over after the last element"),
    );
    // With the expected length, no more than that is decompressed.
    let packed = Member::deflated("a.npy", &bomb);
    let lie = zip(&[Member { size: array.len() as u64, ..packed }]);
    refused("npz", &lie, None, "FILE:a: cannot read: the checksum of the archive does not match");
}

fn tensor(name: &str, dtype: &str, shape: &str, start: u64, end: u64) -> String {
    format!(r#""{name}":{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{start},{end}]}}"#)
}

#[test]
fn safetensors_headers() {
    let kind = "safetensors";
    refused(kind, b"\x01\0", None, "FILE: has 2 bytes, fewer than the 8 that a file of");
    refused(
        kind,
        &[&(1_u64 << 63).to_le_bytes()[..], b"{}"].concat(),
        None,
        "FILE: claims a header of 9223372036854775808 bytes, more than the 100000000",
    );
    refused(
        kind,
        &[&99_999_999_u64.to_le_bytes()[..], b"{}"].concat(),
        None,
        "FILE: truncated: 99999997 bytes missing at the end",
    );
    for text in ["", "[]", "{", "{\"a\":1}", "\u{0}", "{\"a\":{\"dtype\":\"F32\"}}"] {
        refused(kind, &safetensors(text, 0), None, "FILE: the header is invalid (");
    }
    let deep = "[".repeat(100_000);
    refused(kind, &safetensors(&deep, 0), None, "FILE: the header is invalid (");
    let deep = format!("{{\"__metadata__\":{}", "[".repeat(100_000));
    refused(kind, &safetensors(&deep, 0), None, "FILE: the header is invalid (");
    refused(kind, &safetensors("{}", 0), None, "FILE: holds no arrays");
    let negative = r#"{"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}}"#;
    refused(kind, &safetensors(negative, 4), None, "FILE: the header is invalid (");
    // Quotes of the header are short and have no line breaks.
    refused(
        kind,
        &safetensors(r#"{"a":{"dtype":"F32","shape":"a\nb"}}"#, 0),
        None,
        r#"FILE: the header is invalid (invalid type: string "a\\nb", expected a sequence"#,
    );
    let long = format!(r#"{{"a":{{"dtype":"F32","shape":"{}"}}}}"#, "k".repeat(60_000));
    refused(kind, &safetensors(&long, 0), None, "FILE: the header is invalid (inv");
}

#[test]
fn safetensors_tensors() {
    let check = |tensors: &[String], data: usize, name: Option<&str>, expected: &str| {
        let header = format!("{{{}}}", tensors.join(","));
        refused("safetensors", &safetensors(&header, data), name, expected);
    };
    let a = || tensor("a", "F32", "[2]", 0, 8);
    check(&[a()], 7, None, "FILE: truncated: 1 byte missing at the end");
    check(&[a()], 9, None, "FILE: 1 byte left over after the last tensor; the file is damaged");
    check(
        &[a(), tensor("b", "F32", "[2]", 4, 12)],
        12,
        None,
        "FILE: the tensor `b` begins at 4, inside another tensor that ends at 8; the file is damaged",
    );
    check(
        &[a(), tensor("b", "F32", "[1]", 12, 16)],
        16,
        None,
        "FILE: the tensor `b` begins at 12, after a gap from 8",
    );
    check(
        &[tensor("a", "F32", "[2]", 8, 0)],
        8,
        None,
        "FILE: the tensor `a` ends at 0, before it begins at 8",
    );
    check(
        &[tensor("a", "F32", "[3]", 0, 8)],
        8,
        None,
        "FILE: the tensor `a` of f32 (3,) has 8 bytes",
    );
    check(
        &[tensor("a", "F32", "[4294967296, 4294967296]", 0, 8)],
        8,
        None,
        "FILE: the tensor `a` of f32 (4294967296, 4294967296) has 8 bytes; the file is damaged",
    );
    check(
        &[tensor("a", "F32", "[1]", u64::MAX - 3, u64::MAX)],
        4,
        None,
        "FILE: the tensor `a` of f32 (1,) has 3 bytes",
    );
    check(
        &[tensor("a", "I8", "[1]", 0, u64::MAX)],
        4,
        None,
        "FILE: the tensor `a` of I8 (1,) has 18446744073709551615 bytes",
    );
    check(&[a(), a()], 8, None, "FILE: the header is invalid (the name `a` occurs twice");
    check(
        &[tensor("a", "I64", "[1]", 0, 8)],
        8,
        None,
        "FILE: has no array of type f16, bf16, f32 or f64; it holds `a` I64 (1,)",
    );
    check(
        &[tensor("a", "I64", "[1]", 0, 8)],
        8,
        Some("a"),
        "FILE:a: has elements of type `I64`, not of f16, bf16, f32 or f64; convert it",
    );
    check(
        &[tensor("a", "F31", "[1]", 0, u64::MAX)],
        4,
        None,
        "FILE: truncated: 18446744073709551611 bytes",
    );
    check(&[a()], 8, Some("b"), "FILE: has no array `b`; it holds `a` f32 (2,)");
    check(
        &[a(), tensor("b", "BF16", "[1, 2]", 8, 12)],
        12,
        None,
        "FILE: holds several arrays: `a` f32 (2,), `b` bf16 (1, 2); name one, as in `FILE:NAME`",
    );
}

#[test]
fn csv() {
    refused("csv", b"", None, "FILE: is empty");
    refused("csv", b"\n\n\n", None, "FILE: holds no values; write one row of numbers a line");
    let expected = "FILE: line 2 has 1 value, the first has 2 (separated by commas); write one row";
    refused("csv", b"1,2\n3\n", None, expected);
    refused("csv", b"a,b\n\n1,2\n1,2,3\n", None, "FILE: line 4 has 3 values, the first has 2");
    refused("csv", b"1,2\n3,x\n", None, "FILE: line 2, column 2: `x` is not a number (sep");
    refused("csv", b"1,2\n3,\n", None, "FILE: line 2, column 2: `` is not a number");
    refused("csv", b"id,2\n3,4\n", None, "FILE: line 1, column 1: `id` is not a number");
    refused("csv", b"1\n\xff\xfe\n", None, "FILE: line 2, column 1: `\u{fffd}\u{fffd}` is not");
    refused("csv", b"1\n\"2\n3\n", None, "FILE: cannot read: line 2 has a quote without an end");
    refused("csv", b"1,2\n", Some("a"), "FILE: holds one array without a name; leave `:a` out");
    let expected = "FILE: cannot read: a row is longer than 67108864 bytes; is this text?";
    refused("csv", &vec![b'1'; 65 << 20], None, expected);
    // The offset of a field takes more memory than its comma.
    refused("csv", &vec![b','; 5 << 20], None, "FILE: cannot read: a row has more than 4194304");
}

#[test]
fn paths() {
    refused("log", b"1,2\n", None, "FILE: has an unknown format; file names end in .npy");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path();
    let text =
        |error: shafer_data::Error| error.to_string().replace(path.to_str().unwrap(), "FOLDER");
    let error = text(read_all(path, None).unwrap_err());
    assert_eq!(error, "FOLDER: is a folder; name a file in it");
    let error = text(list(path).unwrap_err());
    assert_eq!(error, "FOLDER: is a folder; name a file in it");
    let error = text(read_all(&path.join("absent.npy"), None).unwrap_err());
    assert!(error.starts_with("FOLDER/absent.npy: cannot open: "), "{error}");

    fs::create_dir(path.join("a.npy")).unwrap();
    let error = text(create(&path.join("a.npy"), 3, Dtype::F32).unwrap_err());
    assert_eq!(error, "FOLDER/a.npy: is a folder; name a file in it");
    let error = text(create(&path.join("absent/a.npy"), 3, Dtype::F32).unwrap_err());
    assert!(error.starts_with("FOLDER/absent/a.npy: cannot create a file in its folder: "));
    let error = text(create(&path.join("a.txt"), 3, Dtype::F32).unwrap_err());
    assert!(error.starts_with("FOLDER/a.txt: cannot be written; end its name in .npy"), "{error}");
    let error = text(create(&path.join("b.npy"), 0, Dtype::F32).unwrap_err());
    assert!(error.starts_with("FOLDER/b.npy: cannot hold rows of 0 classes; 1 to"), "{error}");
}

#[test]
fn rows_that_do_not_fit() {
    let folder = tempfile::tempdir().unwrap();
    for ending in ["npy", "npz", "safetensors", "parquet", "csv"] {
        let path = folder.path().join(format!("a.{ending}"));
        let mut writer = create(&path, 2, Dtype::F32).unwrap();
        let mut refuse = |indptr: &[usize], indices: &[u32], values: ValuesRef<'_>, part: &str| {
            let error = writer.write(SparseRows::new(indptr, indices, values)).unwrap_err();
            assert!(error.to_string().contains(part), "{error}");
        };
        let (one, two) = (ValuesRef::F32(&[1.0]), ValuesRef::F32(&[1.0, 1.0]));
        let parts = "the rows to be written are inconsistent";
        refuse(&[], &[], ValuesRef::F32(&[]), parts);
        refuse(&[1, 1], &[0], one, parts);
        refuse(&[0, 2], &[0], one, parts);
        refuse(&[0, 1], &[0], two, parts);
        refuse(&[0, 2, 1, 2], &[0, 1], two, parts);
        refuse(&[0, 1], &[2], one, "a row to be written has class 2 of 2");
        refuse(&[0, 1], &[0], ValuesRef::F64(&[1.0]), "has values of type f32 and cannot take");
        let error = writer.write_dense(ValuesRef::F32(&[1.0; 3])).unwrap_err().to_string();
        assert!(error.contains("3 values are not a whole number of rows of 2 classes"), "{error}");
        drop(writer);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing is left behind");
}

#[test]
fn damage() {
    let array = npy_of("<f4", "(2, 2)", &[7; 16]);
    let archive = [Member::stored("a.npy", &array), Member::deflated("b.npy", &array)];
    damage_everywhere("npy", &array, None);
    damage_everywhere("npz", &zip(&archive), Some("b"));
    let tensors = format!("{{{}}}", tensor("a", "F32", "[2, 2]", 0, 16));
    damage_everywhere("safetensors", &safetensors(&tensors, 16), None);
    damage_everywhere("csv", b"a,b\n1,2\n3,4\n", None);
    damage_everywhere("txt", b"# a b\n1 \"2\"\n 3\t4 \n", None);
}
