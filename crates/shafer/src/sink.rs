//! What becomes of rows whose classes have been chosen: dense, compressed, or counted.

use crate::block::MAX_GROUP;
use crate::compressed::Entries;
use crate::kernel::{Ahead, Cut, Float, Loops, Rate, SLACK, Stream, TileRule};

/// Takes rows in order.
pub(crate) trait Sink<F: Float> {
    /// Short rows all at once, if there is a way and they are not at fault; the number of vacuous
    /// ones.
    fn tile(&mut self, rule: TileRule, rows: &[F], classes: usize, rate: Rate) -> Option<usize>;

    /// The next row, of which these columns are kept with these probabilities.
    fn listed(&mut self, columns: &[u32], probabilities: &[F], classes: usize);

    /// The next rows, one a cut, of which what lies above the cut is kept. What lies `ahead`
    /// elements later in memory comes after them.
    fn above(
        &mut self,
        rows: &[F],
        cuts: &[Cut<F>],
        rate: Rate,
        ahead: usize,
        loops: impl Loops<F>,
    );
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
    fn tile(&mut self, rule: TileRule, rows: &[F], classes: usize, rate: Rate) -> Option<usize> {
        F::LOOPS.tile(rule, rows, classes, rate, self.out)
    }

    fn listed(&mut self, columns: &[u32], probabilities: &[F], classes: usize) {
        let out = self.next(classes);
        out.fill(F::default());
        for (&column, &p) in columns.iter().zip(probabilities) {
            out[column as usize] = p;
        }
    }

