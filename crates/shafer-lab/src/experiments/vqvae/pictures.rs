//! The images of a data set as the networks take them.

use std::sync::Arc;

use anyhow::Result;
use rayon::prelude::*;
use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig, RandomResizedCrop};

/// Images of a data set, each cropped and resized to a square when it is used.
#[derive(Debug)]
pub(super) struct Pictures {
    loader: Loader,
    side: usize,
}

impl Pictures {
    /// Random crops, half of them flipped: others in every epoch. They depend on this seed alone.
    pub(super) fn random_crops(images: &Arc<ColourImages>, side: usize, seed: u64) -> Result<Self> {
        Self::new(images, ImageTransform::RandomResizedCrop(RandomResizedCrop::new(side)), seed)
    }

    /// Whole images, resized; only the centre of those that are no squares.
    pub(super) fn whole(images: &Arc<ColourImages>, side: usize) -> Result<Self> {
        Self::new(images, ImageTransform::CentreCrop { resize: side, size: side }, 0)
    }

    fn new(images: &Arc<ColourImages>, transform: ImageTransform, seed: u64) -> Result<Self> {
        // Batches of one image, so that the number of a batch is that of its image.
        let config = LoaderConfig { batch: 1, transform, shuffle: false, drop_last: false, seed };
        Ok(Self { loader: Loader::new(Arc::clone(images), config)?, side: transform.size() })
    }

    pub(super) fn len(&self) -> usize {
        self.loader.images().len()
    }

    /// The class of every image.
    pub(super) fn labels(&self) -> &[u16] {
        &self.loader.images().labels
    }

    /// The rows of the images of each class.
    pub(super) fn by_class(&self, classes: usize) -> Vec<Vec<u32>> {
        let mut rows = vec![Vec::new(); classes];
        for (row, &label) in self.labels().iter().enumerate() {
            rows[usize::from(label)].push(row as u32);
        }
        rows
    }

    /// Images x 3 x side x side, from -1 to 1; a function of the epoch and the row.
    pub(super) fn pixels(&self, epoch: usize, rows: &[u32]) -> Vec<f32> {
        let image = |&row: &u32| self.loader.batch(epoch, row as usize).pixels;
        let images: Vec<Vec<f32>> = rows.par_iter().map(image).collect();
        images.concat()
    }
}

impl shafer_nets::ColourImages for Pictures {
    fn count(&self) -> usize {
        self.len()
    }

    fn size(&self) -> [usize; 2] {
        [self.side; 2]
    }

    fn labels(&self) -> &[u16] {
        self.labels()
    }

    /// FNV-1a over words of eight bytes.
    fn fingerprint(&self) -> u64 {
        const START: u64 = 0xcbf2_9ce4_8422_2325;
        const FACTOR: u64 = 0x0000_0100_0000_01b3;
        let images = self.loader.images();
        let pixels = images
            .pixels
            .chunks(8)
            .map(|bytes| bytes.iter().fold(0, |word: u64, &byte| word << 8 | u64::from(byte)));
        let words = pixels.chain(images.labels.iter().map(|&label| label.into()));
        words.fold(START, |hash, word| (hash ^ word).wrapping_mul(FACTOR))
    }

    fn pixels(&self, _: u64, epoch: usize, rows: &[u32]) -> shafer_nets::Result<Vec<f32>> {
        Ok(self.pixels(epoch, rows))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn images_are_functions_of_epoch_and_row() {
        let images = Arc::new(ColourImages {
            pixels: (0..3 * 8 * 8 * 3).map(|i| (i * 31 % 251) as u8).collect(),
            rows: 8,
            columns: 8,
            labels: vec![1, 0, 1],
            classes: vec!["a".into(), "b".into()],
        });
        let whole = Pictures::whole(&images, 8).unwrap();
        assert_eq!(whole.by_class(2), [vec![1], vec![0, 2]]);
        let pixels = whole.pixels(5, &[2]);
        for (place, &byte) in images.image(2).iter().enumerate() {
            let at = place % 3 * 64 + place / 3;
            assert!((pixels[at] - (f32::from(byte) / 127.5 - 1.0)).abs() < 1e-6);
        }
        let crops = Pictures::random_crops(&images, 4, 3).unwrap();
        let pair = crops.pixels(1, &[2, 0]);
        assert_eq!(pair.len(), 2 * 3 * 16);
        assert_eq!(pair[..48], crops.pixels(1, &[2]));
        assert_eq!(pair[48..], crops.pixels(1, &[0]));
        assert_ne!(pair, crops.pixels(2, &[2, 0]));
        let fingerprint = |of: &Pictures| shafer_nets::ColourImages::fingerprint(of);
        let mut other = (*images).clone();
        other.pixels[100] ^= 1;
        let other = Pictures::whole(&Arc::new(other), 8).unwrap();
        assert_ne!(fingerprint(&other), fingerprint(&whole));
    }
}
