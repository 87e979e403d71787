//! Development tasks. `cargo xtask check` is the gate: what it accepts, CI accepts.
//! `cargo xtask interop` checks the file formats against the programs of others, `cargo xtask picture`
//! draws the picture of the README.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

mod picture;

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
Usage: cargo xtask interop
       cargo xtask picture
       cargo xtask gpu
       cargo xtask check [STEP...]

interop: other programs read the files that we write, and we those that they write. Their Python
packages go into target/interop-venv at the first run; PYTHON names the python3 to begin with.

picture: draws docs/compare.png with Chromium; CHROMIUM names it, if it is not in /usr/bin.

gpu: builds shafer-nets with the feature gpu, and compares training steps on the GPU with those on the
CPU. It needs a Vulkan driver; Mesa's lavapipe, which computes on the CPU, is enough. The first run
compiles for 25 minutes of CPU time, into target/gpu.

check: runs what CI runs, in this order; with STEPs, only those.
";

/// A step's name, what it is for, the arguments to cargo, and the environment it needs.
type Step =
    (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

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

const STEPS: [Step; 10] = [
    ("format", "the code is formatted", &["fmt", "--all", "--check"], &[]),
    (
        "lint",
        "clippy has nothing to say",
        &["clippy", "--workspace", "--all-targets", "--locked", "--", "--deny", "warnings"],
        &[],
    ),
    (
        "bare",
        "the core without its features",
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
    ("test", "unit and integration tests", &["test", "--workspace", "--locked", "--tests"], &[]),
    (
        "doctest",
        "the examples in the documentation",
        &["test", "--workspace", "--locked", "--doc"],
        &[],
    ),
    (
        "avx2",
        "the same results without the widest vectors",
        KERNEL_TESTS,
        &[("RUSTFLAGS", "--cfg disable_dispatch_avx512"), ("CARGO_TARGET_DIR", "target/avx2")],
    ),
    (
        "sse",
        "and with vectors of four, which multiply and add in two roundings",
        KERNEL_TESTS,
        &[
            ("RUSTFLAGS", "--cfg disable_dispatch_avx512 --cfg disable_dispatch_avx2"),
            ("CARGO_TARGET_DIR", "target/sse"),
        ],
    ),
    (
        "docs",
        "rustdoc has nothing to say",
        &["doc", "--workspace", "--no-deps", "--locked"],
        &[("RUSTDOCFLAGS", "--deny warnings")],
    ),
    ("bench", "the benchmark compiles", &["bench", "-p", "shafer", "--locked", "--no-run"], &[]),
    (
        "fuzz",
        "the fuzz targets compile",
        &["check", "--manifest-path", "fuzz/Cargo.toml", "--all-targets", "--locked"],
        // Checking links nothing, so that libFuzzer itself, which is C++, need not be compiled.
        &[("CARGO_TARGET_DIR", "target/fuzz"), ("CUSTOM_LIBFUZZER_PATH", "target/libfuzzer.a")],
    ),
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
        return Err(format!("there is no step {unknown:?}; `cargo xtask` lists them"));
    }
    for (name, purpose, arguments, environment) in STEPS {
        if !wanted.is_empty() && wanted.iter().all(|step| step != name) {
            continue;
        }
        println!("==> {name}: {purpose}");
        let start = Instant::now();
        let mut command = cargo();
        command.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(".."));
        run(command.args(arguments).envs(environment.iter().copied()))
            .map_err(|problem| format!("==> {name}: {problem}"))?;
        println!("==> {name}: fine, {:.0} s", start.elapsed().as_secs_f64());
    }
    Ok(())
}

/// Makes a virtual environment, unless it is there and complete, and runs the script that needs it.
fn interop() -> Result<(), String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let requirements = root.join("crates/shafer-data/tests/interop/requirements.txt");
    let venv = target("interop-venv")?;
    let python = venv.join(if cfg!(windows) { "Scripts/python.exe" } else { "bin/python" });
    if !python.exists() {
        let base = env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
        run(Command::new(base).args(["-m", "venv"]).arg(&venv))?;
    }
    // Fast when everything is there, and right when the requirements have changed.
    let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r"];
    run(Command::new(&python).args(pip).arg(&requirements))?;
    let package = ["-p", "shafer-data", "--locked"];
    run(cargo().arg("build").args(package).args(["--example", "convert"]))?;
    let script = root.join("crates/shafer-data/tests/interop/check.py");
    run(Command::new(&python).arg(script).arg(target("debug/examples/convert")?))
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

/// A place among what is built, as an absolute path.
fn target(name: &str) -> Result<PathBuf, String> {
    let default = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../target");
    let target = env::var_os("CARGO_TARGET_DIR").map_or_else(default, PathBuf::from);
    std::path::absolute(target.join(name)).map_err(|e| e.to_string())
}

fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command to its end, or says how it can be run alone.
fn run(command: &mut Command) -> Result<(), String> {
    let words: Vec<_> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let text = words.join(" ");
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(format!("failed; to see it alone, run: {text}")),
        Err(error) => Err(format!("cannot start: {text}: {error}")),
    }
}
