//! `shafer sparsify`: a file of logits in, sparse distributions or their summary out.

use std::fmt;
use std::time::Instant;

use anyhow::Result;
use serde::Serialize;
use shafer::{CompressedRows, Element, Logits, Transform, TransformExt};
use shafer_data::{RowWriter, SparseRows, Values, ValuesRef};

use crate::progress::Progress;
use crate::stream::{Rows, Shape};
use crate::summary::{SizeCounts, SizeSummary};

/// What became of a file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) method: &'static str,
    pub(crate) rows: usize,
    pub(crate) classes: usize,
    /// `None` if there are no rows.
    pub(crate) kept: Option<SizeSummary>,
    /// Rows in which the evidence favours no class.
    pub(crate) vacuous: usize,
    pub(crate) seconds: f64,
}

/// Goes through all rows, and writes them if there is where to.
pub(crate) fn sparsify(
    rows: Rows,
    transform: &dyn Transform,
    temperature: f64,
    mut output: Option<Output>,
    mut progress: Progress,
) -> Result<Report> {
    let start = Instant::now();
    let shape = rows.shape();
    let mut job = Job {
        transform,
        temperature,
        shape,
        counts: SizeCounts::new(shape.classes),
        sizes: Vec::new(),
        rows: 0,
        vacuous: 0,
    };
    rows.for_each(|first, block| {
        match block {
            Values::F16(logits) => job.block(first, logits, output.as_mut()),
            Values::Bf16(logits) => job.block(first, logits, output.as_mut()),
            Values::F32(logits) => job.block(first, logits, output.as_mut()),
            Values::F64(logits) => job.block(first, logits, output.as_mut()),
        }?;
        progress.add(block.len() / shape.classes);
        Ok(())
    })?;
    if let Some(output) = output {
        output.writer.finish()?;
    }
    Ok(Report {
        method: transform.name(),
        rows: job.rows,
        classes: shape.classes,
        kept: job.counts.summary(),
        vacuous: job.vacuous,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Where rows go.
pub(crate) struct Output {
    pub(crate) writer: Box<dyn RowWriter>,
    /// With their zeros, in the layout of the input.
    pub(crate) dense: bool,
}

struct Job<'a> {
    transform: &'a dyn Transform,
    temperature: f64,
    shape: Shape,
    counts: SizeCounts,
    sizes: Vec<u32>,
    rows: usize,
    vacuous: usize,
}

impl Job<'_> {
    fn block<E: Element>(
        &mut self,
        first: usize,
        logits: &[E],
        output: Option<&mut Output>,
    ) -> Result<()>
    where
        for<'a> &'a [E]: Into<ValuesRef<'a>>,
    {
        let Shape { classes, inner } = self.shape;
        let dimensions = [logits.len() / (classes * inner), classes, inner];
        let strides = [(classes * inner) as isize, inner as isize, 1];
        let input = if inner == 1 {
            Logits::rows(logits, classes)?
        } else {
            Logits::strided(logits, &dimensions, &strides, 0, 1)?
        };
        let input = input.temperature(self.temperature)?.parallel(true);
        self.sizes.resize(input.row_count(), 0);
        let report = match output {
            None => self.transform.support_sizes(&input, &mut self.sizes),
            Some(Output { writer, dense: true }) => {
                let mut out = vec![E::default(); logits.len()];
                let report = self.transform.dense(&input, &mut out);
                report.map_err(|error| in_file(error, first))?;
                writer.write_dense(out[..].into())?;
                self.transform.support_sizes(&input, &mut self.sizes)
            }
            Some(Output { writer, dense: false }) => {
                let mut kept = CompressedRows::new();
                let report = self.transform.compressed_into(&input, &mut kept);
                let report = report.map_err(|error| in_file(error, first))?;
                writer.write(SparseRows::new(kept.indptr(), kept.indices(), kept.values().into()))?;
                for (size, (indices, _)) in self.sizes.iter_mut().zip(kept.iter()) {
                    *size = indices.len() as u32;
                }
                Ok(report)
            }
        };
        let report = report.map_err(|error| in_file(error, first))?;
        self.counts.add(&self.sizes);
        self.rows += report.rows;
        self.vacuous += report.vacuous;
        Ok(())
    }
}

/// The same error with the row's number in the file instead of the block.
pub(crate) fn in_file(mut error: shafer::Error, first: usize) -> shafer::Error {
    if let shafer::Error::Value { row, .. } | shafer::Error::Row { row, .. } = &mut error {
        *row += first;
    }
    error
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} rows of {} classes, {}", self.rows, self.classes, self.method)?;
        let Some(kept) = &self.kept else { return writeln!(f, "there are no rows") };
        writeln!(
            f,
            "kept per row   mean {:.2}, median {}, 90% {}, 99% {}, smallest {}, largest {}",
            kept.mean, kept.median, kept.p90, kept.p99, kept.smallest, kept.largest
        )?;
        writeln!(
            f,
            "reduction      {:.1}% by the mean, {:.1}% by the largest",
            kept.reduction_percent, kept.reduction_percent_by_largest
        )?;
        if self.vacuous > 0 {
            writeln!(
                f,
                "vacuous        {} rows have equal logits: nothing is dropped there",
                self.vacuous
            )?;
        }
        let rate = self.rows as f64 / self.seconds.max(1e-9);
        writeln!(f, "time           {:.2} s, {rate:.0} rows a second", self.seconds)
    }
}
