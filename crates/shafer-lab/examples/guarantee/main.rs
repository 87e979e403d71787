//! Measures guarantees for what is dropped, on the networks that are part of the program, and on those of a run.
//!
//! `cargo run --release -p shafer-lab --example guarantee -- results/guarantee.json DATA [RUN]` writes the results, and two
//! calibrations of the predictor of pedestrians beside them. DATA is a folder with the data sets `mnist`, `fashion` and
//! `ethucy`, as `shafer data fetch` makes it. RUN is the folder of a run of `shafer reproduce vqvae`, whose data set is in
//! DATA, too. It takes some minutes, and gives the same numbers on every run.

mod codes;
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
    #[serde(skip_serializing_if = "Option::is_none")]
    codes: Option<codes::Measured>,
}

fn main() -> Outcome<()> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(out), Some(data)) = (arguments.next(), arguments.next()) else {
        return Err(
            "give the output, the folder of the data sets, and if wanted that of a run of vqvae"
                .into(),
        );
    };
    let folders = [data];
    // First, because a wrong folder is noticed there.
    let codes = arguments.next().map(|run| codes::measure(&run, &folders)).transpose()?;
    let (behaviour, calibrations) = pedestrians::measure(&folders)?;
    let results = Results {
        version: 1,
        made_by: "cargo run --release -p shafer-lab --example guarantee -- results/guarantee.json DATA [RUN]",
        images: images::measure(&folders)?,
        behaviour,
        codes,
    };
    for (name, calibration) in calibrations {
        let beside = out.with_file_name(name);
        std::fs::write(beside, serde_json::to_string_pretty(&calibration)? + "\n")?;
    }
    std::fs::write(out, serde_json::to_string_pretty(&results)? + "\n")?;
    Ok(())
}
