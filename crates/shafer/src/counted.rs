//! Blocks of compressed rows that are counted before they have their place.

use std::mem::swap;
use std::ops::Range;

use crate::block::{Chosen, Worker};
use crate::compressed::{CompressedRows, Places};
use crate::element::Element;
use crate::error::Result;
use crate::in_order::{BlockWriter, Size};
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
    /// The rows, if they have been counted and are yet to be written;
    chosen: Chosen<E::Compute>,
    /// if not, and they are yet to be copied.
    rows: CompressedRows<E>,
    /// Memory for the rows after them.
    next: Chosen<E::Compute>,
}

impl<'a, E: Element> Counted<'a, E> {
    pub(crate) fn new(rule: &'a Rule, logits: &'a Logits<'a, E>) -> Self {
        Self {
            worker: Worker::new(rule, logits).skipping(rayon::current_num_threads() - 1),
            classes: logits.classes(),
            few: false,
            chosen: Chosen::default(),
            rows: CompressedRows::new(),
            next: Chosen::default(),
        }
    }

    /// Whether the next rows are counted.
    pub(crate) fn counts(&self) -> bool {
        !self.few && self.worker.counts()
    }

    /// Learns from the size of so many rows what to do with the next ones.
    fn learn(&mut self, rows: usize, size: Size) -> Size {
        self.few = size.entries < rows * self.classes / FEW;
        size
    }
}

impl<E: Element> BlockWriter<E> for Counted<'_, E> {
    fn prepare(&mut self, rows: Range<usize>) -> Result<Size> {
        let count = rows.len();
        self.chosen.clear();
        let size = if self.counts() {
            self.worker.choose(rows, &mut self.chosen)?
        } else {
            self.rows.reset(self.classes);
            let vacuous = self.worker.compressed(rows.start, count, &mut self.rows)?;
            Size { entries: self.rows.stored(), vacuous }
        };
        Ok(self.learn(count, size))
    }

    fn write(&mut self, place: Places<'_, E>) {
        if self.chosen.is_empty() {
            place.put(&self.rows);
        } else {
            self.worker.write(&self.chosen, place);
        }
    }

    fn write_and_prepare(&mut self, place: Places<'_, E>, rows: Range<usize>) -> Result<Size> {
        if self.chosen.is_empty() || !self.counts() {
            self.write(place);
            return self.prepare(rows);
        }
        let count = rows.len();
        let size = self.worker.write_and_choose(&self.chosen, place, rows, &mut self.next)?;
        swap(&mut self.chosen, &mut self.next);
        Ok(self.learn(count, size))
    }
}
