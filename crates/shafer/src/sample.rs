//! Drawing classes with the caller's generator.

use rand_core::Rng;

use crate::csr::CsrRows;
use crate::error::check_length;
use crate::normalise::{check_indices, checked};
use crate::{Element, Error, Result};

/// Draws a class from a dense row: class `k` with probability `w_k / sum_j w_j`.
///
/// The weights must be finite, not negative, and not all zero; they need not sum to 1. A draw uses
/// one `u64` of the generator, of which 53 bits count; a class of weight zero is never drawn,
/// whatever the generator returns. For many draws from one row see [`Sampler`].
///
/// ```
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut rng = StdRng::seed_from_u64(7);
/// let row = [0.25_f32, 0.0, 0.75];
/// let mut counts = [0; 3];
/// for _ in 0..1000 {
///     counts[shafer::sample_dense(&row, &mut rng)?] += 1;
/// }
/// assert!((200..300).contains(&counts[0]));
/// assert_eq!(counts[1], 0);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn sample_dense<E: Element, R: Rng + ?Sized>(row: &[E], rng: &mut R) -> Result<usize> {
    Ok(Weights::new(row, 0)?.draw(rng))
}

/// Draws a class from a compressed row: class `indices[i]` with probability
/// `values[i] / sum_j values[j]`.
///
/// The indices must increase strictly; the values follow the rules of [`sample_dense`], and from
/// the same generator state the two draw the same class of the same row.
///
/// ```
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut rng = StdRng::seed_from_u64(7);
/// let class = shafer::sample_csr(&[3, 40, 500], &[0.5, 0.0, 0.5], &mut rng)?;
/// assert!(class == 3 || class == 500);
/// # Ok::<(), shafer::Error>(())
/// ```
pub fn sample_csr<E: Element, R: Rng + ?Sized>(
    indices: &[u32],
    values: &[E],
    rng: &mut R,
) -> Result<usize> {
    check_indices(indices, values.len(), 0)?;
    Ok(indices[Weights::new(values, 0)?.draw(rng)] as usize)
}

impl<E: Element> CsrRows<E> {
    /// Draws a class from each row, as [`sample_csr`] would one after the other. Nothing is
    /// allocated.
    ///
    /// ```
    /// use rand::{SeedableRng, rngs::StdRng};
    /// use shafer::CsrRows;
    ///
    /// let rows = CsrRows::from_parts(9, vec![0, 1, 3], vec![4, 0, 8], vec![1.0, 0.5, 0.5])?;
    /// let mut classes = [0; 2];
    /// rows.sample_into(&mut StdRng::seed_from_u64(7), &mut classes)?;
    /// assert_eq!(classes[0], 4);
    /// assert!(classes[1] == 0 || classes[1] == 8);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn sample_into<R: Rng + ?Sized>(&self, rng: &mut R, out: &mut [u32]) -> Result<()> {
        check_length("output", self.rows(), out.len())?;
        for (row, ((indices, values), out)) in self.iter().zip(out).enumerate() {
            *out = indices[Weights::new(values, row)?.draw(rng)];
        }
        Ok(())
    }
}

/// Draws from one row in constant time a draw, after a preparation linear in the row's length.
///
/// This is Vose's alias table: as many slots of equal probability as the row has classes of
/// positive weight; each slot belongs to one class up to a threshold and to a second one beyond
/// it. A draw uses one `u64` of the generator. The probabilities are those of [`sample_dense`], but
/// the same random numbers draw other classes. With the feature `rand`, a sampler is a
/// `rand::distr::Distribution<usize>`.
///
/// ```
/// use rand::{SeedableRng, rngs::StdRng};
/// use shafer::Sampler;
///
/// let mut rng = StdRng::seed_from_u64(7);
/// let sampler = Sampler::dense(&[1.0, 0.0, 3.0])?;
/// let mut counts = [0; 3];
/// for _ in 0..1000 {
///     counts[sampler.sample(&mut rng)] += 1;
/// }
/// assert!((200..300).contains(&counts[0]));
/// assert_eq!(counts[1], 0);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Sampler {
    /// Never empty.
    slots: Vec<Slot>,
}

