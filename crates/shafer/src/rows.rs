//! What a thread does with a block of rows: choose the classes of each row, write what is kept.

use std::mem::take;

use crate::csr::{CsrRows, Rows};
use crate::element::Element;
use crate::error::Result;
use crate::kernel::{Entries, Float, Loops, Output, Rate, SLACK, ShortRows, TILE_CLASSES, Task};
use crate::logits::Logits;
use crate::method::{Kept, Rule, Scratch};

/// From this length on, the next row is prefetched while a row is normalised.
const LONG: usize = 2048;

/// What a thread needs to work on blocks of rows.
pub(crate) struct Worker<'a, E: Element> {
    rule: Rule,
    logits: &'a Logits<'a, E>,
    scratch: Scratch<E::Compute>,
    /// The block, where it has to be copied.
    input: Vec<E::Compute>,
    /// Its distributions, where they are computed in another type.
    dense: Vec<E::Compute>,
    /// The same, compressed.
    csr: CsrRows<E::Compute>,
}

impl<'a, E: Element> Worker<'a, E> {
    pub(crate) fn new(rule: Rule, logits: &'a Logits<'a, E>) -> Self {
        let (input, dense, csr) = (Vec::new(), Vec::new(), CsrRows::new());
        Self { rule, logits, scratch: Scratch::default(), input, dense, csr }
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
            return self.write(start, count, Output::Dense { out, sizes });
        }
        let mut dense = take(&mut self.dense);
        dense.resize(out.len(), Default::default());
        let vacuous = self.write(start, count, Output::Dense { out: &mut dense, sizes })?;
        for (out, &p) in out.iter_mut().zip(&dense) {
            *out = E::narrow(p);
        }
        self.dense = dense;
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
            let vacuous = self.write(start, count, Output::Csr(rows));
            return vacuous.inspect_err(|_| out.truncate(before));
        }
        let mut csr = take(&mut self.csr);
        csr.reset(classes);
        let vacuous = self.write(start, count, Output::Csr(csr.spare(count * classes)))?;
        out.append(&csr, E::narrow);
        self.csr = csr;
        Ok(vacuous)
    }

    /// Writes `count` rows. Returns the number of vacuous rows.
    fn write(&mut self, start: usize, count: usize, to: Output<'_, E::Compute>) -> Result<usize> {
        let Self { rule, logits, scratch, input, .. } = self;
        let rows = logits.block(start, count, input);
        let (rule, rate, classes) = (*rule, logits.rate(), logits.classes());
        E::Compute::run(Write { rule, rows, start, classes, rate, to, scratch })
    }
}

/// Packed rows, and what to do with them.
struct Write<'a, F> {
    rule: Rule,
    rows: &'a [F],
    /// The number of the first row, for errors.
    start: usize,
    classes: usize,
    rate: Rate,
    to: Output<'a, F>,
    scratch: &'a mut Scratch<F>,
}

impl<F: Float> Task<F> for Write<'_, F> {
    type Output = Result<usize>;

    #[inline(always)]
    fn run(self, loops: impl Loops<F>) -> Result<usize> {
        let Self { rule, rows, start, classes, rate, mut to, scratch } = self;
        // If a row is invalid, the tiles do not say which, and the loop below does.
        if classes <= TILE_CLASSES
            && let Some(rule) = rule.tile(rate, rows.len() / classes)
            && let Some(vacuous) = loops.tile(ShortRows { rows, classes, rule, rate }, &mut to)
        {
            return Ok(vacuous);
        }
        let mut vacuous = 0;
        for (i, row) in rows.chunks_exact(classes).enumerate() {
            let selection = rule.select(row, rate, scratch, loops);
            let selection = selection.map_err(|error| error.at_row(start + i))?;
            vacuous += usize::from(selection.vacuous);
            let next = if classes < LONG { &[] } else { &rows[(i + 1) * classes..] };
            match &mut to {
                Output::Dense { out, sizes } => {
                    if let Some(size) = sizes.split_off_first_mut() {
                        *size = support_size(row, selection.kept, loops);
                    }
                    if let Some(out) = out.split_off_mut(..classes) {
                        write_dense(row, next, rate, selection.kept, scratch, out, loops);
                    }
                }
                Output::Csr(to) => {
                    let count = write_csr(row, next, rate, selection.kept, scratch, to, loops);
                    to.advance(count);
                }
            }
        }
        Ok(vacuous)
    }
}

#[inline(always)]
fn support_size<F: Float>(row: &[F], kept: Kept<F>, loops: impl Loops<F>) -> u32 {
    match kept {
        Kept::Above(cut) => loops.count_above(row, cut.threshold) as u32,
        Kept::Listed(count) => count as u32,
    }
}

/// Writes the distribution of a row, and prefetches `next`.
#[cfg_attr(not(debug_assertions), inline(always))]
fn write_dense<F: Float>(
    row: &[F],
    next: &[F],
    rate: Rate,
    kept: Kept<F>,
    scratch: &Scratch<F>,
    out: &mut [F],
    loops: impl Loops<F>,
) {
    match kept {
        Kept::Above(cut) => {
            let sum = loops.exp_above(row, out, cut, rate);
            loops.scale(out, 1.0 / sum, next);
        }
        Kept::Listed(count) => {
            out.fill(F::default());
            for (&column, &p) in scratch.columns[..count].iter().zip(&scratch.values) {
                out[column as usize] = p;
            }
        }
    }
}

/// Writes the kept classes of a row, and prefetches `next`. Returns their number.
#[cfg_attr(not(debug_assertions), inline(always))]
fn write_csr<F: Float>(
    row: &[F],
    next: &[F],
    rate: Rate,
    kept: Kept<F>,
    scratch: &mut Scratch<F>,
    to: &mut Rows<'_, F>,
    loops: impl Loops<F>,
) -> usize {
    let Entries { columns, values } = &mut to.entries;
    match kept {
        Kept::Above(cut) => {
            let entries = Entries { columns, values };
            let (count, sum) = loops.pack_exp(row, cut, rate, &mut scratch.staging, entries);
            // Whole vectors: what follows is not written yet.
            loops.scale(&mut values[..count.next_multiple_of(SLACK)], 1.0 / sum, next);
            count
        }
        Kept::Listed(count) => {
            columns[..count].copy_from_slice(&scratch.columns[..count]);
            values[..count].copy_from_slice(&scratch.values[..count]);
            count
        }
    }
}
