//! From rows to batches: blocks of rows, one after the other or on several threads.
//!
//! A [block](crate::block) is the unit of work of a thread, and what is done to a row depends on that row
//! only, so results do not depend on the number of threads.

use crate::block::Worker;
use crate::compressed::CompressedRows;
#[cfg(feature = "parallel")]
use crate::counted::Counted;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::TILE_CLASSES;
use crate::logits::{Logits, packed_start};
use crate::transform::{Report, Rule};

/// How many logits a block has, more or less: a quarter of a megabyte, which the second-level cache holds. With fewer,
/// threads are in each other's way more often.
const BLOCK: usize = 1 << 16;

/// The same where threads have blocks in memory of their own before they copy them: memory that is new each time, and
/// that the system would have to be asked for if it were more.
#[cfg(feature = "parallel")]
const COPIED_BLOCK: usize = 1 << 14;

/// How many blocks are held in memory at once before they are put in their places, where they
/// cannot be written there directly.
const WAVE: usize = 64;

/// Rows are shared out in blocks of this many.
fn block_rows(classes: usize) -> usize {
    rows_of(BLOCK, classes)
}

/// As many as have about so many logits: a multiple of the lanes, for the short ones.
fn rows_of(logits: usize, classes: usize) -> usize {
    let rows = (logits / classes).max(1);
    if classes <= TILE_CLASSES { rows.next_multiple_of(16) } else { rows }
}

/// See [`crate::TransformExt::dense`].
pub(crate) fn dense<E: Element>(
    rule: &Rule,
    logits: &Logits<'_, E>,
    out: &mut [E],
) -> Result<Report> {
    check_length("output", logits.len(), out.len())?;
    rule.check(logits.classes())?;
    let classes = logits.classes();
    let inner = logits.inner();
    if inner == 1 {
        let rows = block_rows(classes);
        return for_blocks(
            logits.is_parallel(),
            out,
            rows * classes,
            || Worker::new(rule, logits),
            |worker, i, out| worker.dense(i * rows, out),
        )
        .map(|vacuous| Report { rows: logits.row_count(), vacuous });
    }
    // Along another axis than the last, neighbouring rows lie between each other: a wave of blocks
    // is computed, on all threads if so wished, and then put in place.
    let rows = block_rows(classes);
    let mut wave = vec![E::default(); classes * (rows * WAVE).min(logits.row_count())];
    let mut report = Report { rows: logits.row_count(), vacuous: 0 };
    for start in (0..logits.row_count()).step_by(rows * WAVE) {
        let count = (logits.row_count() - start).min(rows * WAVE);
        let packed = &mut wave[..count * classes];
        report.vacuous += for_blocks(
            logits.is_parallel(),
            packed,
            rows * classes,
            || Worker::new(rule, logits),
            |worker, i, out| worker.dense(start + i * rows, out),
        )?;
        scatter(packed, start, classes, inner, out);
    }
    Ok(report)
}

/// Puts packed rows, the first of which is row `start`, where they belong in an array in which
/// `inner` elements lie between neighbouring classes.
fn scatter<E: Element>(packed: &[E], start: usize, classes: usize, inner: usize, out: &mut [E]) {
    let count = packed.len() / classes;
    let mut row = 0;
    while row < count {
        // Rows of the same outer index lie next to each other, class by class.
        let run = (inner - (start + row) % inner).min(count - row);
        let first = packed_start(start + row, classes, inner);
        for class in 0..classes {
            let out = &mut out[first + class * inner..][..run];
            for (i, out) in out.iter_mut().enumerate() {
                *out = packed[(row + i) * classes + class];
            }
        }
        row += run;
    }
}

