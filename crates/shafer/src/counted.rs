//! Blocks of compressed rows that are counted before they have their place.

use crate::block::Worker;
use crate::compressed::{Places, Unscaled};
use crate::element::Element;
use crate::error::Result;
use crate::in_order::{BlockWriter, Size};
use crate::kernel::{Cut, TILE_CLASSES};
use crate::logits::Logits;
use crate::transform::Rule;

/// From so many logits on, rows are copied to their place past the caches, which would not hold them.
const PAST_CACHES: usize = 1 << 22;

/// A thread's block, on the way to its place.
pub(crate) struct Counted<'a, E: Element> {
    worker: Worker<'a, E>,
    classes: usize,
    past_caches: bool,
    /// The number of its first row.
    start: usize,
    /// Where its rows are cut off, if they are yet to be written;
    cuts: Vec<Cut<E::Compute>>,
    /// the rows, if they are yet to be copied.
    rows: Unscaled<E>,
}

impl<'a, E: Element> Counted<'a, E> {
    pub(crate) fn new(rule: &'a Rule, logits: &'a Logits<'a, E>) -> Self {
        let classes = logits.classes();
        Self {
            worker: Worker::new(rule, logits).skipping(rayon::current_num_threads() - 1),
            classes,
            past_caches: logits.len() >= PAST_CACHES && classes > TILE_CLASSES,
            start: 0,
            cuts: Vec::new(),
            rows: Unscaled::default(),
        }
    }
}

impl<E: Element> BlockWriter<E> for Counted<'_, E> {
    fn prepare(&mut self, start: usize, count: usize) -> Result<Size> {
        self.start = start;
        if let Some(size) = self.worker.cuts(start, count, &mut self.cuts) {
            return size;
        }
        let Unscaled { rows, factor } = &mut self.rows;
        rows.reset(self.classes);
        *factor = self.past_caches.then_some(1.0);
        let unscaled = if count == 1 { factor.as_mut() } else { None };
        let vacuous = self.worker.compressed(start, count, rows, unscaled)?;
        Ok(Size { entries: rows.stored(), vacuous })
    }

    fn write(&mut self, place: Places<'_, E>) {
        if self.cuts.is_empty() {
            place.put(&self.rows);
        } else {
            self.worker.write_above(self.start, &self.cuts, place);
        }
    }
}
