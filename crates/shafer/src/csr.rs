//! Sparse rows in compressed sparse row (CSR) form.

use std::mem::take;

use crate::element::Element;
use crate::error::{Error, Result, check_length};
use crate::kernel::{Entries, SLACK};
use crate::normalise::check_indices;

/// Sparse distributions in compressed sparse row form, as SciPy's `csr_matrix` and Arrow's lists
/// have it: row `i` has the classes `indices[indptr[i]..indptr[i + 1]]`, in ascending order, with
/// the probabilities at the same places of `values`.
///
/// A kept class stays in the support even if its probability underflows to 0. The memory is kept
/// from one [`Method::csr_into`](crate::Method::csr_into) to the next.
///
/// ```
/// use shafer::{Logits, Method, Threads};
///
/// let logits = [2.0, 2.0, -4.0, 0.0, -9.0, 0.0];
/// let rows = Method::EVIDENTIAL.csr(&Logits::rows(&logits, 3)?, Threads::One)?;
/// assert_eq!(rows.indptr(), [0, 2, 4]);
/// assert_eq!(rows.indices(), [0, 1, 0, 2]);
/// assert_eq!(rows.values(), [0.5, 0.5, 0.5, 0.5]);
/// for (classes, probabilities) in &rows {
///     assert_eq!(classes.len(), probabilities.len());
/// }
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Debug)]
pub struct CsrRows<E> {
    classes: usize,
    /// Never empty; the last entry is `nnz`, which is at most `indices.len()`.
    indptr: Vec<i64>,
    // Longer than `nnz`: growing them writes zeros, which reuse saves.
    indices: Vec<u32>,
    values: Vec<E>,
    /// For blocks of other threads before they are appended, kept for their memory.
    pub(crate) blocks: Vec<Self>,
}

impl<E> Default for CsrRows<E> {
    fn default() -> Self {
        let (indices, values, blocks) = (Vec::new(), Vec::new(), Vec::new());
        Self { classes: 0, indptr: vec![0], indices, values, blocks }
    }
}

impl<E: Clone> Clone for CsrRows<E> {
    fn clone(&self) -> Self {
        Self {
            classes: self.classes,
            indptr: self.indptr.clone(),
            indices: self.indices().to_vec(),
            values: self.values().to_vec(),
            blocks: Vec::new(),
        }
    }
}

impl<E: PartialEq> PartialEq for CsrRows<E> {
    fn eq(&self, other: &Self) -> bool {
        self.classes == other.classes
            && self.indptr == other.indptr
            && self.indices() == other.indices()
            && self.values() == other.values()
    }
}

impl<E> CsrRows<E> {
    /// No rows.
    ///
    /// ```
    /// assert_eq!(shafer::CsrRows::<f32>::new().rows(), 0);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// Rows from their three arrays, without a copy.
    ///
    /// # Errors
    /// The row pointers do not start at 0, decrease, or end elsewhere than at the number of entries;
    /// the columns of a row do not increase strictly, or are not less than `classes`; or `indices`
    /// and `values` differ in length.
    ///
    /// ```
    /// use shafer::CsrRows;
    ///
    /// let rows = CsrRows::from_parts(3, vec![0, 2, 3], vec![0, 2, 1], vec![0.5, 0.5, 1.0])?;
    /// assert_eq!(rows.to_dense(), [0.5, 0.0, 0.5, 0.0, 1.0, 0.0]);
    /// assert!(CsrRows::from_parts(3, vec![0, 1], vec![3], vec![1.0]).is_err());
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn from_parts(
        classes: usize,
        indptr: Vec<i64>,
        indices: Vec<u32>,
        values: Vec<E>,
    ) -> Result<Self> {
        check_length("values", indices.len(), values.len())?;
        let bad_pointer = |row: usize, rule| {
            let value = indptr.get(row).map_or(f64::NAN, |&pointer| pointer as f64);
            Error::Value { what: "row pointer", row, column: 0, value, rule }
        };
        let Some(&last) = indptr.last() else {
            return Err(Error::Empty { what: "indptr" });
        };
        if indptr[0] != 0 {
            return Err(bad_pointer(0, "must be 0"));
        }
        if let Some(row) = indptr.windows(2).position(|pair| pair[0] > pair[1]) {
            return Err(bad_pointer(row + 1, "must not be less than the one before it"));
        }
        if usize::try_from(last) != Ok(indices.len()) {
            return Err(bad_pointer(indptr.len() - 1, "must be the number of entries"));
        }
        let rows = Self { classes, indptr, indices, values, blocks: Vec::new() };
        for (row, (columns, _)) in rows.iter().enumerate() {
            check_indices(columns, columns.len(), row)?;
            if let Some(&last) = columns.last()
                && last as usize >= classes
            {
                let (column, value) = (columns.len() - 1, f64::from(last));
                let rule = "must be less than the number of classes";
                return Err(Error::Value { what: "index", row, column, value, rule });
            }
        }
        Ok(rows)
    }

