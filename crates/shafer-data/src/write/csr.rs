//! The row pointers of the sparse formats.

use super::{Compressed, Form};

/// The rows of a matrix written so far, and a buffer that is reused between blocks.
#[derive(Debug)]
pub(super) struct Csr {
    pub(super) form: Form,
    pub(super) rows: usize,
    /// The number of values written so far.
    pub(super) stored: usize,
    pub(super) compressed: Compressed,
    pub(super) wide: Vec<f32>,
    pub(super) swapped: Vec<u8>,
    ends: Vec<i64>,
}

impl Csr {
    pub(super) fn new(form: Form) -> Self {
        let compressed = Compressed::default();
        let (wide, swapped, ends) = (Vec::new(), Vec::new(), Vec::new());
        Self { form, rows: 0, stored: 0, compressed, wide, swapped, ends }
    }

    /// Adds rows, and returns their end offsets in the whole matrix.
    pub(super) fn add(&mut self, indptr: &[usize]) -> Vec<i64> {
        let mut ends = std::mem::take(&mut self.ends);
        ends.clear();
        ends.extend(indptr[1..].iter().map(|&end| (self.stored + end) as i64));
        self.rows += ends.len();
        self.stored += indptr[indptr.len() - 1];
        ends
    }

    /// Returns the buffer that [`add`](Self::add) lent.
    pub(super) fn reuse(&mut self, ends: Vec<i64>) {
        self.ends = ends;
    }
}
