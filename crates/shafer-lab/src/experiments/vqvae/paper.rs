//! The paper's numbers.
//!
//! Itkina et al., "Evidential Sparsification of Multimodal Latent Spaces in Conditional Variational Autoencoders",
//! `NeurIPS` 2020: table 1 and section 3.1.2.

use super::results::REAL;
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

/// A row of the paper's numbers, in percent.
pub(super) struct Numbers {
    pub(super) method: &'static str,
    pub(super) accuracy: f64,
    pub(super) top5: f64,
    /// The share of the 512 codes that is dropped.
    pub(super) reduction: Option<f64>,
}

/// On `miniImageNet`: 25 samples for each of 64 classes, and 1,920 held-out images.
pub(super) const TABLE: [Numbers; 4] = [
    Numbers { method: SOFTMAX, accuracy: 20.688, top5: 47.750, reduction: None },
    Numbers { method: SPARSEMAX, accuracy: 6.125, top5: 17.500, reduction: Some(99.0) },
    Numbers { method: EVIDENTIAL, accuracy: 19.937, top5: 47.875, reduction: Some(89.0) },
    Numbers { method: REAL, accuracy: 71.719, top5: 90.625, reduction: None },
];

/// The paper's numbers for a method on a data set.
pub(super) fn numbers(data_set: &str, method: &str) -> Option<&'static Numbers> {
    TABLE.iter().find(|numbers| data_set == "miniimagenet" && numbers.method == method)
}
