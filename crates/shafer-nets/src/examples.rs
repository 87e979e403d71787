//! Images with labels, and their order in training.

use crate::random::{Purpose, Random};
use crate::training::Dataset;
use crate::{Error, Result};

/// Images of bytes with labels.
///
/// The bytes are borrowed, so that many trainings share one copy of a data set.
///
/// ```
/// use shafer_nets::Examples;
///
/// let pixels = [0, 255, 255, 0, 51, 51, 51, 51]; // Two images of 2 x 2.
/// let examples = Examples::new(&pixels, &[0, 1], 4)?;
/// assert_eq!(examples.len(), 2);
/// # Ok::<(), shafer_nets::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Examples<'a> {
    pixels: &'a [u8],
    labels: &'a [u8],
    width: usize,
}

impl<'a> Examples<'a> {
    /// Images of `pixels_per_image` bytes, one after the other, with one label each.
    pub fn new(pixels: &'a [u8], labels: &'a [u8], pixels_per_image: usize) -> Result<Self> {
        if labels.is_empty() || pixels_per_image == 0 {
            return Err(Error::data("labels", "must not be empty"));
        }
        let count = labels.len();
        if u32::try_from(count).is_err() {
            return Err(Error::data("labels", "there are more than 2^32 examples"));
        }
        if count.checked_mul(pixels_per_image) != Some(pixels.len()) {
            let expected = count.saturating_mul(pixels_per_image);
            return Err(Error::data(
                "pixels",
                format!(
                    "{expected} are expected ({count} labels x {pixels_per_image} pixels), but there are {}",
                    pixels.len(),
                ),
            ));
        }
        Ok(Self { pixels, labels, width: pixels_per_image })
    }

    /// The number of examples.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Always `false`.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The number of pixels of an image.
    pub fn pixels_per_image(&self) -> usize {
        self.width
    }

    /// Checks the size of the images, and that all labels are below `labels`.
    pub(crate) fn check(&self, pixels: usize, labels: usize) -> Result<()> {
        if self.width != pixels {
            return Err(Error::data(
                "pixels",
                format!("an image has {}, but the network takes {pixels}", self.width),
            ));
        }
        match self.labels.iter().position(|&label| usize::from(label) >= labels) {
            None => Ok(()),
            Some(row) => Err(Error::data(
                "labels",
                format!(
                    "example {row} has {}, but labels must be below {labels}",
                    self.labels[row],
                ),
            )),
        }
    }

    /// The log-odds of the mean image, clamped to probabilities from 0.001 to 0.999.
    pub(crate) fn mean_log_odds(&self) -> Vec<f32> {
        let mut sums = vec![0_u64; self.width];
        for image in self.pixels.chunks_exact(self.width) {
            for (sum, &pixel) in sums.iter_mut().zip(image) {
                *sum += u64::from(pixel);
            }
        }
        let most = 255.0 * self.len() as f64;
        let log_odds = |sum| {
            let mean = (sum as f64 / most).clamp(0.001, 0.999);
            (mean / (1.0 - mean)).ln() as f32
        };
        sums.into_iter().map(log_odds).collect()
    }

    /// The pixels of one example, from 0 to 1.
    pub(crate) fn image(&self, row: u32) -> impl Iterator<Item = f32> + use<'a> {
        let image = &self.pixels[row as usize * self.width..][..self.width];
        image.iter().map(|&pixel| f32::from(pixel) / 255.0)
    }

    /// The pixels of several examples, from 0 to 1.
    pub(crate) fn units(&self, rows: &[u32]) -> Vec<f32> {
        let mut units = Vec::with_capacity(rows.len() * self.width);
        for &row in rows {
            units.extend(self.image(row));
        }
        units
    }

    /// The labels of several examples, one-hot.
    pub(crate) fn one_hot(&self, rows: &[u32], labels: usize) -> Vec<f32> {
        let mut one_hot = vec![0.0; rows.len() * labels];
        for (&row, one_hot) in rows.iter().zip(one_hot.chunks_exact_mut(labels)) {
            one_hot[self.label(row)] = 1.0;
        }
        one_hot
    }

    /// The label of one example.
    pub(crate) fn label(&self, row: u32) -> usize {
        usize::from(self.labels[row as usize])
    }
}

impl Dataset for Examples<'_> {
    fn count(&self) -> usize {
        self.len()
    }

    fn fingerprint(&self) -> u64 {
        let mut fingerprint = Fingerprint::new(self.width);
        for bytes in [self.pixels, self.labels] {
            let mut words = bytes.chunks_exact(8);
            for word in &mut words {
                fingerprint.add(word.iter().fold(0, |word, &byte| (word << 8) | u64::from(byte)));
            }
            for &byte in words.remainder() {
                fingerprint.add(u64::from(byte));
            }
        }
        fingerprint.finish()
    }
}

