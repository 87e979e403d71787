//! From rows to batches: blocks of rows, one after the other or on several threads.
//!
//! A block is a few rows that fit the second-level cache. It is the unit of work of a thread, and
//! what is done to a row depends on that row only, so results do not depend on the number of
//! threads.

use crate::compressed::CompressedRows;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::kernel::{Cut, Entries, Float, Rate, SLACK, TILE_CLASSES};
use crate::logits::{Logits, packed_start};
use crate::transform::{Kept, Report, Rule, Scratch};

/// How many logits a block has, more or less.
const BLOCK: usize = 1 << 14;

/// How many blocks are held in memory at once before they are put in their places, where they
/// cannot be written there directly.
const WAVE: usize = 64;

/// How many logits are worked on between two looks at the memory, and the most rows that can be.
const GROUP: usize = 2048;
const MAX_GROUP: usize = 64;

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
    /// The entries of its result, likewise.
    wide: Vec<E::Compute>,
}

/// The compressed rows of one block.
#[derive(Default)]
struct Block<E> {
    counts: Vec<u32>,
    columns: Vec<u32>,
    values: Vec<E>,
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
            wide: Vec::new(),
        }
    }

    /// The distributions of some rows, packed; the number of vacuous ones.
    fn dense(&mut self, start: usize, out: &mut [E]) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, out.len() / classes, &mut self.input);
        if let Some(out) = E::as_compute_mut(out) {
            return dense_rows(self.rule, rows, start, classes, self.rate, out, &mut self.scratch);
        }
        self.output.resize(out.len(), Default::default());
        let wide = &mut self.output;
        let vacuous =
            dense_rows(self.rule, rows, start, classes, self.rate, wide, &mut self.scratch)?;
        for (out, &p) in out.iter_mut().zip(&*wide) {
            *out = E::narrow(p);
        }
        Ok(vacuous)
    }

    /// The distributions of some rows, compressed: their numbers of entries, and the entries, for
    /// which there must be room for all classes and [`SLACK`].
    fn compressed(
        &mut self,
        start: usize,
        count: usize,
        counts: &mut Vec<u32>,
        columns: &mut [u32],
        values: &mut [E],
    ) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, count, &mut self.input);
        counts.clear();
        let (rule, rate, scratch) = (self.rule, self.rate, &mut self.scratch);
        if let Some(values) = E::as_compute_mut(values) {
            let entries = Entries { counts, columns, values };
            return compress_rows(rule, rows, start, classes, rate, entries, scratch);
        }
        self.wide.resize(rows.len() + SLACK, Default::default());
        let entries = Entries { counts, columns, values: &mut self.wide };
        let vacuous = compress_rows(rule, rows, start, classes, rate, entries, scratch)?;
        for (value, &wide) in values.iter_mut().zip(&self.wide) {
            *value = E::narrow(wide);
        }
        Ok(vacuous)
    }

    /// How many classes some rows keep.
    fn support_sizes(&mut self, start: usize, sizes: &mut [u32]) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, sizes.len(), &mut self.input);
        let mut vacuous = 0;
        for (i, (row, size)) in rows.chunks_exact(classes).zip(sizes).enumerate() {
            let selection = self
                .rule
                .select(row, self.rate, &mut self.scratch)
                .map_err(|error| error.at_row(start + i))?;
            vacuous += usize::from(selection.vacuous);
            *size = match selection.kept {
                Kept::Above(cut) => E::Compute::above(row, cut.threshold).count as u32,
                Kept::Listed(count) => count as u32,
            };
        }
        Ok(vacuous)
    }
}

/// The distributions of packed rows; the number of vacuous ones. `first` is the number of the first
/// row, for errors.
fn dense_rows<F: Float>(
    rule: &Rule,
    rows: &[F],
    first: usize,
    classes: usize,
    rate: Rate,
    out: &mut [F],
    scratch: &mut Scratch<F>,
) -> Result<usize> {
    if classes <= TILE_CLASSES
        && let Some(tile) = rule.tile(rate)
        && let Some(vacuous) = F::tile(tile, rows, classes, rate, out)
    {
        return Ok(vacuous);
    }
    let mut vacuous = 0;
    let (group, ahead) = grouping(classes);
    let rows = rows.chunks(group * classes).zip(out.chunks_mut(group * classes));
    for (number, (rows, out)) in rows.enumerate() {
        let mut cuts = [Cut::default(); MAX_GROUP];
        for (i, (row, out)) in
            rows.chunks_exact(classes).zip(out.chunks_exact_mut(classes)).enumerate()
        {
            let selection = rule
                .select(row, rate, scratch)
                .map_err(|error| error.at_row(first + number * group + i))?;
            vacuous += usize::from(selection.vacuous);
            match selection.kept {
                Kept::Above(cut) => cuts[i] = cut,
                Kept::Listed(count) => {
                    out.fill(F::default());
                    for (&column, &value) in scratch.columns[..count].iter().zip(&scratch.values) {
                        out[column as usize] = value;
                    }
                }
            }
        }
        if rule.lists() {
            continue;
        }
        let mut sums = [0.0; MAX_GROUP];
        for (i, (row, out)) in
            rows.chunks_exact(classes).zip(out.chunks_exact_mut(classes)).enumerate()
        {
            sums[i] = F::exp_above(row, out, cuts[i], rate, ahead);
        }
        for (out, sum) in out.chunks_exact_mut(classes).zip(sums) {
            F::scale(out, 1.0 / sum);
        }
    }
    Ok(vacuous)
}

