//! Sparse categorical distributions that keep their modes.

mod element;
mod error;

pub use element::Element;
pub use error::{Error, Result};
