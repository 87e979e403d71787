//! What the sparse formats have in common.

use super::{Compressed, Form};

/// The rows so far of a matrix that is being written, and memory that is used from one block to the
/// next.
#[derive(Debug)]
pub(super) struct Csr {
    pub(super) form: Form,
    pub(super) rows: usize,
    /// The number of values so far.
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

    /// Counts rows, and returns where each of them ends in the whole matrix.
    pub(super) fn add(&mut self, indptr: &[usize]) -> Vec<i64> {
        let mut ends = std::mem::take(&mut self.ends);
        ends.clear();
        ends.extend(indptr[1..].iter().map(|&end| (self.stored + end) as i64));
        self.rows += ends.len();
        self.stored += indptr[indptr.len() - 1];
        ends
    }

    /// Takes back what [`add`](Self::add) lent.
    pub(super) fn reuse(&mut self, ends: Vec<i64>) {
        self.ends = ends;
    }
}
