//! Sparse rows in the format of `scipy.sparse.save_npz`.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::mpsc::sync_channel;

use crc32fast::Hasher;

use super::columns::Columns;
use super::csr::Csr;
use super::zip::{ARRAY_HEADER, ZipWriter, hashed};
use super::{Form, RowWriter, SparseRows, little_endian, widened};
use crate::atomic::Spill;
use crate::npy::header_bytes;
use crate::raw::fill;
use crate::{AtomicFile, Dtype, Result, ValuesRef};

/// The members in the order of `SciPy`.
pub(super) const MEMBERS: [&str; 5] =
    ["indices.npy", "indptr.npy", "format.npy", "shape.npy", "data.npy"];

/// Writes a CSR matrix for `scipy.sparse.load_npz`: the members, types and values are those that
/// `scipy.sparse.save_npz(path, matrix, compressed=False)` writes. `SciPy` has no sparse f16 or bf16:
/// such values are written as f32, without loss.
///
/// Members of a zip archive are written one after the other: indices and row pointers go to anonymous
/// temporary files until all values are written.
///
/// ```
/// use shafer_data::{CsrNpzWriter, Dtype, RowWriter, SparseRows};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.npz");
/// let mut writer = Box::new(CsrNpzWriter::create(&path, 3, Dtype::F32)?);
/// writer.write(SparseRows::new(&[0, 1, 3], &[2, 0, 1], [1.0_f32, 0.5, 0.5][..].into()))?;
/// writer.finish()?;
/// let arrays = shafer_data::list(&path)?;
/// assert_eq!(arrays[0].to_string(), "data: f32 (3,)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CsrNpzWriter {
    zip: ZipWriter,
    csr: Csr,
    indices: Columns,
    indptr: Spill,
    /// The largest number for which indices and row pointers have 32 bits.
    narrow: usize,
}

impl CsrNpzWriter {
    /// Creates a file.
    pub fn create(path: &Path, classes: usize, dtype: Dtype) -> Result<Self> {
        let csr = Csr::new(Form::new(path, classes, dtype)?);
        let file = AtomicFile::create(path)?;
        let (indices, indptr) = (Columns::new(&file, classes)?, file.spill()?);
        let mut zip = ZipWriter::new(file);
        zip.begin("data.npy").map_err(|e| zip.file.failed(e))?;
        let narrow = i32::MAX as usize;
        let mut this = Self { zip, csr, indices, indptr, narrow };
        this.indptr.write_all(&[0; 8]).map_err(|e| this.zip.file.failed(e))?;
        Ok(this)
    }

    fn put(&mut self, rows: SparseRows<'_>) -> io::Result<()> {
        let Csr { wide, swapped, .. } = &mut self.csr;
        let values = match rows.values {
            ValuesRef::F16(_) | ValuesRef::Bf16(_) => {
                widened(rows.values, wide);
                ValuesRef::F32(wide)
            }
            values => values,
        };
        self.zip.write(little_endian(values.bytes(), values.dtype().size(), swapped))?;
        self.indices.put(rows.indptr, rows.indices)?;
        let ends = self.csr.add(rows.indptr);
        let bytes = little_endian(bytemuck::cast_slice(&ends), 8, &mut self.csr.swapped);
        self.indptr.write_all(bytes)?;
        self.csr.reuse(ends);
        Ok(())
    }

    fn complete(&mut self) -> io::Result<()> {
        let Self { zip, csr, indices, indptr, narrow } = self;
        let header = |descr: &str, shape: &[usize]| header_bytes(descr, shape, ARRAY_HEADER);
        let descr = if csr.form.dtype == Dtype::F64 { "<f8" } else { "<f4" };
        zip.end(&header(descr, &[csr.stored]))?;

        // The rule of SciPy: 32 bits if the shape and the number of values fit.
        let largest = csr.form.classes.max(csr.rows).max(csr.stored);
        let narrow = largest <= *narrow;
        let descr = if narrow { "<i4" } else { "<i8" };
        zip.begin("indices.npy")?;
        write_columns(zip, indices, narrow)?;
        zip.end(&header(descr, &[csr.stored]))?;
        zip.begin("indptr.npy")?;
        convert(indptr, 8, |bytes| {
            if !narrow {
                return zip.write(bytes);
            }
            // The upper half of each is 0.
            let low = bytes.as_chunks::<8>().0.iter().flat_map(|b| [b[0], b[1], b[2], b[3]]);
            zip.write(&low.collect::<Vec<u8>>())
        })?;
        zip.end(&header(descr, &[csr.rows + 1]))?;

        zip.begin("format.npy")?;
        zip.write(b"csr")?;
        zip.end(&header("|S3", &[]))?;
        zip.begin("shape.npy")?;
        zip.write(&(csr.rows as i64).to_le_bytes())?;
        zip.write(&(csr.form.classes as i64).to_le_bytes())?;
        zip.end(&header("<i8", &[2]))
    }
}

