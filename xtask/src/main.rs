//! Development tasks. `cargo xtask check` is the gate: what it accepts, CI accepts.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::process::{Command, ExitCode};
use std::time::Instant;

const HELP: &str = "\
Usage: cargo xtask check [STEP...]

Runs what CI runs, in this order; with STEPs, only those.
";

/// A step's name, what it is for, the arguments to cargo, and the environment it needs.
type Step =
    (&'static str, &'static str, &'static [&'static str], &'static [(&'static str, &'static str)]);

const KERNEL_TESTS: &[&str] =
    &["test", "-p", "shafer", "--locked", "--test", "transforms", "--test", "fixtures"];

const STEPS: [Step; 9] = [
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
    ("bench", "benchmarks compile", &["bench", "--workspace", "--locked", "--no-run"], &[]),
];

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let Some(("check", wanted)) =
        arguments.split_first().map(|(first, rest)| (first.as_str(), rest))
    else {
        eprint!("{HELP}");
        for (name, purpose, ..) in STEPS {
            eprintln!("  {name:<9} {purpose}");
        }
        return ExitCode::from(2);
    };
    if let Some(unknown) = wanted.iter().find(|step| STEPS.iter().all(|(name, ..)| name != step)) {
        eprintln!("there is no step {unknown:?}; `cargo xtask` lists them");
        return ExitCode::from(2);
    }
    for (name, purpose, arguments, environment) in STEPS {
        if !wanted.is_empty() && wanted.iter().all(|step| step != name) {
            continue;
        }
        println!("==> {name}: {purpose}");
        let start = Instant::now();
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let status = Command::new(cargo).args(arguments).envs(environment.iter().copied()).status();
        match status {
            Ok(status) if status.success() => {
                println!("==> {name}: fine, {:.0} s", start.elapsed().as_secs_f64());
            }
            Ok(_) => {
                eprintln!(
                    "==> {name}: failed; run `cargo {}` to see it alone",
                    arguments.join(" ")
                );
                return ExitCode::FAILURE;
            }
            Err(error) => {
                eprintln!("==> {name}: cannot start cargo: {error}");
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}
