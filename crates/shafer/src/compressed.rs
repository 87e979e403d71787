//! Sparse rows in compressed form.

use crate::element::Element;

/// Rows that store what was kept and nothing else, as a CSR matrix does: row `i` has the classes
/// `indices[indptr[i]..indptr[i + 1]]`, in ascending order, with the probabilities at the same
/// places of `values`.
///
/// The values are those of the dense form, but for the last digits of long rows of `f32`, where sums are taken in
/// another order. A class that was kept stays in the support even if its probability underflows to 0. Memory is kept from one use to the next, so a buffer that is used again
/// allocates nothing.
///
/// ```
/// use shafer::{CompressedRows, Evidential, Logits, TransformExt};
///
/// let logits = [2.0, 2.0, -4.0, 0.0, -9.0, 0.0];
/// let mut rows = CompressedRows::new();
/// Evidential::default().compressed_into(&Logits::rows(&logits, 3)?, &mut rows)?;
/// assert_eq!(rows.indptr(), [0, 2, 4]);
/// assert_eq!(rows.indices(), [0, 1, 0, 2]);
/// assert_eq!(rows.values(), [0.5, 0.5, 0.5, 0.5]);
/// assert_eq!(rows.row(1), Some((&[0, 2][..], &[0.5, 0.5][..])));
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct CompressedRows<E> {
    classes: usize,
    indptr: Vec<usize>,
    // Longer than what they hold, so that using them again does not write zeros first.
    indices: Vec<u32>,
    values: Vec<E>,
}

impl<E> Default for CompressedRows<E> {
    fn default() -> Self {
        Self { classes: 0, indptr: vec![0], indices: Vec::new(), values: Vec::new() }
    }
}

impl<E: PartialEq> PartialEq for CompressedRows<E> {
    fn eq(&self, other: &Self) -> bool {
        let (n, m) = (self.stored(), other.stored());
        self.classes == other.classes
            && self.indptr == other.indptr
            && self.indices[..n] == other.indices[..m]
            && self.values[..n] == other.values[..m]
    }
}

impl<E> CompressedRows<E> {
    /// No rows.
    ///
    /// ```
    /// assert_eq!(shafer::CompressedRows::<f32>::new().row_count(), 0);
    /// ```
    pub fn new() -> Self {
        Self::default()
    }

    /// The number of classes of the rows it was made from.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::rows(&[1.0, 1.0, -2.0, 0.0, 3.0, 0.0], 3)?)?;
    /// assert_eq!(rows.classes(), 3);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The number of rows.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::rows(&[1.0, 1.0, -2.0, 0.0, 3.0, 0.0], 3)?)?;
    /// assert_eq!(rows.row_count(), 2);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn row_count(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The number of kept classes in all rows.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::rows(&[1.0, 1.0, -2.0, 0.0, 3.0, 0.0], 3)?)?;
    /// assert_eq!(rows.stored(), 3);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn stored(&self) -> usize {
        self.indptr[self.indptr.len() - 1]
    }

    /// Where each row begins, and at last where the last one ends: one more than there are rows.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::rows(&[1.0, 1.0, -2.0, 0.0, 3.0, 0.0], 3)?)?;
    /// assert_eq!(rows.indptr(), [0, 2, 3]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn indptr(&self) -> &[usize] {
        &self.indptr
    }

    /// The kept classes.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::rows(&[1.0, 1.0, -2.0, 0.0, 3.0, 0.0], 3)?)?;
    /// assert_eq!(rows.indices(), [0, 1, 1]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn indices(&self) -> &[u32] {
        &self.indices[..self.stored()]
    }

    /// Their probabilities.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::rows(&[1.0, 1.0, -2.0, 0.0, 3.0, 0.0], 3)?)?;
    /// assert_eq!(rows.values(), [0.5, 0.5, 1.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn values(&self) -> &[E] {
        &self.values[..self.stored()]
    }

    /// The classes and the probabilities of one row.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::rows(&[1.0, 1.0, -2.0, 0.0, 3.0, 0.0], 3)?)?;
    /// assert_eq!(rows.row(1), Some((&[1][..], &[1.0][..])));
    /// assert_eq!(rows.row(2), None);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn row(&self, row: usize) -> Option<(&[u32], &[E])> {
        let (&start, &end) = (self.indptr.get(row)?, self.indptr.get(row + 1)?);
        Some((&self.indices[start..end], &self.values[start..end]))
    }

    /// All rows, in order.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::rows(&[1.0, 1.0, -2.0, 0.0, 3.0, 0.0], 3)?)?;
    /// assert_eq!(rows.iter().map(|(classes, _)| classes.len()).collect::<Vec<_>>(), [2, 1]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u32], &[E])> {
        self.indptr
            .windows(2)
            .map(|ends| (&self.indices[ends[0]..ends[1]], &self.values[ends[0]..ends[1]]))
    }

    /// Forgets the rows, but keeps the memory.
    pub(crate) fn reset(&mut self, classes: usize) {
        self.classes = classes;
        self.indptr.truncate(1);
    }
}

