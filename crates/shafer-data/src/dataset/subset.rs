//! Random permutations and subsets, drawn from a given generator.

use std::collections::BTreeMap;

use rand_core::Rng;

use crate::{Error, Result};

/// Shuffles items uniformly. The same state of the generator gives the same order on every machine.
///
/// ```
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let mut items = [1, 2, 3, 4, 5];
/// shafer_data::dataset::shuffle(&mut items, &mut StdRng::seed_from_u64(7));
/// assert_ne!(items, [1, 2, 3, 4, 5]);
/// items.sort();
/// assert_eq!(items, [1, 2, 3, 4, 5]);
/// ```
pub fn shuffle<T, R: Rng + ?Sized>(items: &mut [T], rng: &mut R) {
    for last in (1..items.len()).rev() {
        items.swap(last, below(last + 1, rng));
    }
}

/// A stratified random subset: `fraction` of the images of each class, rounded to the nearest number,
/// and at least one. Returns their indices in increasing order.
///
/// ```
/// use rand::{SeedableRng, rngs::StdRng};
///
/// let labels = [0, 1, 0, 1, 0, 1, 0, 1, 0, 0];
/// let half = shafer_data::dataset::stratified(&labels, 0.5, &mut StdRng::seed_from_u64(7))?;
/// let ones = half.iter().filter(|&&i| labels[i] == 1).count();
/// assert_eq!((half.len(), ones), (5, 2));
/// # Ok::<(), shafer_data::Error>(())
/// ```
pub fn stratified<L: Copy + Ord, R: Rng + ?Sized>(
    labels: &[L],
    fraction: f64,
    rng: &mut R,
) -> Result<Vec<usize>> {
    if !(fraction > 0.0 && fraction <= 1.0) {
        let problem = format!("is {fraction}, but must be greater than 0 and at most 1");
        return Err(Error::request("fraction", problem));
    }
    let mut classes: BTreeMap<L, Vec<usize>> = BTreeMap::new();
    for (index, &label) in labels.iter().enumerate() {
        classes.entry(label).or_default().push(index);
    }
    let mut kept = Vec::new();
    for mut members in classes.into_values() {
        let wanted = ((members.len() as f64 * fraction).round() as usize).max(1);
        shuffle(&mut members, rng);
        kept.extend_from_slice(&members[..wanted]);
    }
    kept.sort_unstable();
    Ok(kept)
}

/// A uniform integer below `n`: the high half of a product, with rejection of the biased cases (Lemire's
/// method).
pub(crate) fn below<R: Rng + ?Sized>(n: usize, rng: &mut R) -> usize {
    let n = n as u64;
    loop {
        let product = u128::from(rng.next_u64()) * u128::from(n);
        if product as u64 >= n.wrapping_neg() % n {
            return (product >> 64) as usize;
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use rand::SeedableRng as _;
    use rand::rngs::StdRng;

    use super::*;

    /// Each of the 24 permutations of four items is expected 1,000 times. 186 is 6 standard deviations.
    #[test]
    fn orders_are_equally_likely() {
        let mut rng = StdRng::seed_from_u64(1);
        let mut counts = std::collections::HashMap::new();
        for _ in 0..24_000 {
            let mut items = [0, 1, 2, 3];
            shuffle(&mut items, &mut rng);
            *counts.entry(items).or_insert(0_i32) += 1;
        }
        assert_eq!(counts.len(), 24);
        assert!(counts.values().all(|&n| (n - 1000).abs() < 186), "{counts:?}");
    }

    /// A generator that returns given numbers.
    struct Given(Vec<u64>);

    impl rand_core::TryRng for Given {
        type Error = std::convert::Infallible;

        fn try_next_u32(&mut self) -> std::result::Result<u32, Self::Error> {
            self.try_next_u64().map(|n| n as u32)
        }

        fn try_next_u64(&mut self) -> std::result::Result<u64, Self::Error> {
            Ok(self.0.remove(0))
        }

        fn try_fill_bytes(&mut self, _: &mut [u8]) -> std::result::Result<(), Self::Error> {
            unreachable!("not needed")
        }
    }

    /// The permutation of given random numbers is pinned: seeded results depend on it.
    #[test]
    fn the_order_is_that_of_the_generator() {
        // The indices below 4, 3 and 2 are the high halves of the products.
        let mut items = ['a', 'b', 'c', 'd'];
        shuffle(&mut items, &mut Given(vec![1 << 62, u64::MAX, 0]));
        // Swaps d and b, then c and c, then d and a.
        assert_eq!(items, ['d', 'a', 'c', 'b']);
        // 2^64 mod 3 is 1: a product whose low half is 0 is rejected.
        assert_eq!(below(3, &mut Given(vec![0, u64::MAX])), 2);
    }

    #[test]
    fn classes_keep_their_share() {
        let labels: Vec<u8> =
            (0..1000).map(|i| if i % 10 == 0 { 3 } else { 200 }).chain([9]).collect();
        for (fraction, expected) in [(0.1, [10, 90, 1]), (0.75, [75, 675, 1]), (1.0, [100, 900, 1])]
        {
            let part = stratified(&labels, fraction, &mut StdRng::seed_from_u64(5)).unwrap();
            let count = |class| part.iter().filter(|&&i| labels[i] == class).count();
            assert_eq!([count(3), count(200), count(9)], expected);
            assert!(part.is_sorted_by(|a, b| a < b));
        }
        let a = stratified(&labels, 0.5, &mut StdRng::seed_from_u64(1)).unwrap();
        let b = stratified(&labels, 0.5, &mut StdRng::seed_from_u64(2)).unwrap();
        assert_ne!(a, b);
        for bad in [0.0, -0.5, 1.5, f64::NAN, f64::INFINITY] {
            let error = stratified(&labels, bad, &mut StdRng::seed_from_u64(1)).unwrap_err();
            let expected = format!("fraction: is {bad}, but must be greater than 0 and at most 1");
            assert_eq!(error.to_string(), expected);
        }
        assert!(stratified::<u8, _>(&[], 0.5, &mut StdRng::seed_from_u64(1)).unwrap().is_empty());
    }
}
