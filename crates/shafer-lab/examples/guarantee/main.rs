//! Measures guarantees for what is dropped, on the networks that are part of the program.
//!
//! `cargo run --release -p shafer-lab --example guarantee -- results/guarantee.json DATA` writes the results, and a calibration of
//! the predictor of pedestrians beside them. DATA is a
//! folder with the data sets `mnist`, `fashion` and `ethucy`, as `shafer data fetch` makes it. It takes some minutes, and gives
//! the same numbers on every run.

mod found;
mod images;
mod pedestrians;

use std::error::Error;
use std::path::PathBuf;

use serde::Serialize;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The results.
#[derive(Serialize)]
struct Results {
    version: u32,
    made_by: &'static str,
    images: Vec<images::Measured>,
    behaviour: pedestrians::Measured,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(out), Some(data)) = (arguments.next(), arguments.next()) else {
        return Err("give the output and the folder of the data sets".into());
    };
    let folders = [data];
    let (behaviour, calibration) = pedestrians::measure(&folders)?;
    let results = Results {
        version: 1,
        made_by: "cargo run --release -p shafer-lab --example guarantee -- results/guarantee.json DATA",
        images: images::measure(&folders)?,
        behaviour,
    };
    let beside = out.with_file_name("behaviour-calibration.json");
    std::fs::write(beside, serde_json::to_string_pretty(&calibration)? + "\n")?;
    std::fs::write(out, serde_json::to_string_pretty(&results)? + "\n")?;
    Ok(())
}
