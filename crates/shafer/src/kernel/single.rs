//! Vectorised loops over `f32` rows.

use fearless_simd::prelude::*;

use super::gibbs::Term;
use super::{Above, Ahead, Cut, Max, Next, Rate, Scan, prefetch};

/// This many vectors of terms are added in `f32` before their sum goes on in `f64`: the sum of
/// 131,072 terms is then as good as the sum of a few.
const BLOCK: usize = 16;

/// Logits of a page of memory: at its end the processor's own prefetching stops.
const PAGE: usize = 1024;

#[inline(always)]
pub(super) fn scan<S: Simd>(simd: S, row: &[f32]) -> Scan<f32> {
    let lanes = S::f32s::LEN;
    let load = |slice: &[f32]| S::f32s::from_slice(simd, slice);
    let mut max = [S::f32s::simd_from(simd, f32::NEG_INFINITY); 4];
    // Independent accumulators, because an addition takes four cycles to give its result.
    let mut sum = [S::f64s::simd_from(simd, 0.0); 8];
    let mut quads = row.chunks_exact(4 * lanes);
    for quad in &mut quads {
        for i in 0..4 {
            prefetch::read(&quad[i * lanes..], PAGE);
            let x = load(&quad[i * lanes..][..lanes]);
            max[i] = max[i].max(x);
            let (low, high) = x.widen();
            sum[2 * i] += low;
            sum[2 * i + 1] += high;
        }
    }
    let mut max = max[0].max(max[1]).max(max[2].max(max[3]));
    let mut sum = (sum[0] + sum[1]) + (sum[2] + sum[3]) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
    let mut vectors = quads.remainder().chunks_exact(lanes);
    for vector in &mut vectors {
        let x = load(vector);
        max = max.max(x);
        let (low, high) = x.widen();
        sum += low + high;
    }
    let mut max = max.reduce_max();
    let mut sum = sum.reduce_sum();
    for &x in vectors.remainder() {
        max = max.max(x);
        sum += f64::from(x);
    }
    // The sum of less than 2^32 finite f32 cannot overflow an f64.
    Scan { max, sum: sum.into(), finite: sum.is_finite() }
}

#[inline(always)]
pub(super) fn max<S: Simd>(simd: S, row: &[f32]) -> Max<f32> {
    let lanes = S::f32s::LEN;
    let mut max = [S::f32s::simd_from(simd, f32::NEG_INFINITY); 4];
    // Only there to carry a NaN or an infinity to the end.
    let mut sum = [S::f32s::simd_from(simd, 0.0); 4];
    let mut quads = row.chunks_exact(4 * lanes);
    for quad in &mut quads {
        for i in 0..4 {
            prefetch::read(&quad[i * lanes..], PAGE);
            let x = S::f32s::from_slice(simd, &quad[i * lanes..][..lanes]);
            max[i] = max[i].max(x);
            sum[i] += x;
        }
    }
    let mut max = max[0].max(max[1]).max(max[2].max(max[3]));
    let mut sum = (sum[0] + sum[1]) + (sum[2] + sum[3]);
    let mut vectors = quads.remainder().chunks_exact(lanes);
    for vector in &mut vectors {
        let x = S::f32s::from_slice(simd, vector);
        max = max.max(x);
        sum += x;
    }
    let mut max = max.reduce_max();
    let mut sum = sum.reduce_sum();
    for &x in vectors.remainder() {
        max = max.max(x);
        sum += x;
    }
    Max { max, finite: sum.is_finite() }
}

#[inline(always)]
pub(super) fn below_infinity<S: Simd>(simd: S, row: &[f32]) -> bool {
    let infinity = S::f32s::simd_from(simd, f32::INFINITY);
    let mut all = S::mask32s::splat(simd, true);
    let mut vectors = row.chunks_exact(S::f32s::LEN);
    for vector in &mut vectors {
        all &= S::f32s::from_slice(simd, vector).simd_lt(infinity);
    }
    all.all_true() && vectors.remainder().iter().all(|&x| x < f32::INFINITY)
}

#[inline(always)]
pub(super) fn weight_above<S: Simd>(
    simd: S,
    keys: &[f32],
    weights: &[f32],
    threshold: f32,
) -> Above {
    let lanes = S::f32s::LEN;
    let bound = S::f32s::simd_from(simd, threshold);
    let zero = S::f32s::simd_from(simd, 0.0);
    let mut sum = [S::f64s::simd_from(simd, 0.0); 2];
    let mut count = 0;
    let mut key_vectors = keys.chunks_exact(lanes);
    let mut weight_vectors = weights.chunks_exact(lanes);
    for (key, weight) in (&mut key_vectors).zip(&mut weight_vectors) {
        let above = S::f32s::from_slice(simd, key).simd_gt(bound);
        let weight = S::f32s::from_slice(simd, weight);
        let (low, high) = above.select(weight, zero).widen();
        sum[0] += low;
        sum[1] += high;
        count += above.to_bitmask().count_ones() as usize;
    }
    let mut sum = (sum[0] + sum[1]).reduce_sum();
    for (&key, &weight) in key_vectors.remainder().iter().zip(weight_vectors.remainder()) {
        if key > threshold {
            sum += f64::from(weight);
            count += 1;
        }
    }
    Above { sum: sum.into(), count }
}

