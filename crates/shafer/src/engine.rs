//! From blocks of rows to batches, on one thread or several.
//!
//! What is done to a row depends on that row only, so results do not depend on the number of
//! threads.

use std::iter::repeat_with;
use std::mem::take;

use crate::csr::CsrRows;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::TILE_CLASSES;
use crate::logits::{Logits, packed_start};
use crate::method::{RowCounts, Rule};
use crate::rows::Worker;
use crate::threads::{Outcome, Shared, Threads, share, with_help};

/// Logits of a block, the unit of work of a thread: an eighth of a megabyte of `f32`, which fits the
/// second-level cache together with its result.
const BLOCK_LOGITS: usize = 1 << 15;

/// Logits between two meetings of the threads. It bounds the memory for blocks that are copied.
const WAVE_LOGITS: usize = 1 << 22;

/// The number of rows of a block: a multiple of the lanes for rows that are tiled.
fn block_rows(classes: usize) -> usize {
    let rows = (BLOCK_LOGITS / classes).max(1);
    if classes <= TILE_CLASSES { rows.next_multiple_of(16) } else { rows }
}

/// Distributions into `out` and support sizes into `sizes`, or one of them: an empty slice is not
/// wanted.
pub(crate) fn dense<E: Element>(
    rule: Rule,
    logits: &Logits<'_, E>,
    threads: Threads,
    out: &mut [E],
    sizes: &mut [u32],
) -> Result<RowCounts> {
    rule.check(logits.classes())?;
    let (rows, classes, inner) = (logits.row_count(), logits.classes(), logits.inner());
    let batch = Dense { rule, logits, threads };
    if inner == 1 || out.is_empty() {
        let vacuous = batch.blocks(0, rows, out, sizes)?;
        return Ok(RowCounts { rows, vacuous });
    }
    // Along another axis than the last, neighbouring rows are interleaved: they are computed in
    // waves, packed, and then put in place.
    let wave = block_rows(classes) * (WAVE_LOGITS / BLOCK_LOGITS);
    let mut packed = vec![E::default(); classes * wave.min(rows)];
    let mut vacuous = 0;
    for start in (0..rows).step_by(wave) {
        let count = wave.min(rows - start);
        let packed = &mut packed[..count * classes];
        let sizes = if sizes.is_empty() { &mut [] } else { &mut sizes[start..start + count] };
        vacuous += batch.blocks(start, count, packed, sizes)?;
        scatter(packed, start, classes, inner, out);
    }
    Ok(RowCounts { rows, vacuous })
}

struct Dense<'a, E> {
    rule: Rule,
    logits: &'a Logits<'a, E>,
    threads: Threads,
}

impl<E: Element> Dense<'_, E> {
    /// `count` rows from row `start` on, packed. Returns the number of vacuous rows.
    fn blocks(
        &self,
        start: usize,
        count: usize,
        out: &mut [E],
        sizes: &mut [u32],
    ) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = block_rows(classes);
        let outs = out.chunks_mut(rows * classes).chain(repeat_with(Default::default));
        let sizes = sizes.chunks_mut(rows).chain(repeat_with(Default::default));
        let blocks = (0..count).step_by(rows).zip(outs.zip(sizes));
        share(
            self.threads.count(count.div_ceil(rows)),
            blocks,
            || Worker::new(self.rule, self.logits),
            |worker, (first, (out, sizes))| {
                worker.dense(start + first, rows.min(count - first), out, sizes)
            },
        )
    }
}

/// Puts packed rows, the first of which is row `start`, in place in an array in which `inner`
/// elements lie between neighbouring classes.
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

/// All rows, compressed, in place of what `out` holds.
pub(crate) fn csr<E: Element>(
    rule: Rule,
    logits: &Logits<'_, E>,
    threads: Threads,
    out: &mut CsrRows<E>,
) -> Result<RowCounts> {
    rule.check(logits.classes())?;
    let (rows, classes) = (logits.row_count(), logits.classes());
    out.reset(classes);
    let block = block_rows(classes);
    let wave = block * (WAVE_LOGITS / (block * classes)).max(1);
    let mut counts = RowCounts { rows, vacuous: 0 };
    for start in (0..rows).step_by(wave) {
        let wave = Wave { rule, logits, start, rows: wave.min(rows - start), block };
        counts.vacuous += wave.csr(threads, out)?;
    }
    Ok(counts)
}

