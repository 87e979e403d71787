//! Broken and hostile model files: each ends in one line that says what is wrong, without a panic
//! and without taking memory that the file does not pay for.

mod bytes;

use std::{
    fs,
    io::{Cursor, Write},
    path::{Path, PathBuf},
};

use bytes::{field, number, safetensors};
use shafer_data::{ModelFile, load_head};
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The file's kind, what is wrong with it, its bytes, and the message after its path.
type Case = (&'static str, &'static str, Vec<u8>, &'static str);

fn check(cases: Vec<Case>) {
    let folder = tempfile::tempdir().expect("makes a folder");
    for (ending, what, bytes, expected) in cases {
        let path = folder.path().join(format!("m.{ending}"));
        fs::write(&path, bytes).expect("writes");
        check_path(&path, what, expected);
    }
    check_memory();
}

fn check_path(path: &Path, what: &str, expected: &str) {
    let message = match load_head(path, None) {
        Ok(head) => panic!("{what}: loaded {} x {}", head.features, head.classes),
        Err(e) => e.to_string(),
    };
    let message = message.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&message);
    assert!(message.starts_with(expected), "{what}:\n  {message}\n  is not\n  {expected}");
    assert!(!message.contains('\n') && message.len() < 1000, "{what}: {message}");
}

/// The most memory that this process has ever had, where the system tells.
fn check_memory() {
    let Ok(status) = fs::read_to_string("/proc/self/status") else { return };
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: u64 = peak
        .and_then(|peak| peak.trim().strip_suffix(" kB"))
        .and_then(|peak| peak.trim().parse().ok())
        .expect("Linux tells");
    assert!(kilobytes < 400_000, "{kilobytes} kB");
}

// PyTorch.

/// An archive as `torch.save` writes it.
fn archive(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in members {
        zip.start_file(*name, stored).expect("starts");
        zip.write_all(bytes).expect("writes");
    }
    zip.finish().expect("finishes").into_inner()
}

fn pickled(pickle: &[u8]) -> Vec<u8> {
    archive(&[("m/data.pkl", pickle), ("m/data/0", &[0; 160])])
}

fn text(text: &str) -> Vec<u8> {
    let mut bytes = vec![b'X'];
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes
}

fn int(n: i64) -> Vec<u8> {
    let mut bytes = vec![0x8a, 8];
    bytes.extend(n.to_le_bytes());
    bytes
}

fn tuple(items: &[Vec<u8>]) -> Vec<u8> {
    [&b"("[..], &items.concat(), b"t"].concat()
}

fn ints(numbers: &[i64]) -> Vec<u8> {
    tuple(&numbers.iter().map(|&n| int(n)).collect::<Vec<_>>())
}

/// A state dictionary of one tensor of floats.
fn state(
    class: &str,
    key: &str,
    count: i64,
    offset: i64,
    shape: &[i64],
    strides: &[i64],
) -> Vec<u8> {
    let storage = tuple(&[
        text("storage"),
        format!("ctorch\n{class}\n").into(),
        text(key),
        text("cpu"),
        int(count),
    ]);
    let arguments =
        tuple(&[[&storage[..], b"Q"].concat(), int(offset), ints(shape), ints(strides)]);
    let call = [b"ctorch._utils\n_rebuild_tensor_v2\n", &arguments[..], b"R"].concat();
    [&b"\x80\x02}"[..], &text("head.weight"), &call, b"s."].concat()
}

/// One tensor of one element, under 190,000 names of some 1,000 bytes.
fn names_without_end() -> Vec<u8> {
    let one = state("FloatStorage", "0", 1, 0, &[1; 32], &[1; 32]);
    let (start, end) = (b"\x80\x02}".len(), b"s.".len());
    let call = &one[start + text("head.weight").len()..one.len() - end];
    let list = [b"](", call, b"q\x00", &b"h\x00".repeat(190_000)[..], b"e"].concat();
    [&b"\x80\x02}"[..], &text(&"k".repeat(1000)), &list, b"s."].concat()
}

fn tensor(count: i64, shape: &[i64], strides: &[i64]) -> Vec<u8> {
    pickled(&state("FloatStorage", "0", count, 0, shape, strides))
}

