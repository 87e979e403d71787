//! What is kept of a row, packed where it belongs, with the exponentials of it.

use fearless_simd::prelude::*;

use super::gibbs::Term;
use super::single::{PAGE, SUMMANDS, add};
use super::{Cut, Rate, prefetch};

/// See [`super::Loops::compact`].
#[inline(always)]
pub(super) fn pack<S: Simd>(
    simd: S,
    row: &[f32],
    threshold: f32,
    columns: &mut [u32],
    values: &mut [f32],
    ahead: usize,
) -> usize {
    pack_with(simd, row, threshold, columns, values, ahead, &mut Nothing)
}

/// See [`super::Loops::compact_exp`]; for rows that `T` serves.
#[inline(always)]
pub(super) fn pack_exp<S: Simd, T: Term<S>>(
    simd: S,
    row: &[f32],
    Cut { threshold, max }: Cut<f32>,
    rate: Rate,
    columns: &mut [u32],
    values: &mut [f32],
    ahead: usize,
) -> (usize, f64) {
    if threshold < rate.underflow(max) {
        let mut exps = Exps::<S, T, false>::new(simd, max, rate);
        let n = pack_with(simd, row, threshold, columns, values, ahead, &mut exps);
        (n, exps.sum())
    } else {
        let mut exps = Exps::<S, T, true>::new(simd, max, rate);
        let n = pack_with(simd, row, threshold, columns, values, ahead, &mut exps);
        (n, exps.sum())
    }
}

/// What is done while a row is packed.
trait Work<S: Simd> {
    /// What is packed instead of a vector.
    fn vector(&mut self, x: S::f32s, keep: S::mask32s) -> S::f32s;

    /// After a block of them.
    fn block(&mut self);
}

#[inline(always)]
fn pack_with<S: Simd, W: Work<S>>(
    simd: S,
    row: &[f32],
    threshold: f32,
    columns: &mut [u32],
    values: &mut [f32],
    ahead: usize,
    work: &mut W,
) -> usize {
    let lanes = S::f32s::LEN;
    let bound = S::f32s::simd_from(simd, threshold);
    let lane = S::u32s::from_fn(simd, |lane| lane as u32);
    let step = S::u32s::simd_from(simd, lanes as u32);
    let mut column = lane;
    let mut n = 0;
    let room = values.len().min(columns.len());
    let (values, columns) = (&mut values[..room], &mut columns[..room]);
    // No farther than that: what comes after it may be written by another thread just now.
    let far = |start: usize, ahead: usize| ahead.min(room - start - 1);
    let (whole, tail) = row.split_at(row.len() - row.len() % lanes);
    for block in whole.chunks(SUMMANDS * lanes) {
        // Two vectors at a time, with one check that there is room.
        let (pairs, single) = block.split_at(block.len() - block.len() % (2 * lanes));
        for pair in pairs.chunks_exact(2 * lanes) {
            let (first, second) = pair.split_at(lanes);
            prefetch::read(first, ahead);
            prefetch::read(second, ahead);
            let (x, y) = (S::f32s::from_slice(simd, first), S::f32s::from_slice(simd, second));
            let (keep_x, keep_y) = (x.simd_gt(bound), y.simd_gt(bound));
            let next = column + step;
            if keep_x.to_bitmask() | keep_y.to_bitmask() != 0 {
                if n + 2 * lanes <= room {
                    let values = &mut values[n..n + 2 * lanes];
                    let columns = &mut columns[n..n + 2 * lanes];
                    prefetch::write(values, far(n, PAGE));
                    prefetch::write(columns, far(n, PAGE));
                    let x = work.vector(x, keep_x);
                    let middle = put::<S>(x, column, keep_x, values, columns);
                    if middle == lanes {
                        // Where that is the rule, as in softmax, there is twice as much to be written.
                        prefetch::write(values, far(n, PAGE + lanes));
                        prefetch::write(columns, far(n, PAGE + lanes));
                    }
                    let y = work.vector(y, keep_y);
                    let (values, columns) = (&mut values[middle..], &mut columns[middle..]);
                    n += middle + put::<S>(y, next, keep_y, values, columns);
                } else {
                    for (x, column, keep) in [(x, column, keep_x), (y, next, keep_y)] {
                        let x = work.vector(x, keep);
                        n += put_last::<S>(x, column, keep, &mut values[n..], &mut columns[n..]);
                    }
                }
            }
            column = next + step;
        }
        if !single.is_empty() {
            let x = S::f32s::from_slice(simd, single);
            let keep = x.simd_gt(bound);
            let x = work.vector(x, keep);
            n += put_last::<S>(x, column, keep, &mut values[n..], &mut columns[n..]);
        }
        work.block();
    }
    if !tail.is_empty() {
        // With the last of what was there before, which is not kept twice.
        let start = row.len().saturating_sub(lanes);
        let x = if whole.is_empty() {
            S::f32s::from_fn(simd, |i| row.get(i).copied().unwrap_or(f32::NEG_INFINITY))
        } else {
            S::f32s::from_slice(simd, &row[start..])
        };
        let new = lane.simd_ge((whole.len() - start) as u32);
        let x = new.select(x, S::f32s::simd_from(simd, f32::NEG_INFINITY));
        let keep = x.simd_gt(bound);
        let x = work.vector(x, keep);
        n += put_last::<S>(x, lane + start as u32, keep, &mut values[n..], &mut columns[n..]);
        work.block();
    }
    n
}

