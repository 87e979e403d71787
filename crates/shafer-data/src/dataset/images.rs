//! Labelled grey images in memory.

use super::checksum::Checksum;

/// The largest size of all pixels of a set. Bounds the memory that a damaged file can claim.
pub(crate) const MOST_BYTES: usize = 1 << 30;

/// Grey images of one size, with labels.
///
/// ```
/// use shafer_data::dataset::Images;
///
/// let images = Images { pixels: vec![0, 50, 100, 150, 200, 250], rows: 1, columns: 2,
///                       labels: vec![7, 8, 9], skipped: 0 };
/// assert_eq!(images.len(), 3);
/// assert_eq!(images.image(1), [100, 150]);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Images {
    /// Images x rows x columns bytes; 255 is white.
    pub pixels: Vec<u8>,
    /// The height of an image.
    pub rows: usize,
    /// The width of an image.
    pub columns: usize,
    /// The label of each image.
    pub labels: Vec<u8>,
    /// The number of damaged images that were skipped.
    pub skipped: usize,
}

impl Images {
    /// The number of images.
    ///
    /// ```
    /// # use shafer_data::dataset::Images;
    /// let images = Images { pixels: vec![0; 8], rows: 2, columns: 2, labels: vec![0, 1], skipped: 0 };
    /// assert_eq!(images.len(), 2);
    /// ```
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no images.
    ///
    /// ```
    /// # use shafer_data::dataset::Images;
    /// let images = Images { pixels: vec![], rows: 2, columns: 2, labels: vec![], skipped: 0 };
    /// assert!(images.is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// The pixels of one image.
    ///
    /// # Panics
    /// If an index is out of bounds.
    ///
    /// ```
    /// # use shafer_data::dataset::Images;
    /// let images = Images { pixels: vec![1, 2, 3, 4], rows: 1, columns: 2, labels: vec![0, 1], skipped: 0 };
    /// assert_eq!(images.image(1), [3, 4]);
    /// ```
    pub fn image(&self, index: usize) -> &[u8] {
        let size = self.rows * self.columns;
        &self.pixels[index * size..(index + 1) * size]
    }

    /// The images at `indices`, in that order; see [`stratified`](super::stratified).
    ///
    /// # Panics
    /// If an index is out of bounds.
    ///
    /// ```
    /// # use shafer_data::dataset::Images;
    /// let images = Images { pixels: vec![10, 11, 12], rows: 1, columns: 1, labels: vec![0, 1, 2], skipped: 0 };
    /// let some = images.select(&[2, 0]);
    /// assert_eq!(some.pixels, [12, 10]);
    /// assert_eq!(some.labels, [2, 0]);
    /// ```
    #[must_use]
    pub fn select(&self, indices: &[usize]) -> Self {
        let mut pixels = Vec::with_capacity(indices.len() * self.rows * self.columns);
        for &index in indices {
            pixels.extend_from_slice(self.image(index));
        }
        let labels = indices.iter().map(|&index| self.labels[index]).collect();
        Self { pixels, labels, ..*self }
    }

    /// Sorted by label, then by pixels.
    pub(crate) fn sorted(&self) -> Self {
        let mut indices: Vec<usize> = (0..self.len()).collect();
        indices.sort_by_key(|&index| (self.labels[index], self.image(index)));
        self.select(&indices)
    }

    /// The SHA-256 of all images, each as its label followed by its pixels.
    pub(crate) fn sha256(&self) -> String {
        let mut checksum = Checksum::default();
        for (index, &label) in self.labels.iter().enumerate() {
            checksum.add(&[label]);
            checksum.add(self.image(index));
        }
        checksum.finish()
    }
}
