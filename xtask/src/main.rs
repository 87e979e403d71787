//! Development tasks. `cargo xtask check` is the gate: what it accepts, CI accepts.
//! `cargo xtask interop` checks the file formats against NumPy, SciPy, safetensors, pyarrow, polars and `DuckDB`;
//! `cargo xtask picture` draws the screenshot of the README.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod picture;
mod python;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
Usage: cargo xtask interop
       cargo xtask picture
       cargo xtask gpu
       cargo xtask check [STEP...]

interop: exchanges files with NumPy, SciPy, safetensors, pyarrow, polars and DuckDB. The first run
installs them into target/interop-venv; PYTHON selects the python3 for it.

picture: draws docs/compare.png with Chromium; CHROMIUM is its path if it is not in /usr/bin.

gpu: builds shafer-nets with the feature gpu, and compares training steps on the GPU with those on the
CPU. It needs a Vulkan driver; Mesa's lavapipe, which computes on the CPU, is enough. The first run
takes 25 minutes of CPU time to compile, into target/gpu.

check: runs the steps of CI in this order, or only the given STEPs.
";

/// Name, purpose, arguments to cargo, environment.
type Step =
    (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

/// The step that runs more than cargo.
const PYTHON: Step = ("python", "the Python package: wheel, tests, examples, stubs", &[], &[]);

/// The step that runs cargo several times: `DataFusion` and Ballista, without optimisation and debug information.
const SQL: Step = ("sql", "the SQL functions, the query and the cluster", &[], &[]);

const KERNEL_TESTS: &[&str] = &[
    "test",
    "-p",
    "shafer",
    "--locked",
    "--test",
    "transforms",
    "--test",
    "edges",
    "--test",
    "bad_input",
    "--test",
    "fixtures",
    "--test",
    "threads",
    "--test",
    "no_panics",
];

const STEPS: [Step; 12] = [
    ("format", "formatting", &["fmt", "--all", "--check"], &[]),
    (
        "lint",
        "clippy without warnings",
        &[
            "clippy",
            "--workspace",
            "--exclude",
            "shafer-sql",
            "--all-targets",
            "--locked",
            "--",
            "--deny",
            "warnings",
        ],
        &[],
    ),
    (
        "bare",
        "clippy on the core without default features",
        &[
            "clippy",
            "-p",
            "shafer",
            "--no-default-features",
            "--locked",
            "--",
            "--deny",
            "warnings",
        ],
        &[],
    ),
    (
        "test",
        "unit and integration tests",
        &["test", "--workspace", "--exclude", "shafer-sql", "--locked", "--tests"],
        &[],
    ),
    (
        "doctest",
        "examples in the documentation",
        &["test", "--workspace", "--exclude", "shafer-sql", "--locked", "--doc"],
        &[],
    ),
    (
        "avx2",
        "kernel tests without AVX-512",
        KERNEL_TESTS,
        &[("RUSTFLAGS", "--cfg disable_dispatch_avx512"), ("CARGO_TARGET_DIR", "target/avx2")],
    ),
    (
        "sse",
        "kernel tests with SSE only, without fused multiply-add",
        KERNEL_TESTS,
        &[
            ("RUSTFLAGS", "--cfg disable_dispatch_avx512 --cfg disable_dispatch_avx2"),
            ("CARGO_TARGET_DIR", "target/sse"),
        ],
    ),
    (
        "docs",
        "rustdoc without warnings",
        &["doc", "--workspace", "--exclude", "shafer-sql", "--no-deps", "--locked"],
        &[("RUSTDOCFLAGS", "--deny warnings")],
    ),
    ("bench", "benchmarks compile", &["bench", "-p", "shafer", "--locked", "--no-run"], &[]),
    (
        "fuzz",
        "fuzz targets compile",
        &["check", "--manifest-path", "fuzz/Cargo.toml", "--all-targets", "--locked"],
        // `cargo check` does not link, so libFuzzer (C++) need not be compiled.
        &[("CARGO_TARGET_DIR", "target/fuzz"), ("CUSTOM_LIBFUZZER_PATH", "target/libfuzzer.a")],
    ),
    SQL,
    PYTHON,
];

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let done = match arguments.split_first().map(|(first, rest)| (first.as_str(), rest)) {
        Some(("check", wanted)) => check(wanted),
        Some(("interop", [])) => interop(),
        Some(("picture", [])) => picture::draw(),
        Some(("gpu", [])) => gpu(),
        _ => {
            eprint!("{HELP}");
            for (name, purpose, ..) in STEPS {
                eprintln!("  {name:<9} {purpose}");
            }
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("{problem}");
            ExitCode::FAILURE
        }
    }
}