    /// The row pointers, the columns and the values, without a copy.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let rows = Method::EVIDENTIAL.csr(&Logits::row(&[1.0, 1.0, -2.0])?, Threads::One)?;
    /// assert_eq!(rows.into_parts(), (vec![0, 2], vec![0, 1], vec![0.5, 0.5]));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn into_parts(mut self) -> (Vec<i64>, Vec<u32>, Vec<E>) {
        let nnz = self.nnz();
        self.indices.truncate(nnz);
        self.values.truncate(nnz);
        (self.indptr, self.indices, self.values)
    }

    /// The number of classes of each row, dropped ones included.
    ///
    /// ```
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let rows = Method::EVIDENTIAL.csr(&Logits::row(&[1.0, 1.0, -2.0])?, Threads::One)?;
    /// assert_eq!((rows.rows(), rows.classes(), rows.nnz()), (1, 3, 2));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The number of stored entries: the kept classes of all rows.
    pub fn nnz(&self) -> usize {
        self.pointer() as usize
    }

    /// The row pointers: where each row begins, and where the last one ends.
    pub fn indptr(&self) -> &[i64] {
        &self.indptr
    }

    /// The row pointers as `i32`; `None` if there are too many entries.
    ///
    /// ```
    /// use shafer::CsrRows;
    ///
    /// let rows = CsrRows::from_parts(3, vec![0, 2], vec![0, 2], vec![0.5, 0.5])?;
    /// assert_eq!(rows.indptr_i32(), Some(vec![0, 2]));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn indptr_i32(&self) -> Option<Vec<i32>> {
        i32::try_from(self.nnz()).ok()?;
        Some(self.indptr.iter().map(|&pointer| pointer as i32).collect())
    }

    /// The kept classes of all rows.
    pub fn indices(&self) -> &[u32] {
        &self.indices[..self.nnz()]
    }

    /// The probabilities of the kept classes.
    pub fn values(&self) -> &[E] {
        &self.values[..self.nnz()]
    }

    /// The classes and the probabilities of one row.
    ///
    /// ```
    /// use shafer::CsrRows;
    ///
    /// let rows = CsrRows::from_parts(3, vec![0, 2, 3], vec![0, 2, 1], vec![0.5, 0.5, 1.0])?;
    /// assert_eq!(rows.row(1), Some((&[1][..], &[1.0][..])));
    /// assert_eq!(rows.row(2), None);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn row(&self, row: usize) -> Option<(&[u32], &[E])> {
        let range = *self.indptr.get(row)? as usize..*self.indptr.get(row + 1)? as usize;
        Some((&self.indices[range.clone()], &self.values[range]))
    }

    /// All rows, in order.
    ///
    /// ```
    /// use shafer::CsrRows;
    ///
    /// let rows = CsrRows::from_parts(3, vec![0, 2, 3], vec![0, 2, 1], vec![0.5, 0.5, 1.0])?;
    /// assert_eq!(rows.iter().map(|(classes, _)| classes.len()).collect::<Vec<_>>(), [2, 1]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn iter(&self) -> Iter<'_, E> {
        Iter { indptr: self.indptr.windows(2), indices: &self.indices, values: &self.values }
    }

    /// The last row pointer.
    fn pointer(&self) -> i64 {
        self.indptr[self.indptr.len() - 1]
    }

    /// Removes all rows, but keeps the memory.
    pub(crate) fn reset(&mut self, classes: usize) {
        self.classes = classes;
        self.truncate(0);
    }

    /// Keeps the first `rows` rows.
    pub(crate) fn truncate(&mut self, rows: usize) {
        self.indptr.truncate(rows + 1);
    }
}

impl<'a, E> IntoIterator for &'a CsrRows<E> {
    type Item = (&'a [u32], &'a [E]);
    type IntoIter = Iter<'a, E>;

    fn into_iter(self) -> Iter<'a, E> {
        self.iter()
    }
}

/// The iterator of [`CsrRows::iter`].
#[derive(Clone, Debug)]
pub struct Iter<'a, E> {
    indptr: std::slice::Windows<'a, i64>,
    indices: &'a [u32],
    values: &'a [E],
}

impl<'a, E> Iterator for Iter<'a, E> {
    type Item = (&'a [u32], &'a [E]);