#[derive(Clone, Debug, PartialEq)]
struct Slot {
    /// The part of the slot that is the class's own, in units of 2^-64.
    threshold: u64,
    class: usize,
    /// The class that the rest of the slot belongs to: its own again if the slot is full.
    alias: usize,
}

impl Sampler {
    /// Prepares draws from a dense row, under the rules of [`sample_dense`].
    ///
    /// ```
    /// use shafer::Sampler;
    ///
    /// assert!(Sampler::dense(&[2.0, 1.0, 1.0]).is_ok());
    /// assert!(Sampler::dense(&[0.0, 0.0]).is_err());
    /// ```
    pub fn dense<E: Element>(row: &[E]) -> Result<Self> {
        let weights = Weights::new(row, 0)?;
        Ok(Self::new(weights.iter().enumerate(), weights.sum))
    }

    /// Prepares draws from a compressed row, under the rules of [`sample_csr`].
    ///
    /// ```
    /// use shafer::Sampler;
    ///
    /// assert!(Sampler::csr(&[3, 40], &[0.5, 0.5]).is_ok());
    /// assert!(Sampler::csr(&[40, 3], &[0.5, 0.5]).is_err());
    /// ```
    pub fn csr<E: Element>(indices: &[u32], values: &[E]) -> Result<Self> {
        check_indices(indices, values.len(), 0)?;
        let weights = Weights::new(values, 0)?;
        let classes = indices.iter().map(|&index| index as usize);
        Ok(Self::new(classes.zip(weights.iter()), weights.sum))
    }

    fn new(row: impl Iterator<Item = (usize, f64)>, sum: f64) -> Self {
        // Without the zeros in the table no rounding can draw one.
        let (classes, weights): (Vec<usize>, Vec<f64>) =
            row.filter(|&(_, weight)| weight > 0.0).unzip();
        // In units of one slot, so that their mean is 1.
        let mut parts: Vec<f64> =
            weights.iter().map(|weight| weight / sum * weights.len() as f64).collect();
        let mut slots: Vec<Slot> = classes
            .iter()
            .map(|&class| Slot { threshold: u64::MAX, class, alias: class })
            .collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..parts.len()).partition(|&i| parts[i] < 1.0);
        while let (Some(&from), Some(to)) = (large.last(), small.pop()) {
            // A cast of a float saturates, and 2^64 is not reached: the part is below 1.
            slots[to].threshold = (parts[to] * 2.0_f64.powi(64)) as u64;
            slots[to].alias = slots[from].class;
            parts[from] = (parts[from] + parts[to]) - 1.0;
            if parts[from] < 1.0 {
                large.pop();
                small.push(from);
            }
        }
        // What is left on either stack is a full slot, up to rounding: it keeps itself as alias.
        Self { slots }
    }

    /// Draws a class.
    ///
    /// ```
    /// use rand::{SeedableRng, rngs::StdRng};
    /// use shafer::Sampler;
    ///
    /// let sampler = Sampler::csr(&[3, 40], &[0.0_f32, 1.0])?;
    /// assert_eq!(sampler.sample(&mut StdRng::seed_from_u64(7)), 40);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> usize {
        // The integer part of u * n picks the slot, and what is left over is still uniform in it.
        let product = u128::from(rng.next_u64()) * self.slots.len() as u128;
        let slot = &self.slots[(product >> 64) as usize];
        if (product as u64) < slot.threshold { slot.class } else { slot.alias }
    }
}

#[cfg(feature = "rand")]
impl rand::distr::Distribution<usize> for Sampler {
    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> usize {
        self.sample(rng)
    }
}

/// Checked weights, scaled so that their sum neither overflows nor is subnormal.
struct Weights<'a, E> {
    row: &'a [E],
    scale: f64,
    sum: f64,
}

impl<'a, E: Element> Weights<'a, E> {
    fn new(row: &'a [E], number: usize) -> Result<Self> {
        if row.is_empty() {
            return Err(Error::Empty { what: "row" });
        }
        let mut sum = 0.0;
        for (column, &weight) in row.iter().enumerate() {
            sum += checked(weight, number, column)?;
        }
        // Powers of two, which keep the ratios. No row has 2^64 entries.
        let scale = if sum == 0.0 {
            let rule = "at least one weight must be positive";
            return Err(Error::Row { row: number, rule });
        } else if sum == f64::INFINITY {
            2.0_f64.powi(-64)
        } else if sum < f64::MIN_POSITIVE * 2.0_f64.powi(64) {
            2.0_f64.powi(256)
        } else {
            return Ok(Self { row, scale: 1.0, sum });
        };
        let weights = Self { row, scale, sum };
        let sum = weights.iter().sum();
        Ok(Self { sum, ..weights })
    }

