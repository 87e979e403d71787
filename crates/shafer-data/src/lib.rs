//! Bytes to typed arrays.
//!
//! Files are read and written in blocks, so that memory does not grow with the number of rows. What
//! is wrong with a file is said in one line: what, where, and what to do.

mod array;
mod error;
mod location;
mod model;
mod values;

pub use array::{ArrayInfo, ArrayReader};
pub use error::{Error, Result};
pub use location::Location;
pub use model::{HeadCandidate, HeadWeights, ModelFile, Orientation, TensorInfo, heads, load_head};
pub use values::{Dtype, Values};
