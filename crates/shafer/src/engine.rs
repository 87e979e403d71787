//! From rows to batches: blocks of rows, one after the other or on several threads.
//!
//! A block is a few rows that fit the second-level cache. It is the unit of work of a thread, and
//! what is done to a row depends on that row only, so results do not depend on the number of
//! threads.

use crate::compressed::{CompressedRows, Entries};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::{Cut, Float, Rate, SLACK, TILE_CLASSES};
use crate::logits::{Logits, packed_start};
use crate::sink::{CompressedSink, DenseSink, Sink, SizeSink};
use crate::transform::{Kept, Report, Rule, Scratch};

/// How many logits a block has, more or less.
const BLOCK: usize = 1 << 14;

/// How many blocks are held in memory at once before they are put in their places, where they
/// cannot be written there directly.
const WAVE: usize = 64;

/// The same for compressed rows: how many blocks a thread takes at once, and how many threads can take
/// some before they are put in their places.
const PARALLEL_BLOCKS: usize = 4;
const PARALLEL_WAVE: usize = 8;
const PLAN_BLOCKS: usize = 8;

/// How many logits are worked on between two looks at the memory, and the most rows that can be.
const GROUP: usize = 2048;
pub(crate) const MAX_GROUP: usize = 64;

/// Rows longer than this would push each other out of the second-level cache if the next one was
/// asked for while one is worked on; there, the near future must do.
const FAR_AHEAD: usize = 1 << 15;
const NEAR_AHEAD: usize = 1024;

/// Rows are shared out in blocks of this many: a multiple of the lanes, for the short ones.
fn block_rows(classes: usize) -> usize {
    (BLOCK / classes / 16 * 16).max(if classes <= TILE_CLASSES { 16 } else { 1 })
}

/// What a thread needs to work on blocks.
struct Worker<'a, E: Element> {
    rule: &'a Rule,
    logits: &'a Logits<'a, E>,
    rate: Rate,
    scratch: Scratch<E::Compute>,
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
        let block = Block { rule: self.rule, rows, start, classes, rate: self.rate };
        if let Some(out) = E::as_compute_mut(out) {
            return block.write(&mut DenseSink::new(out), &mut self.scratch);
        }
        self.output.resize(out.len(), Default::default());
        let vacuous = block.write(&mut DenseSink::new(&mut self.output), &mut self.scratch)?;
        for (out, &p) in out.iter_mut().zip(&self.output) {
            *out = E::narrow(p);
        }
        Ok(vacuous)
    }

    /// The distributions of some rows, added to compressed ones.
    fn compressed(
        &mut self,
        start: usize,
        count: usize,
        out: &mut CompressedRows<E>,
    ) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, count, &mut self.input);
        let block = Block { rule: self.rule, rows, start, classes, rate: self.rate };
        let Entries { ends, base, columns, values } = out.writer(rows.len() + SLACK);
        if let Some(values) = E::as_compute_mut(values) {
            let entries = Entries { ends, base, columns, values };
            return block.write(&mut CompressedSink::new(entries), &mut self.scratch);
        }
        self.wide.reset(classes);
        let entries = self.wide.writer(rows.len() + SLACK);
        let vacuous = block.write(&mut CompressedSink::new(entries), &mut self.scratch)?;
        out.add_wide(&self.wide);
        Ok(vacuous)
    }

    /// Where some rows are cut off, and how many classes that leaves; the number of vacuous ones. The
    /// rule must choose by a threshold.
    fn plan(&mut self, start: usize, plan: &mut [(Cut<E::Compute>, u32)]) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, plan.len(), &mut self.input);
        let mut vacuous = 0;
        for (i, (row, (cut, count))) in rows.chunks_exact(classes).zip(plan).enumerate() {
            let selection = self
                .rule
                .select(row, self.rate, &mut self.scratch)
                .map_err(|error| error.at_row(start + i))?;
            vacuous += usize::from(selection.vacuous);
            if let Kept::Above(found) = selection.kept {
                *cut = found;
                *count = E::Compute::above(row, found.threshold).count as u32;
            }
        }
        Ok(vacuous)
    }

    /// Writes the rows of a plan, for which there is room to the entry.
    fn carry_out(
        &mut self,
        start: usize,
        plan: &[(Cut<E::Compute>, u32)],
        mut columns: &mut [u32],
        mut values: &mut [E],
    ) {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, plan.len(), &mut self.input);
        let scratch = &mut self.scratch;
        for (row, &(Cut { threshold, max }, count)) in rows.chunks_exact(classes).zip(plan) {
            let count = count as usize;
            // Vectors may write past the end of a row, but not past that of the block.
            let direct = columns.len() >= count + SLACK;
            if let (true, Some(values)) = (direct, E::as_compute_mut(values)) {
                E::Compute::compact(row, threshold, columns, values, NEAR_AHEAD);
                normalise(&mut values[..count], max, self.rate);
            } else {
                let (wide_columns, wide) = (&mut scratch.columns, &mut scratch.values);
                E::Compute::compact(row, threshold, wide_columns, wide, NEAR_AHEAD);
                normalise(&mut wide[..count], max, self.rate);
                columns[..count].copy_from_slice(&wide_columns[..count]);
                for (value, &wide) in values[..count].iter_mut().zip(&*wide) {
                    *value = E::narrow(wide);
                }
            }
            columns = &mut columns[count..];
            values = &mut values[count..];
        }
    }

    /// How many classes some rows keep.
    fn support_sizes(&mut self, start: usize, sizes: &mut [u32]) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, sizes.len(), &mut self.input);
        let block = Block { rule: self.rule, rows, start, classes, rate: self.rate };
        block.write(&mut SizeSink::new(sizes), &mut self.scratch)
    }
}

