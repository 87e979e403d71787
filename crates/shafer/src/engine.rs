//! From rows to batches: blocks of rows, one after the other or on several threads.
//!
//! A block is a few rows that fit the second-level cache. It is the unit of work of a thread, and
//! what is done to a row depends on that row only, so results do not depend on the number of
//! threads.

#[cfg(feature = "parallel")]
use crate::compressed::Unscaled;
use crate::compressed::{CompressedRows, Entries};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::{Cut, Float, Loops, Rate, SLACK, TILE_CLASSES, Task};
use crate::logits::{Logits, packed_start};
use crate::sink::{CompressedSink, DenseSink, DenseStream, Sink, SizeSink};
use crate::transform::{Kept, Report, Rule, Scratch};

/// How many logits a block has, more or less.
const BLOCK: usize = 1 << 15;

/// How many blocks are held in memory at once before they are put in their places, where they
/// cannot be written there directly.
const WAVE: usize = 64;

/// How many logits are worked on between two looks at the memory, and the most rows that can be.
const GROUP: usize = 1024;
pub(crate) const MAX_GROUP: usize = 64;

/// Rows longer than this would push each other out of the second-level cache if the next one was
/// asked for while one is worked on; there, the near future must do.
const FAR_AHEAD: usize = 1 << 15;
const NEAR_AHEAD: usize = 1024;

/// From so many logits on, distributions with their zeros are written past the caches, which would not
/// hold them; and compressed ones, which are twice as large where they are not sparse.
const DENSE_PAST_CACHES: usize = 1 << 23;
#[cfg(feature = "parallel")]
const COMPRESSED_PAST_CACHES: usize = DENSE_PAST_CACHES / 2;

/// Rows are shared out in blocks of this many: a multiple of the lanes, for the short ones.
fn block_rows(classes: usize) -> usize {
    let rows = (BLOCK / classes).max(1);
    if classes <= TILE_CLASSES { rows.next_multiple_of(16) } else { rows }
}

/// What a thread needs to work on blocks.
struct Worker<'a, E: Element> {
    rule: &'a Rule,
    logits: &'a Logits<'a, E>,
    rate: Rate,
    scratch: Scratch<E::Compute>,
    /// How many blocks of other threads lie between two of this one, more or less.
    skipped_blocks: usize,
    /// The block, where it must be copied.
    input: Vec<E::Compute>,
    /// Its result, where it cannot be written to its place.
    output: Vec<E::Compute>,
    /// The same, compressed.
    wide: CompressedRows<E::Compute>,
}

impl<'a, E: Element> Worker<'a, E> {
    fn new(rule: &'a Rule, logits: &'a Logits<'a, E>) -> Self {
        Self {
            rule,
            logits,
            rate: logits.rate(),
            skipped_blocks: 0,
            scratch: Scratch::new(logits.classes()),
            input: Vec::new(),
            output: Vec::new(),
            wide: CompressedRows::new(),
        }
    }

    /// The distributions of some rows, packed; the number of vacuous ones.
    fn dense(&mut self, start: usize, out: &mut [E]) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, out.len() / classes, &mut self.input);
        let block = Block { rule: self.rule, rows, start, classes, rate: self.rate, skipped: 0 };
        if let Some(out) = E::as_compute_mut(out) {
            // Along another axis, what is written here is soon read again.
            let past_caches = self.logits.len() >= DENSE_PAST_CACHES
                && self.logits.inner() == 1
                && classes > TILE_CLASSES;
            return if past_caches {
                let room = &mut self.output;
                block.write(&mut DenseStream::new(out, room), &mut self.scratch)
            } else {
                block.write(&mut DenseSink::new(out), &mut self.scratch)
            };
        }
        self.output.resize(out.len(), Default::default());
        let vacuous = block.write(&mut DenseSink::new(&mut self.output), &mut self.scratch)?;
        for (out, &p) in out.iter_mut().zip(&self.output) {
            *out = E::narrow(p);
        }
        Ok(vacuous)
    }

    /// The distributions of some rows, added to compressed ones. A single row may be left to be scaled.
    fn compressed(
        &mut self,
        start: usize,
        count: usize,
        out: &mut CompressedRows<E>,
        factor: Option<&mut f64>,
    ) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, count, &mut self.input);
        let block = Block {
            rule: self.rule,
            rows,
            start,
            classes,
            rate: self.rate,
            skipped: self.skipped_blocks * rows.len(),
        };
        self.scratch.skipped = if count == 1 { block.skipped } else { 0 };
        let Entries { ends, base, columns, values } = out.writer(rows.len() + SLACK);
        if let Some(values) = E::as_compute_mut(values) {
            let entries = Entries { ends, base, columns, values };
            let mut sink = CompressedSink::new(entries, factor);
            return block.write(&mut sink, &mut self.scratch);
        }
        self.wide.reset(classes);
        let entries = self.wide.writer(rows.len() + SLACK);
        let vacuous = block.write(&mut CompressedSink::new(entries, None), &mut self.scratch)?;
        out.add_wide(&self.wide);
        Ok(vacuous)
    }

    /// How many classes some rows keep.
    fn support_sizes(&mut self, start: usize, sizes: &mut [u32]) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, sizes.len(), &mut self.input);
        let block = Block { rule: self.rule, rows, start, classes, rate: self.rate, skipped: 0 };
        block.write(&mut SizeSink::new(sizes), &mut self.scratch)
    }
}

