//! Dense rows as `.npy`.

use std::io::Write;
use std::path::Path;

use super::{Form, RowWriter, SparseRows, little_endian, widened};
use crate::array::{elements, shape_text};
use crate::npy::header_bytes;
use crate::{AtomicFile, Dtype, Error, Result, Values, ValuesRef};

/// The space reserved for the header: enough for any shape of [`MOST_AXES`] axes.
const HEADER: usize = 256;
const MOST_AXES: usize = 8;

/// The elements of the buffer that converts sparse rows to dense ones.
const BLOCK: usize = 1 << 20;

/// Writes a dense `.npy`. `NumPy` has no bf16: such values are written as f32, without loss.
///
/// ```
/// use shafer_data::{Dtype, NpyWriter, RowWriter};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.npy");
/// let mut writer = Box::new(NpyWriter::create(&path, 2, Dtype::F32)?);
/// writer.write_dense([0.25_f32, 0.75, 1.0, 0.0][..].into())?;
/// writer.finish()?;
/// assert_eq!(shafer_data::list(&path)?[0].shape, [2, 2]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct NpyWriter {
    file: AtomicFile,
    form: Form,
    shape: Option<Vec<usize>>,
    written: usize,
    dense: Values,
    wide: Vec<f32>,
    swapped: Vec<u8>,
}

impl NpyWriter {
    /// Creates a file.
    pub fn create(path: &Path, classes: usize, dtype: Dtype) -> Result<Self> {
        let form = Form::new(path, classes, dtype)?;
        let mut file = AtomicFile::create(path)?;
        // The number of rows is filled in at the end.
        file.write_all(&[0; HEADER]).map_err(|e| file.failed(e))?;
        let (dense, wide, swapped) = (Values::default(), Vec::new(), Vec::new());
        Ok(Self { file, form, shape: None, written: 0, dense, wide, swapped })
    }

    /// Sets the shape of the array, instead of rows x classes.
    ///
    /// ```
    /// use shafer_data::{Dtype, NpyWriter, RowWriter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("rows.npy");
    /// let mut writer = Box::new(NpyWriter::create(&path, 2, Dtype::F64)?.shaped(&[2, 1, 2])?);
    /// writer.write_dense([0.25, 0.75, 1.0, 0.0][..].into())?;
    /// writer.finish()?;
    /// assert_eq!(shafer_data::list(&path)?[0].shape, [2, 1, 2]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn shaped(mut self, shape: &[usize]) -> Result<Self> {
        if shape.len() > MOST_AXES {
            let problem =
                format!("cannot be written with {} axes; {MOST_AXES} can be", shape.len());
            return Err(Error::request(self.file.label(), problem));
        }
        self.shape = Some(shape.to_vec());
        Ok(self)
    }

    fn put(&mut self, values: ValuesRef<'_>) -> Result<()> {
        self.written += values.len();
        let values = match values {
            ValuesRef::Bf16(_) => {
                widened(values, &mut self.wide);
                ValuesRef::F32(&self.wide)
            }
            values => values,
        };
        let bytes = little_endian(values.bytes(), values.dtype().size(), &mut self.swapped);
        self.file.write_all(bytes).map_err(|e| self.file.failed(e))
    }
}

impl RowWriter for NpyWriter {
    fn write(&mut self, rows: SparseRows<'_>) -> Result<()> {
        rows.check(self.file.label(), self.form)?;
        let Form { classes, dtype } = self.form;
        let size = dtype.size();
        let values = rows.values.bytes();
        let mut dense = std::mem::take(&mut self.dense);
        let step = (BLOCK / classes).max(1);
        for first in (0..rows.count()).step_by(step) {
            let last = rows.count().min(first + step);
            let memory = |_| Error::memory(self.file.label());
            let bytes = dense.bytes_mut(dtype, (last - first) * classes).map_err(memory)?;
            // Zero bytes are the zero of every type.
            bytes.fill(0);
            let ends = rows.indptr[first..=last].windows(2);
            for (row, ends) in bytes.chunks_exact_mut(classes * size).zip(ends) {
                let kept = values[ends[0] * size..ends[1] * size].chunks_exact(size);
                for (&class, value) in rows.indices[ends[0]..ends[1]].iter().zip(kept) {
                    row[class as usize * size..][..size].copy_from_slice(value);
                }
            }
            self.put(dense.view())?;
        }
        self.dense = dense;
        Ok(())
    }

    fn write_dense(&mut self, values: ValuesRef<'_>) -> Result<()> {
        self.form.check_dense(self.file.label(), values)?;
        self.put(values)
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let rows = self.written / self.form.classes;
        let shape = self.shape.take().unwrap_or_else(|| vec![rows, self.form.classes]);
        if elements(&shape) != Some(self.written) {
            let (n, shape) = (self.written, shape_text(&shape));
            let problem = format!("{n} values were written for an array of shape {shape}");
            return Err(Error::request(self.file.label(), problem));
        }
        let descr = match self.form.dtype {
            Dtype::F16 => "<f2",
            Dtype::Bf16 | Dtype::F32 => "<f4",
            Dtype::F64 => "<f8",
        };
        let header = header_bytes(descr, &shape, HEADER);
        debug_assert_eq!(header.len(), HEADER);
        self.file.patch(0, &header).map_err(|e| self.file.failed(e))?;
        self.file.commit()
    }
}
