//! Plain loops over `f64` rows.

use super::{
    Above, Ahead, Cut, Desk, Float, Loops, Max, Next, Rate, Scan, ShortRows, Stream, Task,
};
use crate::compressed::Entries;
use crate::numerics::Sum;

impl Float for f64 {
    const NEG_INFINITY: Self = f64::NEG_INFINITY;
    const SUMS_OVERFLOW: bool = true;
    const LOOPS: Doubles = Doubles;

    type Anywhere = Doubles;

    fn run<T: Task<Self>>(task: T) -> T::Output {
        task.run(Doubles)
    }

    fn next_down(self) -> Self {
        f64::next_down(self)
    }

    fn floor_from(value: f64) -> Self {
        value
    }
}

/// The same loops for every instruction set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Doubles;

impl Loops<f64> for Doubles {
    fn scan(self, row: &[f64]) -> Scan<f64> {
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

    fn max(self, row: &[f64]) -> Max<f64> {
        let mut max = f64::NEG_INFINITY;
        let mut finite = true;
        for &x in row {
            max = max.max(x);
            finite &= x.is_finite();
        }
        Max { max, finite }
    }

    fn below_infinity(self, row: &[f64]) -> bool {
        row.iter().all(|&x| x < f64::INFINITY)
    }

    fn weight_above(self, keys: &[f64], weights: &[f64], threshold: f64) -> Above {
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

    fn mean_floor(self, Above { sum, count }: Above) -> f64 {
        sum.mean_floor(count)
    }

    fn count_above(self, row: &[f64], threshold: f64) -> usize {
        row.iter().filter(|&&x| x > threshold).count()
    }

    fn compact(
        self,
        row: &[f64],
        threshold: f64,
        columns: &mut [u32],
        values: &mut [f64],
        _: usize,
    ) -> usize {
        let mut n = 0;
        for (column, &x) in row.iter().enumerate() {
            if x > threshold {
                columns[n] = column as u32;
                values[n] = x;
                n += 1;
            }
        }
        n
    }

    fn exp_above(self, row: &[f64], out: &mut [f64], cut: Cut<f64>, rate: Rate, _: Ahead) -> f64 {
        let Cut { threshold, max } = cut;
        let mut sum = 0.0;
        for (out, &x) in out.iter_mut().zip(row) {
            *out = if x > threshold { ((x - max) * rate.exact()).exp() } else { 0.0 };
            sum += *out;
        }
        sum
    }

    fn compact_exp(
        self,
        row: &[f64],
        cut: Cut<f64>,
        rate: Rate,
        columns: &mut [u32],
        values: &mut [f64],
        ahead: usize,
    ) -> (usize, f64) {
        let count = self.compact(row, cut.threshold, columns, values, ahead);
        (count, self.exp_all(values, count, cut.max, rate))
    }

    fn compact_long(
        self,
        row: &[f64],
        cut: Cut<f64>,
        rate: Rate,
        _: &mut Desk,
        columns: &mut [u32],
        values: &mut [f64],
    ) -> (usize, f64) {
        self.compact_exp(row, cut, rate, columns, values, 0)
    }

    fn exp_all(self, values: &mut [f64], count: usize, max: f64, rate: Rate) -> f64 {
        let mut sum = 0.0;
        for x in &mut values[..count] {
            *x = ((*x - max) * rate.exact()).exp();
            sum += *x;
        }
        sum
    }

    fn scale(self, values: &mut [f64], factor: f64, _: Option<Next<'_, f64>>) {
        for x in values {
            *x *= factor;
        }
    }

    fn scale_to(
        self,
        values: &[f64],
        factor: f64,
        out: &mut Stream<'_, f64>,
        _: Option<Next<'_, f64>>,
    ) {
        out.push(values, |x| x * factor, |_| ());
    }

    fn group_maxima(self, row: &[f64], maxima: &mut Vec<f64>) {
        maxima.extend(row.chunks(8).map(|group| group.iter().copied().fold(group[0], f64::max)));
    }

    fn tile(self, _: ShortRows<'_, f64>, _: &mut [f64]) -> Option<usize> {
        None
    }

    fn tile_compressed(self, _: ShortRows<'_, f64>, _: &mut Entries<'_, f64>) -> Option<usize> {
        None
    }

    fn tile_sizes(self, _: ShortRows<'_, f64>, _: &mut [u32]) -> Option<usize> {
        None
    }
}
