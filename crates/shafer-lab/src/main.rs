//! The command line tool `shafer`.

mod cli;
mod commands;
mod compare;
#[allow(dead_code, unused_imports, reason = "what trains the networks calls it")]
mod experiment;
mod explain;
mod figure;
mod groups;
mod head;
mod interrupt;
mod joint;
mod method;
mod page;
mod paper;
mod progress;
mod report;
mod sparsify;
mod stream;
mod summary;
#[allow(dead_code, reason = "what shows a trained network calls it")]
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match commands::run(&cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report_error(&error),
    }
}
