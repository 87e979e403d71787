//! The prior of an autoencoder, as the paper's linear layer.

use serde::{Deserialize, Serialize};
use shafer::Head;

use crate::{Error, Result};

/// The prior `p(z|y)` at one point of the training: the last layer of its network, and the features of
/// every condition.
///
/// The logits of condition `y` are `bias + features[y] weights`; see [`shafer::Head`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PriorSnapshot {
    /// The number of features, `J`.
    pub feature_count: usize,
    /// The number of latent classes, `K`.
    pub classes: usize,
    /// `J x K`, by rows.
    pub weights: Vec<f32>,
    /// One for each class.
    pub bias: Vec<f32>,
    /// `conditions x J`: the outputs of the hidden layer for each condition.
    pub features: Vec<f32>,
}

impl PriorSnapshot {
    /// The number of conditions.
    pub fn conditions(&self) -> usize {
        self.features.len() / self.feature_count
    }

    /// The linear layer.
    pub fn head(&self) -> Result<Head> {
        let wide = |values: &[f32]| values.iter().copied().map(f64::from).collect();
        Head::new(self.feature_count, self.classes, wide(&self.weights), wide(&self.bias))
            .map_err(|error| Error::data("prior", error.to_string()))
    }

    /// The features of one condition.
    pub fn features(&self, condition: usize) -> Result<Vec<f64>> {
        let rows = self.features.chunks_exact(self.feature_count).nth(condition);
        let row = rows.ok_or_else(|| {
            let conditions = self.conditions();
            Error::data("condition", format!("must be below {conditions}, but is {condition}"))
        })?;
        Ok(row.iter().copied().map(f64::from).collect())
    }

    /// The logits of the latent classes under one condition.
    pub fn logits(&self, condition: usize) -> Result<Vec<f64>> {
        let features = self.features(condition)?;
        self.head()?.logits(&features).map_err(|error| Error::data("prior", error.to_string()))
    }
}