/// Replaces every occurrence of a pattern.
fn patched(bytes: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    assert_eq!(from.len(), to.len());
    let mut bytes = bytes.to_vec();
    let mut found = false;
    for i in 0..=bytes.len() - from.len() {
        if bytes[i..].starts_with(from) {
            bytes[i..i + to.len()].copy_from_slice(to);
            found = true;
        }
    }
    assert!(found);
    bytes
}

#[test]
fn the_writer_of_these_tests_writes_models() {
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = folder.path().join("m.pt");
    fs::write(&path, tensor(40, &[5, 8], &[1, 5])).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").classes, 5);
    // A stride along which nothing lies.
    fs::write(&path, tensor(40, &[5, 8, 1, 1], &[1, 5, i64::MAX, i64::MAX])).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").weights.len(), 40);
    // Its checksums are wrong: PyTorch can be told to leave them out.
    let changed =
        patched(&tensor(40, &[5, 8], &[1, 5]), &[0; 160], &1_f32.to_le_bytes().repeat(40));
    fs::write(&path, changed).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").weights, [1.0; 40]);
    let path = folder.path().join("m.onnx");
    fs::write(&path, gemm(&weight(&[8, 5], 1, &[field(9, &[0; 160])]))).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").classes, 5);
}

#[test]
fn pickles_that_want_something_called() {
    let call = |pickle: &[u8]| pickled(&[b"\x80\x04", pickle, b"."].concat());
    check(vec![
        (
            "pt",
            "a command",
            call(&[b"cos\nsystem\n(", &text("echo pwned")[..], b"tR"].concat()),
            "the pickle asks to call os.system, which no model needs (nothing was called); \
             save the weights again",
        ),
        (
            "pth",
            "a command among weights",
            call(&[b"}", &text("head.weight")[..], b"cposix\nsystem\n)Rs"].concat()),
            "the pickle asks to call posix.system,",
        ),
        (
            "bin",
            "code, by the newer way to import",
            call(&[text("builtins"), text("eval"), b"\x93".to_vec(), b")R".to_vec()].concat()),
            "the pickle asks to call builtins.eval,",
        ),
        (
            "pt",
            "a process, as a new object",
            call(b"csubprocess\nPopen\n)\x81"),
            "the pickle asks to call subprocess.Popen,",
        ),
        (
            "pt",
            "a process, as a new object with names",
            call(b"csubprocess\nPopen\n)}\x92"),
            "the pickle asks to call subprocess.Popen,",
        ),
        (
            "pt",
            "a name with a line break and an escape",
            call(&[text("os\n\x1b[2J"), text("system"), b"\x93)R".to_vec()].concat()),
            "it holds a pickled os\\n\\u{1b}[2J.system and no tensors",
        ),
        (
            "ckpt",
            "code that we have never heard of",
            call(b"cwonderful.project\nNet\n)R"),
            "it holds a pickled wonderful.project.Net and no tensors; \
             save the weights again: torch.save(model.state_dict(), PATH), or as safetensors",
        ),
        (
            "pt",
            "old ways to call: INST",
            call(b"(ios\nsystem\n"),
            "the pickle has the code 0x69 at byte 3, which torch.save does not write",
        ),
        ("pt", "a call of a call", call(b"cm\nf\n)R)R"), "the pickle calls what is no function"),
        ("pt", "an extension", call(b"\x82\x01"), "the pickle has the code 0x82 at byte 2"),
    ]);
}

