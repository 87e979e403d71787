//! Assembles blocks of rows from the columns of batches.

use super::{Batch, Batches, DAMAGED, Numbers};
use crate::fortran::{BUDGET, GROUP, pitch, scatter};
use crate::values::swap_bytes;
use crate::{ArrayInfo, ArrayReader, Columns, Error, Result, Values};

/// Reads one column directly, or interleaves several.
pub(super) struct ColumnsReader {
    label: String,
    info: ArrayInfo,
    taken: Columns,
    batches: Box<dyn Batches>,
    /// The values per row and column.
    length: usize,
    /// The remaining elements.
    left: usize,
    /// The rows of all batches so far.
    rows: usize,
    columns: Vec<Box<dyn Numbers>>,
    /// The remaining values per column of the batch.
    in_batch: usize,
    /// Interleaved rows, and the number of bytes of them that were returned.
    together: Vec<u8>,
    used: usize,
    apart: Vec<u8>,
}

impl ColumnsReader {
    /// `info` describes all columns together. Its number of elements must not overflow.
    pub(super) fn new(
        label: &str,
        info: ArrayInfo,
        taken: Columns,
        batches: Box<dyn Batches>,
        length: usize,
    ) -> Self {
        Self {
            label: label.to_owned(),
            left: info.elements().unwrap_or(0),
            info,
            taken,
            batches,
            length,
            rows: 0,
            columns: Vec::new(),
            in_batch: 0,
            together: Vec::new(),
            used: 0,
            apart: Vec::new(),
        }
    }

    /// Advances to the next batch if the current one is exhausted.
    fn next_batch(&mut self) -> Result<()> {
        while self.in_batch == 0 {
            let Some(Batch { rows, columns }) = self.batches.next(self.rows)? else {
                let problem = format!("ends after {} of {} rows", self.rows, self.info.shape[0]);
                return Err(Error::format(&self.label, problem, DAMAGED));
            };
            self.rows += rows;
            self.columns = columns;
            self.in_batch = rows * self.length;
        }
        Ok(())
    }

    /// Interleaves the next rows of several columns, with one value each.
    fn next_rows(&mut self) -> Result<()> {
        let (size, count) = (self.info.dtype.size(), self.columns.len());
        let rows = (BUDGET / size / count).clamp(1, self.in_batch);
        let pitch = pitch(rows * size);
        self.together.resize(rows * count * size, 0);
        self.apart.resize(GROUP * pitch, 0);
        for (group, columns) in self.columns.chunks_mut(GROUP).enumerate() {
            for (column, bytes) in columns.iter_mut().zip(self.apart.chunks_exact_mut(pitch)) {
                column.read(&mut bytes[..rows * size])?;
            }
            let places: [usize; GROUP] = std::array::from_fn(|i| group * GROUP + i);
            let places = &places[..columns.len()];
            scatter(&self.apart, pitch, places, size, &mut self.together, count);
        }
        self.in_batch -= rows;
        self.used = 0;
        Ok(())
    }
}

impl ArrayReader for ColumnsReader {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn columns(&self) -> Option<&Columns> {
        Some(&self.taken)
    }

    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()> {
        let n = elements.min(self.left);
        let size = self.info.dtype.size();
        let memory = |_| Error::memory(&self.label);
        let bytes = block.bytes_mut(self.info.dtype, n).map_err(memory)?;
        let mut rest = &mut *bytes;
        while !rest.is_empty() {
            if self.used == self.together.len() {
                self.next_batch()?;
            }
            let taken = if let [column] = &mut self.columns[..] {
                let values = self.in_batch.min(rest.len() / size);
                column.read(&mut rest[..values * size])?;
                self.in_batch -= values;
                values * size
            } else {
                if self.used == self.together.len() {
                    self.next_rows()?;
                }
                let taken = rest.len().min(self.together.len() - self.used);
                rest[..taken].copy_from_slice(&self.together[self.used..][..taken]);
                self.used += taken;
                taken
            };
            rest = &mut rest[taken..];
        }
        if cfg!(target_endian = "big") {
            swap_bytes(bytes, size);
        }
        self.left -= n;
        Ok(())
    }
}
