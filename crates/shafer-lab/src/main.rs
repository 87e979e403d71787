//! The command line tool `shafer`.

mod behaviour;
mod cli;
mod columns;
mod commands;
mod compare;
mod data;
mod demo;
mod experiment;
mod explain;
mod figure;
mod folder_lock;
mod groups;
mod head;
mod interrupt;
mod joint;
mod judge;
mod method;
mod page;
mod paper;
mod progress;
mod report;
mod reproduce;
mod sparsify;
mod stream;
mod summary;
#[allow(dead_code, reason = "what shows a trained network calls it")]
mod terminal;

use std::process::ExitCode;

use clap::Parser as _;

/// Training allocates and frees a lot: a third of its time depends on how.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match commands::run(&cli::Cli::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report_error(&error),
    }
}
