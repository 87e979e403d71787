//! Copies an array from one format to another, row by row: `convert IN OUT`.
//!
//! If OUT is `-`, it only reads, and prints the throughput.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program for the terminal")]

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use shafer_data::{Location, Values, create, open};

/// Large enough to keep the disk busy, small enough for the cache.
const BLOCK: usize = 1 << 18;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [input, output] => convert(input, output),
        _ => Err("usage: convert IN OUT".into()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn convert(input: &str, output: &str) -> Result<(), Box<dyn Error>> {
    let started = Instant::now();
    let mut reader = open(&Location::parse(input))?;
    let (dtype, classes) = (reader.info().dtype, *reader.info().shape.last().unwrap_or(&1));
    let mut writer = match output {
        "-" => None,
        path => Some(create(Path::new(path), classes, dtype)?),
    };
    let rows = (BLOCK / classes.max(1)).max(1);
    let (mut block, mut bytes) = (Values::new(dtype), 0);
    loop {
        reader.read(rows * classes, &mut block)?;
        if block.is_empty() {
            break;
        }
        bytes += block.len() * dtype.size();
        if let Some(writer) = &mut writer {
            writer.write_dense(block.view())?;
        }
    }
    if let Some(writer) = writer {
        writer.finish()?;
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{}: {bytes} bytes, {:.2} GB/s", reader.info(), bytes as f64 / seconds / 1e9);
    Ok(())
}
