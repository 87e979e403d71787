//! Short rows, one to a lane: no reduction across lanes, no tail, one exponential for all lanes.

use fearless_simd::prelude::*;

use super::exp::{FAR, General, Plain, Term};
use super::prefetch::{self, DISTANCE};
#[cfg(target_arch = "x86_64")]
use super::tile_pack;
use super::{Entries, MAX_LANES, ROUNDING, Rate, SLACK, tile_project};
use crate::csr::Rows;

/// The longest row that this path takes.
pub(crate) const TILE_CLASSES: usize = 32;

/// Which classes are kept, and with what probabilities.
#[derive(Clone, Copy, Debug)]
pub(crate) enum TileRule {
    /// Softmax over all of them.
    All,
    /// Softmax over those above the mean, again and again among those that are left.
    AboveMean { rounds: usize },
    /// Softmax over those at least this far above the mean, and the maximum.
    FromMean { distance: f64 },
    /// Softmax over those at most this far below the maximum.
    NearMax { distance: f64 },
    /// Softmax over those at most this many standard deviations below the maximum.
    NearMaxDeviations { n: f64 },
    /// A projection onto the simplex.
    Project(tile_project::Projection),
}

/// A tile and what vectors may touch after it.
pub(super) type Values = [f32; TILE_CLASSES * MAX_LANES + SLACK];

/// Packed rows of at most [`TILE_CLASSES`], and what to do with them.
#[derive(Clone, Copy, Debug)]
pub struct ShortRows<'a, F> {
    pub(crate) rows: &'a [F],
    pub(crate) classes: usize,
    pub(crate) rule: TileRule,
    pub(crate) rate: Rate,
}

/// What a tile has besides its values.
pub(super) struct Lanes<S: Simd> {
    /// What the values are still to be multiplied by.
    pub(super) scale: S::f32s,
    /// The kept classes as bits.
    pub(super) kept: S::u32s,
}

/// Aligned, so that no vector crosses two cache lines.
#[repr(align(64))]
struct Buffer(Values);

impl Buffer {
    fn new() -> Self {
        Self([0.0; _])
    }
}

/// The bit of each class.
pub(super) const BITS: [u32; TILE_CLASSES] = {
    let mut bits = [1; TILE_CLASSES];
    let mut class = 1;
    while class < TILE_CLASSES {
        bits[class] = 2 * bits[class - 1];
        class += 1;
    }
    bits
};

/// Elements of a cache line.
const LINE: usize = 16;

/// Distributions and support sizes.
#[inline(always)]
pub(super) fn dense<S: Simd>(
    simd: S,
    rows: ShortRows<'_, f32>,
    out: &mut [f32],
    sizes: &mut [u32],
) -> Option<usize> {
    let classes = rows.classes;
    let Buffer(packed) = &mut Buffer::new();
    let size = classes * S::f32s::LEN;
    let reach = reach::<S>(classes);
    let mut start = 0;
    let mut sizes = sizes.iter_mut();
    tiles(
        simd,
        rows,
        #[inline(always)]
        |tile, Lanes { scale, kept }, rows| {
            for (size, bits) in sizes.by_ref().take(rows).zip(kept.as_slice()) {
                *size = bits.count_ones();
            }
            let Some(out) = out.get_mut(start..).filter(|out| !out.is_empty()) else { return };
            for line in (0..size).step_by(LINE) {
                prefetch::write(out, DISTANCE + line);
            }
            // The last tile goes through a buffer: its vectors would reach past the end.
            if out.len() >= reach {
                to_rows(simd, tile, scale, classes, classes, out);
            } else {
                to_rows(simd, tile, scale, classes, classes, packed);
                let rest = out.len().min(size);
                out[..rest].copy_from_slice(&packed[..rest]);
            }
            start += size;
        },
    )
}

/// How far the vectors of a tile reach.
#[inline(always)]
fn reach<S: Simd>(classes: usize) -> usize {
    (S::f32s::LEN - 1) * classes + classes.next_multiple_of(S::f32s::LEN)
}

