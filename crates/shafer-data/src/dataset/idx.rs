//! IDX, the format of MNIST: four magic bytes, the length of each axis, the values.

use std::io::Read;
use std::path::Path;

use super::images::{Images, MOST_BYTES};
use super::packed;
use crate::raw::fill;
use crate::{Error, Result};

const UNSIGNED_BYTES: u8 = 0x08;

const DAMAGED: &str = "it is damaged: copy or fetch it again";

/// Reads images and labels from two IDX files, which can be compressed.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (images, labels) = (folder.path().join("images"), folder.path().join("labels"));
/// std::fs::write(&images, b"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x03abcdef")?;
/// std::fs::write(&labels, b"\0\0\x08\x01\0\0\0\x02\x07\x04")?;
/// let read = shafer_data::dataset::read_idx(&images, &labels)?;
/// assert_eq!((read.len(), read.rows, read.columns), (2, 1, 3));
/// assert_eq!(read.image(1), b"def");
/// assert_eq!(read.labels, [7, 4]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_idx(images: &Path, labels: &Path) -> Result<Images> {
    let ([count, rows, columns], pixels) = read::<3>(images)?;
    let ([label_count], label_values) = read::<1>(labels)?;
    if count != label_count {
        let problem =
            format!("has {count} images, but {} has {label_count} labels", labels.display());
        let hint = "the files belong to different sets";
        return Err(Error::format(&images.display().to_string(), problem, hint));
    }
    if pixels.is_empty() {
        let problem = format!("has {count} images of {rows}x{columns} pixels");
        return Err(Error::format(&images.display().to_string(), problem, "it must not be empty"));
    }
    Ok(Images { pixels, rows, columns, labels: label_values, skipped: 0 })
}

/// The length of each axis, and the values.
fn read<const AXES: usize>(path: &Path) -> Result<([usize; AXES], Vec<u8>)> {
    let label = path.display().to_string();
    let mut source = packed::open(path)?;
    let failed = |e| packed::failed(&label, e);
    let damaged = |problem: String| Error::format(&label, problem, DAMAGED);

    let mut start = [0; 4];
    let n = fill(&mut *source, &mut start).map_err(failed)?;
    if start[..n.min(2)].iter().any(|&byte| byte != 0) || n == 0 {
        let start = start[..n].escape_ascii();
        return Err(damaged(format!(
            "begins with \"{start}\", which is not the magic number of IDX"
        )));
    }
    let mut lengths = [[0; 4]; AXES];
    let header_ends = || damaged("ends within the IDX header".to_owned());
    if n < start.len() {
        return Err(header_ends());
    }
    let [_, _, kind, axes] = start;
    if kind != UNSIGNED_BYTES {
        let problem = format!("has {}", kind_name(kind));
        return Err(Error::format(
            &label,
            problem,
            "images and labels must be unsigned bytes (0x08)",
        ));
    }
    if usize::from(axes) != AXES {
        let problem = format!("has {axes} axes, not {AXES}");
        let hint = "images have three, labels have one; are the two files swapped?";
        return Err(Error::format(&label, problem, hint));
    }
    let header = lengths.as_flattened_mut();
    if fill(&mut *source, header).map_err(failed)? < header.len() {
        return Err(header_ends());
    }
    let lengths = lengths.map(|length| u32::from_be_bytes(length) as usize);
    let total = lengths.iter().try_fold(1_usize, |total, &n| total.checked_mul(n));
    let Some(total) = total.filter(|&total| total <= MOST_BYTES) else {
        let lengths = lengths.map(|n| n.to_string()).join("x");
        return Err(damaged(format!("claims {lengths} bytes, more than {MOST_BYTES}")));
    };
    // Memory grows with the data that is present: a damaged header can claim any length.
    let mut values = Vec::new();
    source.by_ref().take(total as u64).read_to_end(&mut values).map_err(failed)?;
    if values.len() < total {
        return Err(damaged(format!("ends after {} of {total} bytes", values.len())));
    }
    if fill(&mut *source, &mut [0]).map_err(failed)? > 0 {
        return Err(damaged(format!("has data after its {total} bytes")));
    }
    Ok((lengths, values))
}

fn kind_name(kind: u8) -> String {
    let name = match kind {
        0x09 => "signed bytes",
        0x0b => "16-bit integers",
        0x0c => "32-bit integers",
        0x0d => "32-bit floats",
        0x0e => "64-bit floats",
        _ => "values of an unknown type",
    };
    format!("{name} ({kind:#04x})")
}
