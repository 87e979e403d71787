//! `shafer sparsify`: a file of logits in, sparse distributions or their summary out.

use std::fmt;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use anyhow::{Result, bail};
use half::{bf16, f16};
use serde::Serialize;
use shafer::{CompressedRows, Element, Logits, Transform, TransformExt};
use shafer_data::{Dtype, RowWriter, SparseRows, Values, ValuesRef};

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
    output: Option<Output>,
    progress: Progress,
) -> Result<Report> {
    let typed = match rows.dtype() {
        Dtype::F16 => typed::<f16>,
        Dtype::Bf16 => typed::<bf16>,
        Dtype::F32 => typed::<f32>,
        Dtype::F64 => typed::<f64>,
    };
    typed(rows, transform, temperature, output, progress)
}

/// Where rows go.
pub(crate) struct Output {
    pub(crate) writer: Box<dyn RowWriter>,
    /// With their zeros, in the layout of the input.
    pub(crate) dense: bool,
}

/// A type of logits, and how to find it in a block.
pub(crate) trait Typed: Element {
    fn of(values: &Values) -> &[Self];
    fn view(values: &[Self]) -> ValuesRef<'_>;
}

macro_rules! typed {
    ($($type:ty, $variant:ident;)*) => {$(
        impl Typed for $type {
            fn of(values: &Values) -> &[Self] {
                // A reader gives what it says it gives.
                if let Values::$variant(values) = values { values } else { &[] }
            }

            fn view(values: &[Self]) -> ValuesRef<'_> {
                ValuesRef::$variant(values)
            }
        }
    )*};
}

typed! { f16, F16; bf16, Bf16; f32, F32; f64, F64; }

fn typed<E: Typed>(
    rows: Rows,
    transform: &dyn Transform,
    temperature: f64,
    output: Option<Output>,
    mut progress: Progress,
) -> Result<Report> {
    let start = Instant::now();
    let shape = rows.shape();
    let mask = rows.mask().map(<[bool]>::to_vec);
    let mut counts = SizeCounts::new(shape.classes);
    let mut total = (0, 0);
    let mut sizes = Vec::new();
    // One block is written while the next is computed.
    let (full, blocks) = sync_channel::<Block<E>>(1);
    let (empty, used) = sync_channel::<Block<E>>(3);
    std::thread::scope(|scope| {
        let dense = output.as_ref().map(|output| output.dense);
        let writer = output.map(|output| scope.spawn(move || write(output, blocks, &empty)));
        let computed = rows.for_each(|first, values| {
            let logits = E::of(values);
            let report = with_input(logits, shape, mask.as_deref(), temperature, |input| {
                sizes.resize(input.row_count(), 0);
                let Some(dense) = dense else {
                    return transform.support_sizes(input, &mut sizes);
                };
                let mut block = used.try_recv().unwrap_or_default();
                let report = if dense {
                    block.dense.resize(logits.len(), E::default());
                    transform.dense(input, &mut block.dense)?;
                    transform.support_sizes(input, &mut sizes)?
                } else {
                    let report = transform.compressed_into(input, &mut block.sparse)?;
                    for (size, (indices, _)) in sizes.iter_mut().zip(block.sparse.iter()) {
                        *size = indices.len() as u32;
                    }
                    report
                };
                // If the writer has stopped, it says why when it is joined.
                let _ = full.send(block);
                Ok(report)
            })
            .map_err(|error| in_file(error, first))?;
            if writer.as_ref().is_some_and(ScopedJoinHandle::is_finished) {
                bail!("the output could not be written");
            }
            counts.add(&sizes);
            total.0 += report.rows;
            total.1 += report.vacuous;
            progress.add(report.rows);
            Ok(())
        });
        drop(full);
        let written = writer
            .map(|writer| writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        match written {
            // What stopped the writer stopped everything.
            Some(Err(error)) => Err(error),
            Some(Ok(output)) => computed.and_then(|()| Ok(output.writer.finish()?)),
            None => computed,
        }
    })?;
    Ok(Report {
        method: transform.name(),
        rows: total.0,
        classes: shape.classes,
        kept: counts.summary(),
        vacuous: total.1,
        seconds: start.elapsed().as_secs_f64(),
    })
}

/// Calls `work` with the rows of a block.
fn with_input<E: Element, T>(
    logits: &[E],
    Shape { classes, inner }: Shape,
    mask: Option<&[bool]>,
    temperature: f64,
    work: impl FnOnce(&Logits<'_, E>) -> shafer::Result<T>,
) -> shafer::Result<T> {
    let dimensions = [logits.len() / (classes * inner), classes, inner];
    let strides = [(classes * inner) as isize, inner as isize, 1];
    let input = if inner == 1 {
        Logits::rows(logits, classes)?
    } else {
        Logits::strided(logits, &dimensions, &strides, 0, 1)?
    };
    let input = input.temperature(temperature)?.parallel(true);
    work(&if let Some(mask) = mask { input.mask(mask)? } else { input })
}

/// What is to be written.
struct Block<E> {
    dense: Vec<E>,
    sparse: CompressedRows<E>,
}

impl<E> Default for Block<E> {
    fn default() -> Self {
        Self { dense: Vec::new(), sparse: CompressedRows::new() }
    }
}

/// Writes blocks as they come, and gives them back to be filled again.
fn write<E: Typed>(
    mut output: Output,
    blocks: Receiver<Block<E>>,
    empty: &SyncSender<Block<E>>,
) -> Result<Output> {
    for block in blocks {
        if output.dense {
            output.writer.write_dense(E::view(&block.dense))?;
        } else {
            let Block { sparse: rows, .. } = &block;
            let values = E::view(rows.values());
            output.writer.write(SparseRows::new(rows.indptr(), rows.indices(), values))?;
        }
        // Nobody wants it back after the last one.
        let _ = empty.try_send(block);
    }
    Ok(output)
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
                "vacuous        {} of the rows: all their logits are equal, and nothing is dropped",
                self.vacuous
            )?;
        }
        let rate = self.rows as f64 / self.seconds.max(1e-9);
        writeln!(f, "time           {:.2} s, {rate:.0} rows a second", self.seconds)
    }
}
