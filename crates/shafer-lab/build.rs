//! Tells the program which revision it is built from.

use std::process::Command;

fn main() {
    // Changes with every commit. A package without a repository has no such file, and no revision.
    let log = "../../.git/logs/HEAD";
    if std::path::Path::new(log).exists() {
        println!("cargo::rerun-if-changed={log}");
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
    let revision = Command::new("git").args(["rev-parse", "--short=12", "HEAD"]).output();
    let revision = revision.ok().filter(|output| output.status.success());
    let revision = revision.and_then(|output| String::from_utf8(output.stdout).ok());
    let revision = revision.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let version = || format!("version {}", env!("CARGO_PKG_VERSION"));
    println!("cargo::rustc-env=SHAFER_REVISION={}", revision.unwrap_or_else(version));
}