/// A hash of examples: FNV-1a over words instead of bytes.
pub(crate) struct Fingerprint(u64);

impl Fingerprint {
    pub(crate) fn new(size: usize) -> Self {
        Self(0xcbf2_9ce4_8422_2325 ^ size as u64)
    }

    pub(crate) fn add(&mut self, word: u64) {
        self.0 = (self.0 ^ word).wrapping_mul(0x0100_0000_01b3).rotate_left(23);
    }

    pub(crate) fn finish(self) -> u64 {
        self.0
    }
}

/// The sequence of batches. Every epoch has its own random order.
#[derive(Clone, Debug)]
pub(crate) struct Batches {
    seed: u64,
    examples: u32,
    batch_size: usize,
    epoch: usize,
    batch: usize,
    order: Vec<u32>,
}

impl Batches {
    pub(crate) fn new(seed: u64, examples: usize, batch_size: usize) -> Self {
        Self::at(seed, examples, batch_size, 0, 0)
    }

    /// At a position: a function of its arguments.
    pub(crate) fn at(
        seed: u64,
        examples: usize,
        batch_size: usize,
        epoch: usize,
        batch: usize,
    ) -> Self {
        let examples = examples as u32;
        let order = Random::new(seed, Purpose::Order, epoch as u64).permutation(examples);
        Self { seed, examples, batch_size, epoch, batch, order }
    }

    /// The number of batches in an epoch.
    pub(crate) fn per_epoch(&self) -> usize {
        (self.examples as usize).div_ceil(self.batch_size)
    }

    /// The epoch of the next batch.
    pub(crate) fn epoch(&self) -> usize {
        self.epoch
    }

    /// The number of the next batch in its epoch.
    pub(crate) fn batch(&self) -> usize {
        self.batch
    }

    /// The number of the next batch in the whole training.
    pub(crate) fn iteration(&self) -> u64 {
        self.epoch as u64 * self.per_epoch() as u64 + self.batch as u64
    }

    /// The examples of the next batch.
    pub(crate) fn rows(&self) -> &[u32] {
        let start = self.batch * self.batch_size;
        &self.order[start..self.order.len().min(start + self.batch_size)]
    }

    /// Skips the next batch.
    pub(crate) fn advance(&mut self) {
        self.batch += 1;
        if self.batch == self.per_epoch() {
            *self = Self::at(self.seed, self.examples as usize, self.batch_size, self.epoch + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_epoch_has_every_example_once_and_the_next_another_order() {
        let mut batches = Batches::new(1, 100, 32);
        let mut epoch = || {
            let mut rows = Vec::new();
            for size in [32, 32, 32, 4] {
                assert_eq!(batches.rows().len(), size);
                rows.extend_from_slice(batches.rows());
                batches.advance();
            }
            rows
        };
        let (first, second) = (epoch(), epoch());
        assert_ne!(first, second);
        for mut rows in [first, second] {
            rows.sort_unstable();
            assert!(rows.iter().copied().eq(0..100));
        }
        assert_eq!((batches.epoch(), batches.batch(), batches.iteration()), (2, 0, 8));
    }

    #[test]
    fn the_order_is_a_function_of_the_position() {
        let mut walked = Batches::new(7, 50, 8);
        for _ in 0..10 {
            walked.advance();
        }
        assert_eq!(walked.rows(), Batches::at(7, 50, 8, 1, 3).rows());
        assert_eq!(walked.iteration(), 10);
    }

    #[test]
    fn errors_name_what_does_not_fit() {
        let examples = Examples::new(&[0; 8], &[0, 3], 4).unwrap();
        assert!(examples.check(4, 4).is_ok());
        assert_eq!(
            examples.check(4, 3).unwrap_err().to_string(),
            "labels: example 1 has 3, but labels must be below 3",
        );
        assert_eq!(
            examples.check(9, 4).unwrap_err().to_string(),
            "pixels: an image has 4, but the network takes 9",
        );
        assert!(Examples::new(&[], &[], 4).is_err());
    }

    #[test]
    fn fingerprints_distinguish_examples() {
        let pixels: Vec<u8> = (0..=255).collect();
        let of = |pixels: &[u8], labels: &[u8]| {
            Examples::new(pixels, labels, pixels.len() / labels.len()).unwrap().fingerprint()
        };
        let mut swapped = pixels.clone();
        swapped.swap(3, 200);
        let all = [
            of(&pixels, &[0, 1]),
            of(&pixels, &[1, 0]),
            of(&swapped, &[0, 1]),
            of(&pixels, &[0, 1, 0, 0]),
        ];
        assert!((1..4).all(|i| !all[..i].contains(&all[i])));
    }
}
