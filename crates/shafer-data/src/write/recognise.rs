//! Whether a file can be the output of an earlier run.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

use super::{csv, npz, safetensors};
use crate::array::elements;
use crate::npz::Archive;
use crate::safetensors::read_header;
use crate::{Error, Location, Result, Values, open};

/// Whether [`create`](crate::create) or [`write_table`](crate::write_table) can have written a file, judging by
/// its extension and contents. False for a file that cannot be read. An `.npy` carries no mark: it counts as
/// written here if it holds distributions.
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
        "npy" => distributions(path),
        "npz" => archive(path),
        "safetensors" => tensors(path),
        "parquet" => parquet(path),
        "csv" => text(path),
        _ => return false,
    }
    .unwrap_or(false)
}

/// Whether the first million elements are distributions along some axis: nonnegative and with sum 1, or with
/// several groups side by side, with their number as sum. Masks have whole sums, too, but hold only 0 and 1.
fn distributions(path: &Path) -> Result<bool> {
    const SAMPLE: usize = 1 << 20;
    let mut reader = open(&Location { path: Some(path.to_owned()), name: None })?;
    let mut block = Values::default();
    reader.read(SAMPLE, &mut block)?;
    let (values, tolerance): (Vec<f64>, _) = match &block {
        Values::F16(v) => (v.iter().map(|v| v.to_f64()).collect(), 1e-2),
        Values::Bf16(v) => (v.iter().map(|v| v.to_f64()).collect(), 1e-2),
        Values::F32(v) => (v.iter().map(|&v| f64::from(v)).collect(), 1e-3),
        Values::F64(v) => (v.clone(), 1e-3),
    };
    if !values.iter().all(|v| (0.0..=1.0).contains(v)) {
        return Ok(false);
    }
    let binary = values.iter().all(|&v| v == 0.0 || v == 1.0);
    let shape = &reader.info().shape;
    Ok((0..shape.len()).filter(|&axis| shape[axis] > 1).any(|axis| {
        let Some(slab @ 1..) = elements(&shape[axis..]) else { return false };
        let inner = slab / shape[axis];
        // A file whose rows are longer than the sample is not recognised: then --force is needed.
        let mut sums = values.chunks_exact(slab).flat_map(|slab| {
            (0..inner).map(move |first| slab[first..].iter().step_by(inner).sum::<f64>())
        });
        let Some(first) = sums.next() else { return false };
        let groups = first.round();
        let whole = |sum: f64| (sum - groups).abs() <= tolerance;
        (groups == 1.0 || groups > 1.0 && !binary) && whole(first) && sums.all(whole)
    }))
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
    use crate::{Column, Dtype, NpyWriter, RowWriter, SparseRows, create, write_table};
    use half::{bf16, f16};

    const ENDINGS: [&str; 5] = ["npy", "npz", "safetensors", "parquet", "csv"];

    #[test]
    fn what_is_written_is_recognised_by_ending_and_contents() {
        let folder = tempfile::tempdir().unwrap();
        for dtype in [Dtype::F16, Dtype::Bf16, Dtype::F32, Dtype::F64] {
            for ending in ENDINGS {
                let path = folder.path().join(format!("a.{ending}"));
                let mut writer = create(&path, 3, dtype).unwrap();
                let (half, brain) = ([f16::ONE; 2], [bf16::ONE; 2]);
                let values = match dtype {
                    Dtype::F16 => half[..].into(),
                    Dtype::Bf16 => brain[..].into(),
                    Dtype::F32 => [1.0_f32; 2][..].into(),
                    Dtype::F64 => [1.0_f64; 2][..].into(),
                };
                writer.write(SparseRows::new(&[0, 1, 2], &[2, 0], values)).unwrap();
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

    #[test]
    fn an_npy_is_recognised_by_its_sums() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let recognised = |shape: &[usize], values: &[f32]| {
            let writer = NpyWriter::create(&path, shape[shape.len() - 1], Dtype::F32).unwrap();
            let mut writer = Box::new(writer.shaped(shape).unwrap());
            writer.write_dense(values.into()).unwrap();
            writer.finish().unwrap();
            written_here(&path)
        };
        assert!(recognised(&[2, 2], &[0.25, 0.75, 1.0, 0.0]));
        // Classes along the first axis.
        assert!(recognised(&[2, 2], &[0.25, 1.0, 0.75, 0.0]));
        assert!(recognised(&[2, 2, 2], &[0.25, 1.0, 0.75, 0.0, 0.5, 0.5, 0.5, 0.5]));
        // Two groups.
        assert!(recognised(&[1, 4], &[0.25, 0.75, 0.5, 0.5]));
        // Logits, masks and images.
        assert!(!recognised(&[1, 2], &[3.0, -2.0]));
        assert!(!recognised(&[4], &[1.0, 1.0, 0.0, 1.0]));
        assert!(!recognised(&[2, 2], &[1.0, 1.0, 1.0, 1.0]));
        assert!(!recognised(&[2, 2], &[0.0, 0.5, 0.9, 0.3]));
        assert!(!recognised(&[2, 2], &[0.25, 0.75, 0.5, 0.4]));
        assert!(!recognised(&[1, 1], &[1.0]));
        // A shape whose product overflows.
        let header = "{'descr': '<f4', 'fortran_order': False, 'shape': (0, 1099511627776, 1099511627776), }\n";
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((header.len() as u16).to_le_bytes());
        bytes.extend(header.as_bytes());
        std::fs::write(&path, bytes).unwrap();
        assert!(!written_here(&path));
    }
}
