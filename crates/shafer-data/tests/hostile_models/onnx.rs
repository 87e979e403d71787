//! ONNX: a graph in protocol buffers.

use std::fs;

use shafer_data::load_head;

use super::bytes::{field, number};
use super::{check, check_path};

fn node(op: &str, inputs: &[&str], output: &str) -> Vec<u8> {
    let inputs: Vec<_> = inputs.iter().map(|name| field(1, name.as_bytes())).collect();
    let rest = [field(2, output.as_bytes()), field(4, op.as_bytes())].concat();
    field(1, &[inputs.concat(), rest].concat())
}

fn initialiser(name: &str, shape: &[i64], data_type: i64, data: &[Vec<u8>]) -> Vec<u8> {
    let shape: Vec<_> = shape.iter().map(|&n| number(1, n)).collect();
    let head = [number(2, data_type), field(8, name.as_bytes())].concat();
    field(5, &[shape.concat(), head, data.concat()].concat())
}

fn weight(shape: &[i64], data_type: i64, data: &[Vec<u8>]) -> Vec<u8> {
    initialiser("w", shape, data_type, data)
}

/// A model with the output `y`.
fn model(parts: &[Vec<u8>]) -> Vec<u8> {
    field(7, &[parts.concat(), field(12, &field(1, b"y"))].concat())
}

fn gemm(weight: &[u8]) -> Vec<u8> {
    model(&[node("Gemm", &["x", "w"], "y"), weight.to_vec()])
}

fn external(entries: &[(&str, &str)]) -> Vec<u8> {
    let entries = entries.iter().map(|(key, value)| {
        field(13, &[field(1, key.as_bytes()), field(2, value.as_bytes())].concat())
    });
    let data: Vec<_> = entries.chain([number(14, 1)]).collect();
    gemm(&weight(&[8, 5], 1, &data))
}

#[test]
fn the_writer_of_these_tests_writes_models() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = folder.path().join("m.onnx");
    fs::write(&path, gemm(&weight(&[8, 5], 1, &[field(9, &[0; 160])]))).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").classes, 5);
}

#[test]
fn hostile_graphs() {
    let whole = gemm(&weight(&[8, 5], 1, &[field(9, &[0; 160])]));
    let fields = field(1, &field(1, b"").repeat(5000));
    check(vec![
        (
            "onnx",
            "truncated",
            whole[..whole.len() - 50].to_vec(),
            "not an ONNX model: it ends early; export the model again",
        ),
        ("onnx", "text", b"hello, this is no model".to_vec(), "not an ONNX model: "),
        ("onnx", "a number without end", vec![0xff; 100], "not an ONNX model: a number has no end"),
        ("onnx", "a group", vec![0x0b], "not an ONNX model: it has a field of the unknown kind 3"),
        ("onnx", "no graph", field(2, b"pytorch"), "not an ONNX model: it holds no graph"),
        ("onnx", "an empty graph", field(7, b""), "no head found: "),
        ("onnx", "a name that is no text", model(&[field(1, &field(4, b"\xff"))]), "not an ONNX"),
        (
            "onnx",
            "a cycle",
            model(&[node("Identity", &["z"], "y"), node("Softmax", &["y"], "z")]),
            "no head found: the output `y` is made by no linear layer; if the model has a head, name its",
        ),
        (
            "onnx",
            "a cycle of weights",
            model(&[
                node("MatMul", &["x", "v"], "y"),
                node("Identity", &["u"], "v"),
                node("Cast", &["v"], "u"),
            ]),
            "no head found: ",
        ),
        (
            "onnx",
            "nodes without end",
            model(&[field(1, b"").repeat(1_100_000)]),
            "not an ONNX model: its graph has more than 1000000 parts",
        ),
        (
            "onnx",
            "heads without end",
            model(
                &(0..100_000)
                    .flat_map(|i| {
                        let (w, p) = (format!("w{i}"), format!("p{i}"));
                        [
                            initialiser(&w, &[1, 2], 1, &[]),
                            node("MatMul", &["x", &w], &p),
                            node("Softmax", &[&p], &w),
                        ]
                    })
                    .collect::<Vec<_>>(),
            ),
            "no layer is clearly the head, but these may be: w0 (1 features, 2 classes), w1 ",
        ),
        (
            "onnx",
            "inputs without end",
            model(&[fields]),
            "not an ONNX model: a part of its graph has more than 4096 fields",
        ),
        (
            "onnx",
            "an attribute that would be decoded for every output",
            model(&[field(1, &[field(4, b"Gemm"), field(5, &[0; 5000])].concat())]),
            "not an ONNX model: a Gemm has an attribute of 5000 bytes",
        ),
        (
            "onnx",
            "a factor without a value",
            model(&[field(1, &[field(4, b"Gemm"), field(5, &field(1, b"alpha"))].concat())]),
            "not an ONNX model: the alpha of a Gemm has no value",
        ),
        (
            "onnx",
            "an attribute that ends early",
            model(&[field(1, &[field(4, b"Gemm"), field(5, &[0x0a, 9])].concat())]),
            "not an ONNX model: a Gemm has a damaged attribute",
        ),
        (
            "onnx",
            "a name that would be looked up for every output",
            model(&[node("Identity", &["x"], &"y".repeat(2000))]),
            "not an ONNX model: a value has a name of more than 1024 bytes",
        ),
    ]);
}