#[inline(always)]
pub(super) fn count_above<S: Simd>(simd: S, row: &[f32], threshold: f32) -> usize {
    let bound = S::f32s::simd_from(simd, threshold);
    let mut count = 0;
    let mut vectors = row.chunks_exact(S::f32s::LEN);
    for vector in &mut vectors {
        prefetch::read(vector, PAGE);
        let above = S::f32s::from_slice(simd, vector).simd_gt(bound);
        count += above.to_bitmask().count_ones() as usize;
    }
    count + vectors.remainder().iter().filter(|&&x| x > threshold).count()
}

/// `CERTAIN` if nothing above the threshold can underflow: then one comparison tells both.
#[inline(always)]
pub(super) fn compact<S: Simd, T: Term<S>, const CERTAIN: bool>(
    simd: S,
    row: &[f32],
    Cut { threshold, max }: Cut<f32>,
    rate: Rate,
    columns: &mut [u32],
    values: &mut [f32],
    ahead: usize,
) -> (usize, f64) {
    let lanes = S::f32s::LEN;
    let splat = |value: f32| S::f32s::simd_from(simd, value);
    let (bound, lowest) = (splat(threshold), splat(threshold.max(rate.underflow(max))));
    let term = T::new(simd, splat(max), rate);
    let lane = S::u32s::from_fn(simd, |lane| lane as u32);
    let step = S::u32s::simd_from(simd, lanes as u32);
    let mut total = [S::f64s::simd_from(simd, 0.0); 2];
    let mut column = lane;
    let mut n = 0;
    let room = values.len().min(columns.len());
    let (values, columns) = (&mut values[..room], &mut columns[..room]);
    // No farther than that: what comes after it may be written by another thread just now.
    let far = |start: usize, ahead: usize| ahead.min(room - start - 1);
    let (whole, tail) = row.split_at(row.len() - row.len() % lanes);
    // The sums are those of `exp_above`, which adds zeros to them, so that both give the same bits.
    for block in whole.chunks(BLOCK * lanes) {
        let mut sum = splat(0.0);
        // Two vectors at a time, with one check that there is room.
        let mut pairs = block.chunks_exact(2 * lanes);
        for pair in &mut pairs {
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
                    let e = add_term::<S, T, CERTAIN>(simd, term, x, keep_x, lowest, &mut sum);
                    let middle = put::<S>(e, column, keep_x, values, columns);
                    if middle == lanes {
                        // Where that is the rule, as in softmax, there is twice as much to be written.
                        prefetch::write(values, far(n, PAGE + lanes));
                        prefetch::write(columns, far(n, PAGE + lanes));
                    }
                    let e = add_term::<S, T, CERTAIN>(simd, term, y, keep_y, lowest, &mut sum);
                    let (values, columns) = (&mut values[middle..], &mut columns[middle..]);
                    n += middle + put::<S>(e, next, keep_y, values, columns);
                } else {
                    for (x, column, keep) in [(x, column, keep_x), (y, next, keep_y)] {
                        let e = add_term::<S, T, CERTAIN>(simd, term, x, keep, lowest, &mut sum);
                        n += put_last::<S>(e, column, keep, &mut values[n..], &mut columns[n..]);
                    }
                }
            }
            column = next + step;
        }
        if !pairs.remainder().is_empty() {
            let x = S::f32s::from_slice(simd, pairs.remainder());
            let keep = x.simd_gt(bound);
            let e = add_term::<S, T, CERTAIN>(simd, term, x, keep, lowest, &mut sum);
            n += put_last::<S>(e, column, keep, &mut values[n..], &mut columns[n..]);
        }
        add::<S>(&mut total, sum);
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
        let x = new.select(x, splat(f32::NEG_INFINITY));
        let keep = x.simd_gt(bound);
        let mut sum = splat(0.0);
        let e = add_term::<S, T, CERTAIN>(simd, term, x, keep, lowest, &mut sum);
        n += put_last::<S>(e, lane + start as u32, keep, &mut values[n..], &mut columns[n..]);
        add::<S>(&mut total, sum);
    }
    (n, (total[0] + total[1]).reduce_sum())
}