/// From logits to their distribution.
fn normalise<F: Float>(logits: &mut [F], max: F, rate: Rate) {
    let sum = F::exp_all(logits, max, rate);
    F::scale(logits, 1.0 / sum, None);
}

/// Packed rows, and what to do with them.
struct Block<'a, F> {
    rule: &'a Rule,
    rows: &'a [F],
    /// The number of the first row, for errors.
    start: usize,
    classes: usize,
    rate: Rate,
}

impl<F: Float> Block<'_, F> {
    /// Chooses the classes of the rows and writes what comes of them; the number of vacuous rows.
    fn write(&self, sink: &mut impl Sink<F>, scratch: &mut Scratch<F>) -> Result<usize> {
        let Self { rule, rows, start, classes, rate } = *self;
        if classes <= TILE_CLASSES
            && let Some(tile) = rule.tile(rate)
            && let Some(vacuous) = sink.tile(tile, rows, classes, rate)
        {
            return Ok(vacuous);
        }
        // A few rows at a time: the choice for one overlaps with the reading of the next, and what
        // is to be read and written for the next few is asked for while these are computed.
        let group = (GROUP / classes).clamp(1, MAX_GROUP);
        let ahead = if group * classes <= FAR_AHEAD { group * classes } else { NEAR_AHEAD };
        let mut vacuous = 0;
        for (number, rows) in rows.chunks(group * classes).enumerate() {
            let mut cuts = [Cut::default(); MAX_GROUP];
            let mut count = 0;
            for (i, row) in rows.chunks_exact(classes).enumerate() {
                let selection = rule
                    .select(row, rate, scratch)
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
                sink.above(rows, &cuts[..count], rate, ahead);
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
    let mut report = Report { rows: logits.row_count(), vacuous: 0 };
    let rows = block_rows(logits.classes());
    let size = |start: usize| (logits.row_count() - start).min(rows);
    if !logits.is_parallel() {
        let mut worker = Worker::new(rule, logits);
        for start in (0..logits.row_count()).step_by(rows) {
            report.vacuous += worker.compressed(start, size(start), out)?;
        }
        return Ok(report);
    }
    if let Some(report) = compressed_in_place(rule, logits, out)? {
        return Ok(report);
    }
    // Where the rows of a block go is only known when all blocks before it are there.
    let mut wave = std::mem::take(&mut out.spare);
    let result = compressed_in_waves(rule, logits, &mut wave, out);
    out.spare = wave;
    result
}

/// Where classes are chosen by a threshold, choosing and counting them is quick: done first, it tells
/// where each row goes, and every thread can write its rows there. `None` if they are listed, or
/// so short that the whole is quicker than the count.
fn compressed_in_place<E: Element>(
    rule: &Rule,
    logits: &Logits<'_, E>,
    out: &mut CompressedRows<E>,
) -> Result<Option<Report>> {
    if rule.lists() || logits.classes() <= TILE_CLASSES {
        return Ok(None);
    }
    // Many rows, since the last ones of a block cannot be written to their places directly.
    let rows = PLAN_BLOCKS * block_rows(logits.classes());
    let mut plan = vec![(Cut::default(), 0_u32); logits.row_count()];
    let vacuous = for_blocks(
        true,
        &mut plan,
        rows,
        || Worker::new(rule, logits),
        |worker, i, plan| worker.plan(i * rows, plan),
    )?;
    let mut ends = Vec::with_capacity(plan.len());
    ends.extend(plan.iter().scan(0, |end, (_, count)| {
        *end += *count as usize;
        Some(*end)
    }));
    let entries = out.writer(ends.last().copied().unwrap_or(0));
    let (mut columns, mut values) = (entries.columns, entries.values);
    let mut places = Vec::with_capacity(plan.len().div_ceil(rows));
    for plan in plan.chunks(rows) {
        let count = plan.iter().map(|(_, count)| *count as usize).sum();
        let (block_columns, rest) = columns.split_at_mut(count);
        columns = rest;
        let (block_values, rest) = values.split_at_mut(count);
        values = rest;
        places.push((plan, block_columns, block_values));
    }
    for_blocks(
        true,
        &mut places,
        1,
        || Worker::new(rule, logits),
        |worker, i, place| {
            let (plan, columns, values) = &mut place[0];
            worker.carry_out(i * rows, plan, columns, values);
            Ok(0)
        },
    )?;
    out.add_ends(&ends);
    Ok(Some(Report { rows: logits.row_count(), vacuous }))
}

/// A wave of blocks at a time, each of which a thread writes to memory of its own.
fn compressed_in_waves<E: Element>(
    rule: &Rule,
    logits: &Logits<'_, E>,
    wave: &mut Vec<CompressedRows<E>>,
    out: &mut CompressedRows<E>,
) -> Result<Report> {
    let mut report = Report { rows: logits.row_count(), vacuous: 0 };
    // Larger than on one thread, because the threads wait for each other after each wave.
    let rows = PARALLEL_BLOCKS * block_rows(logits.classes());
    if wave.len() < PARALLEL_WAVE {
        wave.resize_with(PARALLEL_WAVE, CompressedRows::new);
    }
    for start in (0..logits.row_count()).step_by(rows * PARALLEL_WAVE) {
        let left = (logits.row_count() - start).div_ceil(rows).min(PARALLEL_WAVE);
        report.vacuous += for_blocks(
            true,
            &mut wave[..left],
            1,
            || Worker::new(rule, logits),
            |worker, i, block| {
                let start = start + i * rows;
                block[0].reset(logits.classes());
                worker.compressed(start, (logits.row_count() - start).min(rows), &mut block[0])
            },
        )?;
        append(&wave[..left], out);
    }
    Ok(report)
}

/// Appends blocks of rows to others, on all threads.
fn append<E: Element>(blocks: &[CompressedRows<E>], out: &mut CompressedRows<E>) {
    let entries = out.writer(blocks.iter().map(CompressedRows::stored).sum());
    let (mut columns, mut values) = (entries.columns, entries.values);
    let mut places = Vec::with_capacity(blocks.len());
    for block in blocks {
        let (block_columns, rest) = columns.split_at_mut(block.stored());
        columns = rest;
        let (block_values, rest) = values.split_at_mut(block.stored());
        values = rest;
        places.push((block, block_columns, block_values));
    }
    let copied = for_blocks(
        true,
        &mut places,
        1,
        || (),
        |(), _, place| {
            let (block, columns, values) = &mut place[0];
            columns.copy_from_slice(block.indices());
            values.copy_from_slice(block.values());
            Ok(0)
        },
    );
    debug_assert!(copied.is_ok(), "copying does not fail");
    for block in blocks {
        out.add_ends(&block.indptr()[1..]);
    }
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
