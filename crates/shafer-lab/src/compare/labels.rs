//! The true classes of rows, and how methods fare by them.

use anyhow::{Result, bail};
use half::{bf16, f16};
use serde::Serialize;
use shafer_data::{ArrayReader, Location, Values, open_labels};

use super::interval::clopper_pearson;

/// The true classes, read along with the rows.
pub(crate) struct Labels {
    name: String,
    reader: Box<dyn ArrayReader>,
    block: Values,
    classes: Vec<u32>,
}

/// What a file of names is told that was meant to be a file of numbers.
const NAMES: &str =
    "--labels takes the number of the true class of each row, --class-names takes names";

impl Labels {
    pub(crate) fn open(name: &str) -> Result<Self> {
        let location = Location::parse(name);
        if location.path.is_none() {
            bail!("--labels cannot be standard input; give a file");
        }
        let reader = open_labels(&location).map_err(hinted)?;
        Ok(Self { name: name.to_owned(), reader, block: Values::default(), classes: Vec::new() })
    }

    /// The true classes of the next rows, of which the first has this number.
    pub(super) fn next(&mut self, first: usize, rows: usize, classes: usize) -> Result<&[u32]> {
        self.reader.read(rows, &mut self.block).map_err(hinted)?;
        let name = &self.name;
        if self.block.len() < rows {
            let row = first + self.block.len();
            return Err(problem(
                name,
                format!("has {row} labels, but there are more rows: row {row} has none"),
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
                let what =
                    format!("the label of row {row} is {label}, but must be the number of a class");
                return Err(problem(name, what));
            }
            if label < 0.0 || label >= classes as f64 {
                let last = classes - 1;
                let what =
                    format!("the label of row {row} is {label}, but the classes are 0 to {last}");
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
            let what = format!("has more labels than the {rows} rows: there is no row {rows}");
            return Err(problem(&self.name, what));
        }
        Ok(())
    }
}

/// Names the file of labels, and not that of logits.
fn problem(file: &str, problem: String) -> anyhow::Error {
    shafer_data::Error::Request { file: file.to_owned(), problem }.into()
}

/// Says what labels are, unless the operating system is to blame.
fn hinted(error: shafer_data::Error) -> anyhow::Error {
    match error {
        shafer_data::Error::Format { file, problem: what, .. }
        | shafer_data::Error::Request { file, problem: what } => {
            problem(&file, format!("{what}; {NAMES}"))
        }
        error => error.into(),
    }
}

/// What a method makes of a true class.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truth {
    /// Whether it is the first of the most probable classes.
    pub(super) is_best: bool,
    /// 0 if it was dropped.
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

/// How a method fares by the true classes, over the rows that it gives a distribution for.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TruthReport {
    /// The share of rows whose most probable class is the true one; of several, the first.
    pub(crate) accuracy: f64,
    /// Rows in which the true class has probability 0: their log-loss is infinite.
    pub(crate) dropped: u64,
    pub(crate) dropped_share: f64,
    /// The 95% interval of Clopper and Pearson for that share.
    pub(crate) dropped_interval: [f64; 2],
    /// `-ln p` of the true class in nats; the mean over the other rows.
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