/// The terms of a vector, of which those that are kept are added to `sum`.
#[inline(always)]
fn add_term<S: Simd, T: Term<S>, const CERTAIN: bool>(
    simd: S,
    term: T,
    x: S::f32s,
    keep: S::mask32s,
    lowest: S::f32s,
    sum: &mut S::f32s,
) -> S::f32s {
    if CERTAIN {
        // Not to add saves an instruction that would make zeros to be added.
        let e = term.of(simd, x);
        *sum = keep.select(*sum + e, *sum);
        e
    } else {
        let e = term.of_kept(simd, x, x.simd_gt(lowest));
        *sum += e;
        e
    }
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

#[inline(always)]
pub(super) fn exp_above<S: Simd, T: Term<S>>(
    simd: S,
    row: &[f32],
    out: &mut [f32],
    Cut { threshold, max }: Cut<f32>,
    rate: Rate,
    ahead: Ahead,
) -> f64 {
    let lanes = S::f32s::LEN;
    let bound = S::f32s::simd_from(simd, threshold.max(rate.underflow(max)));
    let zero = S::f32s::simd_from(simd, 0.0);
    let term = T::new(simd, S::f32s::simd_from(simd, max), rate);
    let mut total = [S::f64s::simd_from(simd, 0.0); 2];
    let tail = row.len() % lanes;
    let whole = row.len() - tail;
    let blocks = row[..whole].chunks(BLOCK * lanes).zip(out[..whole].chunks_mut(BLOCK * lanes));
    for (row, out) in blocks {
        let mut sum = zero;
        for (input, output) in row.chunks_exact(lanes).zip(out.chunks_exact_mut(lanes)) {
            prefetch::read(input, ahead.read);
            prefetch::write(output, ahead.write);
            let x = S::f32s::from_slice(simd, input);
            let keep = x.simd_gt(bound);
            if keep.any_true() {
                let e = term.of_kept(simd, x, keep);
                sum += e;
                e.store_slice(output);
            } else {
                zero.store_slice(output);
            }
        }
        add::<S>(&mut total, sum);
    }
    if tail > 0 {
        let e = if let Some(before) = row.len().checked_sub(lanes) {
            // With the last of what was there before, whose values are the same again.
            let x = S::f32s::from_slice(simd, &row[before..]);
            let e = term.of_kept(simd, x, x.simd_gt(bound));
            e.store_slice(&mut out[before..]);
            let lane = S::u32s::from_fn(simd, |lane| lane as u32);
            lane.simd_ge((lanes - tail) as u32).select(e, zero)
        } else {
            let x = S::f32s::from_fn(simd, |i| row.get(i).copied().unwrap_or(f32::NEG_INFINITY));
            let e = term.of_kept(simd, x, x.simd_gt(bound));
            out.copy_from_slice(&e.as_slice()[..tail]);
            e
        };
        add::<S>(&mut total, e);
    }
    (total[0] + total[1]).reduce_sum()
}

#[inline(always)]
pub(super) fn exp_all<S: Simd, T: Term<S>>(
    simd: S,
    values: &mut [f32],
    count: usize,
    max: f32,
    rate: Rate,
) -> f64 {
    let lanes = S::f32s::LEN;
    let bound = S::f32s::simd_from(simd, rate.underflow(max));
    let term = T::new(simd, S::f32s::simd_from(simd, max), rate);
    let mut total = [S::f64s::simd_from(simd, 0.0); 2];
    // Whole vectors only: what is added has a probability of 0.
    S::f32s::simd_from(simd, f32::NEG_INFINITY).store_slice(&mut values[count..count + lanes]);
    let values = &mut values[..count.next_multiple_of(lanes)];
    for block in values.chunks_mut(BLOCK * lanes) {
        let mut sum = S::f32s::simd_from(simd, 0.0);
        for vector in block.chunks_exact_mut(lanes) {
            let x = S::f32s::from_slice(simd, vector);
            let e = term.of_kept(simd, x, x.simd_gt(bound));
            sum += e;
            e.store_slice(vector);
        }
        add::<S>(&mut total, sum);
    }
    (total[0] + total[1]).reduce_sum()
}

/// Adds the lanes of a sum to a larger one.
#[inline(always)]
fn add<S: Simd>(total: &mut [S::f64s; 2], sum: S::f32s) {
    let (low, high) = sum.widen();
    total[0] += low;
    total[1] += high;
}

#[inline(always)]
pub(super) fn scale<S: Simd>(
    simd: S,
    values: &mut [f32],
    factor: f32,
    next: Option<Next<'_, f32>>,
) {
    let lanes = S::f32s::LEN;
    let mut vectors = values.chunks_exact_mut(lanes);
    for (i, vector) in (&mut vectors).enumerate() {
        if let Some(next) = next {
            next.read(i * lanes);
        }
        (S::f32s::from_slice(simd, vector) * factor).store_slice(vector);
    }
    for x in vectors.into_remainder() {
        *x *= factor;
    }
}

#[inline(always)]
pub(super) fn group_maxima<S: Simd>(simd: S, row: &[f32], maxima: &mut Vec<f32>) {
    let lanes = S::f32s::LEN;
    let mut groups = row.chunks_exact(8 * lanes);
    for group in &mut groups {
        let mut max = S::f32s::from_slice(simd, &group[..lanes]);
        for vector in group[lanes..].chunks_exact(lanes) {
            max = max.max(S::f32s::from_slice(simd, vector));
        }
        maxima.extend_from_slice(max.as_slice());
    }
    let tail = groups.remainder();
    maxima.extend(tail.chunks(8).map(|group| group.iter().copied().fold(group[0], f32::max)));
}
