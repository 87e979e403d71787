//! Other programs read what we write, and we what they write.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

/// Needs Python with the packages of `interop/requirements.txt`, which the gate does not:
/// `cargo xtask interop` installs them and runs this. With an interpreter that has them:
///
/// ```sh
/// cargo build -p shafer-data --example convert
/// PYTHON=.venv/bin/python cargo test -p shafer-data --test interop -- --ignored
/// ```
#[test]
#[ignore = "needs Python packages; run `cargo xtask interop`"]
fn numpy_scipy_safetensors_and_pyarrow() {
    let tests = std::env::current_exe().unwrap();
    let convert = tests.parent().unwrap().with_file_name("examples").join("convert");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/check.py");
    let done = Command::new(python).arg(script).arg(convert).status().unwrap();
    assert!(done.success());
}
