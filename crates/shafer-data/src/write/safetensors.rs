//! Sparse rows as `.safetensors`.

use std::io::{self, Write};
use std::path::Path;

use super::csr::Csr;
use super::{Form, RowWriter, SparseRows, little_endian};
use crate::atomic::Spill;
use crate::{AtomicFile, Dtype, Result, ValuesRef};

/// The names of the tensors, sorted.
pub(super) const NAMES: [&str; 3] = ["indices", "indptr", "values"];

/// The tensors of a CSR matrix.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Part {
    Values,
    Indices,
    Indptr,
}

/// The order of the tensors. Readers map the file, so each tensor must be aligned to its element size for any
/// number of values, without padding. The first tensor is written in place, the others to temporary files.
fn layout(dtype: Dtype) -> [Part; 3] {
    match dtype {
        Dtype::F64 => [Part::Values, Part::Indptr, Part::Indices],
        // A value and an index of four bytes each make eight.
        Dtype::F32 => [Part::Values, Part::Indices, Part::Indptr],
        Dtype::F16 | Dtype::Bf16 => [Part::Indptr, Part::Indices, Part::Values],
    }
}

/// Writes a CSR matrix as the tensors `values`, `indices` (I32) and `indptr` (I64), with the
/// metadata `format` (`csr`) and `shape` (such as `[1000, 512]`).
///
/// ```
/// use shafer_data::{Dtype, RowWriter, SafetensorsWriter, SparseRows};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.safetensors");
/// let mut writer = Box::new(SafetensorsWriter::create(&path, 3, Dtype::F64)?);
/// writer.write(SparseRows::new(&[0, 1, 3], &[2, 0, 1], [1.0, 0.5, 0.5][..].into()))?;
/// writer.finish()?;
/// assert_eq!(shafer_data::list(&path)?[0].to_string(), "values: f64 (3,)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SafetensorsWriter {
    file: AtomicFile,
    csr: Csr,
    /// The temporary files of the second and the third tensor.
    spills: [Spill; 2],
}

impl SafetensorsWriter {
    /// Creates a file.
    pub fn create(path: &Path, classes: usize, dtype: Dtype) -> Result<Self> {
        let csr = Csr::new(Form::new(path, classes, dtype)?);
        let file = AtomicFile::create(path)?;
        let spills = [file.spill()?, file.spill()?];
        let mut this = Self { file, csr, spills };
        let room = 8 + room(this.csr.form);
        this.file.write_all(&vec![0; room]).map_err(|e| this.file.failed(e))?;
        this.put(Part::Indptr, &[0; 8]).map_err(|e| this.file.failed(e))?;
        Ok(this)
    }

    fn put(&mut self, part: Part, bytes: &[u8]) -> io::Result<()> {
        let [first, second, _] = layout(self.csr.form.dtype);
        if part == first {
            self.file.write_all(bytes)
        } else if part == second {
            self.spills[0].write_all(bytes)
        } else {
            self.spills[1].write_all(bytes)
        }
    }

    fn put_rows(&mut self, rows: SparseRows<'_>) -> io::Result<()> {
        let mut swapped = std::mem::take(&mut self.csr.swapped);
        let size = self.csr.form.dtype.size();
        self.put(Part::Values, little_endian(rows.values.bytes(), size, &mut swapped))?;
        let indices = bytemuck::cast_slice(rows.indices);
        self.put(Part::Indices, little_endian(indices, 4, &mut swapped))?;
        let ends = self.csr.add(rows.indptr);
        let bytes = little_endian(bytemuck::cast_slice(&ends), 8, &mut swapped);
        self.put(Part::Indptr, bytes)?;
        self.csr.reuse(ends);
        self.csr.swapped = swapped;
        Ok(())
    }

    fn complete(&mut self) -> io::Result<()> {
        for spill in &mut self.spills {
            self.file.append(spill)?;
        }
        let Csr { form, rows, stored, .. } = self.csr;
        let mut text = header(form, rows, stored).into_bytes();
        // The format pads the header with spaces.
        text.resize(room(form), b' ');
        let mut start = (text.len() as u64).to_le_bytes().to_vec();
        start.extend(text);
        self.file.patch(0, &start)
    }
}

/// The space to reserve for the header: a multiple of eight, to align the data.
fn room(form: Form) -> usize {
    // Larger than any file, without overflow of the offsets.
    let most = usize::MAX / 32;
    header(form, most, most).len().next_multiple_of(8)
}

fn header(form: Form, rows: usize, stored: usize) -> String {
    let mut at = 0;
    let tensors = layout(form.dtype).map(|part| {
        let dtype = match form.dtype {
            Dtype::F16 => "F16",
            Dtype::Bf16 => "BF16",
            Dtype::F32 => "F32",
            Dtype::F64 => "F64",
        };
        let (name, dtype, n, size) = match part {
            Part::Values => ("values", dtype, stored, form.dtype.size()),
            Part::Indices => ("indices", "I32", stored, 4),
            Part::Indptr => ("indptr", "I64", rows + 1, 8),
        };
        let start = at;
        at += n * size;
        format!(r#","{name}":{{"dtype":"{dtype}","shape":[{n}],"data_offsets":[{start},{at}]}}"#)
    });
    let tensors = tensors.concat();
    let classes = form.classes;
    format!(r#"{{"__metadata__":{{"format":"csr","shape":"[{rows}, {classes}]"}}{tensors}}}"#)
}

impl RowWriter for SafetensorsWriter {
    fn write(&mut self, rows: SparseRows<'_>) -> Result<()> {
        rows.check(self.file.label(), self.csr.form)?;
        self.put_rows(rows).map_err(|e| self.file.failed(e))
    }

    fn write_dense(&mut self, values: ValuesRef<'_>) -> Result<()> {
        self.csr.form.check_dense(self.file.label(), values)?;
        let mut compressed = std::mem::take(&mut self.csr.compressed);
        let done = self.write(compressed.fill(values, self.csr.form.classes));
        self.csr.compressed = compressed;
        done
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.complete().map_err(|e| self.file.failed(e))?;
        self.file.commit()
    }
}