/// Compressed rows.
#[inline(always)]
pub(super) fn csr<S: Simd>(
    simd: S,
    rows: ShortRows<'_, f32>,
    output: &mut Rows<'_, f32>,
) -> Option<usize> {
    let classes = rows.classes;
    #[cfg(target_arch = "x86_64")]
    if classes <= tile_pack::MOST_CLASSES
        && let Some(avx512) = simd.level().as_avx512()
    {
        return tile_pack::csr(avx512, rows, output);
    }
    let lanes = S::f32s::LEN;
    let Rows { ends, base, entries: Entries { columns, values } } = output;
    let (columns, values, base) = (&mut **columns, &mut **values, *base);
    let Buffer(packed) = &mut Buffer::new();
    // Rows begin at whole vectors, so that each load is of one store, which the processor forwards.
    let stride = classes.next_multiple_of(lanes);
    let lane = S::u32s::from_fn(simd, |lane| lane as u32);
    let mut end = 0;
    tiles(
        simd,
        rows,
        #[inline(always)]
        |tile, Lanes { scale, kept }, rows| {
            to_rows(simd, tile, scale, classes, stride, packed);
            let start = end;
            let mut bits = [0; MAX_LANES];
            kept.store_slice(&mut bits[..lanes]);
            for (row, bits) in packed.chunks_exact(stride).zip(bits).take(rows) {
                for (vector, first) in row.chunks_exact(lanes).zip((0..).step_by(lanes)) {
                    let bits = u64::from(bits >> first) & ((1 << lanes) - 1);
                    let keep = S::mask32s::from_bitmask(simd, bits);
                    // The lanes past the last kept class are overwritten by what comes next.
                    let value = S::f32s::from_slice(simd, vector).compress(keep);
                    value.store_slice(&mut values[end..end + lanes]);
                    let column = (lane + first as u32).compress(keep);
                    column.store_slice(&mut columns[end..end + lanes]);
                    end += bits.count_ones() as usize;
                }
                ends.push(base + end as i64);
            }
            for line in (start..end).step_by(LINE) {
                prefetch::write(values, DISTANCE + line);
                prefetch::write(columns, DISTANCE + line);
            }
        },
    )
}

/// Transforms as many rows at a time as there are lanes and passes each tile on with the number of its rows.
/// Returns the number of vacuous rows, or `None` if a row is invalid.
#[inline(always)]
pub(super) fn tiles<S: Simd>(
    simd: S,
    ShortRows { rows, classes, rule, rate }: ShortRows<'_, f32>,
    mut finish: impl FnMut(&Values, Lanes<S>, usize),
) -> Option<usize> {
    let lanes = S::f32s::LEN;
    // Lanes without a row must not stop the others: they hold zeros.
    let Buffer(packed) = &mut Buffer::new();
    let Buffer(tile) = &mut Buffer::new();
    let mut vacuous = 0;
    let reach = reach::<S>(classes);
    for start in (0..rows.len()).step_by(classes * lanes) {
        let rest = &rows[start..];
        let rows = &rest[..rest.len().min(classes * lanes)];
        let count = rows.len() / classes;
        for line in (0..classes * lanes).step_by(LINE) {
            prefetch::read(rest, DISTANCE + line);
        }
        // The last tile goes through a buffer: vectors would reach past the end.
        if rest.len() >= reach {
            to_lanes(simd, rest, classes, tile);
        } else {
            packed[..rows.len()].copy_from_slice(rows);
            to_lanes(simd, packed, classes, tile);
        }
        let (equal, found) = lanewise(simd, rule, &mut tile[..classes * lanes], rate)?;
        vacuous += (equal & ((1 << count) - 1)).count_ones() as usize;
        finish(tile, found, count);
    }
    Some(vacuous)
}

/// From `packed[row * classes + class]` to `tile[class * lanes + row]`.
#[cfg_attr(not(debug_assertions), inline(always))]
fn to_lanes<S: Simd>(simd: S, packed: &[f32], classes: usize, tile: &mut Values) {
    let lanes = S::f32s::LEN;
    let mut square = [S::f32s::simd_from(simd, 0.0); MAX_LANES];
    for first in (0..classes).step_by(lanes) {
        for (row, vector) in square[..lanes].iter_mut().enumerate() {
            // Lanes past the end of the row are not used.
            *vector = S::f32s::from_slice(simd, &packed[row * classes + first..][..lanes]);
        }
        transpose(&mut square);
        for (vector, tile) in
            square.iter().zip(tile[first * lanes..].chunks_exact_mut(lanes)).take(lanes)
        {
            vector.store_slice(tile);
        }
    }
}

