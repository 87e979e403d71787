//! The command line tool `shafer`.

mod cli;
mod commands;
mod compare;
mod data;
mod explain;
mod groups;
mod head;
mod interrupt;
mod joint;
mod method;
mod progress;
mod sparsify;
mod stream;
mod summary;
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    match commands::run(&cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report(&error),
    }
}
