//! Sparse categorical distributions that keep their modes.

mod belief;
mod class_set;
mod element;
mod error;
mod evidence;
mod head;
mod mass_function;
mod numerics;

pub use belief::Belief;
pub use class_set::ClassSet;
pub use element::Element;
pub use error::{Error, Result};
pub use evidence::Evidence;
pub use head::{Construction, EvidentialParameters, Head};
pub use mass_function::{Combination, MassFunction};
