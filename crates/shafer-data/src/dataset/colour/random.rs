//! Random numbers that are a function of a seed, an epoch and an index.

use std::convert::Infallible;

use rand_core::{Rng, TryRng};

/// The increment of `SplitMix64`: 2^64 divided by the golden ratio.
const GAMMA: u64 = 0x9e37_79b9_7f4a_7c15;

/// The `SplitMix64` generator (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*,
/// 2014).
pub(crate) struct SplitMix64(u64);

impl SplitMix64 {
    /// The generator of these keys. Every key changes all numbers.
    pub(crate) fn of(keys: &[u64]) -> Self {
        let state = keys.iter().fold(0, |state: u64, &key| mix(state.wrapping_add(GAMMA) ^ key));
        Self(state)
    }
}

fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl TryRng for SplitMix64 {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.try_next_u64().map(|n| (n >> 32) as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.0 = self.0.wrapping_add(GAMMA);
        Ok(mix(self.0))
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        for chunk in bytes.chunks_mut(8) {
            let random = self.try_next_u64()?.to_le_bytes();
            chunk.copy_from_slice(&random[..chunk.len()]);
        }
        Ok(())
    }
}

/// A number in [0, 1), a multiple of 2^-53.
pub(crate) fn uniform<R: Rng + ?Sized>(rng: &mut R) -> f64 {
    (rng.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first outputs of the reference implementation for the seed 1234567.
    #[test]
    fn known_answers() {
        let mut rng = SplitMix64(1_234_567);
        let found: Vec<u64> = (0..5).map(|_| rng.next_u64()).collect();
        let expected = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn every_key_counts() {
        let first = |keys: &[u64]| SplitMix64::of(keys).next_u64();
        let mut found: Vec<u64> = Vec::new();
        for keys in [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [0, 1, 1], [1, 0, 1]] {
            found.push(first(&keys));
        }
        let count = found.len();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), count);
    }

    /// Neighbouring keys: the mean of 10,000 first numbers, whose standard deviation is 0.0029.
    #[test]
    fn neighbouring_keys_are_independent() {
        let mean = (0..10_000).map(|i| uniform(&mut SplitMix64::of(&[7, 3, i]))).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 5.0 * 0.0029, "{mean}");
    }
}
