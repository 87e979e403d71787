//! Sparse categorical distributions that keep their modes.

mod compressed;
mod element;
mod engine;
mod error;
mod kernel;
mod logits;
mod transform;

pub use compressed::CompressedRows;
pub use element::Element;
pub use error::{Error, Result};
pub use logits::Logits;
pub use transform::{
    Entmax, Evidential, MinP, Report, Softmax, SparsegenHg, SparsegenLin, Sparsemax, TopK, TopP,
    Transform, TransformExt,
};
