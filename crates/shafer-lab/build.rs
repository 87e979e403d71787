//! Tells the program which revision it is built from, and whether its source was changed since.

use std::process::Command;

fn main() {
    // The first changes with every commit, the others with every edit. A package without a repository
    // has no such log, and no revision.
    let log = "../../.git/logs/HEAD";
    if std::path::Path::new(log).exists() {
        for place in [log, "../../crates", "../../configs", "../../Cargo.lock"] {
            println!("cargo::rerun-if-changed={place}");
        }
    } else {
        println!("cargo::rerun-if-changed=build.rs");
    }
    let describe = ["describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=-modified"];
    let revision = Command::new("git").args(describe).output();
    let revision = revision.ok().filter(|output| output.status.success());
    let revision = revision.and_then(|output| String::from_utf8(output.stdout).ok());
    let revision = revision.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    let version = || format!("version {}", env!("CARGO_PKG_VERSION"));
    println!("cargo::rustc-env=SHAFER_REVISION={}", revision.unwrap_or_else(version));
}
