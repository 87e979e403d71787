//! Whether a file can be one of ours.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use half::{bf16, f16};

use super::{csv, npz, safetensors};
use crate::npz::Archive;
use crate::safetensors::read_header;
use crate::{Error, Location, Result, Values, open};

/// Whether [`create`](crate::create) or [`write_table`](crate::write_table) can have written a file, by the
/// ending of its name and by its contents. A file that cannot be read is none of theirs.
///
/// ```
/// use shafer_data::{Dtype, create, written_here};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.csv");
/// create(&path, 3, Dtype::F32)?.finish()?;
/// assert!(written_here(&path));
/// std::fs::write(&path, "name,age\n")?;
/// assert!(!written_here(&path));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn written_here(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    match ending.to_ascii_lowercase().as_str() {
        "npy" => probabilities(path),
        "npz" => archive(path),
        "safetensors" => tensors(path),
        "parquet" => parquet(path),
        "csv" => text(path),
        _ => return false,
    }
    .unwrap_or(false)
}

/// Probabilities lie between 0 and 1. Logits hardly do.
fn probabilities(path: &Path) -> Result<bool> {
    const LOOKED_AT: usize = 1 << 16;
    let mut reader = open(&Location { path: Some(path.to_owned()), name: None })?;
    let mut block = Values::default();
    reader.read(LOOKED_AT, &mut block)?;
    Ok(match &block {
        Values::F16(v) => v.iter().all(|v| (f16::ZERO..=f16::ONE).contains(v)),
        Values::Bf16(v) => v.iter().all(|v| (bf16::ZERO..=bf16::ONE).contains(v)),
        Values::F32(v) => v.iter().all(|v| (0.0..=1.0).contains(v)),
        Values::F64(v) => v.iter().all(|v| (0.0..=1.0).contains(v)),
    })
}

fn archive(path: &Path) -> Result<bool> {
    let (label, file) = opened(path)?;
    Ok(Archive::open(&label, file)?.stores_exactly(&npz::MEMBERS))
}

fn tensors(path: &Path) -> Result<bool> {
    let (label, mut file) = opened(path)?;
    let mut names: Vec<String> =
        read_header(&label, &mut file)?.into_iter().map(|tensor| tensor.name).collect();
    names.sort();
    Ok(names == safetensors::NAMES)
}

/// The footer has our metadata. Its length and the magic bytes come last.
fn parquet(path: &Path) -> Result<bool> {
    const LONGEST: u64 = 1 << 27;
    let (label, mut file) = opened(path)?;
    let io = |e| Error::io(&label, "read", e);
    let mut end = [0; 8];
    file.seek(SeekFrom::End(-8)).map_err(io)?;
    file.read_exact(&mut end).map_err(io)?;
    let [size @ .., b'P', b'A', b'R', b'1'] = end else { return Ok(false) };
    let size = i64::from(u32::from_le_bytes(size));
    file.seek(SeekFrom::End(-8 - size)).map_err(io)?;
    let mut footer = Vec::new();
    file.take((size as u64).min(LONGEST)).read_to_end(&mut footer).map_err(io)?;
    Ok(footer.windows(super::NOTE.len()).any(|bytes| bytes == super::NOTE.as_bytes()))
}

fn text(path: &Path) -> Result<bool> {
    let (label, mut file) = opened(path)?;
    let mut start = vec![0; csv::HEADER.len()];
    file.read_exact(&mut start).map_err(|e| Error::io(&label, "read", e))?;
    Ok(start == csv::HEADER)
}

fn opened(path: &Path) -> Result<(String, File)> {
    let label = path.display().to_string();
    let file = File::open(path).map_err(|e| Error::io(&label, "open", e))?;
    Ok((label, file))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::{Column, Dtype, SparseRows, create, write_table};

    const ENDINGS: [&str; 5] = ["npy", "npz", "safetensors", "parquet", "csv"];

    #[test]
    fn what_is_written_is_recognised_by_ending_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64] {
            for ending in ENDINGS {
                let path = folder.path().join(format!("a.{ending}"));
                let mut writer = create(&path, 3, dtype).unwrap();
                let (half, brain) = ([f16::ONE], [bf16::ONE]);
                let values = match dtype {
                    Dtype::F16 => half[..].into(),
                    Dtype::Bf16 => brain[..].into(),
                    Dtype::F32 => [1.0_f32][..].into(),
                    Dtype::F64 => [1.0_f64][..].into(),
                };
                writer.write(SparseRows::new(&[0, 1, 1], &[2], values)).unwrap();
                writer.finish().unwrap();
                assert!(written_here(&path), "{dtype} {ending}");
                // The same contents under another ending are not.
                for other in ENDINGS.iter().filter(|other| **other != ending) {
                    let renamed = folder.path().join(format!("b.{other}"));
                    std::fs::copy(&path, &renamed).unwrap();
                    assert!(!written_here(&renamed), "{ending} as {other}");
                }
            }
        }
        let table = folder.path().join("t.parquet");
        write_table(&table, &[("a", Column::Integers(vec![1]))]).unwrap();
        assert!(written_here(&table));
        // What pyarrow wrote is not.
        let fixtures = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/tables"));
        let tables: Vec<_> = std::fs::read_dir(fixtures)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "parquet"))
            .collect();
        assert!(!tables.is_empty());
        assert!(tables.iter().all(|path| !written_here(path)), "{tables:?}");
    }
}
