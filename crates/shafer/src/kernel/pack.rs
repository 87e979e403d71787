//! What is kept of a row, packed, with the exponentials of it.
//!
//! In longer rows, exponentials are taken only of what is kept: while more is packed, at some distance behind it.
//! Packing keeps the processor's stores busy and exponentials its multipliers, so that the two overlap. In short rows,
//! they are taken before packing, also of what is dropped: to read what was packed a moment ago would be to wait for the
//! stores.

use fearless_simd::prelude::*;

use super::gibbs::Term;
use super::single::{BLOCK, PAGE, add};
use super::{Cut, Rate, prefetch};

/// From so many classes on, exponentials are taken behind the packing;
const BEHIND: usize = 256;

/// at a distance of at least so many values.
const LAG: usize = 128;

/// From so many classes on, that is worth asking for the memory that will be written.
const LONG: usize = 2048;

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
    let exps = Exps::<S, T>::new(simd, max, rate);
    // Where nothing is dropped, there is nothing to be saved.
    if row.len() >= BEHIND && threshold > f32::NEG_INFINITY {
        let mut work = Behind { exps, done: 0 };
        let n = pack_with(simd, row, threshold, columns, values, ahead, &mut work);
        work.finish(values, n);
        return (n, work.exps.sum());
    }
    if threshold < rate.underflow(max) {
        let mut work = Before::<_, _, false>(exps);
        let n = pack_with(simd, row, threshold, columns, values, ahead, &mut work);
        (n, work.0.sum())
    } else {
        let mut work = Before::<_, _, true>(exps);
        let n = pack_with(simd, row, threshold, columns, values, ahead, &mut work);
        (n, work.0.sum())
    }
}

/// What is done while a row is packed.
trait Work<S: Simd> {
    /// Whether what comes next is asked for with every vector.
    const ASK: bool;

    /// What is packed instead of a vector.
    fn vector(&mut self, x: S::f32s, keep: S::mask32s) -> S::f32s;

