//! The command line tool `shafer`.

mod atomic;
mod calibrate;
mod cli;
mod columns;
mod commands;
mod compare;
mod data;
mod demo;
mod drawing;
mod experiments;
mod explain;
mod folder_lock;
mod groups;
mod head;
mod interrupt;
mod joint;
mod labels;
mod many_classes;
mod memory;
mod method;
mod one_row;
mod output;
mod page;
mod predict;
mod progress;
mod query;
mod sparsify;
mod stream;
mod summary;
mod tables;
mod terminal;
mod words;

use std::process::ExitCode;

use clap::Parser as _;

/// Training allocates and frees a lot: mimalloc saves a third of its time.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let done = match cli::Cli::try_parse() {
        Ok(cli) => commands::run(&cli),
        Err(usage) if usage.use_stderr() => usage.exit(),
        Err(help) => commands::print_help(&help),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => commands::report_error(&error),
    }
}
