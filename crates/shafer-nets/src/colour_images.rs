//! Colour images with labels: what a VQ-VAE and its classifier are trained on.

use std::fmt::Debug;

use burn::tensor::{Device, Tensor};

use crate::examples::Fingerprint;
use crate::training::{Batch, Dataset};
use crate::weights::tensor;
use crate::{Error, Result};

/// A source of colour images.
///
/// Pixels are numbers from -1 to 1: images x channels (red, green, blue) x rows x columns. A source may crop
/// and flip at random, as long as a batch is a function of the arguments: a training can then be resumed.
pub trait ColourImages: Debug {
    /// The number of images.
    fn count(&self) -> usize;

    /// Rows and columns of an image.
    fn size(&self) -> [usize; 2];

    /// The class of every image.
    fn labels(&self) -> &[u16];

    /// A hash of all images: a training is resumed on those that it began with.
    fn fingerprint(&self) -> u64;

    /// The pixels of these images, in the epoch of this training.
    fn pixels(&self, seed: u64, epoch: usize, rows: &[u32]) -> Result<Vec<f32>>;
}

impl Dataset for &dyn ColourImages {
    fn count(&self) -> usize {
        ColourImages::count(*self)
    }

    fn fingerprint(&self) -> u64 {
        ColourImages::fingerprint(*self)
    }
}

/// Colour images in memory, used as they are.
///
/// ```
/// use shafer_nets::{ByteImages, ColourImages};
///
/// let pixels = [0, 51, 255].repeat(16); // Red, green and blue of 4 x 4 pixels.
/// let images = ByteImages::new(&pixels, &[7], [4, 4])?;
/// let values = images.pixels(0, 0, &[0])?;
/// assert_eq!([values[0], values[16], values[32]], [-1.0, -0.6, 1.0]);
/// # Ok::<(), shafer_nets::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct ByteImages<'a> {
    pixels: &'a [u8],
    labels: &'a [u16],
    size: [usize; 2],
}

impl<'a> ByteImages<'a> {
    /// One label for every image. Pixels are interleaved, as in most files: images x rows x columns x 3.
    pub fn new(pixels: &'a [u8], labels: &'a [u16], size: [usize; 2]) -> Result<Self> {
        let image = size[0].checked_mul(size[1]).and_then(|pixels| pixels.checked_mul(3));
        let expected = image.and_then(|image| image.checked_mul(labels.len()));
        if expected != Some(pixels.len()) {
            let [rows, columns] = size;
            return Err(Error::data(
                "pixels",
                format!(
                    "{} labels need {} images of {rows} x {columns} x 3 bytes, but there are {} bytes",
                    labels.len(),
                    labels.len(),
                    pixels.len(),
                ),
            ));
        }
        Ok(Self { pixels, labels, size })
    }
}

impl ColourImages for ByteImages<'_> {
    fn count(&self) -> usize {
        self.labels.len()
    }

    fn size(&self) -> [usize; 2] {
        self.size
    }

    fn labels(&self) -> &[u16] {
        self.labels
    }

    fn fingerprint(&self) -> u64 {
        let mut fingerprint = Fingerprint::new(self.size[1]);
        for &byte in self.pixels {
            fingerprint.add(u64::from(byte));
        }
        for &label in self.labels {
            fingerprint.add(u64::from(label));
        }
        fingerprint.finish()
    }

    fn pixels(&self, _seed: u64, _epoch: usize, rows: &[u32]) -> Result<Vec<f32>> {
        let area = self.size[0] * self.size[1];
        let mut values = Vec::with_capacity(rows.len() * 3 * area);
        for &row in rows {
            let Some(image) = self.pixels.chunks_exact(3 * area).nth(row as usize) else {
                return Err(Error::data("images", format!("there is no image {row}")));
            };
            for channel in 0..3 {
                let bytes = image[channel..].iter().step_by(3);
                values.extend(bytes.map(|&byte| f32::from(byte) / 127.5 - 1.0));
            }
        }
        Ok(values)
    }
}

/// Checks that a network can be trained on these images.
pub(crate) fn check(images: &dyn ColourImages, size: [usize; 2]) -> Result<()> {
    if images.size() != size {
        let ([rows, columns], [own_rows, own_columns]) = (size, images.size());
        return Err(Error::data(
            "images",
            format!("are {own_rows} x {own_columns}, but the network takes {rows} x {columns}"),
        ));
    }
    if images.labels().len() != images.count() {
        let (labels, images) = (images.labels().len(), images.count());
        return Err(Error::data("labels", format!("there are {labels} for {images} images")));
    }
    Ok(())
}

/// The images of a batch, with their channels innermost.
pub(crate) fn gather(images: &dyn ColourImages, batch: &Batch<'_>) -> Result<Tensor<4>> {
    let pixels = images.pixels(batch.seed, batch.epoch, batch.rows)?;
    let [rows, columns] = images.size();
    let expected = batch.rows.len() * 3 * rows * columns;
    if pixels.len() != expected {
        let problem = format!("{expected} values are expected, but there are {}", pixels.len());
        return Err(Error::data("pixels", problem));
    }
    Ok(channels_last(pixels, images.size(), batch.device))
}

/// Checks the values of whole images: their number, which is returned, and that they are finite.
pub(crate) fn count(values: &[f32], [rows, columns]: [usize; 2]) -> Result<usize> {
    let size = 3 * rows * columns;
    if !values.len().is_multiple_of(size) {
        return Err(Error::data(
            "pixels",
            format!(
                "there are {}, which is no multiple of 3 x {rows} x {columns} = {size}",
                values.len(),
            ),
        ));
    }
    if let Some(place) = values.iter().position(|x| !x.is_finite()) {
        let problem =
            format!("value {} of image {} is {}", place % size, place / size, values[place]);
        return Err(Error::data("pixels", problem));
    }
    Ok(values.len() / size)
}

/// From images x channels x rows x columns to channels innermost.
pub(crate) fn channels_last(
    values: Vec<f32>,
    [rows, columns]: [usize; 2],
    device: &Device,
) -> Tensor<4> {
    let images = values.len() / (3 * rows * columns);
    tensor(values, [images, 3, rows, columns], device).permute([0, 2, 3, 1])
}

/// The number of images that are looked at together, so that memory does not grow with their number:
/// the largest layer has about this number of values for each image.
pub(crate) fn at_once(layer: usize) -> usize {
    const VALUES: usize = 1 << 23;
    (VALUES / layer.max(1)).clamp(1, 512)
}
