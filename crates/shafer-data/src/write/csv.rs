//! Sparse rows as CSV.

use std::fmt::LowerExp;
use std::io::{self, Write};
use std::path::Path;

use super::{Compressed, Form, RowWriter, SparseRows};
use crate::{AtomicFile, Dtype, Result, ValuesRef};

pub(super) const HEADER: &[u8] = b"row,class,probability\n";

/// Writes a header, then a line `row,class,probability` per kept class. Rows and classes count from 0. Numbers
/// have the shortest digits that round-trip.
///
/// ```
/// use shafer_data::{CsvWriter, Dtype, RowWriter, SparseRows};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.csv");
/// let mut writer = Box::new(CsvWriter::create(&path, 3, Dtype::F64)?);
/// writer.write(SparseRows::new(&[0, 1, 3], &[2, 0, 1], [1.0, 0.5, 0.5][..].into()))?;
/// writer.finish()?;
/// let text = std::fs::read_to_string(&path)?;
/// assert_eq!(text, "row,class,probability\n0,2,1\n1,0,0.5\n1,1,0.5\n");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct CsvWriter {
    file: AtomicFile,
    form: Form,
    rows: usize,
    compressed: Compressed,
}

impl CsvWriter {
    /// Creates a file.
    pub fn create(path: &Path, classes: usize, dtype: Dtype) -> Result<Self> {
        let form = Form::new(path, classes, dtype)?;
        let mut file = AtomicFile::create(path)?;
        file.write_all(HEADER).map_err(|e| file.failed(e))?;
        Ok(Self { file, form, rows: 0, compressed: Compressed::default() })
    }

    fn put<T: Copy + LowerExp + std::fmt::Display + Into<f64>>(
        &mut self,
        rows: &SparseRows<'_>,
        values: &[T],
    ) -> io::Result<()> {
        for ends in rows.indptr.windows(2) {
            let row = self.rows;
            let kept = ends[0]..ends[1];
            for (class, &value) in rows.indices[kept.clone()].iter().zip(&values[kept]) {
                let size = value.into().abs();
                // Scientific notation for very small numbers, which would be mostly zeros.
                if size < 1e-5 && size > 0.0 {
                    writeln!(self.file, "{row},{class},{value:e}")?;
                } else {
                    writeln!(self.file, "{row},{class},{value}")?;
                }
            }
            self.rows += 1;
        }
        Ok(())
    }
}

impl RowWriter for CsvWriter {
    fn write(&mut self, rows: SparseRows<'_>) -> Result<()> {
        rows.check(self.file.label(), self.form)?;
        match rows.values {
            ValuesRef::F16(values) => self.put(&rows, values),
            ValuesRef::Bf16(values) => self.put(&rows, values),
            ValuesRef::F32(values) => self.put(&rows, values),
            ValuesRef::F64(values) => self.put(&rows, values),
        }
        .map_err(|e| self.file.failed(e))
    }

    fn write_dense(&mut self, values: ValuesRef<'_>) -> Result<()> {
        self.form.check_dense(self.file.label(), values)?;
        let mut compressed = std::mem::take(&mut self.compressed);
        let done = self.write(compressed.fill(values, self.form.classes));
        self.compressed = compressed;
        done
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.file.commit()
    }
}
