//! The loops over `f32` rows for the instruction set that there is: found once for a task, or with every call.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{
    _MM_FROUND_NO_EXC, _MM_FROUND_TO_NEG_INF, _mm_cvt_roundsd_ss, _mm_cvtss_f32, _mm_set_sd,
    _mm_setzero_ps,
};

use fearless_simd::{Level, dispatch, prelude::*};

use super::gibbs::{General, Plain};
use super::{
    Above, Ahead, Cut, Desk, Float, Loops, Max, Next, Rate, Scan, ShortRows, Stream, Task,
    blockwise, pack, single, tile,
};
use crate::compressed::Entries;

impl Float for f32 {
    const NEG_INFINITY: Self = f32::NEG_INFINITY;
    // They are taken in f64.
    const SUMS_OVERFLOW: bool = false;
    const LOOPS: Anywhere = Anywhere;

    type Anywhere = Anywhere;

    fn run<T: Task<Self>>(task: T) -> T::Output {
        dispatch!(Level::new(), simd => task.run(Vectors::new(simd)))
    }

    fn next_down(self) -> Self {
        f32::next_down(self)
    }

    fn floor_from(value: f64) -> Self {
        let nearest = value as f32;
        // Every other mean is rounded up: a branch would often be mispredicted, and the work begun behind it lost.
        let too_high = i32::from(f64::from(nearest) > value);
        from_order(order(nearest) - too_high)
    }
}

/// Integers in the order of the floats; both zeros are 0.
fn order(x: f32) -> i32 {
    let bits = x.to_bits() as i32;
    if bits < 0 { -(bits & i32::MAX) } else { bits }
}

/// And back.
fn from_order(order: i32) -> f32 {
    let sign = if order < 0 { 1 << 31 } else { 0 };
    f32::from_bits(order.unsigned_abs() | sign)
}

#[cfg(target_arch = "x86_64")]
fearless_simd::kernel!(
    /// As [`Float::floor_from`], in one instruction.
    #[inline(always)]
    fn floor(avx512: Avx512, value: f64) -> f32 {
        const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;
        let value = _mm_set_sd(value);
        _mm_cvtss_f32(_mm_cvt_roundsd_ss::<DOWN>(_mm_setzero_ps(), value))
    }
);

/// The loops for one instruction set, as part of a function that is compiled for it.
#[derive(Clone, Copy)]
struct Vectors<S> {
    simd: S,
    /// See [`Loops::sparing`].
    sparing: bool,
}

impl<S> Vectors<S> {
    #[inline(always)]
    fn new(simd: S) -> Self {
        Self { simd, sparing: false }
    }
}

impl<S: Simd> Loops<f32> for Vectors<S> {
    #[inline(always)]
    fn sparing(self) -> Self {
        Self { sparing: true, ..self }
    }

    #[inline(always)]
    fn scan(self, row: &[f32]) -> Scan<f32> {
        single::scan(self.simd, row, self.sparing)
    }

    #[inline(always)]
    fn max(self, row: &[f32]) -> Max<f32> {
        single::max(self.simd, row)
    }

    #[inline(always)]
    fn below_infinity(self, row: &[f32]) -> bool {
        single::below_infinity(self.simd, row)
    }

    #[inline(always)]
    fn weight_above(self, keys: &[f32], weights: &[f32], threshold: f32) -> Above {
        single::weight_above(self.simd, keys, weights, threshold)
    }

    #[inline(always)]
    fn mean_floor(self, Above { sum, count }: Above) -> f32 {
        let mean = sum.rounded() / count as f64;
        #[cfg(target_arch = "x86_64")]
        if let Some(avx512) = self.simd.level().as_avx512() {
            return floor(avx512, mean);
        }
        f32::floor_from(mean)
    }

    #[inline(always)]
    fn count_above(self, row: &[f32], threshold: f32) -> usize {
        single::count_above(self.simd, row, threshold)
    }

