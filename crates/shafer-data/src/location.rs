//! Where an array is.

use std::path::PathBuf;

/// A file, or standard input (`-`), and the name of an array in it: `file.npz:logits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// `None` for standard input.
    pub path: Option<PathBuf>,
    /// The name of the array, tensor or column.
    pub name: Option<String>,
}
