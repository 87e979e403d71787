//! Safetensors: a header in JSON, and bytes.

use std::fs;

use shafer_data::ModelFile;

use super::bytes::safetensors;
use super::check;

fn entry(dtype: &str, shape: &str, begin: u64, end: u64) -> String {
    format!(r#"{{"dtype":"{dtype}","shape":{shape},"data_offsets":[{begin},{end}]}}"#)
}

#[test]
#[allow(clippy::too_many_lines, reason = "a table of cases")]
fn hostile_safetensors() {
    let one = |dtype: &str, shape: &str, begin, end, data| {
        safetensors(format!(r#"{{"head.weight":{}}}"#, entry(dtype, shape, begin, end)), data)
    };
    let of_length = |n: u64| [&n.to_le_bytes()[..], b"{}"].concat();
    let matrix = entry("F32", "[5,8]", 0, 160);
    check(vec![
        (
            "safetensors",
            "a header of 2^63 bytes",
            of_length(1 << 63),
            "claims a header of 9223372036854775808 bytes, more than the 100000000 that the format \
             allows; the file is damaged or not a safetensors file; write it again",
        ),
        (
            "safetensors",
            "a header of 2^64 - 1 bytes",
            of_length(u64::MAX),
            "claims a header of 18446744073709551615 bytes",
        ),
        (
            "safetensors",
            "a header past the end",
            of_length(99_999_999),
            "truncated: 99999997 bytes missing at the end",
        ),
        (
            "safetensors",
            "three bytes",
            vec![1, 2, 3],
            "has 3 bytes, fewer than the 8 that a file of",
        ),
        ("safetensors", "no JSON", safetensors("hello", 0), "the header is invalid ("),
        ("safetensors", "a list", safetensors("[]", 0), "the header is invalid (invalid type"),
        (
            "safetensors",
            "deep metadata",
            safetensors(format!(r#"{{"__metadata__":{}"#, "[".repeat(100_000)), 0),
            "the header is invalid (EOF while parsing a list at line 1",
        ),
        ("safetensors", "no tensors", safetensors("{}", 0), "no head found: "),
        (
            "safetensors",
            "one name twice",
            safetensors(format!(r#"{{"a":{matrix},"a":{matrix}}}"#), 160),
            "the header is invalid (the name `a` occurs twice",
        ),
        (
            "safetensors",
            "overlapping tensors",
            safetensors(format!(r#"{{"a":{matrix},"b":{}}}"#, entry("F32", "[40]", 156, 316)), 316),
            "the tensor `b` begins at 156, inside another tensor that ends at 160; the file is damaged",
        ),
        (
            "safetensors",
            "a hole",
            safetensors(format!(r#"{{"a":{matrix},"b":{}}}"#, entry("F32", "[1]", 164, 168)), 168),
            "the tensor `b` begins at 164, after a gap from 160; the file is damaged",
        ),
        (
            "safetensors",
            "a byte too many",
            one("F32", "[5,8]", 0, 160, 161),
            "1 byte left over after the last tensor; the file is damaged",
        ),
        (
            "safetensors",
            "data past the end",
            one("F32", "[5,8]", 0, 160, 159),
            "truncated: 1 byte missing at the end",
        ),
        (
            "safetensors",
            "an end before its beginning",
            one("F32", "[5,8]", 160, 0, 160),
            "the tensor `head.weight` ends at 0, before it begins at 160",
        ),
        (
            "safetensors",
            "a huge shape",
            one("F32", "[4611686018427387904,8]", 0, 160, 160),
            "the tensor `head.weight` of f32 (4611686018427387904, 8) has 160 bytes",
        ),
        (
            "safetensors",
            "fewer bytes than elements",
            one("F64", "[5,8]", 0, 160, 160),
            "the tensor `head.weight` of f64 (5, 8) has 160 bytes",
        ),
        (
            "safetensors",
            "more bytes than whole numbers",
            one("I16", "[5,8]", 0, 160, 160),
            "the tensor `head.weight` of I16 (5, 8) has 160 bytes",
        ),
        (
            "safetensors",
            "a negative size",
            one("F32", "[-5,8]", 0, 160, 160),
            "the header is invalid (invalid value: integer `-5`",
        ),
        ("safetensors", "an unknown type", one("F\\n31", "[5,8]", 0, 160, 160), "no head found: "),
        (
            "safetensors",
            "forty axes",
            one("F32", &format!("[{}1]", "1,".repeat(39)), 0, 4, 4),
            "the tensor `head.weight` has 40 axes",
        ),
        ("safetensors", "whole numbers", one("I32", "[5,8]", 0, 160, 160), "no head found: "),
    ]);
    // An unsupported tensor is an error only when it is loaded.
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = folder.path().join("m.safetensors");
    fs::write(&path, one("F\\n31", "[5,8]", 0, 160, 160)).expect("writes");
    let mut model = ModelFile::open(&path).expect("opens");
    let error = model.load("head.weight").expect_err("of no known type").to_string();
    let expected =
        "tensor `head.weight` is of type F\\n31; only f16, bf16, f32 and f64 can be loaded";
    assert!(error.ends_with(expected), "{error}");
}
