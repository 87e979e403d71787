//! A few rows that fit the second-level cache: what a thread does with them.

#[cfg(feature = "parallel")]
use std::ops::Range;

#[cfg(feature = "parallel")]
use crate::compressed::Places;
use crate::compressed::{CompressedRows, Entries};
use crate::element::Element;
use crate::error::Result;
#[cfg(feature = "parallel")]
use crate::in_order::Size;
use crate::kernel::{Cut, Desk, Float, Loops, Rate, SLACK, ShortRows, TILE_CLASSES, Task};
use crate::logits::Logits;
#[cfg(feature = "parallel")]
use crate::sink::Packing;
use crate::sink::{AtOnce, CompressedSink, DenseSink, DenseStream, Group, Sink, SizeSink};
use crate::transform::{Kept, Rule, Scratch, Selection};

/// How many rows are worked on between two looks at the memory, at the most.
pub(crate) const MAX_GROUP: usize = 64;

/// Where the next few rows are not asked for while some are worked on, the near future must do.
const NEAR_AHEAD: usize = 1024;

/// From so many logits on, distributions with their zeros are written past the caches, which would not
/// hold them.
const PAST_CACHES: usize = 1 << 23;

/// What a thread needs to work on blocks.
pub(crate) struct Worker<'a, E: Element> {
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
    pub(crate) fn new(rule: &'a Rule, logits: &'a Logits<'a, E>) -> Self {
        Self {
            rule,
            logits,
            rate: logits.rate(),
            skipped_blocks: 0,
            scratch: Scratch::default(),
            input: Vec::new(),
            output: Vec::new(),
            wide: CompressedRows::new(),
        }
    }

    /// For a thread that works on every so many blocks only.
    #[cfg(feature = "parallel")]
    pub(crate) fn skipping(self, skipped_blocks: usize) -> Self {
        Self { skipped_blocks, ..self }
    }

    /// The distributions of some rows, packed; the number of vacuous ones.
    pub(crate) fn dense(&mut self, start: usize, out: &mut [E]) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, out.len() / classes, &mut self.input);
        let block = Block { rule: self.rule, rows, start, classes, rate: self.rate, skipped: 0 };
        if let Some(out) = E::as_compute_mut(out) {
            // Along another axis, what is written here is soon read again.
            let past_caches = self.logits.len() >= PAST_CACHES
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

    /// The distributions of some rows, added to compressed ones.
    pub(crate) fn compressed(
        &mut self,
        start: usize,
        count: usize,
        out: &mut CompressedRows<E>,
    ) -> Result<usize> {
        let classes = self.logits.classes();
        let rows = self.logits.block(start, count, &mut self.input);
        let skipped = self.skipped_blocks * rows.len();
        let block = Block { rule: self.rule, rows, start, classes, rate: self.rate, skipped };
        self.scratch.skipped = if count == 1 { skipped } else { 0 };
        let Entries { ends, base, columns, values } = out.writer(rows.len() + SLACK);
        if let Some(values) = E::as_compute_mut(values) {
            let entries = Entries { ends, base, columns, values };
            return block.compress(entries, &mut self.scratch);
        }
        self.wide.reset(classes);
        let entries = self.wide.writer(rows.len() + SLACK);
        let vacuous = block.compress(entries, &mut self.scratch)?;
        out.add_wide(&self.wide);
        Ok(vacuous)
    }

    /// Whether rows can be counted before they are written. If not, they can as well be written elsewhere and copied.
    #[cfg(feature = "parallel")]
    pub(crate) fn counts(&self) -> bool {
        // Only where a threshold decides is the number known without the rows, and tiles are fast.
        self.rule.tile(self.rate).is_some()
            && self.logits.classes() > TILE_CLASSES
            && E::as_compute(&[]).is_some()
    }

    /// Chooses the classes of these rows, and counts them.
    #[cfg(feature = "parallel")]
    pub(crate) fn choose(
        &mut self,
        rows: Range<usize>,
        chosen: &mut Chosen<E::Compute>,
    ) -> Result<Size> {
        self.write_and_choose(&Chosen::default(), Places::default(), rows, chosen)
    }

    /// Writes rows whose classes have been chosen to their place.
    #[cfg(feature = "parallel")]
    pub(crate) fn write(&mut self, chosen: &Chosen<E::Compute>, place: Places<'_, E>) {
        // There is nothing to go wrong with no rows.
        let _ = self.write_and_choose(chosen, place, 0..0, &mut Chosen::default());
    }

    /// The one for some rows, and the other for the `next` ones, which are `rows`.
    #[cfg(feature = "parallel")]
    pub(crate) fn write_and_choose(
        &mut self,
        chosen: &Chosen<E::Compute>,
        place: Places<'_, E>,
        rows: Range<usize>,
        next: &mut Chosen<E::Compute>,
    ) -> Result<Size> {
        let Self { rule, logits, rate, ref mut scratch, .. } = *self;
        let classes = logits.classes();
        let Places { base, ends, columns, values } = place;
        let values = E::as_compute_mut(values).unwrap_or_default();
        let place = Places { base, ends, columns, values };
        let (cuts, ahead) = (&chosen.cuts[..], NEAR_AHEAD);
        let mut copied = Vec::new();
        let written = match &chosen.copied[..] {
            [] => logits.block(chosen.start, cuts.len(), &mut copied),
            copied => copied,
        };
        let group = Group { rows: written, classes, cuts, rate, ahead, afterwards: None };
        next.clear();
        let Chosen { start, cuts, copied } = next;
        *start = rows.start;
        let rows = logits.block(rows.start, rows.len(), copied);
        let block = Block { rule, rows, start: *start, classes, rate, skipped: 0 };
        if rule.packs_at_once(classes) {
            let packing = &mut AtOnce;
            E::Compute::run(WriteAndChoose { group, place, packing, block, cuts, scratch })
        } else {
            let packing = &mut Desk::asking();
            E::Compute::run(WriteAndChoose { group, place, packing, block, cuts, scratch })
        }
    }

    /// How many classes some rows keep.
    pub(crate) fn support_sizes(&mut self, start: usize, sizes: &mut [u32]) -> Result<usize> {
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
            && let Some(rule) = rule.tile(rate)
            && let Some(vacuous) = sink.tile(ShortRows { rows, classes, rule, rate })
        {
            return Ok(vacuous);
        }
        F::run(Write { block: self, sink, scratch })
    }

    /// The same, added to compressed rows.
    fn compress(&self, entries: Entries<'_, F>, scratch: &mut Scratch<F>) -> Result<usize> {
        if self.rule.packs_at_once(self.classes) {
            self.write(&mut CompressedSink::new(entries, &mut AtOnce), scratch)
        } else {
            self.write(&mut CompressedSink::new(entries, &mut Desk::new()), scratch)
        }
    }

    /// Checks a row, the `i`-th of these, and chooses its classes.
    #[inline(always)]
    fn select(
        &self,
        i: usize,
        row: &[F],
        scratch: &mut Scratch<F>,
        loops: impl Loops<F>,
    ) -> Result<Selection<F>> {
        let selection = self.rule.select(row, self.rate, scratch, loops);
        selection.map_err(|error| error.at_row(self.start + i))
    }
}

