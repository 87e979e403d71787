//! The true classes of rows, and the accuracy and loss of methods.

use std::ffi::OsStr;
use std::path::Path;

use anyhow::{Result, bail};
use half::{bf16, f16};
use serde::Serialize;
use shafer_data::{ArrayReader, Location, Values, open_labels};

use super::interval::clopper_pearson;
use crate::words::counted;

/// Reads the true classes block by block with the rows.
pub(crate) struct Labels {
    name: String,
    reader: Box<dyn ArrayReader>,
    block: Values,
    classes: Vec<u32>,
}

/// The hint for a file that holds names instead of numbers.
const HINT: &str =
    "--labels takes the number of the true class of each row, --class-names takes names";

impl Labels {
    pub(crate) fn open(name: &OsStr) -> Result<Self> {
        let location = Location::parse(name);
        if location.path.is_none() {
            bail!("--labels cannot be standard input; give a file");
        }
        let reader = open_labels(&location).map_err(hinted)?;
        let name = Path::new(name).display().to_string();
        Ok(Self { name, reader, block: Values::default(), classes: Vec::new() })
    }

    /// The true classes of the next rows, starting at row `first`.
    pub(super) fn next(&mut self, first: usize, rows: usize, classes: usize) -> Result<&[u32]> {
        self.reader.read(rows, &mut self.block).map_err(hinted)?;
        let name = &self.name;
        if self.block.len() < rows {
            let row = first + self.block.len();
            return Err(problem(
                name,
                format!("has only {}, none for row {row}", counted(row, "label")),
            ));
        }
        self.classes.clear();
        for place in 0..rows {
            let label = match &self.block {
                Values::F16(v) => f16::to_f64(v[place]),
                Values::Bf16(v) => bf16::to_f64(v[place]),
                Values::F32(v) => f64::from(v[place]),
                Values::F64(v) => v[place],
            };
            let row = first + place;
            if label.fract() != 0.0 || !label.is_finite() {
                let what = format!("the label of row {row} is {label}, which is not an integer");
                return Err(problem(name, what));
            }
            if label < 0.0 || label >= classes as f64 {
                let last = classes - 1;
                let what =
                    format!("the label of row {row} is {label}, but classes are 0 to {last}");
                return Err(problem(name, what));
            }
            self.classes.push(label as u32);
        }
        Ok(&self.classes)
    }

    /// Fails if there are more labels than rows.
    pub(super) fn finish(&mut self, rows: usize) -> Result<()> {
        self.reader.read(1, &mut self.block).map_err(hinted)?;
        if !self.block.is_empty() {
            let what =
                format!("has more labels than the input, which has {}", counted(rows, "row"));
            return Err(problem(&self.name, what));
        }
        Ok(())
    }
}

/// An error about the file of labels.
fn problem(file: &str, problem: String) -> anyhow::Error {
    shafer_data::Error::Request { file: file.to_owned(), problem }.into()
}

/// Adds the hint, except to I/O errors.
fn hinted(error: shafer_data::Error) -> anyhow::Error {
    match error {
        shafer_data::Error::Format { file, problem: what, .. }
        | shafer_data::Error::Request { file, problem: what } => {
            problem(&file, format!("{what}; {HINT}"))
        }
        error => error.into(),
    }
}

/// The true class of a row under a method.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    /// Whether it is the arg-max, the first of ties.
    pub(super) is_best: bool,
    /// Zero for a dropped class.
    pub(super) probability: f64,
}

/// Sums over rows.
#[derive(Clone, Debug, Default)]
pub(super) struct TruthTotals {
    rows: u64,
    best: u64,
    dropped: u64,
    loss: f64,
}

/// Accuracy and loss of a method over the rows for which it has a distribution.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TruthReport {
    /// The share of rows whose arg-max (the first of ties) is the true class.
    pub(crate) accuracy: f64,
    /// Rows in which the true class has probability 0: their log-loss is infinite.
    pub(crate) dropped: u64,
    pub(crate) dropped_share: f64,
    /// The Clopper-Pearson 95% interval of that share.
    pub(crate) dropped_interval: [f64; 2],
    /// `-ln p` of the true class in nats, mean over the other rows.
    pub(crate) log_loss_of_kept: Option<f64>,
}

impl TruthTotals {
    pub(super) fn add(&mut self, truth: Truth) {
        self.rows += 1;
        self.best += u64::from(truth.is_best);
        if truth.probability > 0.0 {
            self.loss -= truth.probability.ln();
        } else {
            self.dropped += 1;
        }
    }

    /// `None` without labels or rows.
    pub(super) fn report(&self) -> Option<TruthReport> {
        let Self { rows, best, dropped, loss } = *self;
        (rows > 0).then(|| TruthReport {
            accuracy: best as f64 / rows as f64,
            dropped,
            dropped_share: dropped as f64 / rows as f64,
            dropped_interval: clopper_pearson(dropped, rows),
            log_loss_of_kept: (dropped < rows).then(|| loss / (rows - dropped) as f64),
        })
    }
}
