//! Writers of dense and sparse rows.

mod columns;
mod csr;
mod csv;
mod npy;
mod npz;
mod parquet;
mod part;
mod recognise;
mod safetensors;
mod table;
mod zip;

use std::fmt;
use std::path::Path;

use half::{bf16, f16};

pub use self::csv::CsvWriter;
pub use self::parquet::ParquetWriter;
pub use self::part::{TableCopy, table_note};
pub use npy::NpyWriter;
pub use npz::CsrNpzWriter;
pub use recognise::written_here;
pub use safetensors::SafetensorsWriter;
pub use table::{Column, TableWriter, write_table};

use crate::{Dtype, Error, Result, ValuesRef};

/// The prefix of our metadata keys in tables.
const NOTE: &str = "shafer.";

/// Rows of a CSR matrix: row `i` has `values[indptr[i]..indptr[i + 1]]` in the columns
/// `indices[indptr[i]..indptr[i + 1]]`.
///
/// ```
/// use shafer_data::SparseRows;
///
/// let rows = SparseRows::new(&[0, 1, 3], &[2, 0, 1], [1.0_f32, 0.5, 0.5][..].into());
/// assert_eq!(rows.count(), 2);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct SparseRows<'a> {
    indptr: &'a [usize],
    indices: &'a [u32],
    values: ValuesRef<'a>,
}

impl<'a> SparseRows<'a> {
    /// Rows of a matrix. Writing them checks that the slices are consistent.
    ///
    /// ```
    /// use shafer_data::{SparseRows, ValuesRef};
    ///
    /// assert_eq!(SparseRows::new(&[0], &[], ValuesRef::F32(&[])).count(), 0);
    /// ```
    pub fn new(indptr: &'a [usize], indices: &'a [u32], values: ValuesRef<'a>) -> Self {
        Self { indptr, indices, values }
    }

    /// The number of rows.
    ///
    /// ```
    /// use shafer_data::{SparseRows, ValuesRef};
    ///
    /// assert_eq!(SparseRows::new(&[0, 0, 0], &[], ValuesRef::F32(&[])).count(), 2);
    /// ```
    pub fn count(&self) -> usize {
        self.indptr.len().saturating_sub(1)
    }

    /// Checks that the slices are consistent with each other and the number of columns.
    fn check(&self, label: &str, form: Form) -> Result<()> {
        let n = self.indices.len();
        let whole = self.indptr.first() == Some(&0) && self.indptr.last() == Some(&n);
        if !whole || !self.indptr.is_sorted() || self.values.len() != n {
            let problem = "the rows to be written are inconsistent";
            return Err(Error::request(label, problem));
        }
        // No early exit, so that the loop vectorises.
        let beyond = |class: &&u32| **class >= form.classes as u32;
        if self.indices.iter().filter(beyond).count() > 0
            && let Some(class) = self.indices.iter().max()
        {
            let problem = format!("a row to be written has class {class} of {}", form.classes);
            return Err(Error::request(label, problem));
        }
        form.check_dtype(label, self.values.dtype())
    }
}

/// The type and the width of all rows of a file.
#[derive(Clone, Copy, Debug)]
struct Form {
    classes: usize,
    dtype: Dtype,
}

impl Form {
    fn new(path: &Path, classes: usize, dtype: Dtype) -> Result<Self> {
        // Readers store column indices as i32 or i64. Ours are u32.
        if classes == 0 || i32::try_from(classes).is_err() {
            let problem =
                format!("cannot hold rows of {classes} classes; 1 to {} can be", i32::MAX);
            return Err(Error::request(&path.display().to_string(), problem));
        }
        Ok(Self { classes, dtype })
    }

    fn check_dtype(self, label: &str, found: Dtype) -> Result<()> {
        if found == self.dtype {
            return Ok(());
        }
        let problem = format!("has values of type {} and cannot take {found}", self.dtype);
        Err(Error::request(label, problem))
    }

    /// Checks that dense values are whole rows.
    fn check_dense(self, label: &str, values: ValuesRef<'_>) -> Result<()> {
        if !values.len().is_multiple_of(self.classes) {
            let (n, classes) = (values.len(), self.classes);
            let problem = format!("{n} values are not a whole number of rows of {classes} classes");
            return Err(Error::request(label, problem));
        }
        self.check_dtype(label, values.dtype())
    }
}

