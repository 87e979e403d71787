//! Batches prepared ahead of their use, on a thread.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread;

use super::loader::{Batch, Loader};

/// A loader whose next batches are prepared on a thread while the current one is used.
///
/// The batches are those of the loader. After a request out of sequence, as at a resume, preparation
/// starts again from there.
///
/// ```
/// # use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig};
/// use shafer_data::dataset::Prefetch;
///
/// # let images = ColourImages { pixels: vec![0; 9], rows: 1, columns: 1, labels: vec![0; 3], classes: vec!["a".into()] };
/// # let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
/// # let config = LoaderConfig { batch: 2, transform, shuffle: true, drop_last: false, seed: 0 };
/// let mut batches = Prefetch::new(Loader::new(images.into(), config)?, 4);
/// for index in 0..batches.loader().batches() {
///     let batch = batches.batch(0, index);
///     assert_eq!(batch, batches.loader().batch(0, index));
/// }
/// # Ok::<(), shafer_data::Error>(())
/// ```
#[derive(Debug)]
pub struct Prefetch {
    loader: Arc<Loader>,
    ahead: usize,
    /// The batches under preparation, and the epoch and position of the next.
    running: Option<(Receiver<Batch>, usize, usize)>,
}

impl Prefetch {
    /// Prepares up to `ahead` batches in advance. With 0, batches are made when they are asked for.
    ///
    /// ```
    /// # use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig, Prefetch};
    /// # let images = ColourImages { pixels: vec![0; 9], rows: 1, columns: 1, labels: vec![0; 3], classes: vec!["a".into()] };
    /// # let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
    /// # let config = LoaderConfig { batch: 2, transform, shuffle: true, drop_last: false, seed: 0 };
    /// let mut batches = Prefetch::new(Loader::new(images.into(), config)?, 0);
    /// assert_eq!(batches.batch(7, 1).labels.len(), 1);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn new(loader: Loader, ahead: usize) -> Self {
        Self { loader: Arc::new(loader), ahead, running: None }
    }

    /// The loader of the batches.
    ///
    /// ```
    /// # use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig, Prefetch};
    /// # let images = ColourImages { pixels: vec![0; 9], rows: 1, columns: 1, labels: vec![0; 3], classes: vec!["a".into()] };
    /// # let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
    /// # let config = LoaderConfig { batch: 2, transform, shuffle: true, drop_last: false, seed: 0 };
    /// let batches = Prefetch::new(Loader::new(images.into(), config)?, 4);
    /// assert_eq!(batches.loader().batches(), 2);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn loader(&self) -> &Loader {
        &self.loader
    }

    /// The batch at `index` of an epoch: [`Loader::batch`].
    ///
    /// # Panics
    /// If `index` is not less than the number of batches of an epoch.
    ///
    /// ```
    /// # use shafer_data::dataset::{ColourImages, ImageTransform, Loader, LoaderConfig, Prefetch};
    /// # let images = ColourImages { pixels: vec![0; 9], rows: 1, columns: 1, labels: vec![0; 3], classes: vec!["a".into()] };
    /// # let transform = ImageTransform::CentreCrop { resize: 1, size: 1 };
    /// # let config = LoaderConfig { batch: 2, transform, shuffle: false, drop_last: false, seed: 0 };
    /// let mut batches = Prefetch::new(Loader::new(images.into(), config)?, 4);
    /// assert_eq!(batches.batch(0, 1).indices, [2]);
    /// assert_eq!(batches.batch(0, 0).indices, [0, 1]);
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn batch(&mut self, epoch: usize, index: usize) -> Batch {
        let expected = matches!(self.running, Some((_, e, i)) if (e, i) == (epoch, index));
        if !expected {
            // The thread of a dropped receiver ends at its next batch.
            self.running = self.start(epoch, index);
        }
        let Some((receiver, next_epoch, next_index)) = &mut self.running else {
            return self.loader.batch(epoch, index);
        };
        (*next_epoch, *next_index) = after(&self.loader, epoch, index);
        if let Ok(batch) = receiver.recv() {
            return batch;
        }
        self.running = None;
        self.loader.batch(epoch, index)
    }

    /// Starts a thread that makes batches from this one on. Without one, batches are made here.
    fn start(&self, mut epoch: usize, mut index: usize) -> Option<(Receiver<Batch>, usize, usize)> {
        if self.ahead == 0 || index >= self.loader.batches() {
            return None;
        }
        let (sender, receiver) = sync_channel(self.ahead);
        let loader = Arc::clone(&self.loader);
        let next = (epoch, index);
        let make = move || {
            while sender.send(loader.batch(epoch, index)).is_ok() {
                (epoch, index) = after(&loader, epoch, index);
            }
        };
        thread::Builder::new().name("prefetch".to_owned()).spawn(make).ok()?;
        Some((receiver, next.0, next.1))
    }
}

/// The position after this one, which can be in the next epoch.
fn after(loader: &Loader, epoch: usize, index: usize) -> (usize, usize) {
    if index + 1 < loader.batches() { (epoch, index + 1) } else { (epoch + 1, 0) }
}
