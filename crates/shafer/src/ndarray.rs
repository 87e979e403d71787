//! Views of `ndarray` as logits.

use ndarray::{ArrayRef, Axis, Dimension};

use crate::element::Element;
use crate::error::{Error, Result};
use crate::logits::Logits;

impl<'a, E: Element> Logits<'a, E> {
    /// The vectors along `axis` of an `ndarray` array or view, in any memory order.
    ///
    /// # Errors
    /// The axis does not exist or is empty, or the view leaves out elements of its array (make it
    /// contiguous with `as_standard_layout`).
    ///
    /// ```
    /// use ndarray::{Axis, array};
    /// use shafer::{Logits, Method, Threads};
    ///
    /// let logits = array![[0.5, 3.0], [0.0, 0.0]];
    /// let columns = Logits::array(&logits, Axis(0))?;
    /// assert_eq!(Method::SPARSEMAX.dense(&columns, Threads::One)?, [0.75, 1.0, 0.25, 0.0]);
    /// let transposed = logits.t();
    /// let rows = Logits::array(&transposed, Axis(1))?;
    /// assert_eq!(Method::SPARSEMAX.dense(&rows, Threads::One)?, [0.75, 0.25, 1.0, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn array<D: Dimension>(array: &'a ArrayRef<E, D>, axis: Axis) -> Result<Self> {
        let Some(memory) = array.as_slice_memory_order() else {
            return Err(Error::Layout);
        };
        // With negative strides, the first element is not the first in memory.
        let first = array.as_ptr().addr().wrapping_sub(memory.as_ptr().addr()) / size_of::<E>();
        Logits::strided(memory, array.shape(), array.strides(), first, axis.index())
    }
}
