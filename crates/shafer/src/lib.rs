//! Sparse categorical distributions that keep their modes.

mod class_set;
mod element;
mod error;
mod mass_function;
mod numerics;

pub use class_set::ClassSet;
pub use element::Element;
pub use error::{Error, Result};
pub use mass_function::{Combination, MassFunction};
