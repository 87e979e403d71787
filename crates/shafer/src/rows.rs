//! What a thread does with a block of rows: choose the classes of each row, write what is kept.

use std::mem::take;

use crate::csr::{CsrRows, Rows};
use crate::element::Element;
use crate::error::Result;
use crate::kernel::{
    Entries, Float, Loops, Rate, SLACK, ShortRows, TILE_CLASSES, Task, TileOutput,
};
use crate::logits::Logits;
use crate::method::{Kept, Rule, Scratch};

/// From this length on, the next row is prefetched while a row is normalised.
const LONG: usize = 2048;

/// What a thread needs to work on blocks of rows.
pub(crate) struct Worker<'a, E: Element> {
    rule: Rule,
    logits: &'a Logits<'a, E>,
    rate: Rate,
    scratch: Scratch<E::Compute>,
    /// The block, where it has to be copied.
    input: Vec<E::Compute>,
    /// Its distributions, where they are computed in another type.
    output: Vec<E::Compute>,
    /// The same, compressed.
    wide: CsrRows<E::Compute>,
}

impl<'a, E: Element> Worker<'a, E> {
    pub(crate) fn new(rule: Rule, logits: &'a Logits<'a, E>) -> Self {
        Self {
            rule,
            logits,
            rate: logits.rate(),
            scratch: Scratch::default(),
            input: Vec::new(),
            output: Vec::new(),
            wide: CsrRows::new(),
        }
    }

    /// The distributions of `count` rows and the sizes of their supports, or one of them: an empty
    /// slice is not wanted. Returns the number of vacuous rows.
    pub(crate) fn dense(
        &mut self,
        start: usize,
        count: usize,
        out: &mut [E],
        sizes: &mut [u32],
    ) -> Result<usize> {
        if let Some(out) = E::as_compute_mut(out) {
            return self.write(start, count, Dense { out, sizes });
        }
        let mut output = take(&mut self.output);
        output.resize(out.len(), Default::default());
        let dense = Dense { out: &mut output, sizes };
        let vacuous = self.write(start, count, dense)?;
        for (out, &p) in out.iter_mut().zip(&output) {
            *out = E::narrow(p);
        }
        self.output = output;
        Ok(vacuous)
    }

    /// Appends `count` rows to `out`, or none of them if one is invalid. Returns the number of vacuous
    /// rows.
    pub(crate) fn csr(
        &mut self,
        start: usize,
        count: usize,
        out: &mut CsrRows<E>,
    ) -> Result<usize> {
        let classes = self.logits.classes();
        let before = out.rows();
        let Rows { ends, base, entries: Entries { columns, values } } = out.spare(count * classes);
        if let Some(values) = E::as_compute_mut(values) {
            let rows = Rows { ends, base, entries: Entries { columns, values } };
            let vacuous = self.write(start, count, Csr { rows, filled: 0 });
            return vacuous.inspect_err(|_| out.truncate(before));
        }
        let mut wide = take(&mut self.wide);
        wide.reset(classes);
        let rows = wide.spare(count * classes);
        let vacuous = self.write(start, count, Csr { rows, filled: 0 })?;
        out.append_narrowed(&wide);
        self.wide = wide;
        Ok(vacuous)
    }

    /// Writes `count` rows to a sink. Returns the number of vacuous rows.
    fn write(&mut self, start: usize, count: usize, sink: impl Sink<E::Compute>) -> Result<usize> {
        let Self { rule, logits, rate, scratch, input, .. } = self;
        let (rule, rate, classes) = (*rule, *rate, logits.classes());
        let rows = logits.block(start, count, input);
        E::Compute::run(Write { rule, rows, start, classes, rate, sink, scratch })
    }
}

/// Packed rows, and what to do with them.
struct Write<'a, F, S> {
    rule: Rule,
    rows: &'a [F],
    /// The number of the first row, for errors.
    start: usize,
    classes: usize,
    rate: Rate,
    sink: S,
    scratch: &'a mut Scratch<F>,
}

impl<F: Float, S: Sink<F>> Task<F> for Write<'_, F, S> {
    type Output = Result<usize>;

    #[inline(always)]
    fn run(self, loops: impl Loops<F>) -> Result<usize> {
        let Self { rule, rows, start, classes, rate, mut sink, scratch } = self;
        if classes <= TILE_CLASSES
            && let Some(rule) = rule.tile(rate, rows.len() / classes)
            && let Some(vacuous) = sink.tiles(ShortRows { rows, classes, rule, rate }, loops)
        {
            return Ok(vacuous);
        }
        let mut vacuous = 0;
        for (i, row) in rows.chunks_exact(classes).enumerate() {
            let selection = rule.select(row, rate, scratch, loops);
            let selection = selection.map_err(|error| error.at_row(start + i))?;
            vacuous += usize::from(selection.vacuous);
            let next = if classes < LONG { &[] } else { &rows[(i + 1) * classes..] };
            sink.put(Row { logits: row, next, rate }, selection.kept, scratch, loops);
        }
        Ok(vacuous)
    }
}