/// The distributions of packed rows, compressed into counts, columns and values; the number of
/// vacuous ones.
fn compress_rows<F: Float>(
    rule: &Rule,
    rows: &[F],
    first: usize,
    classes: usize,
    rate: Rate,
    Entries { counts, columns, values }: Entries<'_, F>,
    scratch: &mut Scratch<F>,
) -> Result<usize> {
    if classes <= TILE_CLASSES
        && let Some(tile) = rule.tile(rate)
    {
        let entries = Entries { counts, columns, values };
        if let Some(vacuous) = F::tile_compressed(tile, rows, classes, rate, entries) {
            return Ok(vacuous);
        }
        counts.clear();
    }
    let mut vacuous = 0;
    let mut end = 0;
    let (group, ahead) = grouping(classes);
    for (number, rows) in rows.chunks(group * classes).enumerate() {
        let mut cuts = [Cut::default(); MAX_GROUP];
        for (i, row) in rows.chunks_exact(classes).enumerate() {
            let selection = rule
                .select(row, rate, scratch)
                .map_err(|error| error.at_row(first + number * group + i))?;
            vacuous += usize::from(selection.vacuous);
            match selection.kept {
                Kept::Above(cut) => cuts[i] = cut,
                Kept::Listed(count) => {
                    columns[end..end + count].copy_from_slice(&scratch.columns[..count]);
                    values[end..end + count].copy_from_slice(&scratch.values[..count]);
                    counts.push(count as u32);
                    end += count;
                }
            }
        }
        if rule.lists() {
            continue;
        }
        for (row, Cut { threshold, max }) in rows.chunks_exact(classes).zip(cuts) {
            let (columns, values) = (&mut columns[end..], &mut values[end..]);
            let count = F::compact(row, threshold, columns, values, ahead);
            let sum = F::exp_all(&mut values[..count], max, rate);
            F::scale(&mut values[..count], 1.0 / sum);
            counts.push(count as u32);
            end += count;
        }
    }
    Ok(vacuous)
}

/// Rows are worked on a few at a time: the choice for one overlaps with the reading of the next, and
/// what is to be read and written for the next few is asked for while these are computed. How many
/// at a time, and how far ahead to ask.
fn grouping(classes: usize) -> (usize, usize) {
    let group = (GROUP / classes).clamp(1, MAX_GROUP);
    (group, if group * classes <= FAR_AHEAD { group * classes } else { NEAR_AHEAD })
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
        let mut counts = Vec::with_capacity(rows);
        for start in (0..logits.row_count()).step_by(rows) {
            let (columns, values) = out.room(size(start) * logits.classes() + SLACK);
            report.vacuous +=
                worker.compressed(start, size(start), &mut counts, columns, values)?;
            out.commit(counts.iter().copied());
        }
        return Ok(report);
    }
    // Where the rows of a block go is only known when all blocks before it are there.
    let mut wave: Vec<Block<E>> = Vec::new();
    wave.resize_with(WAVE.min(logits.row_count().div_ceil(rows)), Block::default);
    for start in (0..logits.row_count()).step_by(rows * WAVE) {
        let left = (logits.row_count() - start).div_ceil(rows).min(WAVE);
        report.vacuous += for_blocks(
            true,
            &mut wave[..left],
            1,
            || Worker::new(rule, logits),
            |worker, i, block| {
                let start = start + i * rows;
                let Block { counts, columns, values } = &mut block[0];
                columns.resize(rows * logits.classes() + SLACK, 0);
                values.resize(rows * logits.classes() + SLACK, E::default());
                worker.compressed(start, size(start), counts, columns, values)
            },
        )?;
        append(&wave[..left], out);
    }
    Ok(report)
}

/// Appends blocks to rows, on all threads.
fn append<E: Element>(blocks: &[Block<E>], out: &mut CompressedRows<E>) {
    let stored = |block: &Block<E>| block.counts.iter().map(|&count| count as usize).sum();
    let (mut indices, mut values) = out.room(blocks.iter().map(stored).sum());
    let mut places = Vec::with_capacity(blocks.len());
    for block in blocks {
        let (columns, rest) = indices.split_at_mut(stored(block));
        indices = rest;
        let (kept, rest) = values.split_at_mut(stored(block));
        values = rest;
        places.push((block, columns, kept));
    }
    let copied = for_blocks(
        true,
        &mut places,
        1,
        || (),
        |(), _, place| {
            let (block, columns, kept) = &mut place[0];
            columns.copy_from_slice(&block.columns[..columns.len()]);
            kept.copy_from_slice(&block.values[..kept.len()]);
            Ok(0)
        },
    );
    debug_assert!(copied.is_ok(), "copying does not fail");
    out.commit(blocks.iter().flat_map(|block| block.counts.iter().copied()));
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