#[test]
fn pickles_without_end() {
    let of = |parts: &[&[u8]]| pickled(&[b"\x80\x02", &parts.concat()[..], b"."].concat());
    // Ten lists, each of which has the next ten times.
    let mut laughs = b"(]q\x00".to_vec();
    for level in 0..10 {
        laughs.extend(b"](");
        laughs.extend([b'h', level].repeat(10));
        laughs.extend([b'e', b'q', level + 1]);
    }
    laughs.extend(b"t");
    check(vec![
        (
            "pt",
            "a list in a list in a list",
            of(&[&b"]".repeat(100_000), &b"a".repeat(99_999)]),
            "the pickle nests values more than 64 deep",
        ),
        ("pt", "a list in itself", of(&[b"]q\x00h\x00a"]), "the pickle nests values more than 64"),
        (
            "pt",
            "a dictionary that is its own state",
            of(&[b"cm\nf\n)Rq\x00h\x00b"]),
            "the pickle nests values more than 64 deep",
        ),
        ("pt", "a billion laughs", of(&[&laughs]), "the pickle repeats its values too often"),
        (
            "pt",
            "values",
            of(&[&b"N".repeat(2_000_000)]),
            "the pickle holds more than 1000000 values",
        ),
        (
            "pt",
            "steps",
            of(&[b"N", &b"20".repeat(2_500_000)]),
            "the pickle takes more than 4000000",
        ),
        ("pt", "a memo with a hole", of(&[b"Nr\xff\xff\xff\xff"]), "it holds no tensors"),
        ("pt", "nothing remembered", of(&[b"h\x07"]), "the pickle refers to value 7, which it did"),
        (
            "pt",
            "a text of 2^63 bytes",
            of(&[b"\x8d\x00\x00\x00\x00\x00\x00\x00\x80"]),
            "the pickle ends early",
        ),
        (
            "pt",
            "names without end",
            pickled(&names_without_end()),
            "the pickle has more than 67108864 bytes of names",
        ),
        (
            "pt",
            "a name without end",
            of(&[b"}", &text(&"a".repeat(2000)), b"}s"]),
            "the pickle has a name of more than 1024 bytes",
        ),
    ]);
}

#[test]
fn broken_pickles() {
    let whole = state("FloatStorage", "0", 40, 0, &[5, 8], &[8, 1]);
    check(vec![
        ("pt", "truncated", pickled(&whole[..whole.len() / 2]), "the pickle ends early"),
        ("pt", "empty", pickled(b""), "the pickle ends early"),
        ("pt", "an empty stack", pickled(b"\x80\x02R."), "the pickle takes from an empty stack"),
        ("pt", "no mark", pickled(b"\x80\x02t."), "the pickle closes what it did not open"),
        ("pt", "half a pair", pickled(b"\x80\x02}(Nu."), "the pickle has a key without a value"),
        ("pt", "protocol 9", pickled(b"\x80\x09N."), "the pickle has the unknown protocol 9"),
        ("pt", "text", pickled(b"hello"), "the pickle refers to value 101, which it did not store"),
        ("pt", "no list", pickled(b"\x80\x02K\x01Na."), "the pickle appends to what is no list"),
    ]);
}

#[test]
fn tensors_that_lie() {
    let big = 1 << 40;
    let of = |class: &str, key: &str| pickled(&state(class, key, 40, 0, &[5, 8], &[8, 1]));
    check(vec![
        (
            "pt",
            "a storage smaller than it says",
            tensor(80, &[10, 8], &[8, 1]),
            "tensor `head.weight` needs more than the 40 elements that its storage has; \
             the file is truncated or broken",
        ),
        (
            "pt",
            "a shape larger than its storage",
            tensor(40, &[10, 8], &[8, 1]),
            "tensor `head.weight` of shape [10, 8] does not fit into its storage of 40 elements",
        ),
        (
            "pt",
            "a huge shape",
            tensor(40, &[big, big], &[big, 1]),
            "tensor `head.weight` of shape [1099511627776, 1099511627776] does not fit",
        ),
        (
            "pt",
            "a huge shape in a huge storage",
            tensor(i64::MAX, &[big, 8], &[8, 1]),
            "tensor `head.weight` needs more than the 40 elements",
        ),
        (
            "pt",
            "one element, a trillion times",
            tensor(1, &[big, 8], &[0, 0]),
            "tensor `head.weight` is expanded: it repeats the elements of its storage",
        ),
        (
            "pt",
            "so often that the count overflows",
            tensor(1, &[big, big], &[0, 0]),
            "tensor `head.weight` of shape [1099511627776, 1099511627776] does not fit",
        ),
        (
            "pt",
            "a negative size",
            tensor(40, &[-5, 8], &[8, 1]),
            "tensor `head.weight` has the impossible size -5",
        ),
        (
            "pt",
            "a negative stride",
            tensor(40, &[5, 8], &[-8, 1]),
            "tensor `head.weight` has the impossible stride -8",
        ),
        (
            "pt",
            "a negative offset",
            pickled(&state("FloatStorage", "0", 40, -1, &[5, 8], &[8, 1])),
            "tensor `head.weight` has the impossible offset -1",
        ),
        (
            "pt",
            "an offset past the end",
            pickled(&state("FloatStorage", "0", 40, i64::MAX, &[5, 8], &[8, 1])),
            "tensor `head.weight` of shape [5, 8] does not fit into its storage of 40 elements",
        ),
        ("pt", "forty axes", tensor(40, &[1; 40], &[1; 40]), "tensor `head.weight` has 40 axes"),
        (
            "pt",
            "fewer strides than sizes",
            tensor(40, &[5, 8], &[8]),
            "tensor `head.weight` is not described as torch.save describes tensors",
        ),
        (
            "pt",
            "an unknown type",
            of("ImaginaryStorage", "0"),
            "tensor `head.weight` has the unknown type torch.ImaginaryStorage",
        ),
        ("pt", "whole numbers", of("LongStorage", "0"), "no head found: "),
        (
            "pt",
            "a storage that is missing",
            of("FloatStorage", "1"),
            "its member data/1 is missing",
        ),
        (
            "pt",
            "a storage elsewhere",
            of("FloatStorage", "../../../etc/passwd"),
            "its member data/../../../etc/passwd is missing",
        ),
    ]);
}

