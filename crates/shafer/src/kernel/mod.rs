//! The loops over a row that every transform is made of.
//!
//! `f32` rows, and through them the half types, run vectorised, with the instruction set chosen at
//! run time; `f64` rows run the plain loops of `double`, where accuracy comes first. Sums of logits
//! are taken in double precision in both cases, because the sign of `l_k - mean(l)` decides over a
//! class.

mod blockwise;
mod double;
mod gibbs;
mod pack;
#[cfg(target_arch = "x86_64")]
mod pick;
mod prefetch;
mod single;
mod stream;
mod tile;
mod vectors;

pub(crate) use blockwise::Desk;
pub(crate) use gibbs::Rate;
pub(crate) use prefetch::Next;
pub(crate) use stream::{Stream, Word};
pub(crate) use tile::{ShortRows, TILE_CLASSES, TileRule};

use crate::compressed::Entries;
use crate::element::Element;
use crate::numerics::Sum;

/// The type a row is computed in.
pub(crate) trait Float: Element<Compute = Self> + Word {
    const NEG_INFINITY: Self;

    /// Whether the sum of finite values may not be finite.
    const SUMS_OVERFLOW: bool;

    /// The loops, to be called from anywhere.
    const LOOPS: Self::Anywhere;

    type Anywhere: Loops<Self>;

    /// Runs a task with loops that become part of it: where rows are short, finding the instruction set
    /// and calling a function would take as long as the loop.
    fn run<T: Task<Self>>(task: T) -> T::Output;

    /// The next smaller value.
    fn next_down(self) -> Self;

    /// The largest value that is not greater than `value`.
    ///
    /// For `x` of this type, `x > value` holds exactly when `x > floor_from(value)` does.
    fn floor_from(value: f64) -> Self;
}

/// What is done with the loops of [`Float::run`].
pub(crate) trait Task<F: Float> {
    type Output;

    /// Must be inlined, with all that it calls on the way to a loop: only then do they share the
    /// instruction set.
    fn run(self, loops: impl Loops<F>) -> Self::Output;
}

/// The loops over a row, for an instruction set.
pub(crate) trait Loops<F: Float>: Copy {
    /// The same, but `scan` asks for every other cache line only: processors fetch them in pairs, and some have their
    /// hands full if both are asked for.
    fn sparing(self) -> Self {
        self
    }

    /// Maximum and sum.
    fn scan(self, row: &[F]) -> Scan<F>;

    /// Maximum only.
    fn max(self, row: &[F]) -> Max<F>;

    /// Whether every value is less than `+inf`; false for NaN.
    fn below_infinity(self, row: &[F]) -> bool;

    /// Sum and number of the values above `threshold`. The values are below `+inf`.
    #[inline(always)]
    fn above(self, row: &[F], threshold: F) -> Above {
        self.weight_above(row, row, threshold)
    }

    /// Sum of the `weights` whose key is above `threshold`, and their number.
    fn weight_above(self, keys: &[F], weights: &[F], threshold: F) -> Above;

    /// The largest value that is not greater than the mean of values of which the sum is finite.
    fn mean_floor(self, values: Above) -> F;

    /// The number of values above `threshold`.
    fn count_above(self, row: &[F], threshold: F) -> usize;

    /// The values above `threshold` and their columns, packed to the front of the two buffers, which must have room
    /// for them; the number of them. What comes after them there may be overwritten. What lies `ahead` elements
    /// later in memory is to be next.
    fn compact(
        self,
        row: &[F],
        threshold: F,
        columns: &mut [u32],
        values: &mut [F],
        ahead: usize,
    ) -> usize;

    /// `exp(x / T)`, up to a factor common to the row, for the values above the threshold, and 0 for
    /// the others; the sum of it.
    fn exp_above(self, row: &[F], out: &mut [F], cut: Cut<F>, rate: Rate, ahead: Ahead) -> f64;

    /// What `exp_above` writes for the values above the threshold, where `compact` would write these; their number,
    /// and the sum.
    fn compact_exp(
        self,
        row: &[F],
        cut: Cut<F>,
        rate: Rate,
        columns: &mut [u32],
        values: &mut [F],
        ahead: usize,
    ) -> (usize, f64);

    /// The same for rows of at least [`LONG`] classes, which pass over a desk. The sum is added in another order, and may
    /// differ in its last digits.
    fn compact_long(
        self,
        row: &[F],
        cut: Cut<F>,
        rate: Rate,
        desk: &mut Desk,
        columns: &mut [u32],
        values: &mut [F],
    ) -> (usize, f64);

    /// As `exp_above` for the first `count` values, all of them, in place. There must be [`SLACK`] more, which may be
    /// overwritten.
    fn exp_all(self, values: &mut [F], count: usize, max: F, rate: Rate) -> f64;

    /// Multiplies every value by `factor`, and meanwhile asks for what is next.
    fn scale(self, values: &mut [F], factor: f64, next: Option<Next<'_, F>>);

    /// Every value times `factor`, past the caches; meanwhile, asks for what is next.
    fn scale_to(
        self,
        values: &[F],
        factor: f64,
        out: &mut Stream<'_, F>,
        next: Option<Next<'_, F>>,
    );

    /// The largest value of each of several groups that partition the row, appended to `maxima`:
    /// about an eighth as many as there are values.
    fn group_maxima(self, row: &[F], maxima: &mut Vec<F>);

    /// The distributions of short rows; the number of vacuous ones. `None` where this type has no such path,
    /// or where a row is at fault: the general path then says which.
    fn tile(self, rows: ShortRows<'_, F>, out: &mut [F]) -> Option<usize>;

    /// The same in compressed form.
    fn tile_compressed(self, rows: ShortRows<'_, F>, entries: &mut Entries<'_, F>)
    -> Option<usize>;

    /// And only how many classes are kept.
    fn tile_sizes(self, rows: ShortRows<'_, F>, sizes: &mut [u32]) -> Option<usize>;
}

/// From so many classes on, rows are compressed block by block.
pub(crate) const LONG: usize = 256;

/// No instruction set has more lanes.
const MAX_LANES: usize = 16;

/// How many values past the end of what is kept vectors may overwrite.
pub(crate) const SLACK: usize = MAX_LANES;

/// How many elements later in memory what is next lies, to be read and to be written.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Ahead {
    pub(crate) read: usize,
    pub(crate) write: usize,
}

/// Where a row is cut off: what lies above the threshold is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cut<F> {
    pub(crate) threshold: F,
    /// The maximum of the row.
    pub(crate) max: F,
}

/// What one read of a row tells.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scan<F> {
    pub(crate) max: F,
    pub(crate) sum: Sum,
    /// Whether every value is finite; `max` and `sum` mean nothing otherwise.
    pub(crate) finite: bool,
}

/// The largest value of a row.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Max<F> {
    pub(crate) max: F,
    /// False only if some value may not be finite.
    pub(crate) finite: bool,
}

/// The part of a row above a threshold.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Above {
    pub(crate) sum: Sum,
    pub(crate) count: usize,
}
