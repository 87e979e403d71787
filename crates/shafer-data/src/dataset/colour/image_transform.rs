//! From an image to the square that a network takes: a random crop, or the centre.

use rand_core::Rng;

use super::images::CHANNELS;
use super::random::uniform;
use super::resize::resize;
use crate::dataset::subset::below;
use crate::{Error, Result};

/// A part of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crop {
    /// The first row.
    pub top: usize,
    /// The first column.
    pub left: usize,
    /// The height.
    pub rows: usize,
    /// The width.
    pub columns: usize,
}

impl Crop {
    /// The pixels of this part of an image with `columns` columns.
    fn of(&self, image: &[u8], columns: usize) -> Vec<u8> {
        let rows = image.chunks_exact(columns * CHANNELS).skip(self.top).take(self.rows);
        let part = self.left * CHANNELS..(self.left + self.columns) * CHANNELS;
        rows.flat_map(|row| &row[part.clone()]).copied().collect()
    }
}

/// A random part of the image, resized to a square, and flipped or not: `RandomResizedCrop` and
/// `RandomHorizontalFlip` of torchvision.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomResizedCrop {
    /// The height and width of the result.
    pub size: usize,
    /// The bounds of the part's area, as a fraction of the image's.
    pub scale: [f64; 2],
    /// The bounds of the part's width divided by its height.
    pub ratio: [f64; 2],
    /// The probability of a horizontal flip.
    pub flip: f64,
}

impl RandomResizedCrop {
    /// torchvision's defaults for a result of `size` x `size`: areas of 8% to 100%, ratios of 3/4 to
    /// 4/3, every second image flipped.
    ///
    /// ```
    /// use shafer_data::dataset::RandomResizedCrop;
    ///
    /// assert_eq!(RandomResizedCrop::new(64).scale, [0.08, 1.0]);
    /// ```
    pub fn new(size: usize) -> Self {
        Self { size, scale: [0.08, 1.0], ratio: [3.0 / 4.0, 4.0 / 3.0], flip: 0.5 }
    }

    /// Draws a part of an image of `rows` x `columns`: area uniform within `scale`, logarithm of the
    /// ratio uniform within `ratio`, then the position. After ten parts that do not fit, it is the
    /// largest centred part whose ratio is allowed.
    ///
    /// ```
    /// use rand::{SeedableRng, rngs::StdRng};
    /// use shafer_data::dataset::{Crop, RandomResizedCrop};
    ///
    /// let whole = RandomResizedCrop { scale: [1.0, 1.0], ratio: [1.0, 1.0], ..RandomResizedCrop::new(64) };
    /// let crop = whole.crop(84, 84, &mut StdRng::seed_from_u64(0));
    /// assert_eq!(crop, Crop { top: 0, left: 0, rows: 84, columns: 84 });
    /// ```
    pub fn crop<R: Rng + ?Sized>(&self, rows: usize, columns: usize, rng: &mut R) -> Crop {
        const ATTEMPTS: usize = 10;
        let [low, high] = self.ratio;
        let within = |[low, high]: [f64; 2], u: f64| low + (high - low) * u;
        for _ in 0..ATTEMPTS {
            let area = (rows * columns) as f64 * within(self.scale, uniform(rng));
            let ratio = within([low.ln(), high.ln()], uniform(rng)).exp();
            let (height, width) =
                ((area / ratio).sqrt().round_ties_even(), (area * ratio).sqrt().round_ties_even());
            let (height, width) = (height as usize, width as usize);
            if (1..=rows).contains(&height) && (1..=columns).contains(&width) {
                let top = below(rows - height + 1, rng);
                let left = below(columns - width + 1, rng);
                return Crop { top, left, rows: height, columns: width };
            }
        }
        let ratio = columns as f64 / rows as f64;
        let rounded = |length: f64, most: usize| (length.round_ties_even() as usize).clamp(1, most);
        let (height, width) = if ratio < low {
            (rounded(columns as f64 / low, rows), columns)
        } else if ratio > high {
            (rows, rounded(rows as f64 * high, columns))
        } else {
            (rows, columns)
        };
        centred(rows, columns, height, width)
    }
}

fn centred(rows: usize, columns: usize, height: usize, width: usize) -> Crop {
    Crop { top: (rows - height) / 2, left: (columns - width) / 2, rows: height, columns: width }
}

