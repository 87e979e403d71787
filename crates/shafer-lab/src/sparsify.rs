//! `shafer sparsify`: reads logits, writes sparse distributions and prints a summary.

use std::fmt::{self, Write as _};
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::ScopedJoinHandle;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use half::{bf16, f16};
use serde::Serialize;
use shafer::calibrate::{Calibration, Strata};
use shafer::{CsrRows, Element, Logits, Method, RowCounts, Threads};
use shafer_data::{Dtype, RowWriter, SparseRows, Values, ValuesRef};

use crate::groups::{Array, JoinedRows, in_file, join_dense};
use crate::joint::JointSummary;
use crate::labels::Labels;
use crate::many_classes;
use crate::memory;
use crate::method::EVIDENTIAL;
use crate::progress::Progress;
use crate::stream::{Rows, Shape};
use crate::summary::{GroupSummary, SizeSummary, Tally};
use crate::words::counted;

/// The summary of a file.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) method: String,
    pub(crate) rows: usize,
    pub(crate) classes: usize,
    /// `None` if there are no rows.
    pub(crate) kept: Option<SizeSummary>,
    /// Rows in which the evidence favours no class. Each group of a row counts separately.
    pub(crate) vacuous: usize,
    pub(crate) seconds: f64,
    /// Empty for a single group.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) groups: Vec<GroupSummary>,
    /// `None` for a single group.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) joint: Option<JointSummary>,
}

/// Fails if there is not enough memory for the rows and the output buffers.
pub(crate) fn check_memory(rows: &Rows, is_written: bool) -> Result<()> {
    /// Bytes per class: a counter, and scratch for sorting on each thread.
    const COUNTER: usize = size_of::<u64>();
    const SCRATCH: usize = 2 * size_of::<u64>();
    let (classes, size) = (rows.shape().classes, rows.dtype().size());
    // The logit and its mask; value and column index if there is an output.
    let a_logit = size + 1 + if is_written { size + size_of::<u32>() } else { 0 };
    let a_class = COUNTER + SCRATCH * rayon::current_num_threads();
    let bytes = rows.held().saturating_mul(a_logit).saturating_add(classes.saturating_mul(a_class));
    memory::check(bytes, &format!("rows of {}", counted(classes, "class")))
}

/// What is done to rows.
pub(crate) enum Transform {
    /// A method at a temperature.
    Method(Method, f64),
    /// A calibration with one threshold, or one for each class.
    Calibrated(Box<Calibration>),
    /// Each group of rows has a threshold of its own.
    ByGroup(Box<Calibration>, Labels),
}

impl Transform {
    /// The transform of a calibration, with the groups of the rows if it is by group.
    pub(crate) fn calibrated(calibration: Calibration, groups: Option<Labels>) -> Result<Self> {
        match (calibration.strata(), groups) {
            (Strata::Group, Some(groups)) => Ok(Self::ByGroup(Box::new(calibration), groups)),
            (Strata::Group, None) => {
                bail!(
                    "the calibration is by group; give the group of each row with --row-groups or --row-group"
                )
            }
            (_, Some(_)) => {
                bail!("the calibration is not by group; leave out --row-groups and --row-group")
            }
            (_, None) => Ok(Self::Calibrated(Box::new(calibration))),
        }
    }

    /// For messages and the metadata of files.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Method(method, _) => method.name().to_owned(),
            Self::Calibrated(calibration) | Self::ByGroup(calibration, _) => {
                format!("{} calibrated for {}", calibration.score(), calibration.alpha())
            }
        }
    }
}

/// Transforms all rows, and writes them if there is an output.
pub(crate) fn sparsify(
    rows: Rows,
    method: Transform,
    output: Option<Output>,
    progress: Progress,
) -> Result<Report> {
    let typed = match rows.dtype() {
        Dtype::F16 => typed::<f16>,
        Dtype::Bf16 => typed::<bf16>,
        Dtype::F32 => typed::<f32>,
        Dtype::F64 => typed::<f64>,
    };
    typed(rows, method, output, progress)
}

/// The output file.
pub(crate) struct Output {
    pub(crate) writer: Box<dyn RowWriter>,
    /// With zeros, in the layout of the input.
    pub(crate) dense: bool,
}

/// A floating-point type, with access to blocks of that type.
pub(crate) trait Typed: Element {
    fn of(values: &Values) -> &[Self];
    fn view(values: &[Self]) -> ValuesRef<'_>;
}