/// Writes rows to a file, in blocks. The file appears on [`finish`](Self::finish).
pub trait RowWriter: Send {
    /// Writes sparse rows.
    fn write(&mut self, rows: SparseRows<'_>) -> Result<()>;

    /// Writes dense rows. Sparse formats store the values that are not 0.
    fn write_dense(&mut self, values: ValuesRef<'_>) -> Result<()>;

    /// Completes the file and renames it to its target.
    fn finish(self: Box<Self>) -> Result<()>;
}

impl fmt::Debug for dyn RowWriter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RowWriter")
    }
}

/// Creates a file for rows of `classes` values. The extension decides the format: `.npy` is dense, and `.npz`
/// (for `scipy.sparse.load_npz`), `.safetensors`, `.parquet` and `.csv` are sparse.
///
/// ```
/// use shafer_data::{Dtype, Location, SparseRows, Values, create, open};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.npy");
/// let mut writer = create(&path, 3, Dtype::F32)?;
/// writer.write(SparseRows::new(&[0, 1, 3], &[2, 0, 1], [1.0_f32, 0.5, 0.5][..].into()))?;
/// writer.finish()?;
///
/// let mut block = Values::default();
/// open(&Location { path: Some(path), name: None })?.read(100, &mut block)?;
/// assert_eq!(block, Values::F32(vec![0.0, 0.0, 1.0, 0.5, 0.5, 0.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn create(path: &Path, classes: usize, dtype: Dtype) -> Result<Box<dyn RowWriter>> {
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
    Ok(match ending.to_ascii_lowercase().as_str() {
        "npy" => Box::new(NpyWriter::create(path, classes, dtype)?),
        "npz" => Box::new(CsrNpzWriter::create(path, classes, dtype)?),
        "safetensors" => Box::new(SafetensorsWriter::create(path, classes, dtype)?),
        "parquet" => Box::new(ParquetWriter::create(path, classes, dtype)?),
        "csv" => Box::new(CsvWriter::create(path, classes, dtype)?),
        _ => {
            return Err(Error::request(
                &path.display().to_string(),
                "cannot be written; end its name in .npy, .npz, .safetensors, .parquet or .csv",
            ));
        }
    })
}

/// The type to write, for formats that lack some types.
fn widened(values: ValuesRef<'_>, wide: &mut Vec<f32>) {
    wide.clear();
    match values {
        ValuesRef::F16(v) => wide.extend(v.iter().map(|v| v.to_f32())),
        ValuesRef::Bf16(v) => wide.extend(v.iter().map(|v| v.to_f32())),
        ValuesRef::F32(v) => wide.extend_from_slice(v),
        ValuesRef::F64(v) => wide.extend(v.iter().map(|&v| v as f32)),
    }
}

/// Dense rows without their zeros.
#[derive(Debug, Default)]
struct Compressed {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: crate::Values,
}

impl Compressed {
    fn fill(&mut self, values: ValuesRef<'_>, classes: usize) -> SparseRows<'_> {
        self.indptr.clear();
        self.indptr.push(0);
        self.indices.clear();
        self.values = match values {
            ValuesRef::F16(v) => crate::Values::F16(self.keep(v, classes, f16::ZERO)),
            ValuesRef::Bf16(v) => crate::Values::Bf16(self.keep(v, classes, bf16::ZERO)),
            ValuesRef::F32(v) => crate::Values::F32(self.keep(v, classes, 0.0)),
            ValuesRef::F64(v) => crate::Values::F64(self.keep(v, classes, 0.0)),
        };
        SparseRows::new(&self.indptr, &self.indices, self.values.view())
    }

    fn keep<T: Copy + PartialEq>(&mut self, values: &[T], classes: usize, zero: T) -> Vec<T> {
        let mut kept = Vec::new();
        for row in values.chunks_exact(classes) {
            for (class, &value) in row.iter().enumerate() {
                if value != zero {
                    self.indices.push(class as u32);
                    kept.push(value);
                }
            }
            self.indptr.push(kept.len());
        }
        kept
    }
}

/// The little-endian bytes of numbers of `size` bytes each.
fn little_endian<'a>(bytes: &'a [u8], size: usize, swapped: &'a mut Vec<u8>) -> &'a [u8] {
    if cfg!(target_endian = "little") || size == 1 {
        return bytes;
    }
    swapped.clear();
    swapped.extend_from_slice(bytes);
    crate::values::swap_bytes(swapped, size);
    swapped
}
