//! Sparse categorical distributions that keep their modes.

mod belief;
mod class_set;
mod compressed;
mod distance;
mod element;
mod engine;
mod error;
mod evidence;
mod head;
mod kernel;
mod logits;
mod mass_function;
mod normalise;
mod numerics;
mod product;
mod sample;
mod sink;
mod target;
mod transform;

pub use belief::Belief;
pub use class_set::ClassSet;
pub use compressed::CompressedRows;
pub use distance::{
    bhattacharyya, jensen_shannon, total_variation, wasserstein_1, wasserstein_1_unit,
};
pub use element::Element;
pub use error::{Error, Result};
pub use evidence::Evidence;
pub use head::{Construction, EvidentialParameters, Head};
pub use logits::Logits;
pub use mass_function::{Combination, MassFunction};
pub use product::{BestJoints, Joint, Product};
pub use sample::{Sampler, sample_compressed, sample_dense};
pub use target::target;
pub use transform::{
    Entmax, Evidential, MinP, Report, Softmax, SparsegenHg, SparsegenLin, Sparsemax, TopK, TopP,
    Transform, TransformExt,
};
