//! Arrays in files.

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
    /// Its name, in files that hold several.
    pub name: Option<String>,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its shape. A scalar has none. The last number is always that of the last axis.
    pub shape: Vec<usize>,
    /// Whether the number of rows is only known at the end, as in text. `shape` is then the shape
    /// of one row.
    pub open_ended: bool,
}

impl ArrayInfo {
    /// The number of elements, where it is known.
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

    /// Its shape as Python writes it.
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

    /// The index of an element that is the so-manieth in C order, as Python writes it.
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

/// What an array is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// Its numbers, which are of floating-point type.
    Numbers,
    /// To choose by; types of one byte serve as well.
    Mask,
    /// Numbers of classes; all integers serve as well.
    Labels,
}

/// No tensor of a model has more axes; a file that says so is broken or hostile.
pub(crate) const MAX_RANK: usize = 32;

/// The product of a shape that comes from a file, unless it overflows.
pub(crate) fn elements(shape: &[usize]) -> Option<usize> {
    // An empty array is empty whatever its other axes say.
    if shape.contains(&0) {
        return Some(0);
    }
    shape.iter().try_fold(1, |product: usize, &n| product.checked_mul(n))
}

/// A shape as Python writes it.
pub(crate) fn shape_text(shape: &[usize]) -> String {
    match shape {
        [n] => format!("({n},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// Reads an array from its beginning to its end, in C order whatever the order of the file.
pub trait ArrayReader: Send {
    /// What it reads.
    fn info(&self) -> &ArrayInfo;

    /// Replaces the contents of `block` by the next elements, at most `elements` of them; fewer
    /// only at the end, and none after it. `block` takes the array's type. The memory used is that
    /// of the block, not that of the array.
    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()>;

    /// How much of the file has been read, from 0 to 1, where its length is known and the number of its elements is
    /// not: in files of text.
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

    /// Which columns make up the rows, where columns have names.
    fn columns(&self) -> Option<&Columns> {
        None
    }
}

impl fmt::Debug for dyn ArrayReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ArrayReader").field(self.info()).finish()
    }
}
