//! The distribution of a method over joint classes.

use anyhow::Result;
use shafer::{Logits, Method, Product, Threads};
use shafer_nets::behaviour::NetworkConfig;

/// A distribution over the joint classes of independent variables. A joint class is kept if each of its parts is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct JointDistribution {
    /// Of every joint class.
    pub(crate) probabilities: Vec<f64>,
    /// The joint classes that are kept, by decreasing probability.
    pub(crate) ranked: Vec<usize>,
}

impl JointDistribution {
    /// Applies a method to each variable, at a temperature.
    pub(crate) fn at(
        method: Method,
        temperature: f64,
        logits: &[f32],
        network: &NetworkConfig,
    ) -> Result<Self> {
        let logits: Vec<f64> = logits.iter().copied().map(f64::from).collect();
        let parts = logits
            .chunks(network.classes)
            .map(|row| Ok(method.csr(&Logits::row(row)?.temperature(temperature)?, Threads::One)?))
            .collect::<Result<Vec<_>>>()?;
        let rows: Vec<(usize, &[u32], &[f64])> = parts
            .iter()
            .map(|part| {
                let (classes, values) = part.row(0).unwrap_or_default();
                (network.classes, classes, values)
            })
            .collect();
        let classes = network.joint_classes();
        let mut distribution =
            Self { probabilities: vec![0.0; classes], ranked: Vec::with_capacity(classes) };
        for joint in Product::csr(&rows)?.iter_best() {
            let class = network.join(&joint.classes);
            distribution.probabilities[class] = joint.probability;
            distribution.ranked.push(class);
        }
        Ok(distribution)
    }

    /// The most likely kept classes, at most this number.
    pub(crate) fn best(&self, most: usize) -> &[usize] {
        &self.ranked[..most.min(self.ranked.len())]
    }
}
