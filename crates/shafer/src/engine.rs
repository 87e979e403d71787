//! From blocks of rows to batches, on one thread or several.
//!
//! What is done to a row depends on that row only, so results do not depend on the number of
//! threads.

use std::collections::BTreeMap;
use std::iter::repeat_with;
use std::mem::take;
use std::ops::Range;
use std::sync::Mutex;

use crate::csr::CsrRows;
use crate::element::Element;
use crate::error::{Result, check_length};
use crate::kernel::TILE_CLASSES;
use crate::logits::{Logits, packed_start};
use crate::method::{RowCounts, Rule};
use crate::rows::Worker;
use crate::threads::{Threads, lock, share, with_help};

/// Logits of a block, the unit of work of a thread: an eighth of a megabyte of `f32`, which fits the
/// second-level cache together with its result.
const BLOCK_LOGITS: usize = 1 << 15;

/// Logits of a wave of blocks. It bounds the memory for buffered blocks.
const WAVE_LOGITS: usize = 1 << 21;

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
    let size = block_rows(classes);
    // `count` rows from row `start` on, packed.
    let packed = |start: usize, count: usize, out: &mut [E], sizes: &mut [u32]| {
        let outs = out.chunks_mut(size * classes).chain(repeat_with(Default::default));
        let sizes = sizes.chunks_mut(size).chain(repeat_with(Default::default));
        share(
            threads.count(count.div_ceil(size)),
            (0..count).step_by(size).zip(outs.zip(sizes)),
            || Worker::new(rule, logits),
            |worker, (first, (out, sizes))| {
                worker.dense(start + first, size.min(count - first), out, sizes)
            },
        )
    };
    if inner == 1 || out.is_empty() {
        return Ok(RowCounts { rows, vacuous: packed(0, rows, out, sizes)? });
    }
    // Along another axis than the last, neighbouring rows are interleaved: they are computed in
    // waves, packed, and then put in place.
    let wave = size * (WAVE_LOGITS / BLOCK_LOGITS);
    let mut buffer = vec![E::default(); classes * wave.min(rows)];
    let mut vacuous = 0;
    for start in (0..rows).step_by(wave) {
        let count = wave.min(rows - start);
        let buffer = &mut buffer[..count * classes];
        let sizes = if sizes.is_empty() { &mut [] } else { &mut sizes[start..start + count] };
        vacuous += packed(start, count, buffer, sizes)?;
        scatter(buffer, start, classes, inner, out);
    }
    Ok(RowCounts { rows, vacuous })
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
///
/// Where a block belongs is known when all blocks before it are compressed. So the calling thread
/// goes through the blocks in order and appends them to the output, and the others compress blocks
/// from the end of its wave into buffers, which it appends when it gets there. It does not wait for a
/// block that is not finished then, but compresses it again: the other thread may have lost its
/// processor.
pub(crate) fn csr<E: Element>(
    rule: Rule,
    logits: &Logits<'_, E>,
    threads: Threads,
    out: &mut CsrRows<E>,
) -> Result<RowCounts> {
    rule.check(logits.classes())?;
    let (rows, classes) = (logits.row_count(), logits.classes());
    out.reset(classes);
    let size = block_rows(classes);
    let blocks = rows.div_ceil(size);
    let compress = |worker: &mut Worker<'_, E>, block: usize, out: &mut CsrRows<E>| {
        let first = block * size;
        worker.csr(first, size.min(rows - first), out)
    };
    let wave = (WAVE_LOGITS / (size * classes)).max(1);
    let queue = Mutex::new(Queue {
        waves: (0..blocks).step_by(wave).map(|first| first..blocks.min(first + wave)).collect(),
        wave,
        front: 0,
        finished: BTreeMap::new(),
        buffers: take(&mut out.blocks),
    });
    let help = || {
        let mut worker = Worker::new(rule, logits);
        let next = || lock(&queue).take_back();
        while let Some((block, mut buffer)) = next() {
            buffer.reset(classes);
            let vacuous = compress(&mut worker, block, &mut buffer);
            lock(&queue).finish(block, buffer, vacuous);
        }
    };
    let mut write = || {
        let mut worker = Worker::new(rule, logits);
        let mut vacuous = 0;
        for block in 0..blocks {
            let finished = lock(&queue).take_front(block);
            vacuous += match finished {
                Some((buffer, vacuous)) => {
                    out.append(&buffer, |value| value);
                    lock(&queue).buffers.push(buffer);
                    vacuous?
                }
                None => compress(&mut worker, block, out)?,
            };
        }
        Ok(RowCounts { rows, vacuous })
    };
    let counts = with_help(threads.count(blocks), help, || {
        let counts = write();
        lock(&queue).waves.clear();
        counts
    });
    out.blocks = take(&mut lock(&queue).buffers);
    counts
}

/// The blocks of a batch.
struct Queue<E> {
    /// The blocks of each wave that no thread has taken.
    waves: Vec<Range<usize>>,
    /// Blocks of a wave.
    wave: usize,
    /// The block that the calling thread is at.
    front: usize,
    /// Blocks of other threads, with the number of their vacuous rows.
    finished: BTreeMap<usize, (CsrRows<E>, Result<usize>)>,
    buffers: Vec<CsrRows<E>>,
}

impl<E> Queue<E> {
    /// The next block for the calling thread: what another thread has made of it, or nothing.
    fn take_front(&mut self, block: usize) -> Option<(CsrRows<E>, Result<usize>)> {
        self.front = block;
        let left = &mut self.waves[block / self.wave];
        if left.start == block {
            left.next();
        }
        self.finished.remove(&block)
    }

    /// The next block for another thread, and a buffer: of the calling thread's wave or the one after
    /// it, so that not much is buffered.
    fn take_back(&mut self) -> Option<(usize, CsrRows<E>)> {
        let mut waves = self.waves.iter_mut().skip(self.front / self.wave).take(2);
        let block = waves.find_map(Range::next_back)?;
        Some((block, self.buffers.pop().unwrap_or_default()))
    }

    /// Keeps a block for the calling thread, unless that is there already.
    fn finish(&mut self, block: usize, buffer: CsrRows<E>, vacuous: Result<usize>) {
        if block > self.front {
            self.finished.insert(block, (buffer, vacuous));
        } else {
            self.buffers.push(buffer);
        }
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
