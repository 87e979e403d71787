//! Vectorised loops over `f32` rows.

use fearless_simd::prelude::*;

use super::gibbs::Term;
use super::{Above, Ahead, Cut, Max, Next, Rate, Scan, prefetch};

/// This many vectors of terms are added in `f32` before their sum goes on in `f64`: the sum of
/// 131,072 terms is then as good as the sum of a few.
pub(super) const SUMMANDS: usize = 16;

/// Logits of a page of memory: at its end the processor's own prefetching stops.
pub(super) const PAGE: usize = 1024;

#[inline(always)]
pub(super) fn scan<S: Simd>(simd: S, row: &[f32], sparing: bool) -> Scan<f32> {
    let lanes = S::f32s::LEN;
    let load = |slice: &[f32]| S::f32s::from_slice(simd, slice);
    let mut max = [S::f32s::simd_from(simd, f32::NEG_INFINITY); 4];
    // Independent accumulators, because an addition takes four cycles to give its result.
    let mut sum = [S::f64s::simd_from(simd, 0.0); 8];
    let mut quads = row.chunks_exact(4 * lanes);
    for quad in &mut quads {
        for i in 0..4 {
            if !sparing || i % 2 == 0 {
                prefetch::read_later(&quad[i * lanes..], PAGE);
            }
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
            prefetch::read_later(&quad[i * lanes..], PAGE);
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
    let blocks =
        row[..whole].chunks(SUMMANDS * lanes).zip(out[..whole].chunks_mut(SUMMANDS * lanes));
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
    for block in values.chunks_mut(SUMMANDS * lanes) {
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
pub(super) fn add<S: Simd>(total: &mut [S::f64s; 2], sum: S::f32s) {
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
