//! Damaged and hostile model files: each is an error of one line, without a panic, and with memory bounded by
//! the size of the file.

#[path = "../bytes/mod.rs"]
mod bytes;
mod onnx;
mod pytorch;
mod safetensors;

use std::fs;
use std::path::{Path, PathBuf};

use shafer_data::load_head;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures").join(name)
}

/// The extension, a description, the bytes, and the message after the path.
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

/// The peak memory of this process, if the system reports it.
fn check_memory() {
    if let Some(bytes) = shafer_testing::peak_memory() {
        assert!(bytes < 400_000_000, "{bytes} bytes");
    }
}

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

/// Every fixture, truncated at every length and damaged at every byte, does not panic.
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