/// Writes the columns as the elements of the member that is open: a second thread makes bytes of the
/// next ones meanwhile.
fn write_columns(zip: &mut ZipWriter, columns: &mut Columns, narrow: bool) -> io::Result<()> {
    let (full, pieces) = sync_channel::<(Vec<u8>, Hasher)>(2);
    let (empty, used) = sync_channel::<Vec<u8>>(4);
    std::thread::scope(|scope| {
        let maker = scope.spawn(move || {
            columns.take(|columns| {
                let mut bytes = used.try_recv().unwrap_or_default();
                bytes.clear();
                if !narrow {
                    bytes
                        .extend(columns.iter().flat_map(|&column| u64::from(column).to_le_bytes()));
                } else if cfg!(target_endian = "little") {
                    bytes.extend_from_slice(bytemuck::cast_slice(columns));
                } else {
                    bytes.extend(columns.iter().flat_map(|column| column.to_le_bytes()));
                }
                let hash = hashed(&bytes);
                // Fails if the writer has stopped, whose error is reported.
                full.send((bytes, hash)).map_err(|_| io::ErrorKind::BrokenPipe.into())
            })
        });
        let written = pieces.into_iter().try_for_each(|(bytes, hash)| {
            zip.write_hashed(&bytes, &hash)?;
            // Fails after the last block, when the thread has ended.
            let _ = empty.try_send(bytes);
            Ok(())
        });
        let made = maker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        written.and(made)
    })
}

/// Passes a spill file on in blocks of whole elements.
fn convert(
    spill: &mut Spill,
    size: usize,
    mut put: impl FnMut(&[u8]) -> io::Result<()>,
) -> io::Result<()> {
    let file: &mut dyn Read = spill.rewind()?;
    let mut buffer = vec![0; size << 16];
    loop {
        let n = fill(file, &mut buffer)?;
        if n == 0 {
            return Ok(());
        }
        put(&buffer[..n])?;
    }
}

impl RowWriter for CsrNpzWriter {
    fn write(&mut self, rows: SparseRows<'_>) -> Result<()> {
        rows.check(self.zip.file.label(), self.csr.form)?;
        self.put(rows).map_err(|e| self.zip.file.failed(e))
    }

    fn write_dense(&mut self, values: ValuesRef<'_>) -> Result<()> {
        self.csr.form.check_dense(self.zip.file.label(), values)?;
        let mut compressed = std::mem::take(&mut self.csr.compressed);
        let done = self.write(compressed.fill(values, self.csr.form.classes));
        self.csr.compressed = compressed;
        done
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.complete().map_err(|e| self.zip.file.failed(e))?;
        let label = self.zip.file.label().to_owned();
        let file = self.zip.finish(&MEMBERS);
        file.map_err(|e| crate::Error::io(&label, "write", e))?.commit()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The elements of a member, found by its name, and the type it gives.
    fn member(bytes: &[u8], name: &str, length: usize) -> (String, Vec<u8>) {
        let at = bytes.windows(name.len()).position(|part| part == name.as_bytes()).unwrap();
        let array = &bytes[at + name.len() + 20..];
        let header = crate::npy::Header::read("x", &mut &*array).unwrap();
        (header.descr, array[header.length as usize..][..length].to_vec())
    }

    #[test]
    fn the_limit_of_narrow_indices() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        for (limit, descr, size) in [(5, "<i4", 4), (4, "<i8", 8)] {
            let mut writer = Box::new(CsrNpzWriter::create(&path, 3, Dtype::F32).unwrap());
            writer.narrow = limit;
            let values = ValuesRef::F32(&[1.0, 2.0, 3.0, 4.0, 5.0]);
            writer.write(SparseRows::new(&[0, 2, 5], &[0, 2, 0, 1, 2], values)).unwrap();
            writer.finish().unwrap();
            let bytes = std::fs::read(&path).unwrap();
            let wide = |numbers: &[u8]| -> Vec<u8> {
                numbers.iter().flat_map(|&n| [vec![n], vec![0; size - 1]].concat()).collect()
            };
            let expected = wide(&[0, 2, 0, 1, 2]);
            assert_eq!(member(&bytes, "indices.npy", 5 * size), (descr.to_owned(), expected));
            let expected = wide(&[0, 2, 5]);
            assert_eq!(member(&bytes, "indptr.npy", 3 * size), (descr.to_owned(), expected));
        }
    }
}
