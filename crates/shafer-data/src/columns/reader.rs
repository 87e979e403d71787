//! Assembles blocks of rows from the columns of batches.

use arrow_array::RecordBatch;

use super::lists::Numbers;
use super::{Batches, DAMAGED, Place};
use crate::fortran::{BUDGET, GROUP, pitch, scatter};
use crate::{ArrayInfo, ArrayReader, Columns, Error, Result, Values};

/// Reads one column directly, or interleaves several.
pub(super) struct ColumnsReader {
    label: String,
    info: ArrayInfo,
    taken: Columns,
    batches: Box<dyn Batches>,
    /// The batch that was read to know the length of its rows.
    first: Option<RecordBatch>,
    /// The label of each column, and its place in a batch.
    labels: Vec<(String, usize)>,
    /// The values per row and column.
    length: usize,
    /// The remaining elements.
    left: usize,
    /// The rows of all batches so far.
    rows: usize,
    columns: Vec<Numbers>,
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
        first: Option<RecordBatch>,
        labels: Vec<(String, usize)>,
        length: usize,
    ) -> Self {
        Self {
            label: label.to_owned(),
            left: info.elements().unwrap_or(0),
            info,
            taken,
            batches,
            first,
            labels,
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
            let batch = self.first.take().map_or_else(|| self.batches.next(), |b| Ok(Some(b)))?;
            let Some(batch) = batch else {
                let problem = format!("ends after {} of {} rows", self.rows, self.info.shape[0]);
                return Err(Error::format(&self.label, problem, DAMAGED));
            };
            let rows = batch.num_rows();
            if rows > self.info.shape[0] - self.rows {
                return Err(Error::format(&self.label, "has more rows than it claims", DAMAGED));
            }
            let columns = self.labels.iter().map(|(label, at)| {
                let place = Place { label: label.clone(), first: self.rows, length: self.length };
                Numbers::new(&place, batch.column(*at))
            });
            self.columns = columns.collect::<Result<_>>()?;
            self.rows += rows;
            self.in_batch = rows * self.length;
        }
        Ok(())
    }

    /// Interleaves the next rows of several columns, with one value each.
    fn next_rows(&mut self) {
        let (size, count) = (self.info.dtype.size(), self.columns.len());
        let rows = (BUDGET / size / count).clamp(1, self.in_batch);
        let pitch = pitch(rows * size);
        self.together.resize(rows * count * size, 0);
        self.apart.resize(GROUP * pitch, 0);
        for (group, columns) in self.columns.chunks_mut(GROUP).enumerate() {
            for (column, bytes) in columns.iter_mut().zip(self.apart.chunks_exact_mut(pitch)) {
                column.read(&mut bytes[..rows * size]);
            }
            let places: [usize; GROUP] = std::array::from_fn(|i| group * GROUP + i);
            let places = &places[..columns.len()];
            scatter(&self.apart, pitch, places, size, &mut self.together, count);
        }
        self.in_batch -= rows;
        self.used = 0;
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
                column.read(&mut rest[..values * size]);
                self.in_batch -= values;
                values * size
            } else {
                if self.used == self.together.len() {
                    self.next_rows();
                }
                let taken = rest.len().min(self.together.len() - self.used);
                rest[..taken].copy_from_slice(&self.together[self.used..][..taken]);
                self.used += taken;
                taken
            };
            rest = &mut rest[taken..];
        }
        self.left -= n;
        if self.left == 0 && n > 0 && self.batches.next()?.is_some() {
            return Err(Error::format(&self.label, "has more rows than it claims", DAMAGED));
        }
        Ok(())
    }
}
