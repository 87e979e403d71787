//! Arrays in files, and their readers.

use std::fmt;

use crate::{Columns, Dtype, Result, Values};

/// An array in a file.
///
/// ```
/// use shafer_data::{ArrayInfo, Dtype};
///
/// let info =
///     ArrayInfo { name: None, dtype: Dtype::F32, shape: vec![10, 3], open_ended: false };
/// assert_eq!(info.elements(), Some(30));
/// assert_eq!(info.to_string(), "f32 (10, 3)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// The name, in files with several arrays.
    pub name: Option<String>,
    /// The element type.
    pub dtype: Dtype,
    /// The shape. It is empty for a scalar.
    pub shape: Vec<usize>,
    /// Whether the number of rows is unknown, as in text. `shape` is then the shape of one row.
    pub open_ended: bool,
}

impl ArrayInfo {
    /// The number of elements, if it is known.
    ///
    /// ```
    /// use shafer_data::{ArrayInfo, Dtype};
    ///
    /// let text = ArrayInfo { name: None, dtype: Dtype::F64, shape: vec![3], open_ended: true };
    /// assert_eq!(text.elements(), None);
    /// ```
    pub fn elements(&self) -> Option<usize> {
        if self.open_ended { None } else { elements(&self.shape) }
    }

    /// The shape in Python syntax.
    ///
    /// ```
    /// use shafer_data::{ArrayInfo, Dtype};
    ///
    /// let text = ArrayInfo { name: None, dtype: Dtype::F64, shape: vec![3], open_ended: true };
    /// assert_eq!(text.shape_text(), "rows of (3,)");
    /// ```
    pub fn shape_text(&self) -> String {
        let rows = if self.open_ended { "rows of " } else { "" };
        rows.to_owned() + &shape_text(&self.shape)
    }

    /// The index of the element at a position in C order, in Python syntax.
    pub(crate) fn index_text(&self, element: usize) -> String {
        let mut rest = element;
        let mut index: Vec<usize> = Vec::new();
        for &n in self.shape.iter().rev() {
            index.push(rest % n);
            rest /= n;
        }
        if self.open_ended {
            index.push(rest);
        }
        index.reverse();
        shape_text(&index)
    }
}

impl fmt::Display for ArrayInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(name) = &self.name {
            write!(f, "{name}: ")?;
        }
        write!(f, "{} {}", self.dtype, self.shape_text())
    }
}

/// The purpose of an array, which decides the allowed types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Numbers of floating-point type.
    Numbers,
    /// A mask: also types of one byte.
    Mask,
    /// Class indices: also all integer types.
    Labels,
}

/// The most axes of an array. A file with more is damaged or hostile.
pub(crate) const MAX_RANK: usize = 32;

/// The product of a shape from a file, or `None` on overflow.
pub(crate) fn elements(shape: &[usize]) -> Option<usize> {
    // An axis of length 0 makes the product 0 even if the other axes overflow.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1, |product: usize, &n| product.checked_mul(n))
}

/// A shape in Python syntax.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Reads an array sequentially, in C order whatever the order of the file.
pub trait ArrayReader: Send {
    /// The array.
    fn info(&self) -> &ArrayInfo;

    /// Replaces the contents of `block` by the next `elements` elements: fewer at the end, and none after
    /// it. `block` takes the array's type. Memory use is that of the block, not of the array.
    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()>;

    /// The fraction of a text file that has been read, from 0 to 1, if its length is known. `None` for
    /// formats with a known number of elements.
    ///
    /// ```
    /// use shafer_data::{Location, Values, open};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("logits.csv");
    /// std::fs::write(&path, "0,1\n2,3\n4,5\n6,7\n")?;
    /// let mut reader = open(&Location { path: Some(path), name: None })?;
    /// reader.read(6, &mut Values::default())?;
    /// assert_eq!(reader.share_read(), Some(0.75));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    fn share_read(&self) -> Option<f64> {
        None
    }

    /// The selected columns, in tables with named columns.
    fn columns(&self) -> Option<&Columns> {
        None
    }
}

impl fmt::Debug for dyn ArrayReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArrayReader").field(self.info()).finish()
    }
}