/// To `packed[row * stride + class]` from `tile[class * lanes + row]`, each lane times its factor.
#[cfg_attr(not(debug_assertions), inline(always))]
fn to_rows<S: Simd>(
    simd: S,
    tile: &Values,
    scale: S::f32s,
    classes: usize,
    stride: usize,
    packed: &mut [f32],
) {
    let lanes = S::f32s::LEN;
    let mut square = [S::f32s::simd_from(simd, 0.0); MAX_LANES];
    // Vectors reach past the ends of rows into the first classes of the next, so those come last.
    for first in (0..classes).step_by(lanes).rev() {
        for (vector, tile) in
            square.iter_mut().zip(tile[first * lanes..].chunks_exact(lanes)).take(lanes)
        {
            *vector = S::f32s::from_slice(simd, tile) * scale;
        }
        transpose(&mut square);
        for (row, vector) in square[..lanes].iter().enumerate() {
            vector.store_slice(&mut packed[row * stride + first..][..lanes]);
        }
    }
}

/// Transposes a square of vectors by interleaving its halves (a perfect shuffle), once for each bit of the
/// lane number.
#[inline(always)]
fn transpose<S: Simd, V: SimdBase<S>>(square: &mut [V; MAX_LANES]) {
    let half = V::LEN / 2;
    for _ in 0..V::LEN.ilog2() {
        let before = *square;
        for i in 0..half {
            (square[2 * i], square[2 * i + 1]) = before[i].interleave(before[i + half]);
        }
    }
}

/// Transforms one tile in place, `tile[class * lanes + lane]`, up to a factor. Returns the vacuous lanes as
/// bits, and factors and kept classes.
#[cfg_attr(not(debug_assertions), inline(always))]
fn lanewise<S: Simd>(
    simd: S,
    rule: TileRule,
    tile: &mut [f32],
    rate: Rate,
) -> Option<(u64, Lanes<S>)> {
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
                let (mean, count) = mean_above(simd, tile, threshold);
                let next = floor(simd, mean);
                // In f64, the mean of 32 unequal f32 is less than their maximum.
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
        TileRule::FromMean { distance } => {
            let (mean, count) = mean_above(simd, tile, threshold);
            let equal = floor(simd, mean).simd_ge(max);
            vacuous = (equal & count.simd_gt(one)).to_bitmask();
            let (low, high) = max.abs().widen();
            let slack = |mean: S::f64s, max: S::f64s| (mean.abs() + max) * ROUNDING;
            let bound = [
                mean[0] + distance - slack(mean[0], low),
                mean[1] + distance - slack(mean[1], high),
            ];
            threshold = below(simd, bound).min(next_down(simd, max));
        }
        TileRule::NearMax { distance } => {
            let (low, high) = max.widen();
            threshold = below(simd, [low - distance, high - distance]);
        }
        TileRule::NearMaxDeviations { n } => {
            let [low, high] = deviations(simd, tile);
            let (low_max, high_max) = max.widen();
            threshold = below(simd, [low_max - low * n, high_max - high * n]);
        }
        TileRule::Project(projection) => {
            let kept = tile_project::solve(simd, projection, tile, max);
            return Some((0, Lanes { scale: one, kept }));
        }
    }

    // The choice must not depend on the other lanes: a row has the same result in any batch.
    let lanes = if rate.is_plain(0.0) {
        let far = !max.max(-max).simd_lt(FAR);
        let shift = far.select(max, zero);
        let term = Plain::new(simd, max - shift, rate);
        exp_above(simd, term, tile, shift, max, threshold, rate)
    } else {
        let term = General::new(simd, max, rate);
        exp_above(simd, term, tile, zero, max, threshold, rate)
    };
    Some((vacuous, lanes))
}

/// Mean and number of the values above the threshold, in each lane.
#[cfg_attr(not(debug_assertions), inline(always))]
fn mean_above<S: Simd>(simd: S, tile: &[f32], threshold: S::f32s) -> ([S::f64s; 2], S::f32s) {
    let (zero, one) = (S::f32s::simd_from(simd, 0.0), S::f32s::simd_from(simd, 1.0));
    let mut sum = [S::f64s::simd_from(simd, 0.0); 2];
    let mut count = zero;
    for x in tile.chunks_exact(S::f32s::LEN) {
        let x = S::f32s::from_slice(simd, x);
        let above = x.simd_gt(threshold);
        let (low, high) = above.select(x, zero).widen();
        sum[0] += low;
        sum[1] += high;
        count += above.select(one, zero);
    }
    let (low, high) = count.widen();
    ([sum[0] / low, sum[1] / high], count)
}

