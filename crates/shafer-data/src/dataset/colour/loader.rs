//! Batches of transformed images, in random or in the set's order.

use std::sync::{Arc, Mutex, PoisonError};

use super::image_transform::ImageTransform;
use super::images::{CHANNELS, ColourImages};
use super::random::SplitMix64;
use crate::dataset::subset::shuffle;
use crate::{Error, Result};

/// How images become batches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LoaderConfig {
    /// The images of a batch.
    pub batch: usize,
    /// What becomes of each image.
    pub transform: ImageTransform,
    /// Whether each epoch has its own random order, rather than the set's.
    pub shuffle: bool,
    /// Whether to leave out the last images of an epoch, which are fewer than a batch.
    pub drop_last: bool,
    /// Decides order, crops and flips.
    pub seed: u64,
}

/// Images ready for a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Batch {
    /// Images x 3 x size x size values in [-1, 1].
    pub pixels: Vec<f32>,
    /// The class of each image.
    pub labels: Vec<u16>,
    /// The position of each image in the set.
    pub indices: Vec<usize>,
}

/// Makes batches of images. A batch is a function of the seed, the epoch and its position: asking for the
/// same one again, in any order and on any machine, gives the same values.
///
/// ```
/// use std::sync::Arc;
/// use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig};
///
/// let images = Arc::new(ColourImages {
///     pixels: vec![0, 255, 0, 255, 0, 255], // green, purple
///     rows: 1,
///     columns: 1,
///     labels: vec![0, 1],
///     classes: vec!["leaf".into(), "plum".into()],
/// });
/// let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
/// let config = LoaderConfig { batch: 2, transform, shuffle: false, drop_last: false, seed: 0 };
/// let loader = Loader::new(images, config)?;
/// let batch = loader.batch(0, 0);
/// assert_eq!(batch.pixels, [-1.0, 1.0, -1.0, 1.0, -1.0, 1.0]);
/// assert_eq!(batch.labels, [0, 1]);
/// # Ok::<(), shafer_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Loader {
    images: Arc<ColourImages>,
    config: LoaderConfig,
    /// The latest epoch and its order, which all of its batches share.
    order: Mutex<Option<(usize, Arc<Vec<u32>>)>>,
}

/// The keys of the random numbers of an epoch's order and of an image.
const ORDER: u64 = 0;
const IMAGE: u64 = 1;

impl Loader {
    /// Fails if there are no images, the batch is empty, or the transform is impossible.
    ///
    /// ```
    /// use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig};
    ///
    /// let images = ColourImages { pixels: vec![], rows: 1, columns: 1, labels: vec![], classes: vec![] };
    /// let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
    /// let config = LoaderConfig { batch: 2, transform, shuffle: false, drop_last: false, seed: 0 };
    /// assert!(Loader::new(images.into(), config).is_err());
    /// ```
    pub fn new(images: Arc<ColourImages>, config: LoaderConfig) -> Result<Self> {
        config.transform.check()?;
        let (count, batch) = (images.len(), config.batch);
        let size = images.rows * images.columns * CHANNELS;
        let problem = if size == 0 || images.pixels.len() != count * size {
            format!("{count} images of {}x{} pixels", images.rows, images.columns)
        } else if batch == 0 || count < if config.drop_last { batch } else { 1 } {
            format!("there are {count} images for batches of {batch}")
        } else if u32::try_from(count).is_err() {
            format!("there are {count} images, more than {}", u32::MAX)
        } else {
            return Ok(Self { images, config, order: Mutex::new(None) });
        };
        Err(Error::request("the loader of images", problem))
    }

    /// The images that batches are made of.
    ///
    /// ```
    /// # use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig};
    /// # let images = ColourImages { pixels: vec![0; 9], rows: 1, columns: 1, labels: vec![0; 3], classes: vec!["a".into()] };
    /// # let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
    /// # let config = LoaderConfig { batch: 2, transform, shuffle: false, drop_last: false, seed: 0 };
    /// let loader = Loader::new(images.into(), config)?;
    /// assert_eq!(loader.images().len(), 3);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn images(&self) -> &ColourImages {
        &self.images
    }

    /// The batches of an epoch.
    ///
    /// ```
    /// # use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig};
    /// # let images = ColourImages { pixels: vec![0; 9], rows: 1, columns: 1, labels: vec![0; 3], classes: vec!["a".into()] };
    /// # let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
    /// # let config = LoaderConfig { batch: 2, transform, shuffle: false, drop_last: false, seed: 0 };
    /// let loader = Loader::new(images.into(), config)?; // three images
    /// assert_eq!(loader.batches(), 2);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn batches(&self) -> usize {
        let (count, batch) = (self.images.len(), self.config.batch);
        if self.config.drop_last { count / batch } else { count.div_ceil(batch) }
    }

    /// The batch at `index` of an epoch.
    ///
    /// # Panics
    /// If `index` is not less than [`batches`](Self::batches).
    ///
    /// ```
    /// # use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig};
    /// # let images = ColourImages { pixels: vec![0; 9], rows: 1, columns: 1, labels: vec![0; 3], classes: vec!["a".into()] };
    /// # let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
    /// # let config = LoaderConfig { batch: 2, transform, shuffle: false, drop_last: false, seed: 0 };
    /// let loader = Loader::new(images.into(), config)?; // three images
    /// assert_eq!(loader.batch(0, 1).indices, [2]);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn batch(&self, epoch: usize, index: usize) -> Batch {
        assert!(index < self.batches(), "batch {index} of {}", self.batches());
        let start = index * self.config.batch;
        let end = (start + self.config.batch).min(self.images.len());
        let indices: Vec<usize> = if self.config.shuffle {
            self.order(epoch)[start..end].iter().map(|&image| image as usize).collect()
        } else {
            (start..end).collect()
        };
        let size = self.config.transform.size();
        let plane = size * size;
        let mut pixels = vec![0.0; indices.len() * CHANNELS * plane];
        for (&image, values) in indices.iter().zip(pixels.chunks_exact_mut(CHANNELS * plane)) {
            let keys = [self.config.seed, IMAGE, epoch as u64, image as u64];
            let (rows, columns) = (self.images.rows, self.images.columns);
            let source = self.images.image(image);
            let transform = &self.config.transform;
            let bytes = transform.apply(source, rows, columns, &mut SplitMix64::of(&keys));
            for (channel, plane) in values.chunks_exact_mut(plane).enumerate() {
                for (value, pixel) in plane.iter_mut().zip(bytes.chunks_exact(CHANNELS)) {
                    *value = normalised(pixel[channel]);
                }
            }
        }
        let labels = indices.iter().map(|&image| self.images.labels[image]).collect();
        Batch { pixels, labels, indices }
    }

    fn order(&self, epoch: usize) -> Arc<Vec<u32>> {
        let mut latest = self.order.lock().unwrap_or_else(PoisonError::into_inner);
        match &*latest {
            Some((of, order)) if *of == epoch => Arc::clone(order),
            _ => {
                let mut order: Vec<u32> = (0..self.images.len() as u32).collect();
                let keys = [self.config.seed, ORDER, epoch as u64];
                shuffle(&mut order, &mut SplitMix64::of(&keys));
                let order = Arc::new(order);
                *latest = Some((epoch, Arc::clone(&order)));
                order
            }
        }
    }
}

/// A byte in [-1, 1], with the same two roundings as `ToTensor` and `Normalize(0.5, 0.5)` of torchvision.
fn normalised(byte: u8) -> f32 {
    (f32::from(byte) / 255.0 - 0.5) / 0.5
}
