//! What becomes of rows whose classes have been chosen: dense, compressed, or counted.

use crate::block::MAX_GROUP;
use crate::compressed::Entries;
use crate::kernel::{Ahead, Cut, Desk, Float, Loops, Next, Rate, SLACK, ShortRows, Stream};

/// Packed rows, one a cut, of which what lies above the cut is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Group<'a, F> {
    pub(crate) rows: &'a [F],
    pub(crate) classes: usize,
    pub(crate) cuts: &'a [Cut<F>],
    pub(crate) rate: Rate,
    /// How many elements later in memory comes what is next.
    pub(crate) ahead: usize,
    /// The same for when a row is done with, if it is so long that the next could not be asked for before.
    pub(crate) afterwards: Option<usize>,
}

impl<'a, F: Float> Group<'a, F> {
    pub(crate) fn rows(&self) -> impl Iterator<Item = &'a [F]> + use<'a, F> {
        self.rows.chunks_exact(self.classes)
    }

    /// The exponentials of what is kept, and zeros; their sums.
    #[inline(always)]
    fn exp_above(
        &self,
        out: &mut [F],
        write_ahead: usize,
        loops: impl Loops<F>,
    ) -> [f64; MAX_GROUP] {
        let ahead = Ahead { read: self.ahead, write: write_ahead };
        let mut sums = [0.0; MAX_GROUP];
        let pairs = self.rows().zip(out.chunks_exact_mut(self.classes));
        for (((row, out), &cut), sum) in pairs.zip(self.cuts).zip(&mut sums) {
            *sum = loops.exp_above(row, out, cut, self.rate, ahead);
        }
        sums
    }

    /// Writes the columns and the probabilities of what one of the rows keeps; the number of it.
    #[inline(always)]
    pub(crate) fn put_above(
        &self,
        row: &'a [F],
        cut: Cut<F>,
        packing: &mut impl Packing<F>,
        columns: &mut [u32],
        values: &mut [F],
        loops: impl Loops<F>,
    ) -> usize {
        let (count, sum) = packing.put(self, row, cut, columns, values, loops);
        // Whole vectors, where there is room: what comes after is not written yet.
        let whole = count.next_multiple_of(SLACK).min(values.len());
        loops.scale(&mut values[..whole], 1.0 / sum, None);
        count
    }

    /// What is to be asked for when a row is done with.
    #[inline(always)]
    fn next(&self, row: &'a [F]) -> Option<Next<'a, F>> {
        self.afterwards.map(|distance| Next { after: row, distance })
    }
}

/// How what is kept of a row is packed.
pub(crate) trait Packing<F: Float> {
    /// Writes the columns of it, and its exponentials; the number, and the sum.
    fn put(
        &mut self,
        group: &Group<'_, F>,
        row: &[F],
        cut: Cut<F>,
        columns: &mut [u32],
        values: &mut [F],
        loops: impl Loops<F>,
    ) -> (usize, f64);
}

/// Straight to its place.
pub(crate) struct AtOnce;

impl<F: Float> Packing<F> for AtOnce {
    #[inline(always)]
    fn put(
        &mut self,
        group: &Group<'_, F>,
        row: &[F],
        cut: Cut<F>,
        columns: &mut [u32],
        values: &mut [F],
        loops: impl Loops<F>,
    ) -> (usize, f64) {
        loops.compact_exp(row, cut, group.rate, columns, values, group.ahead)
    }
}

/// Block by block, for long rows.
impl<F: Float> Packing<F> for Desk {
    #[inline(always)]
    fn put(
        &mut self,
        group: &Group<'_, F>,
        row: &[F],
        cut: Cut<F>,
        columns: &mut [u32],
        values: &mut [F],
        loops: impl Loops<F>,
    ) -> (usize, f64) {
        loops.compact_long(row, cut, group.rate, self, columns, values)
    }
}

/// Takes rows in order.
pub(crate) trait Sink<F: Float> {
    /// How many logits are worked on between two looks at the memory.
    const GROUP: usize = 1024;

    /// Of how many logits at the most the next few rows are asked for while some are worked on. With more, they would
    /// push out of the caches what is being written.
    const FAR_AHEAD: usize = 1 << 11;

    /// Whether memory is asked for sparingly, see [`Loops::sparing`].
    const SPARING: bool = false;

    /// Short rows all at once, if there is a way and they are not at fault; the number of vacuous
    /// ones.
    fn tile(&mut self, rows: ShortRows<'_, F>) -> Option<usize>;

    /// The next row, of which these columns are kept with these probabilities.
    fn listed(&mut self, columns: &[u32], probabilities: &[F], classes: usize);

    /// The next rows.
    fn above(&mut self, group: Group<'_, F>, loops: impl Loops<F>);
}

/// Writes distributions with their zeros.
pub(crate) struct DenseSink<'a, F> {
    out: &'a mut [F],
}

impl<'a, F> DenseSink<'a, F> {
    pub(crate) fn new(out: &'a mut [F]) -> Self {
        Self { out }
    }

    fn next(&mut self, len: usize) -> &'a mut [F] {
        let (next, rest) = std::mem::take(&mut self.out).split_at_mut(len);
        self.out = rest;
        next
    }
}

impl<F: Float> Sink<F> for DenseSink<'_, F> {
    fn tile(&mut self, rows: ShortRows<'_, F>) -> Option<usize> {
        F::LOOPS.tile(rows, self.out)
    }