    #[inline(always)]
    fn above(
        &mut self,
        rows: &[F],
        cuts: &[Cut<F>],
        rate: Rate,
        ahead: usize,
        loops: impl Loops<F>,
    ) {
        let classes = rows.len() / cuts.len();
        let out = self.next(rows.len());
        let mut sums = [0.0; MAX_GROUP];
        let pairs = rows.chunks_exact(classes).zip(out.chunks_exact_mut(classes));
        for (((row, out), &cut), sum) in pairs.zip(cuts).zip(&mut sums) {
            *sum = loops.exp_above(row, out, cut, rate, Ahead { read: ahead, write: ahead });
        }
        let pairs = rows.chunks_exact(classes).zip(out.chunks_exact_mut(classes));
        for ((row, out), sum) in pairs.zip(sums) {
            // Of a long row the next one could not be asked for before: now this one is done with.
            loops.scale(out, 1.0 / sum, (ahead < classes).then_some(row));
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
    fn tile(&mut self, _: TileRule, _: &[F], _: usize, _: Rate) -> Option<usize> {
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
    fn above(
        &mut self,
        rows: &[F],
        cuts: &[Cut<F>],
        rate: Rate,
        ahead: usize,
        loops: impl Loops<F>,
    ) {
        let classes = rows.len() / cuts.len();
        self.room.resize(rows.len(), F::default());
        let mut sums = [0.0; MAX_GROUP];
        let pairs = rows.chunks_exact(classes).zip(self.room.chunks_exact_mut(classes));
        for (((row, room), &cut), sum) in pairs.zip(cuts).zip(&mut sums) {
            *sum = loops.exp_above(row, room, cut, rate, Ahead { read: ahead, write: 0 });
        }
        for ((row, room), sum) in
            rows.chunks_exact(classes).zip(self.room.chunks_exact(classes)).zip(sums)
        {
            // As above.
            let row = (ahead < classes).then_some(row);
            loops.scale_to(room, 1.0 / sum, &mut self.out, row);
        }
    }
}

/// Writes what is kept and nothing else.
pub(crate) struct CompressedSink<'a, F> {
    entries: Entries<'a, F>,
    /// How many entries have been written.
    end: usize,
    /// What the values of the row, which is then the only one, are still to be multiplied by, if that is
    /// left to others.
    factor: Option<&'a mut f64>,
}

impl<'a, F> CompressedSink<'a, F> {
    /// There must be room for all classes, and [`crate::kernel::SLACK`] more.
    pub(crate) fn new(entries: Entries<'a, F>, factor: Option<&'a mut f64>) -> Self {
        Self { entries, end: 0, factor }
    }

    fn end_row(&mut self, count: usize) {
        self.end += count;
        self.entries.ends.push(self.entries.base + self.end);
    }
}

impl<F: Float> Sink<F> for CompressedSink<'_, F> {
    fn tile(&mut self, rule: TileRule, rows: &[F], classes: usize, rate: Rate) -> Option<usize> {
        let before = self.entries.ends.len();
        let vacuous = F::LOOPS.tile_compressed(rule, rows, classes, rate, &mut self.entries);
        if vacuous.is_none() {
            self.entries.ends.truncate(before);
        }
        vacuous
    }

    fn listed(&mut self, columns: &[u32], probabilities: &[F], _: usize) {
        let count = columns.len();
        self.entries.columns[self.end..][..count].copy_from_slice(columns);
        self.entries.values[self.end..][..count].copy_from_slice(probabilities);
        if let Some(factor) = &mut self.factor {
            **factor = 1.0;
        }
        self.end_row(count);
    }

    #[inline(always)]
    fn above(
        &mut self,
        rows: &[F],
        cuts: &[Cut<F>],
        rate: Rate,
        ahead: usize,
        loops: impl Loops<F>,
    ) {
        let classes = rows.len() / cuts.len();
        for (row, &cut) in rows.chunks_exact(classes).zip(cuts) {
            let columns = &mut self.entries.columns[self.end..];
            let values = &mut self.entries.values[self.end..];
            let count = match &mut self.factor {
                None => put_above(row, cut, rate, ahead, columns, values, loops),
                Some(factor) => {
                    let count = loops.compact(row, cut.threshold, columns, values, ahead);
                    **factor = 1.0 / loops.exp_all(values, count, cut.max, rate);
                    count
                }
            };
            self.end_row(count);
        }
    }
}

/// Writes the columns and the probabilities of what a row keeps; the number of it. There must be room for
/// all classes, and [`SLACK`] more.
#[inline(always)]
pub(crate) fn put_above<F: Float>(
    row: &[F],
    Cut { threshold, max }: Cut<F>,
    rate: Rate,
    ahead: usize,
    columns: &mut [u32],
    values: &mut [F],
    loops: impl Loops<F>,
) -> usize {
    let count = loops.compact(row, threshold, columns, values, ahead);
    let sum = loops.exp_all(values, count, max, rate);
    // Of a long row the next one could not be asked for before: now this one is done with.
    let done = (ahead != 0 && ahead < row.len()).then_some(row);
    // Whole vectors: what comes after is not written yet.
    loops.scale(&mut values[..count.next_multiple_of(SLACK)], 1.0 / sum, done);
    count
}

/// Counts what is kept.
pub(crate) struct SizeSink<'a> {
    sizes: std::slice::IterMut<'a, u32>,
}

impl<'a> SizeSink<'a> {
    pub(crate) fn new(sizes: &'a mut [u32]) -> Self {
        Self { sizes: sizes.iter_mut() }
    }
}

impl<F: Float> Sink<F> for SizeSink<'_> {
    fn tile(&mut self, _: TileRule, _: &[F], _: usize, _: Rate) -> Option<usize> {
        None
    }

    fn listed(&mut self, columns: &[u32], _: &[F], _: usize) {
        if let Some(size) = self.sizes.next() {
            *size = columns.len() as u32;
        }
    }

    #[inline(always)]
    fn above(&mut self, rows: &[F], cuts: &[Cut<F>], _: Rate, _: usize, loops: impl Loops<F>) {
        let classes = rows.len() / cuts.len();
        for ((row, cut), size) in rows.chunks_exact(classes).zip(cuts).zip(&mut self.sizes) {
            *size = loops.count_above(row, cut.threshold) as u32;
        }
    }
}
