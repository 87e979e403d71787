//! Bilinear resizing with antialiasing, bit-identical to Pillow.
//!
//! The filter is a triangle, widened by the scale factor when an image shrinks. A horizontal pass is
//! followed by a vertical one. Each has weights with 22 fractional bits and rounds its results to bytes,
//! as Pillow does. Pillow 13 runs the vertical pass first where that is cheaper, which can change values
//! by 1.

use super::images::CHANNELS;

/// The fractional bits of a weight: products with a byte and their sums fit 32 bits.
const FRACTION_BITS: u32 = 22;

/// Resizes an image of `rows` x `columns` x 3 bytes like `Image.resize(..., BILINEAR)` of Pillow.
///
/// # Panics
/// If `pixels` has another length, or a size is 0.
///
/// ```
/// use shafer_data::dataset::resize;
///
/// // A black and a white pixel, to four.
/// let pixels = resize(&[0, 0, 0, 255, 255, 255], (1, 2), (1, 4));
/// assert_eq!(pixels, [0, 0, 0, 64, 64, 64, 191, 191, 191, 255, 255, 255]);
/// ```
pub fn resize(pixels: &[u8], (rows, columns): (usize, usize), to: (usize, usize)) -> Vec<u8> {
    assert_eq!(pixels.len(), rows * columns * CHANNELS, "the image has another size");
    assert!(rows * columns * to.0 * to.1 > 0, "an image has at least one pixel");
    let wide = if to.1 == columns { pixels.to_vec() } else { horizontal(pixels, columns, to.1) };
    if to.0 == rows { wide } else { vertical(&wide, to.1 * CHANNELS, rows, to.0) }
}

/// The input pixels that an output pixel depends on.
struct Taps {
    first: usize,
    weights: Vec<i32>,
}

/// For each of `to` output pixels the weights of the `from` input pixels.
fn taps(from: usize, to: usize) -> impl Iterator<Item = Taps> {
    let scale = from as f64 / to as f64;
    let support = scale.max(1.0);
    (0..to).map(move |at| {
        let centre = (at as f64 + 0.5) * scale;
        let first = (centre - support + 0.5).max(0.0) as usize;
        let end = ((centre + support + 0.5) as usize).min(from);
        let triangle =
            |x: usize| (1.0 - ((x as f64 - centre + 0.5) * (1.0 / support)).abs()).max(0.0);
        let total: f64 = (first..end).map(triangle).sum();
        let unit = f64::from(1 << FRACTION_BITS);
        let weights = (first..end).map(|x| (triangle(x) / total * unit).round() as i32).collect();
        Taps { first, weights }
    })
}

/// A weighted sum of bytes, rounded to a byte.
fn weighted(values: impl Iterator<Item = u8>, weights: &[i32]) -> u8 {
    let half = 1 << (FRACTION_BITS - 1);
    let sum =
        values.zip(weights).fold(half, |sum, (value, weight)| sum + i32::from(value) * weight);
    (sum >> FRACTION_BITS).clamp(0, 255) as u8
}

fn horizontal(pixels: &[u8], from: usize, to: usize) -> Vec<u8> {
    let taps: Vec<Taps> = taps(from, to).collect();
    let mut resized = Vec::with_capacity(pixels.len() / from * to);
    for row in pixels.chunks_exact(from * CHANNELS) {
        for Taps { first, weights } in &taps {
            let window = &row[first * CHANNELS..(first + weights.len()) * CHANNELS];
            for channel in 0..CHANNELS {
                let values = window.iter().skip(channel).step_by(CHANNELS).copied();
                resized.push(weighted(values, weights));
            }
        }
    }
    resized
}

fn vertical(pixels: &[u8], stride: usize, from: usize, to: usize) -> Vec<u8> {
    let mut resized = Vec::with_capacity(to * stride);
    let mut sums = vec![0_i32; stride];
    for Taps { first, weights } in taps(from, to) {
        sums.fill(1 << (FRACTION_BITS - 1));
        let rows = pixels[first * stride..].chunks_exact(stride);
        for (row, &weight) in rows.zip(&weights) {
            for (sum, &value) in sums.iter_mut().zip(row) {
                *sum += i32::from(value) * weight;
            }
        }
        resized.extend(sums.iter().map(|sum| (sum >> FRACTION_BITS).clamp(0, 255) as u8));
    }
    resized
}