macro_rules! typed {
    ($($type:ty, $variant:ident;)*) => {$(
        impl Typed for $type {
            fn of(values: &Values) -> &[Self] {
                // Readers return blocks of the type that they announce.
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
    mut method: Transform,
    output: Option<Output>,
    mut progress: Progress,
) -> Result<Report> {
    let start = Instant::now();
    let (shape, groups) = (rows.shape(), rows.groups().to_vec());
    let name = method.name();
    let mut tally = Tally::new(&groups);
    let (mut total, mut vacuous) = (0, 0);
    let mut mask_part = Vec::new();
    // Double buffering: one block is written while the next is computed.
    let (full, blocks) = sync_channel::<Parts<E>>(1);
    let (empty, used) = sync_channel::<Parts<E>>(3);
    std::thread::scope(|scope| {
        let dense = output.as_ref().map(|output| output.dense);
        let groups = &groups;
        let writer = output.map(|output| {
            std::thread::Builder::new()
                .spawn_scoped(scope, move || write(output, groups, shape, blocks, &empty))
                .context("cannot start a thread")
        });
        let writer = writer.transpose()?;
        let computed = rows.for_each(|block| {
            let logits = E::of(block.logits);
            let count = logits.len() / shape.classes;
            let (temperature, of_block) = match &mut method {
                Transform::Method(method, temperature) => (*temperature, OfBlock::Method(*method)),
                Transform::Calibrated(calibration) => (1.0, OfBlock::Calibrated(calibration, None)),
                Transform::ByGroup(calibration, groups) => {
                    let groups = groups.next(block.first, count, shape.classes)?;
                    (1.0, OfBlock::Calibrated(calibration, Some(groups)))
                }
            };
            let array = Array { logits, shape, mask: block.mask, temperature };
            let mut parts = used.try_recv().unwrap_or_else(|_| Parts::new(groups.len()));
            for (number, group) in groups.iter().enumerate() {
                let report = array.with_group(group, &mut mask_part, |input| {
                    let sizes = tally.sizes(number, input.row_count());
                    match dense {
                        None => of_block.sizes_into(input, sizes),
                        Some(true) => {
                            let part = &mut parts.dense[number];
                            part.resize(input.len(), E::default());
                            of_block.dense_and_sizes_into(input, part, sizes)
                        }
                        Some(false) => {
                            let part = &mut parts.sparse[number];
                            let report = of_block.csr_into(input, part)?;
                            count_sizes(part, sizes);
                            Ok(report)
                        }
                    }
                });
                vacuous +=
                    report.map_err(|error| in_file(error, block.first, number, groups))?.vacuous;
            }
            if dense.is_some() {
                // Fails only if the writer has failed; `join` returns its error.
                let _ = full.send(parts);
            }
            if writer.as_ref().is_some_and(ScopedJoinHandle::is_finished) {
                bail!("the output could not be written");
            }
            tally.count();
            total += count;
            progress.add(count);
            progress.expect(block.share_read);
            Ok(ControlFlow::Continue(()))
        });
        drop(full);
        let written = writer
            .map(|writer| writer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        match written {
            // The writer's error is the cause of any other.
            Some(Err(error)) => Err(error),
            Some(Ok(output)) => computed.and_then(|()| Ok(output.writer.finish()?)),
            None => computed,
        }
    })?;
    if let Transform::ByGroup(_, groups) = &mut method {
        groups.finish(total)?;
    }
    Ok(Report {
        method: name,
        rows: total,
        classes: shape.classes,
        kept: tally.summary(),
        vacuous,
        seconds: start.elapsed().as_secs_f64(),
        groups: tally.groups(),
        joint: tally.joint(),
    })
}

/// What is done to the rows of a block.
enum OfBlock<'a> {
    Method(Method),
    /// With the groups of the rows, if they matter.
    Calibrated(&'a Calibration, Option<&'a [u32]>),
}

impl OfBlock<'_> {
    fn sizes_into<E: Element>(
        &self,
        input: &Logits<'_, E>,
        sizes: &mut [u32],
    ) -> shafer::Result<RowCounts> {
        match self {
            Self::Method(method) => method.sizes_into(input, Threads::All, sizes),
            Self::Calibrated(..) => {
                let mut rows = CsrRows::new();
                let counts = self.csr_into(input, &mut rows)?;
                count_sizes(&rows, sizes);
                Ok(counts)
            }
        }
    }

    fn dense_and_sizes_into<E: Element>(
        &self,
        input: &Logits<'_, E>,
        out: &mut [E],
        sizes: &mut [u32],
    ) -> shafer::Result<RowCounts> {
        match self {
            Self::Method(method) => method.dense_and_sizes_into(input, Threads::All, out, sizes),
            Self::Calibrated(calibration, groups) => {
                // Sizes of supports, not of probabilities that do not underflow.
                self.sizes_into(input, sizes)?;
                calibration.dense_into(input, *groups, Threads::All, out)
            }
        }
    }

    fn csr_into<E: Element>(
        &self,
        input: &Logits<'_, E>,
        rows: &mut CsrRows<E>,
    ) -> shafer::Result<RowCounts> {
        match self {
            Self::Method(method) => method.csr_into(input, Threads::All, rows),
            Self::Calibrated(calibration, groups) => {
                calibration.csr_into(input, *groups, Threads::All, rows)
            }
        }
    }
}

/// The number of entries of each row.
fn count_sizes<E>(rows: &CsrRows<E>, sizes: &mut [u32]) {
    for (size, (indices, _)) in sizes.iter_mut().zip(rows.iter()) {
        *size = indices.len() as u32;
    }
}

/// The output rows of a block, by group.
struct Parts<E> {
    dense: Vec<Vec<E>>,
    sparse: Vec<CsrRows<E>>,
}

impl<E: Element> Parts<E> {
    fn new(groups: usize) -> Self {
        Self { dense: vec![Vec::new(); groups], sparse: vec![CsrRows::new(); groups] }
    }
}

/// Writes blocks and returns their buffers for reuse.
fn write<E: Typed>(
    mut output: Output,
    groups: &[Range<usize>],
    shape: Shape,
    blocks: Receiver<Parts<E>>,
    empty: &SyncSender<Parts<E>>,
) -> Result<Output> {
    let (mut whole, mut joined) = (Vec::new(), JoinedRows::default());
    for parts in blocks {
        match (output.dense, &parts.dense[..], &parts.sparse[..]) {
            (true, [only], _) => output.writer.write_dense(E::view(only))?,
            (true, several, _) => {
                join_dense(several, groups, shape, &mut whole);
                output.writer.write_dense(E::view(&whole))?;
            }
            (false, _, [only]) => {
                let values = E::view(only.values());
                joined.indptr.clear();
                joined.indptr.extend(only.indptr().iter().map(|&pointer| pointer as usize));
                output.writer.write(SparseRows::new(&joined.indptr, only.indices(), values))?;
            }
            (false, _, several) => {
                joined.join(several, groups);
                let JoinedRows { indptr, indices, values } = &joined;
                output.writer.write(SparseRows::new(indptr, indices, E::view(values)))?;
            }
        }
        // Fails after the last block, when the receiver is gone.
        let _ = empty.try_send(parts);
    }
    Ok(output)
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (rows, classes) = (counted(self.rows, "row"), counted(self.classes, "class"));
        write!(f, "{rows} of {classes}")?;
        if !self.groups.is_empty() {
            write!(f, " in {}", counted(self.groups.len(), "group"))?;
        }
        writeln!(f, ", {}", self.method)?;
        let Some(kept) = &self.kept else { return writeln!(f, "there are no rows") };
        writeln!(
            f,
            "kept per row    mean {:.2}, median {}, 90% {}, 99% {}, smallest {}, largest {}",
            kept.mean, kept.median, kept.p90, kept.p99, kept.smallest, kept.largest
        )?;
        writeln!(
            f,
            "reduction       {:.1}% by the mean, {:.1}% by the largest",
            kept.reduction_percent, kept.reduction_percent_by_largest
        )?;
        if self.method == EVIDENTIAL
            && self.groups.is_empty()
            && let Some(hint) = many_classes::hint_by_size(self.classes, kept.mean)
        {
            writeln!(f, "hint            {hint}")?;
        }
        if let Some(joint) = &self.joint {
            writeln!(f, "kept by group   {}", means(&self.groups))?;
            write!(f, "{joint}")?;
        }
        if self.vacuous > 0 {
            let what = if self.groups.is_empty() { "row" } else { "group" };
            writeln!(
                f,
                "vacuous         {} (all logits are equal, and nothing is dropped)",
                counted(self.vacuous, what)
            )?;
        }
        let rate = self.rows as f64 / self.seconds.max(1e-9);
        let rate = counted(rate.round() as usize, "row");
        writeln!(f, "time            {:.2} s, {rate} per second", self.seconds)
    }
}

/// The mean number of kept classes of each group, in one line.
fn means(groups: &[GroupSummary]) -> String {
    const LISTED: usize = 4;
    let mean = |group: &GroupSummary| {
        let kept = group.kept.as_ref().map_or(0.0, |kept| kept.mean);
        format!("{kept:.2} of {}", group.classes)
    };
    let mut text = groups.iter().take(LISTED).map(mean).collect::<Vec<_>>().join(", ");
    if groups.len() > LISTED {
        let _ = write!(text, ", and {}", counted(groups.len() - LISTED, "more group"));
    }
    text
}