    #[inline(always)]
    fn compact(
        self,
        row: &[f32],
        threshold: f32,
        columns: &mut [u32],
        values: &mut [f32],
        ahead: usize,
    ) -> usize {
        pack::pack(self.simd, row, threshold, columns, values, ahead)
    }

    #[inline(always)]
    fn compact_exp(
        self,
        row: &[f32],
        cut: Cut<f32>,
        rate: Rate,
        columns: &mut [u32],
        values: &mut [f32],
        ahead: usize,
    ) -> (usize, f64) {
        if rate.is_plain(cut.max) {
            pack::pack_exp::<S, Plain<S>>(self.simd, row, cut, rate, columns, values, ahead)
        } else {
            pack::pack_exp::<S, General<S>>(self.simd, row, cut, rate, columns, values, ahead)
        }
    }

    #[inline(always)]
    fn compact_long(
        self,
        row: &[f32],
        cut: Cut<f32>,
        rate: Rate,
        desk: &mut Desk,
        columns: &mut [u32],
        values: &mut [f32],
    ) -> (usize, f64) {
        if rate.is_plain(cut.max) {
            blockwise::pack_exp::<S, Plain<S>>(self.simd, row, cut, rate, desk, columns, values)
        } else {
            blockwise::pack_exp::<S, General<S>>(self.simd, row, cut, rate, desk, columns, values)
        }
    }

    #[inline(always)]
    fn exp_above(
        self,
        row: &[f32],
        out: &mut [f32],
        cut: Cut<f32>,
        rate: Rate,
        ahead: Ahead,
    ) -> f64 {
        if rate.is_plain(cut.max) {
            single::exp_above::<S, Plain<S>>(self.simd, row, out, cut, rate, ahead)
        } else {
            single::exp_above::<S, General<S>>(self.simd, row, out, cut, rate, ahead)
        }
    }

    #[inline(always)]
    fn exp_all(self, values: &mut [f32], count: usize, max: f32, rate: Rate) -> f64 {
        if rate.is_plain(max) {
            single::exp_all::<S, Plain<S>>(self.simd, values, count, max, rate)
        } else {
            single::exp_all::<S, General<S>>(self.simd, values, count, max, rate)
        }
    }

    #[inline(always)]
    fn scale(self, values: &mut [f32], factor: f64, next: Option<Next<'_, f32>>) {
        single::scale(self.simd, values, factor as f32, next);
    }

    #[inline(always)]
    fn scale_to(
        self,
        values: &[f32],
        factor: f64,
        out: &mut Stream<'_, f32>,
        next: Option<Next<'_, f32>>,
    ) {
        let factor = factor as f32;
        match next {
            None => out.push(values, |x| x * factor, |_| ()),
            Some(next) => out.push(values, |x| x * factor, |i| next.read(i)),
        }
    }

    #[inline(always)]
    fn group_maxima(self, row: &[f32], maxima: &mut Vec<f32>) {
        single::group_maxima(self.simd, row, maxima);
    }

    #[inline(always)]
    fn tile(self, rows: ShortRows<'_, f32>, out: &mut [f32]) -> Option<usize> {
        tile::dense(self.simd, rows, out)
    }

    #[inline(always)]
    fn tile_compressed(
        self,
        rows: ShortRows<'_, f32>,
        entries: &mut Entries<'_, f32>,
    ) -> Option<usize> {
        tile::compressed(self.simd, rows, entries)
    }

    #[inline(always)]
    fn tile_sizes(self, rows: ShortRows<'_, f32>, sizes: &mut [u32]) -> Option<usize> {
        tile::sizes(self.simd, rows, sizes)
    }
}

/// The loops for the instruction set that this machine is found to have, with every call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anywhere;

impl Loops<f32> for Anywhere {
    fn scan(self, row: &[f32]) -> Scan<f32> {
        dispatch!(Level::new(), simd => Vectors::new(simd).scan(row))
    }

