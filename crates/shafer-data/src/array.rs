//! Arrays in files.

use crate::{Dtype, Result, Values};

/// An array in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArrayInfo {
    /// Its name, in files that hold several.
    pub name: Option<String>,
    /// The type of its elements.
    pub dtype: Dtype,
    /// Its shape. A scalar has none.
    pub shape: Vec<usize>,
}

/// Reads an array from its beginning to its end, in C order whatever the order of the file.
pub trait ArrayReader: Send {
    /// What it reads. Where the number of rows is only known at the end, as in a stream of text,
    /// the first number of the shape is `None` here.
    fn info(&self) -> &ArrayInfo;

    /// Replaces the contents of `block` by the next elements, at most `elements` of them; fewer
    /// only at the end, and none after it. `block` takes the array's type.
    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()>;
}
