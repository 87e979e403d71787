//! The loops over a row that every method is made of.
//!
//! `f32` rows, and through them the half types, run on vectors whose instruction set is chosen at
//! run time; `f64` rows run plain loops with corrected sums. Sums of logits are taken in `f64` or
//! better in both, because the sign of `l_k - mean(l)` decides whether a class is kept.

mod exp;
mod f32;
mod f64;
mod pack;
mod prefetch;
mod tile;
#[cfg(target_arch = "x86_64")]
mod tile_pack;
mod tile_project;

pub(crate) use exp::Rate;
pub(crate) use pack::Staging;
pub(crate) use tile::{ShortRows, TILE_CLASSES, TileRule};
pub(crate) use tile_project::Projection as TileProjection;

use crate::csr::Rows;
use crate::element::Element;
use crate::numerics::Sum;

/// The type a row is computed in.
pub trait Float: Element<Compute = Self> {
    const NEG_INFINITY: Self;

    /// Whether the sum of finite values may overflow.
    const SUMS_OVERFLOW: bool;

    /// Runs a task compiled for the best instruction set of this machine.
    ///
    /// The detection and the call cost as much as a loop over a short row, so a task covers many
    /// rows.
    fn run<T: Task<Self>>(task: T) -> T::Output;

    /// The next smaller value.
    fn next_down(self) -> Self;

    /// The largest value that is not greater than `value`.
    ///
    /// For `x` of this type, `x > value` holds exactly when `x > floor_from(value)` does.
    fn floor_from(value: f64) -> Self;
}

/// What [`Float::run`] runs.
pub trait Task<F: Float> {
    type Output;

    /// Must be inlined, with everything on the way to a loop: only then are the loops compiled for
    /// the instruction set of the task. Closures with vectors in them are passed as arguments with
    /// `#[inline(always)]`, and never to `array::map` or iterator adapters: these are compiled
    /// without the instruction set, and each operation on vectors becomes a call.
    ///
    /// With debug assertions, the larger functions are left to the compiler: without optimisation,
    /// all temporaries of one function have their own places on the stack, which took 4 MB where a
    /// thread has 2.
    fn run(self, loops: impl Loops<F>) -> Self::Output;
}

/// The loops over a row, for one instruction set.
pub trait Loops<F: Float>: Copy {
    /// The maximum and, if `SUM`, the sum.
    fn scan<const SUM: bool>(self, row: &[F]) -> Scan<F>;

    /// Sum and number of the values above `threshold`. The values are below `+inf`.
    #[inline(always)]
    fn above(self, row: &[F], threshold: F) -> Above {
        self.weight_above(row, row, threshold)
    }

    /// Sum and number of the `weights` whose key is above `threshold`.
    fn weight_above(self, keys: &[F], weights: &[F], threshold: F) -> Above;

    /// The sum of `(x - centre)^2` over the values that are not `-inf`.
    #[inline(always)]
    fn squares(self, row: &[F], centre: f64) -> f64 {
        let mut sums = [0.0; MAX_LANES];
        for chunk in row.chunks(MAX_LANES) {
            for (sum, &x) in sums.iter_mut().zip(chunk) {
                let deviation = if x > F::NEG_INFINITY { x.to_f64() - centre } else { 0.0 };
                *sum += deviation * deviation;
            }
        }
        sums.iter().sum()
    }

    /// The largest value that is not greater than the mean of values with a finite sum.
    fn mean_floor(self, values: Above) -> F;

    /// The number of values above `threshold`.
    #[inline(always)]
    fn count_above(self, row: &[F], threshold: F) -> usize {
        row.iter().map(|&x| u32::from(x > threshold)).sum::<u32>() as usize
    }

    /// Writes `exp(x / T)`, up to a factor common to the row, for the values above the threshold
    /// and 0 for the others; returns the sum.
    fn exp_above(self, row: &[F], out: &mut [F], cut: Cut<F>, rate: Rate) -> f64;

    /// Writes the values above `threshold` and their columns to the front of the two buffers and
    /// returns their number. The buffers need room for them and [`SLACK`] more, which may be
    /// overwritten.
    fn pack(self, row: &[F], threshold: F, staging: &mut Staging, entries: Entries<'_, F>)
    -> usize;

    /// As [`Self::pack`], with the exponentials in place of the values; the number and the sum.
    fn pack_exp(
        self,
        row: &[F],
        cut: Cut<F>,
        rate: Rate,
        staging: &mut Staging,
        entries: Entries<'_, F>,
    ) -> (usize, f64);

    /// Multiplies every value by `factor`, and prefetches `next` meanwhile.
    fn scale(self, values: &mut [F], factor: f64, next: &[F]);

    /// Appends to `maxima` the largest value of each of several groups that partition the row:
    /// about an eighth as many as there are values.
    #[inline(always)]
    fn group_maxima(self, row: &[F], maxima: &mut Vec<F>) {
        for chunk in row.chunks(8 * MAX_LANES) {
            let mut max = [F::NEG_INFINITY; MAX_LANES];
            for part in chunk.chunks(MAX_LANES) {
                for (max, &x) in max.iter_mut().zip(part) {
                    *max = if x > *max { x } else { *max };
                }
            }
            maxima.extend_from_slice(&max[..chunk.len().min(MAX_LANES)]);
        }
    }

    /// The distributions of short rows; the number of vacuous ones. `None` if this type has no such
    /// path or if a row is invalid: the general path then says which.
    fn tile(self, rows: ShortRows<'_, F>, output: &mut Output<'_, F>) -> Option<usize>;
}

/// The number of lanes of the widest vector.
const MAX_LANES: usize = 16;

/// How many values past the end of a result vectors may overwrite.
pub(crate) const SLACK: usize = MAX_LANES;

/// A generous bound on the error of a mean in double precision, relative to the magnitude of the row.
/// A logit this close to a threshold that is measured from the mean counts as equal to it.
pub(crate) const ROUNDING: f64 = 1.0 / (1_u64 << 36) as f64;

/// Where rows go, one after the other.
#[derive(Debug)]
pub enum Output<'a, F> {
    /// Distributions with their zeros, and support sizes, or one of them: an empty slice is not wanted.
    Dense { out: &'a mut [F], sizes: &'a mut [u32] },
    /// Compressed rows, with room for all classes and [`SLACK`] more.
    Csr(Rows<'a, F>),
}

/// Buffers of equal length for columns and values.
#[derive(Debug)]
pub struct Entries<'a, F> {
    pub(crate) columns: &'a mut [u32],
    pub(crate) values: &'a mut [F],
}

/// Where a row is cut off: what lies above the threshold is kept.
#[derive(Clone, Copy, Debug)]
pub struct Cut<F> {
    pub(crate) threshold: F,
    /// The maximum of the row.
    pub(crate) max: F,
}

impl<F: Float> Cut<F> {
    /// The class of the maximum is always kept.
    pub(crate) fn keeping_best(threshold: F, max: F) -> Self {
        let second = max.next_down();
        Self { threshold: if threshold < second { threshold } else { second }, max }
    }
}

/// Maximum and sum of a row.
#[derive(Clone, Copy, Debug)]
pub struct Scan<F> {
    pub(crate) max: F,
    pub(crate) sum: Sum,
    /// Whether every value is finite. Otherwise `sum` means nothing, and `max` is right without NaN.
    pub(crate) finite: bool,
}

/// Sum and number of some values of a row.
#[derive(Clone, Copy, Debug)]
pub struct Above {
    pub(crate) sum: Sum,
    pub(crate) count: usize,
}