    fn next(&mut self) -> Option<Self::Item> {
        let pair = self.indptr.next()?;
        let range = pair[0] as usize..pair[1] as usize;
        Some((&self.indices[range.clone()], &self.values[range]))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        self.indptr.size_hint()
    }
}

impl<E> ExactSizeIterator for Iter<'_, E> {}

impl<E: Element> CsrRows<E> {
    /// The rows as an array of `rows x classes` values, zeros included.
    ///
    /// ```
    /// use shafer::CsrRows;
    ///
    /// let rows = CsrRows::from_parts(3, vec![0, 2], vec![0, 2], vec![0.5, 0.5])?;
    /// assert_eq!(rows.to_dense(), [0.5, 0.0, 0.5]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn to_dense(&self) -> Vec<E> {
        let mut dense = vec![E::default(); self.rows() * self.classes];
        for ((indices, values), row) in self.iter().zip(dense.chunks_exact_mut(self.classes.max(1)))
        {
            for (&index, &value) in indices.iter().zip(values) {
                row[index as usize] = value;
            }
        }
        dense
    }

    /// Makes room for more entries.
    fn reserve(&mut self, entries: usize) {
        let len = self.nnz() + entries;
        if self.indices.is_empty() {
            // Memory that the system zeroes is not touched before it is used.
            self.indices = vec![0; len];
            self.values = vec![E::default(); len];
        } else if self.indices.len() < len {
            // At least doubled, so that growing is linear in total.
            let len = len.max(2 * self.indices.len());
            self.indices.resize(len, 0);
            self.values.resize(len, E::default());
        }
    }

    /// Room for more rows with up to `entries` entries in total, and [`SLACK`] more.
    pub(crate) fn spare(&mut self, entries: usize) -> Rows<'_, E> {
        self.reserve(entries + SLACK);
        let (base, nnz) = (self.pointer(), self.nnz());
        let (columns, values) = (&mut self.indices[nnz..], &mut self.values[nnz..]);
        Rows { ends: &mut self.indptr, base, entries: Entries { columns, values } }
    }

    /// Appends rows of another type.
    pub(crate) fn append<F: Element>(&mut self, rows: &CsrRows<F>, convert: impl Fn(F) -> E) {
        let Rows { ends, base, entries: Entries { columns, values } } = self.spare(rows.nnz());
        columns[..rows.nnz()].copy_from_slice(rows.indices());
        for (to, &from) in values.iter_mut().zip(rows.values()) {
            *to = convert(from);
        }
        ends.extend(rows.indptr[1..].iter().map(|end| base + end));
    }
}

/// Room for more rows at the end of a [`CsrRows`].
#[derive(Debug)]
pub struct Rows<'a, E> {
    /// The row pointers: one is pushed for each row.
    pub(crate) ends: &'a mut Vec<i64>,
    /// The last row pointer: the number of entries before these.
    pub(crate) base: i64,
    pub(crate) entries: Entries<'a, E>,
}

impl<E> Rows<'_, E> {
    /// Ends a row of `count` entries, which have been written.
    pub(crate) fn advance(&mut self, count: usize) {
        let Entries { columns, values } = &mut self.entries;
        *columns = &mut take(columns)[count..];
        *values = &mut take(values)[count..];
        self.base += count as i64;
        self.ends.push(self.base);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn parts_that_do_not_fit_are_refused() {
        let parts = |indptr: &[i64], indices: &[u32], values: &[f32]| {
            CsrRows::from_parts(4, indptr.to_vec(), indices.to_vec(), values.to_vec())
        };
        assert!(parts(&[0, 2, 2, 3], &[1, 3, 0], &[0.5, 0.5, 1.0]).is_ok());
        assert!(parts(&[0], &[], &[]).is_ok());
        assert!(matches!(parts(&[], &[], &[]), Err(Error::Empty { .. })));
        assert!(matches!(parts(&[0, 1], &[1], &[]), Err(Error::Length { .. })));
        for pointers in [&[1, 1][..], &[0, 2, 1], &[0, 2], &[0, -1], &[0, 1, i64::MIN], &[0]] {
            let refused = parts(pointers, &[1], &[1.0]);
            assert!(matches!(refused, Err(Error::Value { what: "row pointer", .. })));
        }
        for columns in [[1, 1], [2, 1]] {
            let refused = parts(&[0, 2], &columns, &[0.5, 0.5]);
            assert!(matches!(refused, Err(Error::Value { what: "index", row: 0, column: 1, .. })));
        }
        let refused = parts(&[0, 0, 1], &[4], &[1.0]);
        assert!(matches!(refused, Err(Error::Value { what: "index", row: 1, column: 0, .. })));
    }
}