/// The exponentials of what lies above the threshold, in each lane.
#[cfg_attr(not(debug_assertions), inline(always))]
fn exp_above<S: Simd>(
    simd: S,
    term: impl Term<S>,
    tile: &mut [f32],
    shift: S::f32s,
    max: S::f32s,
    threshold: S::f32s,
    rate: Rate,
) -> Lanes<S> {
    let lanes = S::f32s::LEN;
    let underflow = (max - rate.reach()).min(next_down(simd, max));
    let mut sum = S::f32s::simd_from(simd, 0.0);
    let zero = S::u32s::simd_from(simd, 0);
    let mut kept = zero;
    for (x, bit) in tile.chunks_exact_mut(lanes).zip(BITS) {
        let logit = S::f32s::from_slice(simd, x);
        let keep = logit.simd_gt(threshold);
        let e = term.of_kept(simd, logit - shift, keep & logit.simd_gt(underflow));
        sum += e;
        kept |= keep.select(S::u32s::simd_from(simd, bit), zero);
        e.store_slice(x);
    }
    Lanes { scale: S::f32s::simd_from(simd, 1.0) / sum, kept }
}

/// The standard deviation of each lane over the logits that are not masked.
#[cfg_attr(not(debug_assertions), inline(always))]
fn deviations<S: Simd>(simd: S, tile: &[f32]) -> [S::f64s; 2] {
    let lowest = S::f64s::simd_from(simd, f64::NEG_INFINITY);
    let (zero, one) = (S::f64s::simd_from(simd, 0.0), S::f64s::simd_from(simd, 1.0));
    let (mut sum, mut count, mut squares) = ([zero; 2], [zero; 2], [zero; 2]);
    for x in tile.chunks_exact(S::f32s::LEN) {
        let (low, high) = S::f32s::from_slice(simd, x).widen();
        for (half, x) in [low, high].into_iter().enumerate() {
            let unmasked = x.simd_gt(lowest);
            sum[half] += unmasked.select(x, zero);
            count[half] += unmasked.select(one, zero);
        }
    }
    let mean = [sum[0] / count[0], sum[1] / count[1]];
    for x in tile.chunks_exact(S::f32s::LEN) {
        let (low, high) = S::f32s::from_slice(simd, x).widen();
        for (half, x) in [low, high].into_iter().enumerate() {
            let deviation = x.simd_gt(lowest).select(x - mean[half], zero);
            squares[half] += deviation * deviation;
        }
    }
    [(squares[0] / count[0]).sqrt(), (squares[1] / count[1]).sqrt()]
}

/// The largest float in each lane that is not greater than the bound.
#[inline(always)]
pub(super) fn floor<S: Simd>(simd: S, bound: [S::f64s; 2]) -> S::f32s {
    let nearest = bound[0].narrow(bound[1]);
    let (low, high) = nearest.widen();
    let too_high = low.simd_gt(bound[0]).narrow(high.simd_gt(bound[1]));
    too_high.select(next_down(simd, nearest), nearest)
}

/// The largest float in each lane that is less than the bound.
#[inline(always)]
fn below<S: Simd>(simd: S, bound: [S::f64s; 2]) -> S::f32s {
    let floor = floor(simd, bound);
    let (low, high) = floor.widen();
    let equal = low.simd_eq(bound[0]).narrow(high.simd_eq(bound[1]));
    equal.select(next_down(simd, floor), floor)
}

/// The next smaller float in each lane; `-inf` of itself.
#[inline(always)]
pub(super) fn next_down<S: Simd>(simd: S, x: S::f32s) -> S::f32s {
    let bits: S::u32s = x.bitcast();
    let one = S::u32s::simd_from(simd, 1);
    let down = x.simd_gt(0.0).select(bits - one, bits + one);
    let below_zero = S::u32s::simd_from(simd, (-0.0_f32).to_bits() + 1);
    let down = x.simd_eq(0.0).select(below_zero, down).bitcast();
    x.simd_gt(f32::NEG_INFINITY).select(down, x)
}