fn check(wanted: &[String]) -> Result<(), String> {
    if let Some(unknown) = wanted.iter().find(|step| STEPS.iter().all(|(name, ..)| name != step)) {
        return Err(format!("unknown step {unknown:?}; `cargo xtask` lists the steps"));
    }
    for (name, purpose, arguments, environment) in STEPS {
        if !wanted.is_empty() && wanted.iter().all(|step| step != name) {
            continue;
        }
        println!("==> {name}: {purpose}");
        let start = Instant::now();
        let done = if name == PYTHON.0 {
            python::check()
        } else if name == SQL.0 {
            sql()
        } else {
            let mut command = cargo();
            command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
            run(command.args(arguments).envs(environment.iter().copied()))
        };
        done.map_err(|problem| format!("==> {name}: {problem}"))?;
        println!("==> {name}: passed in {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Lints and tests the crate of SQL by one build of its dependencies: clippy is the compiler of the crates of this
/// workspace. `cargo clippy` would check all 350 others once more.
fn sql() -> Result<(), String> {
    let package = ["-p", "shafer-sql", "--locked", "--profile", "sql"];
    // As `cargo clippy -- --deny warnings` tells it to clippy.
    let deny = "--deny__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__";
    for tests in ["--all-targets", "--doc"] {
        let mut command = cargo();
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        command.env("RUSTC_WORKSPACE_WRAPPER", "clippy-driver").env("CLIPPY_ARGS", deny);
        run(command.arg("test").args(package).arg(tests))?;
    }
    Ok(())
}

/// Creates the virtual environment if needed, and runs the script in it.
fn interop() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let requirements = root.join("crates/shafer-data/tests/interop/requirements.txt");
    let venv = target("interop-venv")?;
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.exists() {
        let base = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        run(Command::new(base).args(["-m", "venv"]).arg(&venv))?;
    }
    // Fast if everything is installed; also handles changed requirements.
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(&python).args(pip).arg(&requirements))?;
    let package = ["-p", "shafer-data", "--locked"];
    run(cargo().arg("build").args(package).args(["--example", "convert"]))?;
    let script = root.join("crates/shafer-data/tests/interop/check.py");
    run(Command::new(&python).arg(script).arg(target("debug/examples/convert")?))?;
    run(cargo().args(["build", "-p", "shafer-lab", "--locked", "--bin", "shafer"]))?;
    let script = root.join("crates/shafer-lab/tests/interop/tables.py");
    run(Command::new(&python).arg(script).arg(target("debug/shafer")?))
}

/// Tests the networks on a GPU.
fn gpu() -> Result<(), String> {
    let package = ["-p", "shafer-nets", "--features", "gpu", "--locked"];
    // Without optimisation and debug information, which take longer to make than they save.
    let profile = ["--profile", "dev", "--test", "gpu", "--", "--nocapture"];
    let environment =
        [("CARGO_TARGET_DIR", target("gpu")?), ("CARGO_PROFILE_DEV_DEBUG", "false".into())];
    run(cargo().arg("test").args(package).args(profile).envs(environment))
}

/// An absolute path in the target folder.
fn target(name: &str) -> Result<PathBuf, String> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(default, PathBuf::from);
    std::path::absolute(target.join(name)).map_err(|e| e.to_string())
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command. An error includes the command line to reproduce it.
fn run(command: &mut Command) -> Result<(), String> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let text = words.join(" ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("failed; to run it alone: {text}")),
        Err(error) => Err(format!("cannot start: {text}: {error}")),
    }
}
