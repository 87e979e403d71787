//! `shafer query`: starts `shafer-sql`, a program of its own because its engine is large.

use std::ffi::OsString;
use std::io;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use crate::cli::Cli;

const PROGRAM: &str = "shafer-sql";

/// Becomes `shafer-sql query`, which lies beside this program or on the path.
pub(crate) fn run(cli: &Cli, arguments: &[OsString]) -> Result<()> {
    let name = format!("{PROGRAM}{}", std::env::consts::EXE_SUFFIX);
    let beside = std::env::current_exe().ok().map(|this| this.with_file_name(&name));
    let beside = beside.filter(|beside| beside.is_file());
    let program = beside.as_deref().unwrap_or(Path::new(PROGRAM));
    let mut command = Command::new(program);
    command.arg("query").args(arguments);
    // Clap takes these wherever they are.
    command.args(cli.json.then_some("--json")).args(cli.quiet.then_some("--quiet"));
    if let Some(threads) = cli.threads {
        command.arg("--threads").arg(threads.to_string());
    }
    let problem = become_it(&mut command);
    if problem.kind() == io::ErrorKind::NotFound {
        bail!(
            "query is done by {PROGRAM}, which is not installed; run `cargo install --path crates/{PROGRAM}`"
        );
    }
    Err(problem).with_context(|| format!("cannot start {}", program.display()))
}

#[cfg(unix)]
fn become_it(command: &mut Command) -> io::Error {
    use std::os::unix::process::CommandExt as _;

    command.exec()
}

#[cfg(not(unix))]
fn become_it(command: &mut Command) -> io::Error {
    match command.status() {
        Ok(status) => std::process::exit(status.code().unwrap_or(2)),
        Err(problem) => problem,
    }
}
