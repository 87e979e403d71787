//! The command line tool `shafer`.

mod cli;
mod commands;
mod compare;
#[allow(dead_code, unused_imports, reason = "what trains the networks calls it")]
mod experiment;
mod explain;
mod head;
mod interrupt;
mod method;
mod progress;
mod sparsify;
mod stream;
mod summary;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match commands::run(&cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report(&error),
    }
}
