//! Helpers for the tests of the program.
#![allow(dead_code, reason = "no test needs all of it")]

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

pub(crate) fn shafer(folder: &Path, arguments: &[&str]) -> Output {
    let program = env!("CARGO_BIN_EXE_shafer");
    // Hides data sets of the user who runs the tests.
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_remove("SHAFER_DATA")
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .unwrap()
}

pub(crate) fn json(folder: &Path, arguments: &[&str]) -> Value {
    let output = shafer(folder, arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The one-line error message for bad input.
pub(crate) fn complaint(folder: &Path, arguments: &[&str]) -> String {
    let output = shafer(folder, arguments);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text.trim_end().to_owned()
}

/// An f32 array in npy format, version 1.
pub(crate) fn npy(shape: &[usize], values: &[f32]) -> Vec<u8> {
    let bytes: Vec<u8> = values.iter().flat_map(|x| x.to_le_bytes()).collect();
    npy_of("<f4", shape, &bytes)
}

/// An array of any type.
pub(crate) fn npy_of(descr: &str, shape: &[usize], elements: &[u8]) -> Vec<u8> {
    let shape: Vec<String> = shape.iter().map(usize::to_string).collect();
    let shape = shape.join(", ");
    let mut header =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': ({shape},), }}");
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.extend(elements);
    bytes
}

pub(crate) fn last_floats(path: &Path, count: usize) -> Vec<f32> {
    let bytes = std::fs::read(path).unwrap();
    let floats = bytes[bytes.len() - 4 * count..].chunks_exact(4);
    floats.map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect()
}

/// Three rows of four classes with mean 0.
pub(crate) const LOGITS: [f32; 12] =
    [3.0, 1.0, -1.0, -3.0, 0.0, 0.0, 0.0, 0.0, -9.0, 3.0, 3.0, 3.0];

pub(crate) fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("logits.npy"), npy(&[3, 4], &LOGITS)).unwrap();
    folder
}