/// Packed rows, and what to do with them.
struct Block<'a, F> {
    rule: &'a Rule,
    rows: &'a [F],
    /// The number of the first row, for errors.
    start: usize,
    classes: usize,
    rate: Rate,
    /// How many logits lie between this block and the next one of the same thread.
    skipped: usize,
}

impl<F: Float> Block<'_, F> {
    /// Chooses the classes of the rows and writes what comes of them; the number of vacuous rows.
    fn write(&self, sink: &mut impl Sink<F>, scratch: &mut Scratch<F>) -> Result<usize> {
        let Self { rule, rows, classes, rate, .. } = *self;
        if classes <= TILE_CLASSES
            && let Some(tile) = rule.tile(rate)
            && let Some(vacuous) = sink.tile(tile, rows, classes, rate)
        {
            return Ok(vacuous);
        }
        F::run(Write { block: self, sink, scratch })
    }
}

/// Rows of any length, and any rule.
struct Write<'a, F, S> {
    block: &'a Block<'a, F>,
    sink: &'a mut S,
    scratch: &'a mut Scratch<F>,
}

impl<F: Float, S: Sink<F>> Task<F> for Write<'_, F, S> {
    type Output = Result<usize>;

    #[inline(always)]
    fn run(self, loops: impl Loops<F>) -> Result<usize> {
        let Self { block, sink, scratch } = self;
        let Block { rule, rows, start, classes, rate, skipped } = *block;
        // A few rows at a time: the choice for one overlaps with the reading of the next, and what
        // is to be read and written for the next few is asked for while these are computed.
        let group = (GROUP / classes).clamp(1, MAX_GROUP);
        let ahead = if group * classes <= FAR_AHEAD { group * classes } else { NEAR_AHEAD };
        let mut vacuous = 0;
        let last = (rows.len() - 1) / (group * classes);
        for (number, rows) in rows.chunks(group * classes).enumerate() {
            // After the last few comes the next block; those between belong to other threads.
            let skips = number == last && ahead == group * classes;
            let ahead = if skips { rows.len() + skipped } else { ahead };
            let mut cuts = [Cut::default(); MAX_GROUP];
            let mut count = 0;
            for (i, row) in rows.chunks_exact(classes).enumerate() {
                let selection = rule
                    .select(row, rate, scratch, loops)
                    .map_err(|error| error.at_row(start + number * group + i))?;
                vacuous += usize::from(selection.vacuous);
                match selection.kept {
                    Kept::Listed(n) => {
                        sink.listed(&scratch.columns[..n], &scratch.values[..n], classes);
                    }
                    Kept::Above(cut) => {
                        cuts[count] = cut;
                        count += 1;
                    }
                }
            }
            // Either all rows are listed or none is: that depends on the rule.
            if count > 0 {
                sink.above(rows, &cuts[..count], rate, ahead, loops);
            }
        }
        Ok(vacuous)
    }
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
        let classes = logits.classes();
        let past_caches = logits.len() >= COMPRESSED_PAST_CACHES && classes > TILE_CLASSES;
        report.vacuous = crate::in_order::add_rows(
            out,
            rows,
            block_rows,
            || Worker {
                skipped_blocks: rayon::current_num_threads() - 1,
                ..Worker::new(rule, logits)
            },
            |worker, start, count, block| {
                let Unscaled { rows, factor } = block;
                rows.reset(classes);
                *factor = past_caches.then_some(1.0);
                let unscaled = if count == 1 { factor.as_mut() } else { None };
                worker.compressed(start, count, rows, unscaled)
            },
        )?;
        return Ok(report);
    }
    let mut worker = Worker::new(rule, logits);
    for start in (0..rows).step_by(block_rows) {
        report.vacuous += worker.compressed(start, block_rows.min(rows - start), out, None)?;
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
    worker: impl Fn() -> W + Sync + Send,
    work: impl Fn(&mut W, usize, &mut [T]) -> Result<usize> + Sync + Send,
) -> Result<usize> {
    #[cfg(feature = "parallel")]
    if parallel && items.len() > size {
        use rayon::prelude::*;
        return items
            .par_chunks_mut(size)
            .enumerate()
            .map_init(&worker, |worker, (i, chunk)| {
                work(worker, i, chunk).map_err(|error| (i, error))
            })
            .reduce(
                || Ok(0),
                |a, b| match (a, b) {
                    (Ok(a), Ok(b)) => Ok(a + b),
                    (Err(a), Err(b)) => Err(if a.0 <= b.0 { a } else { b }),
                    (Err(error), _) | (_, Err(error)) => Err(error),
                },
            )
            .map_err(|(_, error)| error);
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