#[test]
fn hostile_initialisers() {
    check(vec![
        (
            "onnx",
            "a negative size",
            gemm(&weight(&[-8, 5], 1, &[])),
            "not an ONNX model: tensor `w` has the impossible shape [-8, 5]",
        ),
        (
            "onnx",
            "a huge shape",
            gemm(&weight(&[1 << 40, 1 << 40], 1, &[field(9, &[0; 160])])),
            "tensor `w` has the impossible shape [1099511627776, 1099511627776]",
        ),
        (
            "onnx",
            "a large shape with few data",
            gemm(&weight(&[1 << 20, 1 << 20], 1, &[field(9, &[0; 160])])),
            "tensor `w` needs 4398046511104 bytes and has 160",
        ),
        (
            "onnx",
            "a large shape without data",
            gemm(&weight(&[1 << 20, 1 << 20], 1, &[])),
            "tensor `w` needs 1099511627776 elements and has 0",
        ),
        (
            "onnx",
            "classes without end, of no features",
            model(&[
                node("Gemm", &["x", "w", "b"], "y"),
                weight(&[0, 1 << 60], 1, &[]),
                initialiser("b", &[1], 1, &[field(9, &[0; 4])]),
            ]),
            "no head found: ",
        ),
        (
            "onnx",
            "an unknown type",
            gemm(&weight(&[8, 5], 99, &[])),
            "not an ONNX model: tensor `w` has the unknown type 99",
        ),
        (
            "onnx",
            "whole numbers",
            gemm(&weight(&[8, 5], 7, &[])),
            "tensor `w` is of type i64; only f16, bf16, f32 and f64 can be loaded",
        ),
        (
            "onnx",
            "forty axes",
            gemm(&weight(&[1; 40], 1, &[])),
            "not an ONNX model: tensor `w` has 40 axes",
        ),
        (
            "onnx",
            "data elsewhere, but not where",
            external(&[]),
            "not an ONNX model: tensor `w` lies outside, but does not say where",
        ),
        (
            "onnx",
            "a negative offset",
            external(&[("location", "data"), ("offset", "-1")]),
            "not an ONNX model: tensor `w` has the impossible offset `-1`",
        ),
    ]);
}

/// Of two tensors with one name, the shape must not be taken from one and the data from the other.
#[test]
fn one_name_twice() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = folder.path().join("m.onnx");
    let data = |n| [field(9, &vec![0; n])];
    let twice = [weight(&[2, 3], 1, &data(24)), weight(&[30, 40], 1, &data(4800))].concat();
    fs::write(&path, gemm(&twice)).expect("writes");
    let head = load_head(&path, Some("w")).expect("loads");
    assert_eq!((head.features, head.classes, head.weights.len()), (2, 3, 6));
}

#[test]
fn data_outside_of_the_folder() {
    let top = tempfile::tempdir().expect("makes a folder");
    let folder = top.path().join("model");
    fs::create_dir(&folder).expect("makes a folder");
    fs::create_dir(folder.join("below")).expect("makes a folder");
    let secret = top.path().join("secret");
    fs::write(&secret, [0; 160]).expect("writes");
    fs::write(folder.join("below/data"), [0; 160]).expect("writes");
    let path = folder.join("m.onnx");
    let check = |entries: &[(&str, &str)], expected: &str| {
        fs::write(&path, external(entries)).expect("writes");
        check_path(&path, expected, expected);
    };

    check(
        &[("location", "../secret")],
        "tensor `w` has its data in `../secret`, which is not in the folder of the model",
    );
    check(&[("location", "below/../../secret")], "tensor `w` has its data in `below/../../secret`");
    let absolute = secret.display().to_string();
    check(&[("location", &absolute)], &format!("tensor `w` has its data in `{absolute}`"));
    check(&[("location", "")], "tensor `w` has its data in ``, which is not in the folder");
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&secret, folder.join("link")).expect("links");
        check(&[("location", "link")], "tensor `w` has its data in `link`, which is not in the");
        std::os::unix::fs::symlink(top.path(), folder.join("up")).expect("links");
        check(&[("location", "up/secret")], "tensor `w` has its data in `up/secret`, which is not");
    }
    let at = |name: &str, problem: &str| format!("{}: {problem}", folder.join(name).display());
    check(&[("location", "none")], &at("none", "cannot open the data of the model: "));
    check(&[("location", "no\nne")], &at("no\\nne", "cannot open the data of the model: "));
    check(&[("location", "below")], &at("below", "not a file; the model expects its data here"));
    check(
        &[("location", "below/data"), ("offset", "4")],
        &at("below/data", "tensor `w` is said to be at byte 4 with 160 bytes, of 160"),
    );
    check(
        &[("location", "below/data"), ("offset", "18446744073709551615")],
        &at("below/data", "tensor `w` is said to be at byte 18446744073709551615 with 160"),
    );
    check(
        &[("location", "below/data"), ("length", "80")],
        "tensor `w` needs 160 bytes, and its external data have another length",
    );
    // Files in subfolders are allowed.
    fs::write(&path, external(&[("location", "below/data")])).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").features, 8);
}
