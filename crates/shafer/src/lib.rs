//! Sparse categorical distributions that keep their modes.

mod distance;
mod element;
mod error;
mod normalise;
mod product;
mod sample;
mod target;

pub use distance::{
    bhattacharyya, jensen_shannon, total_variation, wasserstein_1, wasserstein_1_unit,
};
pub use element::Element;
pub use error::{Error, Result};
pub use product::{BestJoints, Joint, Product};
pub use sample::{Sampler, sample_compressed, sample_dense};
pub use target::target;
