//! Other programs read what we write, and we what they write.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

/// Needs Python with `numpy`, `scipy`, `safetensors` and `ml_dtypes`, which the gate does not. To
/// run it, with PYTHON naming the interpreter that has them:
///
/// ```sh
/// cargo build -p shafer-data --example convert
/// PYTHON=.venv/bin/python cargo test -p shafer-data --test interop -- --ignored
/// ```
#[test]
#[ignore = "needs Python with numpy, scipy, safetensors and ml_dtypes"]
fn numpy_scipy_and_safetensors() {
    let tests = std::env::current_exe().unwrap();
    let convert = tests.parent().unwrap().with_file_name("examples").join("convert");
    let python = std::env::var("PYTHON").unwrap_or_else(|_| "python3".to_owned());
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop/check.py");
    let done = Command::new(python).arg(script).arg(convert).status().unwrap();
    assert!(done.success());
}