/// See [`crate::TransformExt::compressed_into`].
pub(crate) fn compressed<E: Element>(
    rule: &Rule,
    logits: &Logits<'_, E>,
    out: &mut CompressedRows<E>,
) -> Result<Report> {
    rule.check(logits.classes())?;
    out.reset(logits.classes());
    let rows = logits.row_count();
    let block_rows = block_rows(logits.classes());
    let mut report = Report { rows, vacuous: 0 };
    #[cfg(feature = "parallel")]
    if logits.is_parallel() && rows > block_rows {
        let worker = || Counted::new(rule, logits);
        let block = rows_of(if worker().counts() { BLOCK } else { COPIED_BLOCK }, logits.classes());
        // As many for each thread.
        let blocks = rows.div_ceil(block).next_multiple_of(rayon::current_num_threads());
        let block_rows = rows_of(rows.div_ceil(blocks) * logits.classes(), logits.classes());
        report.vacuous = crate::in_order::add_rows(out, rows, block_rows, worker)?;
        return Ok(report);
    }
    let mut worker = Worker::new(rule, logits);
    for start in (0..rows).step_by(block_rows) {
        report.vacuous += worker.compressed(start, block_rows.min(rows - start), out)?;
    }
    Ok(report)
}

/// See [`crate::TransformExt::support_sizes`].
pub(crate) fn support_sizes<E: Element>(
    rule: &Rule,
    logits: &Logits<'_, E>,
    sizes: &mut [u32],
) -> Result<Report> {
    check_length("sizes", logits.row_count(), sizes.len())?;
    rule.check(logits.classes())?;
    let rows = block_rows(logits.classes());
    for_blocks(
        logits.is_parallel(),
        sizes,
        rows,
        || Worker::new(rule, logits),
        |worker, i, sizes| worker.support_sizes(i * rows, sizes),
    )
    .map(|vacuous| Report { rows: logits.row_count(), vacuous })
}

/// See [`crate::TransformExt::vjp`].
pub(crate) fn vjp<E: Element>(
    rule: &Rule,
    logits: &Logits<'_, E>,
    probabilities: &[E],
    upstream: &[E],
    gradient: &mut [E],
) -> Result<()> {
    check_length("probabilities", logits.len(), probabilities.len())?;
    check_length("upstream", logits.len(), upstream.len())?;
    check_length("gradient", logits.len(), gradient.len())?;
    if logits.is_empty() {
        return Ok(());
    }
    let (classes, inner) = (logits.classes(), logits.inner());
    // Arrays of one outer index do not overlap with those of the next.
    for_blocks(
        logits.is_parallel(),
        gradient,
        classes * if inner == 1 { block_rows(classes) } else { inner },
        || (Vec::new(), [const { Vec::new() }; 3]),
        |(input, buffers), i, gradient| {
            let rows = gradient.len() / classes;
            let start = i * if inner == 1 { block_rows(classes) } else { inner };
            for row in 0..rows {
                let first = packed_start(start + row, classes, inner);
                let places = || (0..classes).map(|class| first + class * inner);
                let [p, up, out] = buffers;
                p.clear();
                p.extend(places().map(|place| probabilities[place].widen()));
                up.clear();
                up.extend(places().map(|place| upstream[place].widen()));
                out.resize(classes, E::Compute::default());
                let row_logits = logits.block(start + row, 1, input);
                rule.vjp(row_logits, p, up, logits.rate(), out);
                let first = packed_start(row, classes, inner);
                for (class, &value) in out.iter().enumerate() {
                    gradient[first + class * inner] = E::narrow(value);
                }
            }
            Ok(0)
        },
    )
    .map(|_| ())
}

fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

/// Works on chunks of `size` items, each with its number, and adds up what they return; of several
/// errors, the one of the first chunk counts, whichever thread came across it first.
fn for_blocks<T: Send, W>(
    parallel: bool,
    items: &mut [T],
    size: usize,
    worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize, &mut [T]) -> Result<usize> + Sync,
) -> Result<usize> {
    #[cfg(feature = "parallel")]
    if parallel && items.len() > size {
        return crate::threads::for_chunks(items, size, worker, work);
    }
    #[cfg(not(feature = "parallel"))]
    let _ = parallel;
    let mut worker = worker();
    let mut total = 0;
    for (i, chunk) in items.chunks_mut(size).enumerate() {
        total += work(&mut worker, i, chunk)?;
    }
    Ok(total)
}