    fn iter(&self) -> impl Iterator<Item = f64> {
        self.row.iter().map(|weight| (weight.to_f64() + 0.0) * self.scale)
    }

    /// The position of the first weight whose cumulative sum exceeds a uniform part of the sum.
    fn draw<R: Rng + ?Sized>(&self, rng: &mut R) -> usize {
        let uniform = (rng.next_u64() >> 11) as f64 * 2.0_f64.powi(-53);
        let mark = uniform * self.sum;
        let mut total = 0.0;
        let mut last = 0;
        for (k, weight) in self.iter().enumerate() {
            if weight > 0.0 {
                total += weight;
                last = k;
                if mark < total {
                    break;
                }
            }
        }
        // Rounding can lift the mark to the sum itself: then it is the last class with any weight.
        last
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::convert::Infallible;

    use proptest::prelude::*;
    use rand_core::TryRng;

    use super::*;

    /// A generator from a function of how many numbers it has returned.
    struct Generator<F>(u64, F);

    impl<F: FnMut(u64) -> u64> TryRng for Generator<F> {
        type Error = Infallible;

        fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
            unreachable!("a draw is one u64")
        }

        fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
            self.0 += 1;
            Ok((self.1)(self.0))
        }

        fn try_fill_bytes(&mut self, _: &mut [u8]) -> std::result::Result<(), Infallible> {
            unreachable!("a draw is one u64")
        }
    }

    fn stuck(at: u64) -> Generator<impl FnMut(u64) -> u64> {
        Generator(0, move |_| at)
    }

    /// Steele, Lea and Flood's `SplitMix64`, fixed here so that the pinned values never move.
    fn splitmix64(seed: u64) -> Generator<impl FnMut(u64) -> u64> {
        Generator(0, move |count: u64| {
            let mut z = seed.wrapping_add(count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^ (z >> 31)
        })
    }

    const ROW: [f64; 7] = [0.0, 0.1, 0.0, 0.4, 0.3, 0.2, 0.0];

    #[test]
    fn the_generator_is_splitmix64() {
        let mut rng = splitmix64(1_234_567);
        assert_eq!(rng.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(rng.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn stuck_generators_draw_the_ends_of_the_support() {
        assert_eq!(sample_dense(&ROW, &mut stuck(0)).unwrap(), 1);
        assert_eq!(sample_dense(&ROW, &mut stuck(u64::MAX)).unwrap(), 5);
        let indices = [2, 3, 5, 7, 11, 13, 17];
        assert_eq!(sample_csr(&indices, &ROW, &mut stuck(0)).unwrap(), 3);
        assert_eq!(sample_csr(&indices, &ROW, &mut stuck(u64::MAX)).unwrap(), 13);
    }

    #[test]
    fn pinned_draws() {
        let mut rng = splitmix64(42);
        let dense: Vec<usize> = (0..16).map(|_| sample_dense(&ROW, &mut rng).unwrap()).collect();
        assert_eq!(dense, [4, 3, 3, 3, 1, 5, 3, 5, 3, 4, 3, 3, 4, 4, 4, 3]);
        let sampler = Sampler::dense(&ROW).unwrap();
        let mut rng = splitmix64(42);
        let alias: Vec<usize> = (0..16).map(|_| sampler.sample(&mut rng)).collect();
        assert_eq!(alias, [3, 4, 3, 3, 1, 5, 4, 5, 3, 3, 4, 3, 4, 4, 3, 4]);
        assert_eq!(rng.0, 16, "one number a draw");
    }

    #[test]
    fn frequencies_are_the_probabilities() {
        const DRAWS: u32 = 200_000;
        let sampler = Sampler::dense(&ROW).unwrap();
        let mut rng = splitmix64(2020);
        let mut counts = [[0_u32; ROW.len()]; 2];
        for _ in 0..DRAWS {
            counts[0][sample_dense(&ROW, &mut rng).unwrap()] += 1;
            counts[1][sampler.sample(&mut rng)] += 1;
        }
        for counts in counts {
            for (&count, p) in counts.iter().zip(ROW) {
                // Four standard deviations; the seed is fixed, so this cannot fail by chance.
                let slack = 4.0 * (p * (1.0 - p) / f64::from(DRAWS)).sqrt();
                assert!((f64::from(count) / f64::from(DRAWS) - p).abs() <= slack, "{counts:?}");
            }
        }
    }

    #[test]
    fn the_table_holds_each_probability() {
        let sampler = Sampler::dense(&ROW).unwrap();
        let mut found = [0.0; ROW.len()];
        for slot in &sampler.slots {
            let own = slot.threshold as f64 / 2.0_f64.powi(64);
            found[slot.class] += own / sampler.slots.len() as f64;
            found[slot.alias] += (1.0 - own) / sampler.slots.len() as f64;
        }
        for (found, p) in found.iter().zip(ROW) {
            assert!((found - p).abs() < 1e-15, "{found} {p}");
        }
    }

    #[test]
    fn extreme_scales_keep_their_ratios() {
        for unit in [f64::from_bits(1), 1.0, f64::MAX / 4.0] {
            let row = [unit, 0.0, 3.0 * unit, 4.0 * unit];
            let sampler = Sampler::dense(&row).unwrap();
            let mut rng = splitmix64(1);
            let (mut dense, mut alias) = ([0_u32; 4], [0_u32; 4]);
            for _ in 0..8000 {
                dense[sample_dense(&row, &mut rng).unwrap()] += 1;
                alias[sampler.sample(&mut rng)] += 1;
            }
            for counts in [dense, alias] {
                assert!(counts[0].abs_diff(1000) < 120, "{counts:?}");
                assert_eq!(counts[1], 0);
                assert!(counts[2].abs_diff(3000) < 180, "{counts:?}");
            }
        }
    }

    #[test]
    fn broken_rows_are_refused() {
        let mut rng = stuck(0);
        let empty: [f32; 0] = [];
        assert_eq!(sample_dense(&empty, &mut rng), Err(Error::Empty { what: "row" }));
        assert!(matches!(sample_dense(&[0.0, -0.0], &mut rng), Err(Error::Row { .. })));
        assert!(matches!(sample_dense(&[-1.0], &mut rng), Err(Error::Value { .. })));
        let repeated = sample_csr(&[1, 1], &[0.5, 0.5], &mut rng);
        assert!(matches!(repeated, Err(Error::Value { what: "index", column: 1, .. })));
        assert!(matches!(Sampler::csr(&[1], &[0.5, 0.5]), Err(Error::Length { .. })));
        assert_eq!(rng.0, 0, "a refused row uses no randomness");
    }

    proptest! {
        #[test]
        fn zeros_are_never_drawn(
            row in prop::collection::vec(
                prop_oneof![Just(0.0), 0.0..1.0, Just(f64::MAX), Just(f64::from_bits(1))],
                1..20,
            ),
            random: u64,
        ) {
            prop_assume!(row.iter().any(|&weight| weight > 0.0));
            let sampler = Sampler::dense(&row).unwrap();
            for bits in [0, 1, random, u64::MAX - 1, u64::MAX] {
                prop_assert!(row[sample_dense(&row, &mut stuck(bits)).unwrap()] > 0.0);
                prop_assert!(row[sampler.sample(&mut stuck(bits))] > 0.0);
            }
        }

        #[test]
        fn compressed_rows_draw_as_dense_ones(
            row in prop::collection::vec(prop_oneof![Just(0.0), 0.01..1.0], 1..20),
            random: u64,
        ) {
            prop_assume!(row.iter().any(|&weight| weight > 0.0));
            let support: Vec<usize> = (0..row.len()).filter(|&k| row[k] > 0.0).collect();
            let indices: Vec<u32> = support.iter().map(|&k| k as u32).collect();
            let values: Vec<f64> = support.iter().map(|&k| row[k]).collect();
            let class = sample_csr(&indices, &values, &mut stuck(random)).unwrap();
            prop_assert_eq!(class, sample_dense(&row, &mut stuck(random)).unwrap());
            prop_assert_eq!(
                Sampler::csr(&indices, &values).unwrap(),
                Sampler::dense(&row).unwrap()
            );
        }
    }
}