/// What becomes of an image before a network sees it. The result is a square.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ImageTransform {
    /// For training.
    RandomResizedCrop(RandomResizedCrop),
    /// For evaluation: the shorter side is resized to `resize`, and the centre of `size` x `size` cut
    /// out. Where both are the same, a square image is only resized.
    CentreCrop {
        /// The length of the shorter side before the cut.
        resize: usize,
        /// The height and width of the result.
        size: usize,
    },
}

impl ImageTransform {
    /// The height and width of the result.
    ///
    /// ```
    /// use shafer_data::dataset::ImageTransform;
    ///
    /// assert_eq!(ImageTransform::CentreCrop { resize: 256, size: 224 }.size(), 224);
    /// ```
    pub fn size(&self) -> usize {
        match self {
            Self::RandomResizedCrop(crop) => crop.size,
            Self::CentreCrop { size, .. } => *size,
        }
    }

    pub(crate) fn check(&self) -> Result<()> {
        /// Far above the size of any image here.
        const LARGEST: usize = 1 << 12;
        let problem = match *self {
            _ if !(1..=LARGEST).contains(&self.size()) => {
                format!("size is {}, but must be from 1 to {LARGEST}", self.size())
            }
            Self::CentreCrop { resize, size } if !(size..=LARGEST).contains(&resize) => {
                format!("resize is {resize}, but must be from size, {size}, to {LARGEST}")
            }
            Self::RandomResizedCrop(RandomResizedCrop { scale: [low, high], .. })
                if !(0.0 < low && low <= high && high <= 1.0) =>
            {
                format!("scale is {low} to {high}, but must lie in (0, 1] and increase")
            }
            Self::RandomResizedCrop(RandomResizedCrop { ratio: [low, high], .. })
                if !(0.0 < low && low <= high && high.is_finite()) =>
            {
                format!("ratio is {low} to {high}, but must be positive, finite and increase")
            }
            Self::RandomResizedCrop(RandomResizedCrop { flip, .. })
                if !(0.0..=1.0).contains(&flip) =>
            {
                format!("flip is {flip}, but must be a probability")
            }
            _ => return Ok(()),
        };
        Err(Error::request("the transform of images", problem))
    }

    /// Transforms an image of `rows` x `columns` x 3 bytes to [`size`](Self::size) x `size` x 3 bytes.
    ///
    /// # Panics
    /// If `image` has another length, or is empty.
    ///
    /// ```
    /// use rand::{SeedableRng, rngs::StdRng};
    /// use shafer_data::dataset::ImageTransform;
    ///
    /// let image: Vec<u8> = (0..27).collect();
    /// let centre = ImageTransform::CentreCrop { resize: 3, size: 1 };
    /// assert_eq!(centre.apply(&image, 3, 3, &mut StdRng::seed_from_u64(0)), [12, 13, 14]);
    /// ```
    pub fn apply<R: Rng + ?Sized>(
        &self,
        image: &[u8],
        rows: usize,
        columns: usize,
        rng: &mut R,
    ) -> Vec<u8> {
        match *self {
            Self::RandomResizedCrop(random) => {
                let crop = random.crop(rows, columns, rng);
                let part = crop.of(image, columns);
                let side = random.size;
                let mut pixels = resize(&part, (crop.rows, crop.columns), (side, side));
                if uniform(rng) < random.flip {
                    pixels.chunks_exact_mut(side * CHANNELS).for_each(mirror);
                }
                pixels
            }
            Self::CentreCrop { resize: shorter, size } => {
                let long = |long: usize, short: usize| (shorter * long / short).max(size);
                let to = if rows <= columns {
                    (shorter, long(columns, rows))
                } else {
                    (long(rows, columns), shorter)
                };
                let resized = resize(image, (rows, columns), to);
                let offset =
                    |length: usize| ((length - size) as f64 / 2.0).round_ties_even() as usize;
                let crop =
                    Crop { top: offset(to.0), left: offset(to.1), rows: size, columns: size };
                crop.of(&resized, to.1)
            }
        }
    }
}

/// Reverses the pixels of a row.
fn mirror(row: &mut [u8]) {
    let (pixels, _) = row.as_chunks_mut::<CHANNELS>();
    pixels.reverse();
}