/// Rows whose classes have been chosen, and that are yet to be written.
#[cfg(feature = "parallel")]
#[derive(Default)]
pub(crate) struct Chosen<F> {
    /// The number of the first one.
    start: usize,
    /// Where each of them is cut off.
    cuts: Vec<Cut<F>>,
    /// The rows themselves, if they had to be copied.
    copied: Vec<F>,
}

#[cfg(feature = "parallel")]
impl<F> Chosen<F> {
    pub(crate) fn is_empty(&self) -> bool {
        self.cuts.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.cuts.clear();
        self.copied.clear();
    }
}

/// Writes rows to a place that has room for them and no more, and chooses the classes of others: a row of the ones and
/// a row of the others in turns. So there is always something to be asked of the memory, and something to be computed
/// while it answers.
#[cfg(feature = "parallel")]
struct WriteAndChoose<'a, F, P> {
    group: Group<'a, F>,
    place: Places<'a, F>,
    packing: &'a mut P,
    block: Block<'a, F>,
    cuts: &'a mut Vec<Cut<F>>,
    scratch: &'a mut Scratch<F>,
}

#[cfg(feature = "parallel")]
impl<F: Float, P: Packing<F>> Task<F> for WriteAndChoose<'_, F, P> {
    type Output = Result<Size>;

    #[inline(always)]
    fn run(self, loops: impl Loops<F>) -> Result<Size> {
        let Self { group, place, packing, block, cuts, scratch } = self;
        let loops = loops.sparing();
        let classes = group.classes;
        let (to_write, to_choose) = (group.cuts.len(), block.rows.len() / classes);
        let mut end = 0;
        // An error does not keep what is to be written from being written.
        let mut chosen = Ok(Size { entries: 0, vacuous: 0 });
        for i in 0..to_write.max(to_choose) {
            if i < to_write {
                let row = &group.rows[i * classes..][..classes];
                let (columns, values) = (&mut place.columns[end..], &mut place.values[end..]);
                end += group.put_above(row, group.cuts[i], packing, columns, values, loops);
                place.ends[i] = place.base + end;
            }
            if i < to_choose
                && let Ok(size) = &mut chosen
            {
                let row = &block.rows[i * classes..][..classes];
                match block.select(i, row, scratch, loops) {
                    Ok(Selection { kept: Kept::Above(cut), vacuous }) => {
                        size.vacuous += usize::from(vacuous);
                        size.entries += loops.count_above(row, cut.threshold);
                        cuts.push(cut);
                    }
                    // See `Worker::counts`.
                    Ok(_) => {}
                    Err(error) => chosen = Err(error),
                }
            }
        }
        chosen
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
        let loops = if S::SPARING { loops.sparing() } else { loops };
        let Block { rows, classes, rate, skipped, .. } = *block;
        // A few rows at a time: the choice for one overlaps with the reading of the next, and what
        // is to be read and written for the next few is asked for while these are computed.
        let group = (S::GROUP / classes).clamp(1, MAX_GROUP);
        let ahead = if group * classes <= S::FAR_AHEAD { group * classes } else { NEAR_AHEAD };
        let mut cuts = [Cut::default(); MAX_GROUP];
        let mut vacuous = 0;
        let last = (rows.len() - 1) / (group * classes);
        for (number, rows) in rows.chunks(group * classes).enumerate() {
            // After the last few comes the next block; those between belong to other threads.
            let skips = number == last && ahead == group * classes;
            let ahead = if skips { rows.len() + skipped } else { ahead };
            let mut count = 0;
            for (i, row) in rows.chunks_exact(classes).enumerate() {
                let selection = block.select(number * group + i, row, scratch, loops)?;
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
                let cuts = &cuts[..count];
                let afterwards = (ahead < classes).then_some(classes);
                sink.above(Group { rows, classes, cuts, rate, ahead, afterwards }, loops);
            }
        }
        Ok(vacuous)
    }
}
