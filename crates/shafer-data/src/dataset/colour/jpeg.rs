//! JPEG files that a CSV file lists, loose in folders or in tar archives.

use std::path::{Path, PathBuf};

use zune_jpeg::JpegDecoder;
use zune_jpeg::zune_core::bytestream::ZCursor;
use zune_jpeg::zune_core::colorspace::ColorSpace;
use zune_jpeg::zune_core::options::DecoderOptions;

use super::csv_split::Listing;
use super::images::{CHANNELS, ColourImages, zeroed};
use crate::dataset::catalogue::{ColourSet, ColourSource, JpegFiles, Set};
use crate::dataset::find::Found;
use crate::dataset::load::Split;
use crate::dataset::tree::{files, label_of, walk};
use crate::npy::cut;
use crate::{Error, Result};

/// Whether a folder has a CSV file that lists the images, and the images. `paths` are those of the
/// catalogue's files, if they are present.
pub(crate) fn find_jpegs(set: &Set, place: &Path, paths: &[Option<PathBuf>]) -> Result<bool> {
    let Some(ColourSet { source: ColourSource::Jpeg(jpeg), .. }) = &set.colour else {
        return Ok(false);
    };
    let has = |name: &String| path_of(set, paths, name).is_some();
    let listed = has(&jpeg.all) || (has(&jpeg.train) && has(&jpeg.val));
    let archived = jpeg.archives.iter().all(has);
    Ok(listed && (archived || files(place)?.iter().any(|path| is_jpeg(path))))
}

/// The files that a split is read from: CSV files, and archives or loose images.
pub(crate) fn sources(found: &Found, jpeg: &JpegFiles) -> Result<Vec<PathBuf>> {
    let paths = found.set.paths(&found.place)?;
    let path = |name: &String| path_of(&found.set, &paths, name).map(Path::to_owned);
    let mut sources: Vec<PathBuf> =
        [&jpeg.train, &jpeg.val, &jpeg.all].into_iter().filter_map(path).collect();
    match archives(&found.set, jpeg, &paths) {
        Some(archives) => sources.extend(archives.into_iter().map(Path::to_owned)),
        None => sources.extend(files(&found.place)?.into_iter().filter(|path| is_jpeg(path))),
    }
    Ok(sources)
}

/// Reads the images of a split, in the order of its CSV file.
pub(crate) fn read_jpegs(
    found: &Found,
    set: &ColourSet,
    jpeg: &JpegFiles,
    split: Split,
) -> Result<ColourImages> {
    let place = found.place.display().to_string();
    let paths = found.set.paths(&found.place)?;
    let listing = Listing::read(jpeg, split, &|name| path_of(&found.set, &paths, name))?;
    let positions = listing.positions()?;
    let (rows, columns) = (set.rows, set.columns);
    let size = rows * columns * CHANNELS;
    let mut pixels = zeroed(&place, listing.images.len(), rows, columns)?;
    let mut seen = vec![false; listing.images.len()];

    let position = |path: &Path| positions.get(path.file_name()?.to_str()?).copied();
    let mut read = |source: &Path| {
        let label = source.display().to_string();
        walk(source, &|path| position(path).is_some(), &mut |path, bytes| {
            // The same file can lie in several folders: the first counts.
            if let Some(index) = position(path).filter(|&index| !seen[index]) {
                let target = &mut pixels[index * size..(index + 1) * size];
                decode(&label_of(&label, path), &bytes, rows, columns, target)?;
                seen[index] = true;
            }
            Ok(())
        })
    };
    match archives(&found.set, jpeg, &paths) {
        Some(archives) => archives.into_iter().try_for_each(&mut read)?,
        None => read(&found.place)?,
    }
    if let Some(missing) = seen.iter().position(|&seen| !seen) {
        let (name, _, line) = &listing.images[missing];
        let count = seen.iter().filter(|&&seen| !seen).count();
        let problem = format!(
            "line {line}: {name} is not in {place} ({count} of {} images are missing)",
            seen.len()
        );
        return Err(Error::format(
            &listing.file,
            problem,
            "add the images or the archive with them",
        ));
    }
    listing.labelled(pixels, rows, columns)
}

fn path_of<'a>(set: &Set, paths: &'a [Option<PathBuf>], name: &str) -> Option<&'a Path> {
    let index = set.files.iter().position(|file| file.name == name)?;
    paths.get(index)?.as_deref()
}

/// The archives, if all of them are present.
fn archives<'a>(
    set: &Set,
    jpeg: &JpegFiles,
    paths: &'a [Option<PathBuf>],
) -> Option<Vec<&'a Path>> {
    let archives: Option<Vec<_>> =
        jpeg.archives.iter().map(|name| path_of(set, paths, name)).collect();
    archives.filter(|archives| !archives.is_empty())
}

fn is_jpeg(path: &Path) -> bool {
    path.extension()
        .is_some_and(|e| e.eq_ignore_ascii_case("jpg") || e.eq_ignore_ascii_case("jpeg"))
}

/// Decodes a JPEG file of `rows` x `columns` pixels, colour or grey, to RGB.
fn decode(label: &str, bytes: &[u8], rows: usize, columns: usize, pixels: &mut [u8]) -> Result<()> {
    // The decoder repairs what it can. A damaged image is an error here, as in strict mode.
    let options =
        DecoderOptions::default().set_strict_mode(true).jpeg_set_out_colorspace(ColorSpace::RGB);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let broken = |problem: String| {
        let problem = format!("is not a valid JPEG file ({})", cut(&problem, 200));
        Error::format(label, problem, "it is damaged: copy it again")
    };
    decoder.decode_headers().map_err(|e| broken(e.to_string()))?;
    let (width, height) = decoder.dimensions().unwrap_or_default();
    if (height, width) != (rows, columns) {
        let problem = format!("is {height}x{width}, not {rows}x{columns}");
        return Err(Error::format(label, problem, "resize the images, or get the resized set"));
    }
    decoder.decode_into(pixels).map_err(|e| broken(e.to_string()))
}
