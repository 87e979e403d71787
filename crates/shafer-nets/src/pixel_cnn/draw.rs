//! From the logits of a position to a code.

use std::borrow::Cow;
use std::convert::Infallible;

use rand_core::TryRng;
use shafer::{CsrRows, Logits, Method, Threads, sample_csr};

use crate::random::{Purpose, Random};
use crate::{Error, Result};

/// How codes are drawn.
///
/// The random number of a position is a function of the seed, the number of its image and the position:
/// an image has the same codes in any batch, on any number of threads.
#[derive(Clone, Copy, Debug)]
pub struct Sampling<'a> {
    /// From logits to the distribution of a position.
    pub method: Method,
    /// The seed of all images.
    pub seed: u64,
    /// The number of the first image of the batch; the others follow.
    pub first_image: u32,
    /// For each code whether it takes part; all do if this is `None`. The others have probability 0, as if
    /// their logits were minus infinity.
    pub mask: Option<&'a [bool]>,
}

impl Sampling<'_> {
    /// Rows of logits without the codes that take no part.
    fn masked<'l>(&self, logits: &'l [f32], codes: usize) -> Result<Cow<'l, [f32]>> {
        let Some(mask) = self.mask else { return Ok(Cow::Borrowed(logits)) };
        if mask.len() != codes || !mask.contains(&true) {
            let problem = format!(
                "must have {codes} values, at least one of them true, but has {}, of which {} are true",
                mask.len(),
                mask.iter().filter(|&&takes_part| takes_part).count(),
            );
            return Err(Error::data("mask", problem));
        }
        let mut masked = logits.to_vec();
        for (logit, &takes_part) in masked.iter_mut().zip(mask.iter().cycle()) {
            if !takes_part {
                *logit = f32::NEG_INFINITY;
            }
        }
        Ok(Cow::Owned(masked))
    }
}

/// Grids of codes, one after the other, each row by row; and what was kept at each position.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Samples {
    /// The codes.
    pub codes: Vec<u16>,
    /// The number of codes that the method kept.
    pub kept: Vec<u32>,
    /// Their probability under softmax.
    pub mass: Vec<f32>,
}

impl Samples {
    /// For so many positions.
    pub(super) fn with_positions(positions: usize) -> Self {
        Self { codes: vec![0; positions], kept: vec![0; positions], mass: vec![0.0; positions] }
    }

    /// Appends the images of another batch.
    pub(super) fn append(&mut self, mut other: Self) {
        self.codes.append(&mut other.codes);
        self.kept.append(&mut other.kept);
        self.mass.append(&mut other.mass);
    }
}

/// Draws a code for each row of logits: those of the images of a batch at one position. The results are
/// written at that position of each grid.
pub(super) fn draw(
    sampling: &Sampling<'_>,
    logits: &[f32],
    codes: usize,
    position: usize,
    rows: &mut CsrRows<f32>,
    samples: &mut Samples,
) -> Result<()> {
    let images = logits.len() / codes;
    let positions = samples.codes.len() / images;
    let broken = |error: shafer::Error| {
        Error::data("logits", format!("the weights give bad ones at position {position}: {error}"))
    };
    let masked = sampling.masked(logits, codes)?;
    let input = Logits::rows(&masked, codes).map_err(broken)?;
    sampling.method.csr_into(&input, Threads::One, rows).map_err(broken)?;
    for (image, ((kept, values), logits)) in rows.iter().zip(logits.chunks_exact(codes)).enumerate()
    {
        let number = u64::from(sampling.first_image) + image as u64;
        let stream = number << 32 | position as u64;
        let mut random = Word(Random::new(sampling.seed, Purpose::Sample, stream));
        let code = sample_csr(kept, values, &mut random).map_err(broken)?;
        let at = image * positions + position;
        samples.codes[at] = code as u16;
        samples.kept[at] = kept.len() as u32;
        samples.mass[at] = mass(logits, kept);
    }
    Ok(())
}

/// The probability of some classes under softmax.
fn mass(logits: &[f32], kept: &[u32]) -> f32 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weight = |l: f32| (l - largest).exp();
    let all: f32 = logits.iter().map(|&l| weight(l)).sum();
    let part: f32 = kept.iter().map(|&class| weight(logits[class as usize])).sum();
    (part / all).min(1.0)
}

/// A stream of random words as the core takes them.
struct Word(Random);

impl TryRng for Word {
    type Error = Infallible;

    fn try_next_u32(&mut self) -> std::result::Result<u32, Infallible> {
        Ok(self.0.next_u32())
    }

    fn try_next_u64(&mut self) -> std::result::Result<u64, Infallible> {
        let low = u64::from(self.0.next_u32());
        Ok(u64::from(self.0.next_u32()) << 32 | low)
    }

    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> std::result::Result<(), Infallible> {
        for part in bytes.chunks_mut(4) {
            part.copy_from_slice(&self.0.next_u32().to_le_bytes()[..part.len()]);
        }
        Ok(())
    }
}