    fn listed(&mut self, columns: &[u32], probabilities: &[F], classes: usize) {
        let out = self.next(classes);
        out.fill(F::default());
        for (&column, &p) in columns.iter().zip(probabilities) {
            out[column as usize] = p;
        }
    }

    #[inline(always)]
    fn above(&mut self, group: Group<'_, F>, loops: impl Loops<F>) {
        let out = self.next(group.rows.len());
        let sums = group.exp_above(out, group.ahead, loops);
        for ((row, out), sum) in group.rows().zip(out.chunks_exact_mut(group.classes)).zip(sums) {
            loops.scale(out, 1.0 / sum, group.next(row));
        }
    }
}

/// Writes distributions with their zeros, past the caches: rows are computed in `room`.
pub(crate) struct DenseStream<'a, F: Float> {
    out: Stream<'a, F>,
    room: &'a mut Vec<F>,
}

impl<'a, F: Float> DenseStream<'a, F> {
    pub(crate) fn new(out: &'a mut [F], room: &'a mut Vec<F>) -> Self {
        Self { out: Stream::new(out), room }
    }
}

impl<F: Float> Sink<F> for DenseStream<'_, F> {
    /// There is nothing to be pushed out but the rows themselves, of which the second-level cache holds two.
    const FAR_AHEAD: usize = 1 << 15;

    fn tile(&mut self, _: ShortRows<'_, F>) -> Option<usize> {
        None
    }

    fn listed(&mut self, columns: &[u32], probabilities: &[F], classes: usize) {
        self.room.clear();
        self.room.resize(classes, F::default());
        for (&column, &p) in columns.iter().zip(probabilities) {
            self.room[column as usize] = p;
        }
        F::LOOPS.scale_to(self.room, 1.0, &mut self.out, None);
    }

    #[inline(always)]
    fn above(&mut self, group: Group<'_, F>, loops: impl Loops<F>) {
        self.room.resize(group.rows.len(), F::default());
        let sums = group.exp_above(self.room, 0, loops);
        for ((row, room), sum) in group.rows().zip(self.room.chunks_exact(group.classes)).zip(sums)
        {
            loops.scale_to(room, 1.0 / sum, &mut self.out, group.next(row));
        }
    }
}

/// Writes what is kept and nothing else.
pub(crate) struct CompressedSink<'a, F, P> {
    entries: Entries<'a, F>,
    packing: &'a mut P,
    /// How many entries have been written.
    end: usize,
}

impl<'a, F, P> CompressedSink<'a, F, P> {
    /// There must be room for all classes, and [`crate::kernel::SLACK`] more.
    pub(crate) fn new(entries: Entries<'a, F>, packing: &'a mut P) -> Self {
        Self { entries, packing, end: 0 }
    }

    fn end_row(&mut self, count: usize) {
        self.end += count;
        self.entries.ends.push(self.entries.base + self.end);
    }
}

impl<F: Float, P: Packing<F>> Sink<F> for CompressedSink<'_, F, P> {
    /// A row is soon read again here, before another takes its place in the nearest cache.
    const GROUP: usize = 512;
    const SPARING: bool = true;

    fn tile(&mut self, rows: ShortRows<'_, F>) -> Option<usize> {
        let before = self.entries.ends.len();
        let vacuous = F::LOOPS.tile_compressed(rows, &mut self.entries);
        if vacuous.is_none() {
            self.entries.ends.truncate(before);
        }
        vacuous
    }

    fn listed(&mut self, columns: &[u32], probabilities: &[F], _: usize) {
        let count = columns.len();
        self.entries.columns[self.end..][..count].copy_from_slice(columns);
        self.entries.values[self.end..][..count].copy_from_slice(probabilities);
        self.end_row(count);
    }

    #[inline(always)]
    fn above(&mut self, group: Group<'_, F>, loops: impl Loops<F>) {
        for (row, &cut) in group.rows().zip(group.cuts) {
            let columns = &mut self.entries.columns[self.end..];
            let values = &mut self.entries.values[self.end..];
            let count = group.put_above(row, cut, self.packing, columns, values, loops);
            self.end_row(count);
        }
    }
}

/// Counts what is kept.
pub(crate) struct SizeSink<'a> {
    /// Of the rows that are still to come.
    sizes: &'a mut [u32],
}

impl<'a> SizeSink<'a> {
    pub(crate) fn new(sizes: &'a mut [u32]) -> Self {
        Self { sizes }
    }
}

impl<F: Float> Sink<F> for SizeSink<'_> {
    fn tile(&mut self, rows: ShortRows<'_, F>) -> Option<usize> {
        F::LOOPS.tile_sizes(rows, self.sizes)
    }

    fn listed(&mut self, columns: &[u32], _: &[F], _: usize) {
        if let Some(size) = self.sizes.split_off_first_mut() {
            *size = columns.len() as u32;
        }
    }

    #[inline(always)]
    fn above(&mut self, group: Group<'_, F>, loops: impl Loops<F>) {
        for (row, cut) in group.rows().zip(group.cuts) {
            if let Some(size) = self.sizes.split_off_first_mut() {
                *size = loops.count_above(row, cut.threshold) as u32;
            }
        }
    }
}