#[test]
fn broken_archives() {
    let whole = state("FloatStorage", "0", 40, 0, &[5, 8], &[8, 1]);
    let good = pickled(&whole);
    // The sizes of the storage in the directory of the archive.
    let oversized = patched(
        &good,
        &[160_u32.to_le_bytes(), 160_u32.to_le_bytes()].concat(),
        &[0x7fff_ffff_u32.to_le_bytes(), 0x7fff_ffff_u32.to_le_bytes()].concat(),
    );
    // The method of compression in the headers of the members.
    let mut compressed = good.clone();
    for i in 0..good.len() - 12 {
        if good[i..].starts_with(b"PK\x03\x04") {
            compressed[i + 8] = 8;
        } else if good[i..].starts_with(b"PK\x01\x02") {
            compressed[i + 10] = 8;
        }
    }
    let little = |order: &[u8]| archive(&[("m/data.pkl", &whole[..]), ("m/byteorder", order)]);
    check(vec![
        (
            "pt",
            "from before 1.6",
            fs::read(fixture("legacy.pt")).expect("reads"),
            "written in the format of PyTorch before 1.6; save the weights again: ",
        ),
        ("bin", "a bare pickle", whole.clone(), "a pickle without the archive that torch.save"),
        (
            "bin",
            "no archive",
            b"GGUF....".to_vec(),
            "not a file that torch.save wrote: it is no zip",
        ),
        ("pt", "truncated", good[..good.len() / 2].to_vec(), "the zip archive cannot be read: "),
        (
            "pt",
            "the beginning of an archive",
            b"PK\x03\x04".to_vec(),
            "the zip archive cannot be read: ",
        ),
        (
            "pt",
            "another archive",
            archive(&[("readme.txt", b"hello")]),
            "a zip archive without the data.pkl of torch.save",
        ),
        (
            "pt",
            "two models",
            archive(&[("a/data.pkl", &whole), ("b/data.pkl", &whole)]),
            "a zip archive with more than one data.pkl",
        ),
        (
            "pt",
            "no data",
            archive(&[("m/data.pkl", &whole)]),
            "its member data/0 is missing; the file is truncated or broken",
        ),
        (
            "pt",
            "a member of 2 GB",
            oversized,
            "its member data/0 is said to have 2147483647 bytes, more than the file",
        ),
        (
            "pt",
            "compressed",
            compressed,
            "its member data.pkl is compressed, which torch.save never does",
        ),
        ("pt", "big-endian", little(b"big"), "its byte order is `big`; only little-endian files"),
        (
            "pt",
            "an endless byte order",
            little(&[b' '; 1000]),
            "its byteorder has 1000 bytes, more than 16",
        ),
    ]);
}