    fn max(self, row: &[f32]) -> Max<f32> {
        dispatch!(Level::new(), simd => Vectors::new(simd).max(row))
    }

    fn below_infinity(self, row: &[f32]) -> bool {
        dispatch!(Level::new(), simd => Vectors::new(simd).below_infinity(row))
    }

    fn weight_above(self, keys: &[f32], weights: &[f32], threshold: f32) -> Above {
        dispatch!(Level::new(), simd => Vectors::new(simd).weight_above(keys, weights, threshold))
    }

    fn mean_floor(self, values: Above) -> f32 {
        dispatch!(Level::new(), simd => Vectors::new(simd).mean_floor(values))
    }

    fn count_above(self, row: &[f32], threshold: f32) -> usize {
        dispatch!(Level::new(), simd => Vectors::new(simd).count_above(row, threshold))
    }

    fn compact(
        self,
        row: &[f32],
        threshold: f32,
        columns: &mut [u32],
        values: &mut [f32],
        ahead: usize,
    ) -> usize {
        dispatch!(Level::new(), simd => Vectors::new(simd).compact(row, threshold, columns, values, ahead))
    }

    fn compact_exp(
        self,
        row: &[f32],
        cut: Cut<f32>,
        rate: Rate,
        columns: &mut [u32],
        values: &mut [f32],
        ahead: usize,
    ) -> (usize, f64) {
        dispatch!(Level::new(), simd => Vectors::new(simd).compact_exp(row, cut, rate, columns, values, ahead))
    }

    fn compact_long(
        self,
        row: &[f32],
        cut: Cut<f32>,
        rate: Rate,
        desk: &mut Desk,
        columns: &mut [u32],
        values: &mut [f32],
    ) -> (usize, f64) {
        dispatch!(Level::new(), simd => Vectors::new(simd).compact_long(row, cut, rate, desk, columns, values))
    }

    fn exp_above(
        self,
        row: &[f32],
        out: &mut [f32],
        cut: Cut<f32>,
        rate: Rate,
        ahead: Ahead,
    ) -> f64 {
        dispatch!(Level::new(), simd => Vectors::new(simd).exp_above(row, out, cut, rate, ahead))
    }

    fn exp_all(self, values: &mut [f32], count: usize, max: f32, rate: Rate) -> f64 {
        dispatch!(Level::new(), simd => Vectors::new(simd).exp_all(values, count, max, rate))
    }

    fn scale(self, values: &mut [f32], factor: f64, next: Option<Next<'_, f32>>) {
        dispatch!(Level::new(), simd => Vectors::new(simd).scale(values, factor, next));
    }

    fn scale_to(
        self,
        values: &[f32],
        factor: f64,
        out: &mut Stream<'_, f32>,
        next: Option<Next<'_, f32>>,
    ) {
        dispatch!(Level::new(), simd => Vectors::new(simd).scale_to(values, factor, out, next));
    }

    fn group_maxima(self, row: &[f32], maxima: &mut Vec<f32>) {
        dispatch!(Level::new(), simd => Vectors::new(simd).group_maxima(row, maxima));
    }

    fn tile(self, rows: ShortRows<'_, f32>, out: &mut [f32]) -> Option<usize> {
        dispatch!(Level::new(), simd => Vectors::new(simd).tile(rows, out))
    }

    fn tile_compressed(
        self,
        rows: ShortRows<'_, f32>,
        entries: &mut Entries<'_, f32>,
    ) -> Option<usize> {
        dispatch!(Level::new(), simd => Vectors::new(simd).tile_compressed(rows, entries))
    }

    fn tile_sizes(self, rows: ShortRows<'_, f32>, sizes: &mut [u32]) -> Option<usize> {
        dispatch!(Level::new(), simd => Vectors::new(simd).tile_sizes(rows, sizes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the standard library finds the next smaller number.
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
                let mean = Anywhere.mean_floor(Above { sum: value.into(), count: 1 });
                assert_eq!(mean, expected, "{value:e}");
            }
        }
    }
}
