//! The step `python` of the gate: builds the wheel and tests it in a virtual environment.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{run, target};

/// Builds the wheel of `bindings/python`, installs it into `target/python-venv`, and runs its tests there, which include
/// the examples of the documentation and the check of the stubs.
///
/// Skipped without Python 3.10, or if its packages cannot be had, unless `SHAFER_REQUIRE` lists `python`.
pub(crate) fn check() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let package = std::path::absolute(root.join("bindings/python")).map_err(|e| e.to_string())?;
    let venv = target("python-venv")?;
    let python = match environment(&package, &venv) {
        Ok(python) => python,
        Err(why) => return skip(&why),
    };
    let wheels = target("python-wheels")?;
    // Only the wheel of this run is to be found in it.
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(|e| format!("{}: {e}", wheels.display()))?;
    }
    let maturin = ["-m", "maturin", "build", "--release", "--locked", "--out"];
    let mut build = Command::new(&python);
    build.args(maturin).arg(&wheels).current_dir(&package);
    run(build.env("CARGO_TARGET_DIR", target("python")?))?;
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
    let mut install = Command::new(&python);
    install.args(pip).args(["--force-reinstall", "--no-deps", "--no-index"]);
    run(install.arg("--find-links").arg(&wheels).arg("shafer"))?;
    run(Command::new(&python).args(["-m", "pytest", "--quiet"]).current_dir(&package))
}

/// The interpreter of a virtual environment with what the build and the tests need, or why there is none.
fn environment(package: &Path, venv: &Path) -> Result<PathBuf, String> {
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.exists() {
        let base = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        let version = "import sys; sys.exit(sys.version_info < (3, 10))";
        let mut found = Command::new(&base);
        found.args(["-c", version]).stdout(Stdio::null()).stderr(Stdio::null());
        if !found.status().is_ok_and(|status| status.success()) {
            let base = base.to_string_lossy();
            return Err(format!(
                "{base} is not Python 3.10 or later; install it, or set PYTHON to one"
            ));
        }
        run(Command::new(base).args(["-m", "venv"]).arg(venv))?;
    }
    // Fast if everything is installed; also handles changed requirements.
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(&python).args(pip).arg(package.join("tests/requirements.txt")))?;
    if env::var_os("SHAFER_TEST_TORCH").is_some_and(|wanted| wanted == "1") {
        run(Command::new(&python).args(pip).arg(package.join("tests/requirements-torch.txt")))?;
    }
    Ok(python)
}

fn skip(why: &str) -> Result<(), String> {
    let required = env::var("SHAFER_REQUIRE").unwrap_or_default();
    if required.split(',').any(|name| name.trim() == "python") {
        return Err(format!("{why}, and SHAFER_REQUIRE lists `python`"));
    }
    println!("skipped: the Python package is not tested: {why}");
    Ok(())
}
