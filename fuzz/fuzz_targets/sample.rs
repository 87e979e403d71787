//! Sampling from arbitrary rows with arbitrary generators.
#![no_main]

use std::convert::Infallible;

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use rand_core::TryRng;
use shafer::{Sampler, sample_csr, sample_dense};
use shafer_fuzz::laws::Bits;
use shafer_fuzz::{Number, Type, with_type};

#[derive(Arbitrary, Debug)]
struct Input {
    of: Type,
    weights: Vec<Number>,
    /// Whether to replace negative and non-finite values.
    clean: bool,
    indices: Vec<u32>,
    draws: Vec<u64>,
}

/// A random number generator that replays the input.
struct Stuck(u64);

impl TryRng for Stuck {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(self.0 as u32)
    }

    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(self.0)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        bytes.fill(self.0 as u8);
        Ok(())
    }
}

fn check<E: Bits>(input: &Input) {
    let clean = |x: E| match x.to_f64() {
        x if input.clean && x.is_finite() => E::from_f64(x.abs()),
        _ if input.clean => E::default(),
        _ => x,
    };
    let row: Vec<E> = input.weights.iter().map(|x| clean(x.get())).collect();
    let wide: Vec<f64> = row.iter().map(|x| x.to_f64()).collect();
    let valid =
        wide.iter().all(|x| x.is_finite() && *x >= 0.0) && wide.iter().any(|&weight| weight > 0.0);
    let sampler = Sampler::dense(&row);
    assert_eq!(sampler.is_ok(), valid, "{sampler:?}");
    let indices: Vec<u32> = (0..row.len() as u32).map(|k| 3 * k).collect();
    let compressed = Sampler::csr(&indices, &row);
    for draw in input.draws.iter().copied().chain([0, u64::MAX, u64::MAX << 11]) {
        let class = sample_dense(&row, &mut Stuck(draw));
        assert_eq!(class.is_ok(), valid);
        let again = sample_csr(&indices, &row, &mut Stuck(draw));
        assert_eq!(class.clone().map(|class| 3 * class).ok(), again.ok());
        if let (Ok(class), Ok(sampler), Ok(compressed)) = (class, &sampler, &compressed) {
            let drawn = sampler.sample(&mut Stuck(draw));
            assert!(wide[class] > 0.0 && wide[drawn] > 0.0, "{class} or {drawn} of {wide:?}");
            assert_eq!(compressed.sample(&mut Stuck(draw)), 3 * drawn);
        }
        let fits = input.indices.len() == row.len()
            && input.indices.windows(2).all(|pair| pair[0] < pair[1]);
        let any = sample_csr(&input.indices, &row, &mut Stuck(draw));
        assert_eq!(any.is_ok(), valid && fits, "{any:?}");
    }
}

fuzz_target!(|input: Input| with_type!(input.of, check(&input)));
