//! Labelled colour images in memory.

use std::collections::TryReserveError;

use crate::dataset::images::MOST_BYTES;
use crate::{Error, Result};

/// The bytes of a pixel: red, green and blue.
pub(crate) const CHANNELS: usize = 3;

/// Colour images of one size, with their classes.
///
/// ```
/// use shafer_data::dataset::ColourImages;
///
/// let images = ColourImages {
///     pixels: vec![255, 0, 0, /* a red image, then a blue one */ 0, 0, 255],
///     rows: 1,
///     columns: 1,
///     labels: vec![1, 0],
///     classes: vec!["sky".into(), "rose".into()],
/// };
/// assert_eq!(images.len(), 2);
/// assert_eq!(images.image(1), [0, 0, 255]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ColourImages {
    /// Images x rows x columns x 3 bytes: red, green, blue.
    pub pixels: Vec<u8>,
    /// The height of an image.
    pub rows: usize,
    /// The width of an image.
    pub columns: usize,
    /// The class of each image, as an index into `classes`.
    pub labels: Vec<u16>,
    /// The names of the classes.
    pub classes: Vec<String>,
}

impl ColourImages {
    /// The number of images.
    ///
    /// ```
    /// # use shafer_data::dataset::ColourImages;
    /// let images = ColourImages { pixels: vec![0; 12], rows: 2, columns: 2, labels: vec![0], classes: vec![] };
    /// assert_eq!(images.len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no images.
    ///
    /// ```
    /// # use shafer_data::dataset::ColourImages;
    /// let images = ColourImages { pixels: vec![], rows: 2, columns: 2, labels: vec![], classes: vec![] };
    /// assert!(images.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The pixels of an image: rows x columns x 3 bytes.
    ///
    /// # Panics
    /// If `index` is out of bounds.
    ///
    /// ```
    /// # use shafer_data::dataset::ColourImages;
    /// let images = ColourImages {
    ///     pixels: vec![1, 2, 3, 4, 5, 6],
    ///     rows: 1,
    ///     columns: 1,
    ///     labels: vec![0, 0],
    ///     classes: vec!["only".into()],
    /// };
    /// assert_eq!(images.image(1), [4, 5, 6]);
    /// ```
    pub fn image(&self, index: usize) -> &[u8] {
        let size = self.rows * self.columns * CHANNELS;
        &self.pixels[index * size..(index + 1) * size]
    }

    /// The images at `indices`, in that order; see [`stratified`](crate::dataset::stratified).
    ///
    /// # Panics
    /// If an index is out of bounds.
    ///
    /// ```
    /// # use shafer_data::dataset::ColourImages;
    /// let images = ColourImages {
    ///     pixels: vec![1, 2, 3, 4, 5, 6],
    ///     rows: 1,
    ///     columns: 1,
    ///     labels: vec![0, 1],
    ///     classes: vec!["a".into(), "b".into()],
    /// };
    /// let second = images.select(&[1]);
    /// assert_eq!((second.pixels, second.labels), (vec![4, 5, 6], vec![1]));
    /// ```
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let mut pixels = Vec::with_capacity(indices.len() * self.rows * self.columns * CHANNELS);
        for &index in indices {
            pixels.extend_from_slice(self.image(index));
        }
        let labels = indices.iter().map(|&index| self.labels[index]).collect();
        Self { pixels, labels, classes: self.classes.clone(), ..*self }
    }

    /// Fails if a label is no class, or a class has no image.
    pub(crate) fn check_classes(&self, label: &str, hint: &'static str) -> Result<()> {
        let mut counts = vec![0_usize; self.classes.len()];
        for (index, &class) in self.labels.iter().enumerate() {
            let Some(count) = counts.get_mut(usize::from(class)) else {
                let problem = format!(
                    "image {index} has label {class}, but there are {} classes",
                    self.classes.len()
                );
                return Err(Error::format(label, problem, hint));
            };
            *count += 1;
        }
        match counts.iter().position(|&count| count == 0) {
            None => Ok(()),
            Some(class) => {
                let problem = format!("class {} has no image", self.classes[class]);
                Err(Error::format(label, problem, hint))
            }
        }
    }
}

/// Zeroed pixels of `count` images. Fails above the limit of a set, and if memory is short.
pub(crate) fn zeroed(label: &str, count: usize, rows: usize, columns: usize) -> Result<Vec<u8>> {
    let size = [count, rows, columns, CHANNELS].into_iter().try_fold(1_usize, usize::checked_mul);
    let Some(size) = size.filter(|&size| size <= MOST_BYTES) else {
        let problem =
            format!("{count} images of {rows}x{columns} take more than {MOST_BYTES} bytes");
        return Err(Error::format(label, problem, "use a part of the set"));
    };
    let mut pixels = Vec::new();
    let no_memory = |_: TryReserveError| {
        Error::io(label, "hold the images", std::io::ErrorKind::OutOfMemory.into())
    };
    pixels.try_reserve_exact(size).map_err(no_memory)?;
    pixels.resize(size, 0);
    Ok(pixels)
}