/// A row whose classes have been chosen.
struct Row<'a, F> {
    logits: &'a [F],
    /// The rows after it, if they are to be prefetched.
    next: &'a [F],
    rate: Rate,
}

/// Where rows go, one after the other.
trait Sink<F: Float> {
    /// Short rows all at once, as [`Loops::tile`].
    fn tiles(&mut self, rows: ShortRows<'_, F>, loops: impl Loops<F>) -> Option<usize>;

    /// The next row.
    fn put(
        &mut self,
        row: Row<'_, F>,
        kept: Kept<F>,
        scratch: &mut Scratch<F>,
        loops: impl Loops<F>,
    );
}

/// Distributions with their zeros, and support sizes.
struct Dense<'a, F> {
    /// What is left to write, or empty if distributions are not wanted.
    out: &'a mut [F],
    /// What is left to write, or empty if sizes are not wanted.
    sizes: &'a mut [u32],
}

impl<F: Float> Sink<F> for Dense<'_, F> {
    #[inline(always)]
    fn tiles(&mut self, rows: ShortRows<'_, F>, loops: impl Loops<F>) -> Option<usize> {
        loops.tile(rows, TileOutput::Dense { out: self.out, sizes: self.sizes })
    }

    #[inline(always)]
    fn put(
        &mut self,
        row: Row<'_, F>,
        kept: Kept<F>,
        scratch: &mut Scratch<F>,
        loops: impl Loops<F>,
    ) {
        let classes = row.logits.len();
        if let Some(size) = self.sizes.split_off_first_mut() {
            *size = match kept {
                Kept::Above(cut) => loops.count_above(row.logits, cut.threshold) as u32,
                Kept::Listed(count) => count as u32,
            };
        }
        let Some(out) = self.out.split_off_mut(..classes) else { return };
        let cut = match kept {
            Kept::Above(cut) => cut,
            Kept::Listed(count) => {
                out.fill(F::default());
                for (&column, &p) in scratch.columns[..count].iter().zip(&scratch.values) {
                    out[column as usize] = p;
                }
                return;
            }
        };
        let sum = loops.exp_above(row.logits, out, cut, row.rate);
        loops.scale(out, 1.0 / sum, row.next);
    }
}

/// Compressed rows.
struct Csr<'a, F> {
    /// With room for all classes, and [`SLACK`] more.
    rows: Rows<'a, F>,
    /// The number of entries written.
    filled: usize,
}

impl<F: Float> Sink<F> for Csr<'_, F> {
    #[inline(always)]
    fn tiles(&mut self, rows: ShortRows<'_, F>, loops: impl Loops<F>) -> Option<usize> {
        let Rows { ends, base, entries: Entries { columns, values } } = &mut self.rows;
        let (before, entries) = (ends.len(), Entries { columns, values });
        let vacuous = loops.tile(rows, TileOutput::Csr(Rows { ends, base: *base, entries }));
        if vacuous.is_none() {
            self.rows.ends.truncate(before);
        }
        vacuous
    }

    #[inline(always)]
    fn put(
        &mut self,
        row: Row<'_, F>,
        kept: Kept<F>,
        scratch: &mut Scratch<F>,
        loops: impl Loops<F>,
    ) {
        let Row { logits, next, rate } = row;
        let columns = &mut self.rows.entries.columns[self.filled..];
        let values = &mut self.rows.entries.values[self.filled..];
        let (count, sum) = match kept {
            Kept::Above(cut) => {
                let entries = Entries { columns, values: &mut *values };
                loops.pack_exp(logits, cut, rate, &mut scratch.staging, entries)
            }
            Kept::Listed(count) => {
                columns[..count].copy_from_slice(&scratch.columns[..count]);
                values[..count].copy_from_slice(&scratch.values[..count]);
                (count, 1.0)
            }
        };
        if !matches!(kept, Kept::Listed(_)) {
            // Whole vectors: what follows is not written yet.
            loops.scale(&mut values[..count.next_multiple_of(SLACK)], 1.0 / sum, next);
        }
        self.filled += count;
        self.rows.ends.push(self.rows.base + self.filled as i64);
    }
}