/// Rows that are compressed before the threads meet.
struct Wave<'a, E> {
    rule: Rule,
    logits: &'a Logits<'a, E>,
    start: usize,
    rows: usize,
    /// Rows of a block.
    block: usize,
}

impl<E: Element> Wave<'_, E> {
    /// Appends the rows to `out`. Returns the number of vacuous rows.
    ///
    /// Where a block belongs is known when all blocks before it are compressed. So the calling
    /// thread takes blocks from the front and appends them directly, and the others take blocks from
    /// the back and compress them into separate buffers. When they have met, the others' blocks
    /// are copied, on all threads. If no other thread gets a processor, the calling thread does what
    /// it would do alone.
    fn csr(&self, threads: Threads, out: &mut CsrRows<E>) -> Result<usize> {
        let blocks = self.rows.div_ceil(self.block);
        let threads = threads.count(blocks);
        let left = Shared::new(0..blocks);
        let outcome = Shared::new(Outcome::default());
        let spare = Shared::new(take(&mut out.blocks));
        let done = Shared::new(Vec::new());
        let compress = |worker: &mut Worker<'_, E>, block: usize, out: &mut CsrRows<E>| {
            let first = block * self.block;
            let count = self.block.min(self.rows - first);
            let vacuous = worker.csr(self.start + first, count, out);
            let failed = vacuous.is_err();
            outcome.lock().add(block, vacuous);
            !failed
        };
        let help = || {
            let mut worker = Worker::new(self.rule, self.logits);
            let next = || left.lock().next_back();
            while let Some(block) = next() {
                let mut rows = spare.lock().pop().unwrap_or_default();
                rows.reset(self.logits.classes());
                if compress(&mut worker, block, &mut rows) {
                    done.lock().push((block, rows));
                }
            }
        };
        with_help(threads, help, || {
            let mut worker = Worker::new(self.rule, self.logits);
            let next = || left.lock().next();
            while let Some(block) = next() {
                if !compress(&mut worker, block, out) {
                    *left.lock() = 0..0;
                }
            }
        });
        let mut done = done.into_inner();
        done.sort_unstable_by_key(|(block, _)| *block);
        let outcome = outcome.into_inner();
        // Up to the first error.
        let valid =
            done.iter().filter(|(block, _)| outcome.failed().is_none_or(|first| *block < first));
        let places = out.places(valid.map(|(_, rows)| rows));
        let threads = threads.min(places.len());
        share(
            threads,
            places.into_iter(),
            || (),
            |(), (to, rows)| {
                to.columns.copy_from_slice(rows.indices());
                to.values.copy_from_slice(rows.values());
                Ok(0)
            },
        )?;
        out.blocks = spare.into_inner();
        out.blocks.extend(done.into_iter().map(|(_, rows)| rows));
        outcome.result()
    }
}

/// The vector-Jacobian products of all rows. `read` writes the probabilities and the upstream
/// gradient of a row.
pub(crate) fn vjp<E: Element>(
    rule: Rule,
    logits: &Logits<'_, E>,
    threads: Threads,
    gradient: &mut [E],
    read: impl Fn(usize, &mut [E::Compute], &mut [E::Compute]) + Sync,
) -> Result<()> {
    check_length("gradient", logits.len(), gradient.len())?;
    if logits.is_empty() {
        return Ok(());
    }
    let (classes, inner) = (logits.classes(), logits.inner());
    // Rows of different outer index do not overlap.
    let block = if inner == 1 { block_rows(classes) } else { inner };
    let tasks = gradient.chunks_mut(block * classes).enumerate();
    share(
        threads.count(logits.row_count().div_ceil(block)),
        tasks,
        || (Vec::new(), [const { Vec::new() }; 3]),
        |(input, buffers), (i, gradient)| {
            for buffer in &mut *buffers {
                buffer.resize(classes, E::Compute::default());
            }
            let [p, upstream, out] = buffers;
            for row in 0..gradient.len() / classes {
                read(i * block + row, p, upstream);
                let logit_row = logits.block(i * block + row, 1, input);
                rule.vjp(logit_row, p, upstream, logits.rate(), out);
                let first = packed_start(row, classes, inner);
                for (class, &value) in out.iter().enumerate() {
                    gradient[first + class * inner] = E::narrow(value);
                }
            }
            Ok(0)
        },
    )?;
    Ok(())
}

pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}
