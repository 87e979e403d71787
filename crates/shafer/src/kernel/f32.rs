//! Vector loops over `f32` rows.

use fearless_simd::{Level, dispatch, prelude::*};

use super::exp::{General, Plain, Term};
use super::prefetch::{self, DISTANCE};
use super::{
    Above, Cut, Entries, Float, Loops, Output, Rate, Scan, ShortRows, Staging, Task, pack, tile,
};

/// This many vectors of terms are added in `f32` before their sum is added in `f64`: the sum of
/// 131,072 terms is then as accurate as the sum of a few.
pub(super) const SUMMANDS: usize = 16;

impl Float for f32 {
    const NEG_INFINITY: Self = f32::NEG_INFINITY;
    // Sums are taken in f64.
    const SUMS_OVERFLOW: bool = false;

    fn run<T: Task<Self>>(task: T) -> T::Output {
        dispatch!(Level::new(), simd => task.run(Vectors(simd)))
    }

    fn next_down(self) -> Self {
        f32::next_down(self)
    }

    fn floor_from(value: f64) -> Self {
        let nearest = value as f32;
        if f64::from(nearest) > value { nearest.next_down() } else { nearest }
    }
}

/// The loops for the instruction set `S`.
#[derive(Clone, Copy)]
struct Vectors<S>(S);

impl<S: Simd> Loops<f32> for Vectors<S> {
    #[cfg_attr(not(debug_assertions), inline(always))]
    fn scan<const SUM: bool>(self, row: &[f32]) -> Scan<f32> {
        let (simd, lanes) = (self.0, S::f32s::LEN);
        let mut max = [S::f32s::simd_from(simd, f32::NEG_INFINITY); 4];
        // Independent accumulators, because the latency of an addition is four cycles.
        let mut sum = [S::f64s::simd_from(simd, 0.0); 8];
        let mut quads = row.chunks_exact(4 * lanes);
        for quad in &mut quads {
            for i in 0..4 {
                prefetch::read(&quad[i * lanes..], DISTANCE);
                let x = S::f32s::from_slice(simd, &quad[i * lanes..][..lanes]);
                max[i] = max[i].max(x);
                let (low, high) = x.widen();
                sum[2 * i] += low;
                sum[2 * i + 1] += high;
            }
        }
        let mut max = max[0].max(max[1]).max(max[2].max(max[3]));
        let mut sum =
            (sum[0] + sum[1]) + (sum[2] + sum[3]) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
        let mut vectors = quads.remainder().chunks_exact(lanes);
        for vector in &mut vectors {
            let x = S::f32s::from_slice(simd, vector);
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

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn weight_above(self, keys: &[f32], weights: &[f32], threshold: f32) -> Above {
        let (simd, lanes) = (self.0, S::f32s::LEN);
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
    fn mean_floor(self, Above { sum, count }: Above) -> f32 {
        f32::floor_from(sum.rounded() / count as f64)
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn exp_above(self, row: &[f32], out: &mut [f32], cut: Cut<f32>, rate: Rate) -> f64 {
        if rate.is_plain(cut.max) {
            exp_above::<S, Plain<S>>(self.0, row, out, cut, rate)
        } else {
            exp_above::<S, General<S>>(self.0, row, out, cut, rate)
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pack(
        self,
        row: &[f32],
        threshold: f32,
        staging: &mut Staging,
        entries: Entries<'_, f32>,
    ) -> usize {
        let cut = Cut { threshold, max: 0.0 };
        pack::pack::<S, Plain<S>, false>(self.0, row, cut, Rate::new(1.0), staging, entries).0
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn pack_exp(
        self,
        row: &[f32],
        cut: Cut<f32>,
        rate: Rate,
        staging: &mut Staging,
        entries: Entries<'_, f32>,
    ) -> (usize, f64) {
        if rate.is_plain(cut.max) {
            pack::pack::<S, Plain<S>, true>(self.0, row, cut, rate, staging, entries)
        } else {
            pack::pack::<S, General<S>, true>(self.0, row, cut, rate, staging, entries)
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn scale(self, values: &mut [f32], factor: f64, next: &[f32]) {
        let lanes = S::f32s::LEN;
        let factor = factor as f32;
        let mut vectors = values.chunks_exact_mut(lanes);
        for (i, vector) in (&mut vectors).enumerate() {
            if !next.is_empty() {
                prefetch::read(next, i * lanes);
            }
            (S::f32s::from_slice(self.0, vector) * factor).store_slice(vector);
        }
        for x in vectors.into_remainder() {
            *x *= factor;
        }
    }

    #[cfg_attr(not(debug_assertions), inline(always))]
    fn tile(self, rows: ShortRows<'_, f32>, output: &mut Output<'_, f32>) -> Option<usize> {
        match output {
            Output::Dense { out, sizes } => tile::dense(self.0, rows, out, sizes),
            Output::Csr(output) => tile::csr(self.0, rows, output),
        }
    }
}

#[cfg_attr(not(debug_assertions), inline(always))]
fn exp_above<S: Simd, T: Term<S>>(
    simd: S,
    row: &[f32],
    out: &mut [f32],
    Cut { threshold, max }: Cut<f32>,
    rate: Rate,
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
            prefetch::read(input, DISTANCE);
            prefetch::write(output, DISTANCE);
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
            // The last whole vector of the row: its first lanes are computed again and not added.
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

/// Adds the lanes of an `f32` sum to an `f64` sum.
#[inline(always)]
pub(super) fn add<S: Simd>(total: &mut [S::f64s; 2], sum: S::f32s) {
    let (low, high) = sum.widen();
    total[0] += low;
    total[1] += high;
}

#[cfg(test)]
mod tests {
    use super::*;

    struct MeanFloor(f64);

    impl Task<f32> for MeanFloor {
        type Output = f32;

        #[inline(always)]
        fn run(self, loops: impl Loops<f32>) -> f32 {
            loops.mean_floor(Above { sum: self.0.into(), count: 1 })
        }
    }

    /// Against the standard library's next smaller number.
    #[test]
    fn rounds_down_to_the_next_float() {
        let smallest = f64::from(f32::from_bits(1));
        let edges = [0.0, 1e-60, smallest, smallest * 1.5, 1e-39, 1.0, 3.4e38, 1e39, 1e300];
        let steps = (0..2000).map(|i| f64::from(i).powi(3) * 1e-4 + 1e-9);
        for magnitude in edges.into_iter().chain(steps) {
            for value in [magnitude, -magnitude, magnitude.next_up(), -magnitude.next_up()] {
                let nearest = value as f32;
                let too_high = f64::from(nearest) > value;
                let expected = if too_high { nearest.next_down() } else { nearest };
                assert_eq!(f32::floor_from(value), expected, "{value:e}");
                assert_eq!(f32::run(MeanFloor(value)), expected, "{value:e}");
            }
        }
    }
}
