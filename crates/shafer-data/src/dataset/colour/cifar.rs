//! CIFAR's binary format: records of a label and three planes.

use super::images::{CHANNELS, ColourImages, zeroed};
use crate::dataset::catalogue::{CifarFiles, ColourSet};
use crate::dataset::find::Found;
use crate::{Error, Result};

const HINT: &str = "it is damaged: fetch it again";

/// Reads the images of `files`, in order.
pub(crate) fn read_cifar(
    found: &Found,
    set: &ColourSet,
    cifar: &CifarFiles,
    files: &[String],
) -> Result<ColourImages> {
    let place = found.place.display().to_string();
    let (rows, columns) = (set.rows, set.columns);
    let plane = rows * columns;
    let record = 1 + CHANNELS * plane;
    let contents = found.read(files)?;
    let mut count = 0;
    for (label, bytes) in &contents {
        if bytes.is_empty() || bytes.len() % record != 0 {
            let problem = format!(
                "has {} bytes, not a multiple of {record} (a label and {rows}x{columns} pixels of 3 bytes)",
                bytes.len()
            );
            return Err(Error::format(label, problem, HINT));
        }
        count += bytes.len() / record;
    }
    let mut pixels = zeroed(&place, count, rows, columns)?;
    let mut labels = Vec::with_capacity(count);
    let mut images = pixels.chunks_exact_mut(CHANNELS * plane);
    // Each file is freed once it is copied.
    for (_, bytes) in contents {
        for (record, image) in bytes.chunks_exact(record).zip(&mut images) {
            labels.push(u16::from(record[0]));
            interleave(&record[1..], image);
        }
    }
    let images = ColourImages { pixels, rows, columns, labels, classes: cifar.classes.clone() };
    images.check_classes(&place, HINT)?;
    Ok(images)
}

/// Planes of red, green and blue to pixels of three bytes.
fn interleave(planes: &[u8], pixels: &mut [u8]) {
    let plane = planes.len() / CHANNELS;
    for (at, pixel) in pixels.chunks_exact_mut(CHANNELS).enumerate() {
        for (channel, value) in pixel.iter_mut().enumerate() {
            *value = planes[channel * plane + at];
        }
    }
}

/// Pixels of three bytes to planes of red, green and blue: the inverse of [`interleave`].
pub(crate) fn planes_of(pixels: &[u8], planes: &mut [u8]) {
    let plane = planes.len() / CHANNELS;
    for (at, pixel) in pixels.chunks_exact(CHANNELS).enumerate() {
        for (channel, &value) in pixel.iter().enumerate() {
            planes[channel * plane + at] = value;
        }
    }
}
