//! Random numbers as a function of seed, purpose and position.
//!
//! The generator is Philox4x32-10 (Salmon, Moraes, Dror and Shaw, *Parallel random numbers: as easy
//! as 1, 2, 3*, SC 2011), which maps a key and a counter to four words and has no other state. The order of
//! epoch 7 and the noise of iteration 1,234 are therefore the same in a resumed training, which has no
//! generator to save.

/// The purpose of a stream of random numbers. Streams of different purposes are independent.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Purpose {
    /// The initial values of a parameter.
    Parameters = 0,
    /// The order of the examples in an epoch.
    Order = 1,
    /// The Gumbel noise of an iteration.
    Noise = 2,
    /// Samples that a recurrent decoder draws from its own predictions in an iteration.
    Feedback = 3,
    /// Rotation and scaling of the examples of an iteration.
    Augmentation = 4,
    /// A sampled path of a prediction.
    Path = 5,
    /// The encodings of an iteration that become codes of a live codebook.
    Codes = 6,
    /// The code of a position of a sampled grid.
    Sample = 8,
}

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    key: [u32; 2],
    counter: [u32; 4],
    block: [u32; 4],
    used: usize,
}

impl Random {
    /// The stream of a purpose at a position: a layer, an epoch or an iteration.
    pub(crate) fn new(seed: u64, purpose: Purpose, position: u64) -> Self {
        Self {
            key: halves(seed),
            counter: [0, halves(position)[0], halves(position)[1], purpose as u32],
            block: [0; 4],
            used: 4,
        }
    }

    pub(crate) fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.block = philox(self.key, self.counter);
            self.counter[0] = self.counter[0].wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.block[self.used - 1]
    }

    /// Uniform on the open interval (0, 1).
    pub(crate) fn uniform(&mut self) -> f32 {
        ((self.next_u32() >> 9) as f32 + 0.5) * (1.0 / (1_u32 << 23) as f32)
    }

    /// From the standard Gumbel distribution.
    pub(crate) fn gumbel(&mut self) -> f32 {
        -(-self.uniform().ln()).ln()
    }

    /// Two independent numbers from the standard normal distribution (Box and Muller's method).
    pub(crate) fn normals(&mut self) -> [f32; 2] {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        let (sin, cos) = (std::f32::consts::TAU * self.uniform()).sin_cos();
        [radius * cos, radius * sin]
    }

    /// Uniform on `0..bound`, without bias (Lemire's method).
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        loop {
            let product = u64::from(self.next_u32()) * u64::from(bound);
            let [low, high] = halves(product);
            if low >= bound.wrapping_neg() % bound {
                return high;
            }
        }
    }

    /// The numbers `0..n` in a random order.
    pub(crate) fn permutation(&mut self, n: u32) -> Vec<u32> {
        let mut order: Vec<u32> = (0..n).collect();
        for last in (1..n).rev() {
            order.swap(last as usize, self.below(last + 1) as usize);
        }
        order
    }
}

/// The low and the high 32 bits.
fn halves(x: u64) -> [u32; 2] {
    [x as u32, (x >> 32) as u32]
}

fn philox(mut key: [u32; 2], mut counter: [u32; 4]) -> [u32; 4] {
    for _ in 0..10 {
        let [low0, high0] = halves(u64::from(counter[0]) * 0xd251_1f53);
        let [low1, high1] = halves(u64::from(counter[2]) * 0xcd9e_8d57);
        counter = [high1 ^ counter[1] ^ key[0], low1, high0 ^ counter[3] ^ key[1], low0];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers that the authors publish with their library.
    #[test]
    fn known_answers() {
        assert_eq!(philox([0; 2], [0; 4]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 2], [u32::MAX; 4]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd],
        );
        assert_eq!(
            philox(
                [0xa409_3822, 0x299f_31d0],
                [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            ),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1],
        );
    }

    #[test]
    fn streams_differ_by_seed_purpose_and_position() {
        let first = |seed, purpose, position| Random::new(seed, purpose, position).next_u32();
        let mut words = vec![
            first(0, Purpose::Parameters, 0),
            first(1, Purpose::Parameters, 0),
            first(1 << 40, Purpose::Parameters, 0),
            first(0, Purpose::Order, 0),
            first(0, Purpose::Noise, 0),
            first(0, Purpose::Noise, 1),
            first(0, Purpose::Noise, 1 << 40),
        ];
        words.sort_unstable();
        words.dedup();
        assert_eq!(words.len(), 7);
    }

    #[test]
    fn uniform_numbers_fill_the_open_interval_evenly() {
        let mut random = Random::new(3, Purpose::Parameters, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| f64::from(random.uniform())).collect();
        assert!(draws.iter().all(|&u| 0.0 < u && u < 1.0));
        let mean = draws.iter().sum::<f64>() / 1e5;
        let square = draws.iter().map(|u| u * u).sum::<f64>() / 1e5;
        assert!((mean - 0.5).abs() < 0.005, "{mean}");
        assert!((square - 1.0 / 3.0).abs() < 0.005, "{square}");
    }

    /// The standard Gumbel distribution has mean 0.5772 and variance pi^2 / 6.
    #[test]
    fn gumbel_numbers_have_the_moments_of_their_distribution() {
        let mut random = Random::new(4, Purpose::Noise, 0);
        let draws: Vec<f64> = (0..100_000).map(|_| f64::from(random.gumbel())).collect();
        assert!(draws.iter().all(|g| g.is_finite()));
        let mean = draws.iter().sum::<f64>() / 1e5;
        let variance = draws.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / 1e5;
        assert!((mean - 0.5772).abs() < 0.02, "{mean}");
        assert!((variance - std::f64::consts::PI.powi(2) / 6.0).abs() < 0.05, "{variance}");
    }

    /// Means 0, variances 1, and no correlation.
    #[test]
    fn normal_numbers_have_the_moments_of_their_distribution() {
        let mut random = Random::new(6, Purpose::Path, 0);
        let mut sums = [0.0; 5];
        for _ in 0..100_000 {
            let [a, b] = random.normals().map(f64::from);
            for (sum, x) in sums.iter_mut().zip([a, b, a * a, b * b, a * b]) {
                *sum += x / 1e5;
            }
        }
        for (found, expected) in sums.into_iter().zip([0.0, 0.0, 1.0, 1.0, 0.0]) {
            assert!((found - expected).abs() < 0.02, "{sums:?}");
        }
    }

    #[test]
    fn permutations_are_complete_and_uniform() {
        let mut order = Random::new(5, Purpose::Order, 0).permutation(1000);
        order.sort_unstable();
        assert!(order.iter().copied().eq(0..1000));
        // Where 0 ends up, over many epochs: each of 4 places about equally often.
        let mut places = [0; 4];
        for epoch in 0..4000 {
            let order = Random::new(5, Purpose::Order, epoch).permutation(4);
            places[order.iter().position(|&i| i == 0).unwrap_or(0)] += 1;
        }
        assert!(places.iter().all(|&count| (900..1100).contains(&count)), "{places:?}");
    }
}
