//! Projections of short rows, one to a lane: sparsemax, sparsegen-lin and entmax 1.5.
//!
//! In every lane these are the operations of `method/project.rs` in the same order, so that a row
//! has the same bits on either path.

use fearless_simd::prelude::*;

use super::tile::{BITS, TILE_CLASSES, floor, next_down};
use crate::method::project::MAX_STEPS;

/// `p_k = max(0, slope (l_k - max l) - tau)`, or the square of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Projection {
    pub(crate) slope: f64,
    pub(crate) squared: bool,
}

/// Replaces the logits of a tile by probabilities; returns the kept classes as bits.
#[cfg_attr(not(debug_assertions), inline(always))]
pub(super) fn solve<S: Simd>(
    simd: S,
    Projection { slope, squared }: Projection,
    tile: &mut [f32],
    max: S::f32s,
) -> S::u32s {
    let lanes = S::f32s::LEN;
    let splat = |value: f64| S::f64s::simd_from(simd, value);
    let (zero, lowest) = (splat(0.0), splat(f64::NEG_INFINITY));
    let (low, high) = max.widen();
    let max = [low, high];
    // Only logits within reach of the maximum can have a probability.
    let reach = splat(1.0 / slope);
    let bound = next_down(simd, floor(simd, [max[0] - reach, max[1] - reach]));
    let (low, high) = bound.widen();
    let bound = [low, high];
    // `-inf` where a class is no candidate.
    let mut y = [[zero; 2]; TILE_CLASSES];
    for (y, x) in y.iter_mut().zip(tile.chunks_exact(lanes)) {
        let (low, high) = S::f32s::from_slice(simd, x).widen();
        for (half, x) in [low, high].into_iter().enumerate() {
            let scaled = (x - max[half]) * slope;
            y[half] = x.simd_gt(bound[half]).select(scaled, lowest);
        }
    }
    let y = &y[..tile.len() / lanes];
    let (mut tau, mut sum) = ([zero; 2], [zero; 2]);
    for half in 0..2 {
        tau[half] =
            if squared { solve_squared(simd, y, half) } else { solve_linear(simd, y, half) };
        for y in y {
            sum[half] += probability(simd, y[half] - tau[half], squared);
        }
    }
    let mut kept = S::u32s::simd_from(simd, 0);
    for ((y, x), bit) in y.iter().zip(tile.chunks_exact_mut(lanes)).zip(BITS) {
        let low = probability(simd, y[0] - tau[0], squared) / sum[0];
        let high = probability(simd, y[1] - tau[1], squared) / sum[1];
        let keep = y[0].simd_gt(tau[0]).narrow(y[1].simd_gt(tau[1]));
        let p = keep.select(low.narrow(high), S::f32s::simd_from(simd, 0.0));
        p.store_slice(x);
        kept |= keep.select(S::u32s::simd_from(simd, bit), S::u32s::simd_from(simd, 0));
    }
    kept
}

/// A class's probability, up to the common sum, where `u` is `y - tau`.
#[inline(always)]
fn probability<S: Simd>(simd: S, u: S::f64s, squared: bool) -> S::f64s {
    let u = u.max(S::f64s::simd_from(simd, 0.0));
    if squared { u * u } else { u }
}

/// `tau` with `sum max(0, y - tau) = 1`, by Michelot's method.
#[cfg_attr(not(debug_assertions), inline(always))]
fn solve_linear<S: Simd>(simd: S, y: &[[S::f64s; 2]], half: usize) -> S::f64s {
    let splat = |value: f64| S::f64s::simd_from(simd, value);
    let (zero, one) = (splat(0.0), splat(1.0));
    let mut threshold = splat(f64::NEG_INFINITY);
    let mut before = zero;
    loop {
        let (mut sum, mut count) = (zero, zero);
        for y in y {
            let y = y[half];
            // Rounding must not drop the maximum, 0.
            let left = y.simd_gt(threshold) | y.simd_eq(zero);
            sum += left.select(y, zero);
            count += left.select(one, zero);
        }
        let tau = (sum - one) / count;
        if count.simd_eq(before).all_true() {
            return tau;
        }
        before = count;
        threshold = threshold.max(tau);
    }
}

/// `tau` with `sum max(0, y - tau)^2 = 1`, by Newton's method inside a bracket.
#[cfg_attr(not(debug_assertions), inline(always))]
fn solve_squared<S: Simd>(simd: S, y: &[[S::f64s; 2]], half: usize) -> S::f64s {
    let splat = |value: f64| S::f64s::simd_from(simd, value);
    let (zero, one) = (splat(0.0), splat(1.0));
    let mut count = zero;
    for y in y {
        count += y[half].simd_gt(splat(f64::NEG_INFINITY)).select(one, zero);
    }
    let mut low = splat(-1.0);
    // The largest probability is at least 1 / n.
    let mut high = -(one / count.sqrt());
    let mut tau = low;
    let mut step = high - low;
    let mut done = S::mask64s::splat(simd, false);
    for _ in 0..MAX_STEPS {
        let (mut value, mut slope) = (splat(-1.0), zero);
        for y in y {
            let u = (y[half] - tau).max(zero);
            value += u * u;
            slope += u + u;
        }
        low = value.simd_gt(zero).select(tau, low);
        high = value.simd_lt(zero).select(tau, high);
        done |= value.simd_eq(zero);
        let newton = value / slope;
        let there = tau + newton;
        let short = (newton + newton).abs().simd_le(step.abs());
        let inside = there.simd_gt(low) & there.simd_lt(high) & short;
        let next = inside.select(there, low + (high - low) / splat(2.0));
        step = next - tau;
        done |= there.simd_eq(tau) | next.simd_le(low) | next.simd_ge(high);
        if done.all_true() {
            break;
        }
        tau = done.select(tau, next);
    }
    tau
}
