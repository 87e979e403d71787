//! Images as PNG files with one folder per class, the layout of notMNIST.

use std::io::Cursor;
use std::path::Path;

use png::{BitDepth, ColorType, Decoder, Limits, Transformations};

use super::images::{Images, MOST_BYTES};
use super::tree::{label_of, walk};
use crate::{Error, Result};

/// Larger than any image of these sets. Bounds the memory that a damaged file can claim.
const MOST_PIXELS: usize = 1 << 20;

/// Reads grey PNG files with one folder per class, such as `A/` to `J/`, from a folder or a tar archive.
///
/// The label of an image is the index of its folder's name in `classes`. Other folders are ignored. Files
/// that are not valid PNG are counted and skipped: the published sets contain some. An image of another
/// size than the first is an error.
///
/// ```
/// use shafer_data::dataset::read_png_folders;
///
/// # let folder = tempfile::tempdir()?;
/// # let mut encoded = Vec::new();
/// # let mut encoder = png::Encoder::new(&mut encoded, 2, 1);
/// # encoder.set_color(png::ColorType::Grayscale);
/// # encoder.write_header()?.write_image_data(&[3, 250])?;
/// std::fs::create_dir(folder.path().join("B"))?;
/// std::fs::write(folder.path().join("B/one.png"), &encoded)?;
/// std::fs::write(folder.path().join("B/two.png"), "broken")?;
/// let images = read_png_folders(folder.path(), &["A", "B"])?;
/// assert_eq!((images.len(), images.rows, images.columns), (1, 1, 2));
/// assert_eq!((images.image(0), images.labels[0]), (&[3, 250][..], 1));
/// assert_eq!(images.skipped, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_png_folders(place: &Path, classes: &[impl AsRef<str>]) -> Result<Images> {
    let place_label = place.display().to_string();
    let mut images =
        Images { pixels: Vec::new(), rows: 0, columns: 0, labels: Vec::new(), skipped: 0 };
    walk(place, &|path| class_of(path, classes).is_some(), &mut |path, contents| {
        let label = label_of(&place_label, path);
        let Some(class) = class_of(path, classes) else { return Ok(()) };
        let Some((rows, columns, pixels)) = decode(&contents) else {
            images.skipped += 1;
            return Ok(());
        };
        let Some(pixels) = pixels else {
            let hint = "convert the images to 8-bit grey";
            return Err(Error::format(&label, "is not a grey image", hint));
        };
        if images.is_empty() {
            (images.rows, images.columns) = (rows, columns);
        } else if (rows, columns) != (images.rows, images.columns) {
            let problem = format!(
                "is {rows}x{columns}, but the first image is {}x{}",
                images.rows, images.columns
            );
            return Err(Error::format(&label, problem, "all images must have the same size"));
        }
        if images.pixels.len() + pixels.len() > MOST_BYTES {
            let problem = format!("has more than {MOST_BYTES} bytes of pixels");
            return Err(Error::format(&place_label, problem, "use a part of the set"));
        }
        images.pixels.extend_from_slice(&pixels);
        images.labels.push(class);
        Ok(())
    })?;
    if images.is_empty() {
        let (skipped, hint) = (images.skipped, "expected PNG files in one folder per class");
        let problem = format!("has no valid image and {skipped} invalid ones");
        return Err(Error::format(&place_label, problem, hint));
    }
    Ok(images)
}

/// The index of the class that the folder of an image names. Ignores dot files, which macOS adds to
/// archives.
fn class_of(path: &Path, classes: &[impl AsRef<str>]) -> Option<u8> {
    let name = path.file_name()?.to_str()?;
    let folder = path.parent()?.file_name()?.to_str()?;
    let png = path.extension()?.eq_ignore_ascii_case("png") && !name.starts_with('.');
    let class = classes.iter().position(|class| class.as_ref() == folder)?;
    u8::try_from(class).ok().filter(|_| png)
}

/// Rows, columns and pixels. No pixels if the image is not grey, and `None` if it is damaged.
fn decode(contents: &[u8]) -> Option<(usize, usize, Option<Vec<u8>>)> {
    let limits = Limits { bytes: 4 * MOST_PIXELS };
    let mut decoder = Decoder::new_with_limits(Cursor::new(contents), limits);
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    let mut reader = decoder.read_info().ok()?;
    let (columns, rows) = (reader.info().width as usize, reader.info().height as usize);
    if rows.checked_mul(columns).is_none_or(|pixels| pixels > MOST_PIXELS) {
        return None;
    }
    let mut pixels = vec![0; reader.output_buffer_size()?];
    let grey = reader.output_color_type() == (ColorType::Grayscale, BitDepth::Eight);
    reader.next_frame(&mut pixels).ok()?;
    Some((rows, columns, grey.then_some(pixels)))
}
