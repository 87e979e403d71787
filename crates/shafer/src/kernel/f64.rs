//! Plain loops over `f64` rows.

use super::{Above, Cut, Entries, Float, Loops, Output, Rate, Scan, ShortRows, Staging, Task};
use crate::numerics::Sum;

impl Float for f64 {
    const NEG_INFINITY: Self = f64::NEG_INFINITY;
    const SUMS_OVERFLOW: bool = true;

    fn run<T: Task<Self>>(task: T) -> T::Output {
        task.run(Scalars)
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
struct Scalars;

impl Loops<f64> for Scalars {
    fn scan<const SUM: bool>(self, row: &[f64]) -> Scan<f64> {
        let max = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum = if SUM { row.iter().copied().collect() } else { Sum::default() };
        Scan { max, sum, finite: row.iter().all(|x| x.is_finite()) }
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

    fn exp_above(self, row: &[f64], out: &mut [f64], cut: Cut<f64>, rate: Rate) -> f64 {
        let Cut { threshold, max } = cut;
        let mut sum = 0.0;
        for (out, &x) in out.iter_mut().zip(row) {
            *out = if x > threshold { ((x - max) * rate.exact()).exp() } else { 0.0 };
            sum += *out;
        }
        sum
    }

    fn pack(self, row: &[f64], threshold: f64, _: &mut Staging, to: Entries<'_, f64>) -> usize {
        let mut n = 0;
        for (column, &x) in row.iter().enumerate() {
            if x > threshold {
                to.columns[n] = column as u32;
                to.values[n] = x;
                n += 1;
            }
        }
        n
    }

    fn pack_exp(
        self,
        row: &[f64],
        cut: Cut<f64>,
        rate: Rate,
        staging: &mut Staging,
        Entries { columns, values }: Entries<'_, f64>,
    ) -> (usize, f64) {
        let entries = Entries { columns, values: &mut *values };
        let count = self.pack(row, cut.threshold, staging, entries);
        let mut sum = 0.0;
        for x in &mut values[..count] {
            *x = ((*x - cut.max) * rate.exact()).exp();
            sum += *x;
        }
        (count, sum)
    }

    fn scale(self, values: &mut [f64], factor: f64, _: &[f64]) {
        for x in values {
            *x *= factor;
        }
    }

    fn tile(self, _: ShortRows<'_, f64>, _: &mut Output<'_, f64>) -> Option<usize> {
        None
    }
}
