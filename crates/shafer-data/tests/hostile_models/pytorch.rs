//! PyTorch: an archive with a pickle, which is a program.

use std::fs;
use std::io::{Cursor, Write};

use shafer_data::load_head;
use zip::{CompressionMethod, ZipWriter, write::SimpleFileOptions};

use super::{check, fixture};

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
    // The stride of an axis of length 1.
    fs::write(&path, tensor(40, &[5, 8, 1, 1], &[1, 5, i64::MAX, i64::MAX])).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").weights.len(), 40);
    // Wrong checksums: PyTorch can be told to omit them.
    let changed =
        patched(&tensor(40, &[5, 8], &[1, 5]), &[0; 160], &1_f32.to_le_bytes().repeat(40));
    fs::write(&path, changed).expect("writes");
    assert_eq!(load_head(&path, None).expect("loads").weights, [1.0; 40]);
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
        (
            "pt",
            "a call of a call",
            call(b"cm\nf\n)R)R"),
            "the pickle calls a value that is not a function",
        ),
        ("pt", "an extension", call(b"\x82\x01"), "the pickle has the code 0x82 at byte 2"),
    ]);
}

#[test]
fn pickles_without_end() {
    let of = |parts: &[&[u8]]| pickled(&[b"\x80\x02", &parts.concat()[..], b"."].concat());
    // Ten lists, each of which contains the next ten times.
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
        (
            "pt",
            "no list",
            pickled(b"\x80\x02K\x01Na."),
            "the pickle appends to a value that is not a list",
        ),
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