// Safetensors.

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
             allows; the file is damaged or not of safetensors; write it again",
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
        (
            "safetensors",
            "no JSON",
            safetensors("hello", 0),
            "the header is not what it should be (",
        ),
        (
            "safetensors",
            "a list",
            safetensors("[]", 0),
            "the header is not what it should be (invalid type",
        ),
        (
            "safetensors",
            "deep metadata",
            safetensors(format!(r#"{{"__metadata__":{}"#, "[".repeat(100_000)), 0),
            "the header is not what it should be (EOF while parsing a list at line 1",
        ),
        ("safetensors", "no tensors", safetensors("{}", 0), "no head found: "),
        (
            "safetensors",
            "one name twice",
            safetensors(format!(r#"{{"a":{matrix},"a":{matrix}}}"#), 160),
            "the header is not what it should be (the name `a` occurs twice",
        ),
        (
            "safetensors",
            "overlapping tensors",
            safetensors(format!(r#"{{"a":{matrix},"b":{}}}"#, entry("F32", "[40]", 156, 316)), 316),
            "the tensor `b` begins at 156, within another that ends at 160; the file is damaged",
        ),
        (
            "safetensors",
            "a hole",
            safetensors(format!(r#"{{"a":{matrix},"b":{}}}"#, entry("F32", "[1]", 164, 168)), 168),
            "the tensor `b` begins at 164, after a hole from 160; the file is damaged",
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
            "the header is not what it should be (invalid value: integer `-5`",
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
    // Other tensors of the file may be what is wanted; this one is refused when it is.
    let folder = tempfile::tempdir().expect("makes a folder");
    let path = folder.path().join("m.safetensors");
    fs::write(&path, one("F\\n31", "[5,8]", 0, 160, 160)).expect("writes");
    let mut model = ModelFile::open(&path).expect("opens");
    let error = model.load("head.weight").expect_err("of no known type").to_string();
    let expected =
        "tensor `head.weight` is of type F\\n31; only f16, bf16, f32 and f64 can be loaded";
    assert!(error.ends_with(expected), "{error}");
}

// ONNX.

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
            "no head found: no linear layer feeds an output or a softmax",
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
            "several layers may be the head: w0 (1 features, 2 classes), w1 ",
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
    let twice = [weight(&[2, 3], 1, &data(24)), weight(&[30, 40], 1, &data(4800))];
    fs::write(&path, model(&twice)).expect("writes");
    let head = load_head(&path, Some("w")).expect("loads");
    assert_eq!((head.features, head.classes, head.weights.len()), (3, 2, 6));
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
    // What lies below is meant to be read.
    fs::write(&path, external(&[("location", "below/data")])).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").features, 8);
}

// Any kind.

#[test]
fn files_that_are_none() {
    let folder = tempfile::tempdir().expect("makes a folder");
    for ending in ["pt", "onnx", "safetensors", "h5"] {
        let path = folder.path().join(format!("missing.{ending}"));
        check_path(&path, "missing", "cannot open: ");
        let path = folder.path().join(format!("folder.{ending}"));
        fs::create_dir(&path).expect("makes a folder");
        check_path(&path, "a folder", "not a file; give the path of a model file");
        let path = folder.path().join(format!("empty.{ending}"));
        fs::write(&path, b"").expect("writes");
        check_path(&path, "empty", "the file is empty; copy or download it again");
    }
    for name in ["model.h5", "model", "model.PT.gz"] {
        let path = folder.path().join(name);
        fs::write(&path, b"hello").expect("writes");
        check_path(
            &path,
            name,
            "cannot tell what kind of model it is; \
             its ending must be .safetensors, .pt, .pth, .bin, .ckpt or .onnx",
        );
    }
}

/// Every fixture cut at every length and damaged at every byte is a model or an error.
#[test]
fn damaged_fixtures() {
    let folder = tempfile::tempdir().expect("makes a folder");
    for name in ["tiny.pt", "module.pt", "tiny.safetensors", "tiny.onnx", "conv.onnx"] {
        let whole = fs::read(fixture(name)).expect("reads");
        let path = folder.path().join(name);
        let try_bytes = |bytes: &[u8]| {
            // Some file systems flush a file to disk when it is overwritten.
            let _ = fs::remove_file(&path);
            fs::write(&path, bytes).expect("writes");
            if let Err(e) = load_head(&path, None) {
                let message = e.to_string();
                assert!(!message.contains('\n'), "{message}");
            }
        };
        for length in 0..whole.len() {
            try_bytes(&whole[..length]);
        }
        for place in 0..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut bytes = whole.clone();
                bytes[place] ^= change;
                try_bytes(&bytes);
            }
        }
    }
    check_memory();
}