impl<E: Element> CompressedRows<E> {
    /// The rows as an array of `rows x classes` values, zeros included.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let rows = Evidential::default().compressed(&Logits::row(&[1.0, 1.0, -2.0])?)?;
    /// assert_eq!(rows.to_dense(), [0.5, 0.5, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn to_dense(&self) -> Vec<E> {
        let mut dense = vec![E::default(); self.row_count() * self.classes];
        for ((indices, values), row) in self.iter().zip(dense.chunks_exact_mut(self.classes.max(1)))
        {
            for (&index, &value) in indices.iter().zip(values) {
                row[index as usize] = value;
            }
        }
        dense
    }

    /// Makes room for so many entries more.
    fn reserve(&mut self, entries: usize) {
        let len = self.stored() + entries;
        if self.indices.len() < len {
            // Twice as much each time, so that growing stays linear.
            let len = len.max(2 * self.indices.len());
            self.indices.resize(len, 0);
            self.values.resize(len, E::default());
        }
    }

    /// To write more rows to, with room for so many entries.
    pub(crate) fn writer(&mut self, entries: usize) -> Entries<'_, E> {
        self.reserve(entries);
        let base = self.stored();
        Entries {
            base,
            ends: &mut self.indptr,
            columns: &mut self.indices[base..],
            values: &mut self.values[base..],
        }
    }

    /// Places for so many rows more, with room for at least so many entries. The rows are there
    /// when [`Self::keep_rows`] says so.
    #[cfg(feature = "parallel")]
    pub(crate) fn places(&mut self, rows: usize, entries: usize) -> Places<'_, E> {
        self.reserve(entries);
        let (base, filled) = (self.stored(), self.indptr.len());
        self.indptr.resize(filled + rows, base);
        Places {
            base,
            ends: &mut self.indptr[filled..],
            columns: &mut self.indices[base..],
            values: &mut self.values[base..],
        }
    }

    /// Forgets all but the first rows.
    #[cfg(feature = "parallel")]
    pub(crate) fn keep_rows(&mut self, rows: usize) {
        self.indptr.truncate(rows + 1);
    }

    /// Adds rows of the type that these were computed in.
    pub(crate) fn add_wide(&mut self, rows: &CompressedRows<E::Compute>) {
        let Entries { columns, values, .. } = self.writer(rows.stored());
        columns[..rows.stored()].copy_from_slice(rows.indices());
        for (value, &wide) in values.iter_mut().zip(rows.values()) {
            *value = E::narrow(wide);
        }
        let base = self.stored();
        self.indptr.extend(rows.indptr[1..].iter().map(|end| base + end));
    }
}

/// Compressed rows in the making.
#[derive(Debug)]
pub(crate) struct Entries<'a, E> {
    /// Where rows end, to be pushed to: counted from the first entry of all, which is `base`
    /// entries before the first one here.
    pub(crate) ends: &'a mut Vec<usize>,
    pub(crate) base: usize,
    pub(crate) columns: &'a mut [u32],
    pub(crate) values: &'a mut [E],
}

/// Where some rows belong, with room for as many entries as they have.
#[cfg(feature = "parallel")]
#[derive(Default)]
pub(crate) struct Places<'a, E> {
    /// The number of entries before these.
    pub(crate) base: usize,
    pub(crate) ends: &'a mut [usize],
    pub(crate) columns: &'a mut [u32],
    pub(crate) values: &'a mut [E],
}

#[cfg(feature = "parallel")]
impl<'a, E: Element> Places<'a, E> {
    pub(crate) fn rows(&self) -> usize {
        self.ends.len()
    }

    /// Splits off the first so many rows and entries, if there are so many.
    pub(crate) fn take(&mut self, rows: usize, entries: usize) -> Option<Places<'a, E>> {
        if self.columns.len() < entries {
            return None;
        }
        let base = self.base;
        self.base += entries;
        Some(Places {
            base,
            ends: self.ends.split_off_mut(..rows)?,
            columns: self.columns.split_off_mut(..entries)?,
            values: self.values.split_off_mut(..entries)?,
        })
    }

    /// Puts rows there that have been computed elsewhere.
    pub(crate) fn put(self, rows: &CompressedRows<E>) {
        self.columns.copy_from_slice(rows.indices());
        self.values.copy_from_slice(rows.values());
        for (to, end) in self.ends.iter_mut().zip(&rows.indptr()[1..]) {
            *to = self.base + end;
        }
    }
}
