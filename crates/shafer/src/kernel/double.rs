//! Plain loops over `f64` rows.

use super::{Above, Ahead, Cut, Float, Max, Rate, Scan, Stream, TileRule};
use crate::compressed::Entries;
use crate::numerics::Sum;

impl Float for f64 {
    const NEG_INFINITY: Self = f64::NEG_INFINITY;

    fn next_down(self) -> Self {
        f64::next_down(self)
    }

    fn floor_from(value: f64) -> Self {
        value
    }

    fn mean_floor(sum: Sum, count: usize) -> Self {
        sum.mean_floor(count)
    }

    fn scan(row: &[Self]) -> Scan<Self> {
        let mut max = f64::NEG_INFINITY;
        let mut sum = Sum::default();
        let mut finite = true;
        for &x in row {
            max = max.max(x);
            finite &= x.is_finite();
            sum.add(x);
        }
        Scan { max, sum, finite }
    }

    fn max(row: &[Self]) -> Max<Self> {
        let mut max = f64::NEG_INFINITY;
        let mut finite = true;
        for &x in row {
            max = max.max(x);
            finite &= x.is_finite();
        }
        Max { max, finite }
    }

    fn below_infinity(row: &[Self]) -> bool {
        row.iter().all(|&x| x < f64::INFINITY)
    }

    fn above(row: &[Self], threshold: Self) -> Above {
        Self::weight_above(row, row, threshold)
    }

    fn weight_above(keys: &[Self], weights: &[Self], threshold: Self) -> Above {
        let mut sum = Sum::default();
        let mut count = 0;
        for (&key, &weight) in keys.iter().zip(weights) {
            if key > threshold {
                sum.add(weight);
                count += 1;
            }
        }
        Above { sum, count }
    }

    fn compact(
        row: &[Self],
        threshold: Self,
        columns: &mut [u32],
        values: &mut [Self],
        _: usize,
    ) -> usize {
        let mut n = 0;
        for (column, &x) in row.iter().enumerate() {
            columns[n] = column as u32;
            values[n] = x;
            n += usize::from(x > threshold);
        }
        n
    }

    fn exp_above(row: &[Self], out: &mut [Self], cut: Cut<Self>, rate: Rate, _: Ahead) -> f64 {
        let Cut { threshold, max } = cut;
        let mut sum = 0.0;
        for (out, &x) in out.iter_mut().zip(row) {
            *out = if x > threshold { ((x - max) * rate.exact()).exp() } else { 0.0 };
            sum += *out;
        }
        sum
    }

    fn exp_all(values: &mut [Self], count: usize, max: Self, rate: Rate) -> f64 {
        let mut sum = 0.0;
        for x in &mut values[..count] {
            *x = ((*x - max) * rate.exact()).exp();
            sum += *x;
        }
        sum
    }

    fn scale(values: &mut [Self], factor: f64, _: Option<&[Self]>) {
        for x in values {
            *x *= factor;
        }
    }

    fn scale_to(values: &[Self], factor: f64, out: &mut Stream<'_, Self>) {
        out.push(values, |x| x * factor);
    }

    fn group_maxima(row: &[Self], maxima: &mut Vec<Self>) {
        maxima.extend(row.chunks(8).map(|group| group.iter().copied().fold(group[0], f64::max)));
    }

    fn tile(_: TileRule, _: &[Self], _: usize, _: Rate, _: &mut [Self]) -> Option<usize> {
        None
    }

    fn tile_compressed(
        _: TileRule,
        _: &[Self],
        _: usize,
        _: Rate,
        _: &mut Entries<'_, Self>,
    ) -> Option<usize> {
        None
    }
}
