//! Short rows, one to a lane: no reduction across lanes, no tail, one exponential for all.

use fearless_simd::prelude::*;

use super::gibbs::{Exp, General};
use super::{Rate, SLACK};

/// The longest row that this path takes.
pub(crate) const TILE_CLASSES: usize = 32;

/// No instruction set has more lanes.
const MAX_LANES: usize = 16;

/// Which classes are kept. All are exponentials, normalised over what is kept.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TileRule {
    /// All of them.
    All,
    /// Those above the mean, again and again among those that are left.
    AboveMean { rounds: usize },
    /// Those at most this far below the maximum.
    NearMax { distance: f64 },
}

/// What stands in the place of a dropped class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dropped {
    Zero,
    Negative,
}

/// As many rows at a time as there are lanes; see [`super::Float::tile`].
#[inline(always)]
pub(crate) fn rows<S: Simd>(
    simd: S,
    rule: TileRule,
    rows: &[f32],
    classes: usize,
    rate: Rate,
    dropped: Dropped,
    out: &mut [f32],
) -> Option<usize> {
    let lanes = S::f32s::LEN;
    let mut tile = [0.0_f32; TILE_CLASSES * MAX_LANES];
    let tile = &mut tile[..classes * lanes];
    let mut vacuous = 0;
    for (rows, out) in rows.chunks(classes * lanes).zip(out.chunks_mut(classes * lanes)) {
        let filled = rows.len() / classes;
        if filled < lanes {
            // Lanes without a row of their own must not stop the others.
            tile.fill(0.0);
        }
        for (lane, row) in rows.chunks_exact(classes).enumerate() {
            for (class, &x) in row.iter().enumerate() {
                tile[class * lanes + lane] = x;
            }
        }
        let equal = lanewise(simd, rule, tile, rate, dropped)?;
        vacuous += (equal & ((1 << filled) - 1)).count_ones() as usize;
        for (lane, row) in out.chunks_exact_mut(classes).enumerate() {
            for (class, p) in row.iter_mut().enumerate() {
                *p = tile[class * lanes + lane];
            }
        }
    }
    Some(vacuous)
}

/// The transform of one tile in place: `tile[class * lanes + lane]`. The vacuous lanes.
#[inline(always)]
fn lanewise<S: Simd>(
    simd: S,
    rule: TileRule,
    tile: &mut [f32],
    rate: Rate,
    dropped: Dropped,
) -> Option<u64> {
    let lanes = S::f32s::LEN;
    let splat = |value: f32| S::f32s::simd_from(simd, value);
    let (zero, one) = (splat(0.0), splat(1.0));

    let mut bad = S::mask32s::splat(simd, false);
    let mut max = splat(f32::NEG_INFINITY);
    for x in tile.chunks_exact(lanes) {
        let x = S::f32s::from_slice(simd, x);
        bad |= !x.simd_lt(f32::INFINITY);
        max = max.max(x);
    }
    if bad.any_true() || max.simd_eq(f32::NEG_INFINITY).any_true() {
        return None;
    }

    let mut vacuous = 0;
    let mut threshold = splat(f32::NEG_INFINITY);
    match rule {
        TileRule::All => {}
        TileRule::AboveMean { rounds } => {
            for round in 0..rounds {
                let mut sum = [S::f64s::simd_from(simd, 0.0); 2];
                let mut count = zero;
                for x in tile.chunks_exact(lanes) {
                    let x = S::f32s::from_slice(simd, x);
                    let above = x.simd_gt(threshold);
                    let (low, high) = above.select(x, zero).widen();
                    sum[0] += low;
                    sum[1] += high;
                    count += above.select(one, zero);
                }
                let (low, high) = count.widen();
                let mean = [sum[0] / low, sum[1] / high];
                let nearest = mean[0].narrow(mean[1]);
                let (low, high) = nearest.widen();
                let too_high = low.simd_gt(mean[0]).narrow(high.simd_gt(mean[1]));
                let next = too_high.select(next_down(simd, nearest), nearest);
                // A double tells the mean of 32 floats from their maximum unless all are equal.
                let equal = next.simd_ge(max);
                threshold = equal.select(threshold, next);
                if round == 0 {
                    vacuous = (equal & count.simd_gt(one)).to_bitmask();
                }
                if equal.all_true() {
                    break;
                }
            }
        }
        TileRule::NearMax { distance } => {
            let (low, high) = max.widen();
            let bound = [low - distance, high - distance];
            let nearest = bound[0].narrow(bound[1]);
            let (low, high) = nearest.widen();
            let kept = low.simd_ge(bound[0]).narrow(high.simd_ge(bound[1]));
            threshold = kept.select(next_down(simd, nearest), nearest);
        }
    }

    let gibbs = General::new(simd, max, rate);
    let underflow = (max - rate.reach()).min(next_down(simd, max));
    let absent = splat(if dropped == Dropped::Negative { -1.0 } else { 0.0 });
    let mut sum = zero;
    for x in tile.chunks_exact_mut(lanes) {
        let logit = S::f32s::from_slice(simd, x);
        let keep = logit.simd_gt(threshold);
        let e = gibbs.exp(simd, logit, keep & logit.simd_gt(underflow));
        sum += e;
        keep.select(e, absent).store_slice(x);
    }
    let scale = one / sum;
    for x in tile.chunks_exact_mut(lanes) {
        (S::f32s::from_slice(simd, x) * scale).store_slice(x);
    }
    Some(vacuous)
}

/// See [`super::Float::compact_short`].
#[inline(always)]
pub(crate) fn compact_short<S: Simd>(
    simd: S,
    rows: &[f32],
    classes: usize,
    counts: &mut Vec<u32>,
    columns: &mut [u32],
    values: &mut [f32],
) {
    let lanes = S::f32s::LEN;
    let lane = S::u32s::from_fn(simd, |lane| lane as u32);
    let mut end = 0;
    for start in (0..rows.len() - SLACK).step_by(classes) {
        let before = end;
        for column in (0..classes).step_by(lanes) {
            // A vector may reach into the next row, whose lanes are then left out.
            let x = S::f32s::from_slice(simd, &rows[start + column..][..lanes]);
            let in_row = S::mask32s::from_bitmask(simd, (1 << (classes - column).min(lanes)) - 1);
            let keep = x.simd_ge(0.0) & in_row;
            x.compress(keep).store_slice(&mut values[end..end + lanes]);
            (lane + column as u32).compress(keep).store_slice(&mut columns[end..end + lanes]);
            end += keep.to_bitmask().count_ones() as usize;
        }
        counts.push((end - before) as u32);
    }
}

/// The next smaller float in each lane; the lanes are finite, or -inf and of no interest.
#[inline(always)]
fn next_down<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let bits: S::u32s = x.bitcast();
    let one = S::u32s::simd_from(simd, 1);
    let down = x.simd_gt(0.0).select(bits - one, bits + one);
    let below_zero = S::u32s::simd_from(simd, (-0.0_f32).to_bits() + 1);
    x.simd_eq(0.0).select(below_zero, down).bitcast()
}
