//! Integers of rows, read block by block with them: true classes, and groups.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};
use half::{bf16, f16};
use shafer_data::{ArrayReader, Location, Values, open_label_parts, open_labels};

use crate::words::counted;

/// What the integers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// True classes.
    Label,
    /// Groups of rows, with any numbers.
    Group,
}

impl Kind {
    fn option(self) -> &'static str {
        match self {
            Self::Label => "--labels",
            Self::Group => "--row-groups",
        }
    }

    fn numbered(self) -> &'static str {
        match self {
            Self::Label => "classes",
            Self::Group => "groups",
        }
    }

    fn noun(self) -> &'static str {
        match self {
            Self::Label => "label",
            Self::Group => "group",
        }
    }

    /// The hint for a file that holds something else, such as names.
    fn hint(self) -> &'static str {
        match self {
            Self::Label => {
                "--labels takes the number of the true class of each row, --class-names takes names"
            }
            Self::Group => "--row-groups takes the number of the group of each row",
        }
    }
}

/// Reads an integer for each row, block by block with the rows.
pub(crate) struct Labels {
    name: String,
    kind: Kind,
    reader: Box<dyn ArrayReader>,
    block: Values,
    found: Vec<u32>,
}

impl Labels {
    pub(crate) fn open(name: &OsStr, kind: Kind) -> Result<Self> {
        let location = Location::parse(name);
        if location.path.is_none() {
            bail!("{} cannot be standard input; give a file", kind.option());
        }
        let reader = open_labels(&location).map_err(|error| hinted(error, kind))?;
        let name = Path::new(name).display().to_string();
        Ok(Self { name, kind, reader, block: Values::default(), found: Vec::new() })
    }

    /// The integers in the column `column` of the files that the rows are from.
    pub(crate) fn of_parts(paths: &[PathBuf], column: &str, kind: Kind) -> Result<Self> {
        let reader = open_label_parts(paths, column)?;
        let name = match paths {
            [path] => format!("{}:{column}", path.display()),
            _ => format!("the column {column}"),
        };
        Ok(Self { name, kind, reader, block: Values::default(), found: Vec::new() })
    }

    /// The integers of the next rows, starting at row `first`. True classes are below `classes`.
    pub(crate) fn next(&mut self, first: usize, rows: usize, classes: usize) -> Result<&[u32]> {
        self.reader.read(rows, &mut self.block).map_err(|error| hinted(error, self.kind))?;
        let (name, noun) = (&self.name, self.kind.noun());
        if self.block.len() < rows {
            let row = first + self.block.len();
            return Err(problem(
                name,
                format!("has only {}, none for row {row}", counted(row, "label")),
            ));
        }
        self.found.clear();
        for place in 0..rows {
            let label = match &self.block {
                Values::F16(v) => f16::to_f64(v[place]),
                Values::Bf16(v) => bf16::to_f64(v[place]),
                Values::F32(v) => f64::from(v[place]),
                Values::F64(v) => v[place],
            };
            let row = first + place;
            if label.fract() != 0.0 || !label.is_finite() {
                let what = format!("the {noun} of row {row} is {label}, which is not an integer");
                return Err(problem(name, what));
            }
            let most = if self.kind == Kind::Label { classes } else { 1 << 32 };
            if label < 0.0 || label >= most as f64 {
                let last = most - 1;
                let what = format!(
                    "the {noun} of row {row} is {label}, but {} are 0 to {last}",
                    self.kind.numbered()
                );
                return Err(problem(name, what));
            }
            self.found.push(label as u32);
        }
        Ok(&self.found)
    }

    /// Fails if there are more labels than rows.
    pub(crate) fn finish(&mut self, rows: usize) -> Result<()> {
        self.reader.read(1, &mut self.block).map_err(|error| hinted(error, self.kind))?;
        if !self.block.is_empty() {
            let what = format!(
                "has more {}s than the input, which has {}",
                self.kind.noun(),
                counted(rows, "row")
            );
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
fn hinted(error: shafer_data::Error, kind: Kind) -> anyhow::Error {
    match error {
        shafer_data::Error::Format { file, problem: what, .. }
        | shafer_data::Error::Request { file, problem: what } => {
            problem(&file, format!("{what}; {}", kind.hint()))
        }
        error => error.into(),
    }
}