/// Writes what is kept of a vector, and its columns; the number of it. The lanes after that are to be
/// overwritten by what comes next.
#[inline(always)]
fn put<S: Simd>(
    x: S::f32s,
    column: S::u32s,
    keep: S::mask32s,
    values: &mut [f32],
    columns: &mut [u32],
) -> usize {
    x.compress(keep).store_slice(&mut values[..S::f32s::LEN]);
    column.compress(keep).store_slice(&mut columns[..S::f32s::LEN]);
    keep.to_bitmask().count_ones() as usize
}

/// The same where there may be no more room than for what is kept.
#[inline(always)]
fn put_last<S: Simd>(
    x: S::f32s,
    column: S::u32s,
    keep: S::mask32s,
    values: &mut [f32],
    columns: &mut [u32],
) -> usize {
    if values.len() >= S::f32s::LEN {
        put::<S>(x, column, keep, values, columns)
    } else {
        put_each(x.as_slice(), column.as_slice(), keep.to_bitmask(), values, columns)
    }
}

/// The same, one by one.
#[cold]
fn put_each(
    x: &[f32],
    column: &[u32],
    keep: u64,
    values: &mut [f32],
    columns: &mut [u32],
) -> usize {
    let kept = (0..x.len()).filter(|lane| keep >> lane & 1 == 1);
    let mut n = 0;
    for lane in kept {
        values[n] = x[lane];
        columns[n] = column[lane];
        n += 1;
    }
    n
}

/// Values are packed as they are.
struct Nothing;

impl<S: Simd> Work<S> for Nothing {
    #[inline(always)]
    fn vector(&mut self, x: S::f32s, _: S::mask32s) -> S::f32s {
        x
    }

    #[inline(always)]
    fn block(&mut self) {}
}

/// Exponentials are taken before packing, with the sum of [`super::Loops::exp_above`]. `CERTAIN` if nothing that is kept
/// can underflow: then it is known already what is to be added.
struct Exps<S: Simd, T, const CERTAIN: bool> {
    simd: S,
    term: T,
    /// What is not above this underflows.
    lowest: S::f32s,
    /// Of a block, and of all blocks before it.
    sum: S::f32s,
    total: [S::f64s; 2],
}

impl<S: Simd, T: Term<S>, const CERTAIN: bool> Exps<S, T, CERTAIN> {
    #[inline(always)]
    fn new(simd: S, max: f32, rate: Rate) -> Self {
        let splat = |value: f32| S::f32s::simd_from(simd, value);
        Self {
            simd,
            term: T::new(simd, splat(max), rate),
            lowest: splat(rate.underflow(max)),
            sum: splat(0.0),
            total: [S::f64s::simd_from(simd, 0.0); 2],
        }
    }

    #[inline(always)]
    fn sum(&self) -> f64 {
        (self.total[0] + self.total[1]).reduce_sum()
    }
}

impl<S: Simd, T: Term<S>, const CERTAIN: bool> Work<S> for Exps<S, T, CERTAIN> {
    #[inline(always)]
    fn vector(&mut self, x: S::f32s, keep: S::mask32s) -> S::f32s {
        if CERTAIN {
            // Not to add saves an instruction that would make zeros to be added.
            let e = self.term.of(self.simd, x);
            self.sum = keep.select(self.sum + e, self.sum);
            e
        } else {
            let e = self.term.of_kept(self.simd, x, keep & x.simd_gt(self.lowest));
            self.sum += e;
            e
        }
    }

    #[inline(always)]
    fn block(&mut self) {
        add::<S>(&mut self.total, self.sum);
        self.sum = S::f32s::simd_from(self.simd, 0.0);
    }
}