    /// After two of them; so many values are packed.
    fn pair(&mut self, values: &mut [f32], n: usize);

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
    for block in whole.chunks(BLOCK * lanes) {
        if !W::ASK && row.len() >= LONG {
            for place in (n + PAGE..room).step_by(lanes).take(BLOCK / 2) {
                prefetch::write(values, place);
                prefetch::write(columns, place);
            }
        }
        // Two vectors at a time, with one check that there is room.
        let (pairs, single) = block.split_at(block.len() - block.len() % (2 * lanes));
        for pair in pairs.chunks_exact(2 * lanes) {
            let (first, second) = pair.split_at(lanes);
            if W::ASK {
                prefetch::read(first, ahead);
                prefetch::read(second, ahead);
            }
            let (x, y) = (S::f32s::from_slice(simd, first), S::f32s::from_slice(simd, second));
            let (keep_x, keep_y) = (x.simd_gt(bound), y.simd_gt(bound));
            let next = column + step;
            if keep_x.to_bitmask() | keep_y.to_bitmask() != 0 {
                if n + 2 * lanes <= room {
                    let values = &mut values[n..n + 2 * lanes];
                    let columns = &mut columns[n..n + 2 * lanes];
                    if W::ASK {
                        prefetch::write(values, far(n, PAGE));
                        prefetch::write(columns, far(n, PAGE));
                    }
                    let x = work.vector(x, keep_x);
                    let middle = put::<S>(x, column, keep_x, values, columns);
                    if W::ASK && middle == lanes {
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
            work.pair(values, n);
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
    const ASK: bool = true;

    #[inline(always)]
    fn vector(&mut self, x: S::f32s, _: S::mask32s) -> S::f32s {
        x
    }

    #[inline(always)]
    fn pair(&mut self, _: &mut [f32], _: usize) {}

    #[inline(always)]
    fn block(&mut self) {}
}

/// The exponentials of a row, and their sum.
struct Exps<S: Simd, T> {
    simd: S,
    term: T,
    /// What is not above this underflows.
    lowest: S::f32s,
    /// Of a block, and of all blocks before it.
    sum: S::f32s,
    total: [S::f64s; 2],
}

impl<S: Simd, T: Term<S>> Exps<S, T> {
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
    fn end_block(&mut self) {
        add::<S>(&mut self.total, self.sum);
        self.sum = S::f32s::simd_from(self.simd, 0.0);
    }

    #[inline(always)]
    fn sum(&self) -> f64 {
        (self.total[0] + self.total[1]).reduce_sum()
    }
}

/// Exponentials are taken before packing, with the sum of [`super::Loops::exp_above`]. `CERTAIN` if nothing that is kept
/// can underflow: then it is known already what is to be added.
struct Before<S: Simd, T, const CERTAIN: bool>(Exps<S, T>);

impl<S: Simd, T: Term<S>, const CERTAIN: bool> Work<S> for Before<S, T, CERTAIN> {
    const ASK: bool = true;

    #[inline(always)]
    fn vector(&mut self, x: S::f32s, keep: S::mask32s) -> S::f32s {
        let Exps { simd, term, lowest, sum, .. } = &mut self.0;
        if CERTAIN {
            // Not to add saves an instruction that would make zeros to be added.
            let e = term.of(*simd, x);
            *sum = keep.select(*sum + e, *sum);
            e
        } else {
            let e = term.of_kept(*simd, x, keep & x.simd_gt(*lowest));
            *sum += e;
            e
        }
    }

    #[inline(always)]
    fn pair(&mut self, _: &mut [f32], _: usize) {}

    #[inline(always)]
    fn block(&mut self) {
        self.0.end_block();
    }
}

/// Exponentials are taken of packed values, in place.
struct Behind<S: Simd, T> {
    exps: Exps<S, T>,
    /// Of how many they have been taken.
    done: usize,
}

impl<S: Simd, T: Term<S>> Work<S> for Behind<S, T> {
    const ASK: bool = false;

    #[inline(always)]
    fn vector(&mut self, x: S::f32s, _: S::mask32s) -> S::f32s {
        x
    }

    /// One vector, which is as much as is packed where half of the classes are kept. Where more are, more is left for
    /// the end.
    #[inline(always)]
    fn pair(&mut self, values: &mut [f32], n: usize) {
        let lanes = S::f32s::LEN;
        if self.done + lanes + LAG <= n {
            self.take(&mut values[self.done..self.done + lanes]);
        }
    }

    #[inline(always)]
    fn block(&mut self) {
        self.exps.end_block();
    }
}

impl<S: Simd, T: Term<S>> Behind<S, T> {
    #[inline(always)]
    fn take(&mut self, vector: &mut [f32]) {
        let Exps { simd, term, lowest, sum, .. } = &mut self.exps;
        let x = S::f32s::from_slice(*simd, vector);
        let e = term.of_kept(*simd, x, x.simd_gt(*lowest));
        e.store_slice(vector);
        *sum += e;
        self.done += vector.len();
    }

    /// All that are left of `n`.
    #[inline(always)]
    fn finish(&mut self, values: &mut [f32], n: usize) {
        let lanes = S::f32s::LEN;
        for block in values[self.done..n - n % lanes].chunks_mut(BLOCK * lanes) {
            for vector in block.chunks_exact_mut(lanes) {
                self.take(vector);
            }
            self.block();
        }
        let rest = n % lanes;
        if rest > 0 {
            let values = &mut values[self.done..];
            let Exps { simd, term, lowest, sum, .. } = &mut self.exps;
            let whole = values.len() >= lanes;
            let x = if whole {
                S::f32s::from_slice(*simd, &values[..lanes])
            } else {
                S::f32s::from_fn(*simd, |i| values.get(i).copied().unwrap_or(0.0))
            };
            let kept = S::u32s::from_fn(*simd, |lane| lane as u32).simd_lt(rest as u32);
            let e = term.of_kept(*simd, x, kept & x.simd_gt(*lowest));
            *sum += e;
            if whole {
                e.store_slice(&mut values[..lanes]);
            } else {
                values[..rest].copy_from_slice(&e.as_slice()[..rest]);
            }
            self.block();
        }
    }
}
