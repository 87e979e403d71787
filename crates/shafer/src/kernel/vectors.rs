//! The loops over `f32` rows for the instruction set that there is: found once for a task, or with every call.

use fearless_simd::{Level, dispatch, prelude::*};

use super::gibbs::{General, Plain};
use super::{
    Above, Ahead, Cut, Float, Loops, Max, Rate, Scan, ShortRows, Stream, Task, prefetch, single,
    tile,
};
use crate::compressed::Entries;
use crate::numerics::Sum;

impl Float for f32 {
    const NEG_INFINITY: Self = f32::NEG_INFINITY;
    const LOOPS: Anywhere = Anywhere;

    type Anywhere = Anywhere;

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

    fn mean_floor(sum: Sum, count: usize) -> Self {
        Self::floor_from(sum.value() / count as f64)
    }
}

/// The loops for one instruction set, as part of a function that is compiled for it.
#[derive(Clone, Copy)]
struct Vectors<S>(S);

impl<S: Simd> Loops<f32> for Vectors<S> {
    #[inline(always)]
    fn scan(self, row: &[f32]) -> Scan<f32> {
        single::scan(self.0, row)
    }

    #[inline(always)]
    fn max(self, row: &[f32]) -> Max<f32> {
        single::max(self.0, row)
    }

    #[inline(always)]
    fn below_infinity(self, row: &[f32]) -> bool {
        single::below_infinity(self.0, row)
    }

    #[inline(always)]
    fn weight_above(self, keys: &[f32], weights: &[f32], threshold: f32) -> Above {
        single::weight_above(self.0, keys, weights, threshold)
    }

    #[inline(always)]
    fn count_above(self, row: &[f32], threshold: f32) -> usize {
        single::count_above(self.0, row, threshold)
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
        single::compact(self.0, row, threshold, columns, values, ahead)
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
            single::exp_above::<S, Plain<S>>(self.0, row, out, cut, rate, ahead)
        } else {
            single::exp_above::<S, General<S>>(self.0, row, out, cut, rate, ahead)
        }
    }

    #[inline(always)]
    fn exp_all(self, values: &mut [f32], count: usize, cut: Cut<f32>, rate: Rate) -> f64 {
        if rate.is_plain(cut.max) {
            single::exp_all::<S, Plain<S>>(self.0, values, count, cut, rate)
        } else {
            single::exp_all::<S, General<S>>(self.0, values, count, cut, rate)
        }
    }

    #[inline(always)]
    fn scale(self, values: &mut [f32], factor: f64, row: Option<&[f32]>) {
        single::scale(self.0, values, factor as f32, row);
    }

    #[inline(always)]
    fn scale_to(self, values: &[f32], factor: f64, out: &mut Stream<'_, f32>, row: Option<&[f32]>) {
        let factor = factor as f32;
        match row {
            None => out.push(values, |x| x * factor, |_| ()),
            Some(row) => {
                out.push(values, |x| x * factor, |i| prefetch::read(row, row.len() + i));
            }
        }
    }

    #[inline(always)]
    fn group_maxima(self, row: &[f32], maxima: &mut Vec<f32>) {
        single::group_maxima(self.0, row, maxima);
    }

    #[inline(always)]
    fn tile(self, rows: ShortRows<'_, f32>, out: &mut [f32]) -> Option<usize> {
        tile::dense(self.0, rows, out)
    }

    #[inline(always)]
    fn tile_compressed(
        self,
        rows: ShortRows<'_, f32>,
        entries: &mut Entries<'_, f32>,
    ) -> Option<usize> {
        tile::compressed(self.0, rows, entries)
    }
}

/// The loops for the instruction set that this machine is found to have, with every call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Anywhere;

impl Loops<f32> for Anywhere {
    fn scan(self, row: &[f32]) -> Scan<f32> {
        dispatch!(Level::new(), simd => Vectors(simd).scan(row))
    }

    fn max(self, row: &[f32]) -> Max<f32> {
        dispatch!(Level::new(), simd => Vectors(simd).max(row))
    }

    fn below_infinity(self, row: &[f32]) -> bool {
        dispatch!(Level::new(), simd => Vectors(simd).below_infinity(row))
    }

    fn weight_above(self, keys: &[f32], weights: &[f32], threshold: f32) -> Above {
        dispatch!(Level::new(), simd => Vectors(simd).weight_above(keys, weights, threshold))
    }

    fn count_above(self, row: &[f32], threshold: f32) -> usize {
        dispatch!(Level::new(), simd => Vectors(simd).count_above(row, threshold))
    }

    fn compact(
        self,
        row: &[f32],
        threshold: f32,
        columns: &mut [u32],
        values: &mut [f32],
        ahead: usize,
    ) -> usize {
        dispatch!(Level::new(), simd => Vectors(simd).compact(row, threshold, columns, values, ahead))
    }

    fn exp_above(
        self,
        row: &[f32],
        out: &mut [f32],
        cut: Cut<f32>,
        rate: Rate,
        ahead: Ahead,
    ) -> f64 {
        dispatch!(Level::new(), simd => Vectors(simd).exp_above(row, out, cut, rate, ahead))
    }

    fn exp_all(self, values: &mut [f32], count: usize, cut: Cut<f32>, rate: Rate) -> f64 {
        dispatch!(Level::new(), simd => Vectors(simd).exp_all(values, count, cut, rate))
    }

    fn scale(self, values: &mut [f32], factor: f64, row: Option<&[f32]>) {
        dispatch!(Level::new(), simd => Vectors(simd).scale(values, factor, row));
    }

    fn scale_to(self, values: &[f32], factor: f64, out: &mut Stream<'_, f32>, row: Option<&[f32]>) {
        dispatch!(Level::new(), simd => Vectors(simd).scale_to(values, factor, out, row));
    }

    fn group_maxima(self, row: &[f32], maxima: &mut Vec<f32>) {
        dispatch!(Level::new(), simd => Vectors(simd).group_maxima(row, maxima));
    }

    fn tile(self, rows: ShortRows<'_, f32>, out: &mut [f32]) -> Option<usize> {
        dispatch!(Level::new(), simd => Vectors(simd).tile(rows, out))
    }

    fn tile_compressed(
        self,
        rows: ShortRows<'_, f32>,
        entries: &mut Entries<'_, f32>,
    ) -> Option<usize> {
        dispatch!(Level::new(), simd => Vectors(simd).tile_compressed(rows, entries))
    }
}
