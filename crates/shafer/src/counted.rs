//! Blocks of compressed rows that are counted before they have their place.

use crate::block::Worker;
use crate::compressed::{CompressedRows, Places};
use crate::element::Element;
use crate::error::Result;
use crate::in_order::{BlockWriter, Size};
use crate::kernel::Cut;
use crate::logits::Logits;
use crate::transform::Rule;

/// Less than one class in so many is few.
const FEW: usize = 16;

/// A thread's block, on the way to its place.
pub(crate) struct Counted<'a, E: Element> {
    worker: Worker<'a, E>,
    classes: usize,
    /// Whether the block before kept so little that copying it is less work than counting it.
    few: bool,
    /// The number of its first row.
    start: usize,
    /// Where its rows are cut off, if they are yet to be written;
    cuts: Vec<Cut<E::Compute>>,
    /// the rows, if they are yet to be copied.
    rows: CompressedRows<E>,
}

impl<'a, E: Element> Counted<'a, E> {
    pub(crate) fn new(rule: &'a Rule, logits: &'a Logits<'a, E>) -> Self {
        let classes = logits.classes();
        Self {
            worker: Worker::new(rule, logits).skipping(rayon::current_num_threads() - 1),
            classes,
            few: false,
            start: 0,
            cuts: Vec::new(),
            rows: CompressedRows::new(),
        }
    }
}

impl<E: Element> BlockWriter<E> for Counted<'_, E> {
    fn prepare(&mut self, start: usize, count: usize) -> Result<Size> {
        self.start = start;
        self.cuts.clear();
        let counted = if self.few { None } else { self.worker.cuts(start, count, &mut self.cuts) };
        let size = if let Some(size) = counted {
            size?
        } else {
            self.rows.reset(self.classes);
            let vacuous = self.worker.compressed(start, count, &mut self.rows)?;
            Size { entries: self.rows.stored(), vacuous }
        };
        self.few = size.entries < count * self.classes / FEW;
        Ok(size)
    }

    fn write(&mut self, place: Places<'_, E>) {
        if self.cuts.is_empty() {
            place.put(&self.rows);
        } else {
            self.worker.write_above(self.start, &self.cuts, place);
        }
    }
}
