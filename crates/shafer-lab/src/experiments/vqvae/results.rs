//! The results file of the experiment with images as grids of codes.
//!
//! The keys of tables are the methods' names; `real` are held-out images, `reconstructed` the same through the
//! VQ-VAE.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use serde::{Deserialize, Serialize};

use super::train::{ClassifierEpoch, PriorEpoch, Trained, VqVaeEpoch};
use crate::drawing::Image;
use crate::experiments::methods::MethodName;
use crate::experiments::report::Results;

/// Held-out images.
pub(super) const REAL: &str = "real";
/// Held-out images, encoded and decoded.
pub(super) const RECONSTRUCTED: &str = "reconstructed";

/// By method.
pub(super) type ByMethod<T> = BTreeMap<String, T>;

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VqVaeResults {
    pub(super) version: u32,
    pub(super) experiment: String,
    pub(super) data_set: String,
    /// The side of an image in pixels.
    pub(super) image: usize,
    /// Rows and columns of a grid of codes.
    pub(super) grid: [usize; 2],
    pub(super) classes: Vec<String>,
    pub(super) methods: Vec<MethodName>,
    /// The number of images that each method sampled for each class.
    pub(super) samples: usize,
    /// The number of held-out images.
    pub(super) held_out: usize,
    /// Of the whole run.
    pub(super) wall_seconds: f64,
    pub(super) revision: String,
    pub(super) machine: String,
    pub(super) config: serde_json::Value,
    /// The share of images whose class is the classifier's most probable one.
    pub(super) accuracy: ByMethod<f64>,
    /// Its standard error.
    pub(super) accuracy_se: ByMethod<f64>,
    /// The share of images whose class is among the classifier's five most probable ones.
    pub(super) top5: ByMethod<f64>,
    pub(super) top5_se: ByMethod<f64>,
    /// The mean distance between two images of a class: the root of the mean squared difference of a pixel's channel,
    /// from -1 to 1. Missing if there is one image of each class.
    pub(super) diversity: ByMethod<f64>,
    /// The squared Fréchet distance to the held-out images in the classifier's features.
    pub(super) frechet: ByMethod<f64>,
    /// The prior's distributions on held-out grids, by teacher forcing.
    pub(super) kept: ByMethod<KeptSummary>,
    pub(super) codebook: Codebook,
    pub(super) trainings: Trainings,
    /// The mean number of codes kept at each position of the grid, row by row.
    pub(super) maps: ByMethod<Vec<f32>>,
    pub(super) pictures: Pictures,
}

/// What a method keeps at a position.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptSummary {
    pub(super) mean: f64,
    pub(super) median: usize,
    pub(super) p90: usize,
    pub(super) p99: usize,
    pub(super) max: usize,
    /// The share of all codes that is dropped on average.
    pub(super) reduction_mean: f64,
    /// The share of all codes that is dropped where most are kept.
    pub(super) reduction_max: f64,
    /// The mean share of the codes in use that is kept; other kept codes do not count.
    pub(super) of_used_mean: f64,
    /// The largest share of the codes in use that is kept.
    pub(super) of_used_max: f64,
    /// The mean probability of the kept codes under softmax.
    pub(super) mass: f64,
    /// The share of positions whose true code is dropped.
    pub(super) missed: f64,
    /// The mean number of kept codes while the method's own images were sampled.
    pub(super) sampled_mean: f64,
    /// The largest number of kept codes while the method's own images were sampled.
    pub(super) sampled_max: usize,
}

/// The use of the codes on the training set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Codebook {
    pub(super) codes: usize,
    /// The number of codes that occur.
    pub(super) used: usize,
    pub(super) perplexity: f64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Trainings {
    pub(super) vqvae: Trained<VqVaeEpoch>,
    pub(super) prior: Trained<PriorEpoch>,
    pub(super) classifier: Trained<ClassifierEpoch>,
}

/// A few images to look at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Pictures {
    /// Indices of the classes that are shown.
    pub(super) classes: Vec<usize>,
    /// By method: samples of each of these classes.
    pub(super) samples: ByMethod<Vec<Vec<Image>>>,
    /// Held-out images, each with its reconstruction.
    pub(super) reconstructions: Vec<[Image; 2]>,
}

impl Results for VqVaeResults {
    const KIND: &'static str = "vqvae";

    fn check(&self) -> Result<()> {
        let [rows, columns] = self.grid;
        ensure!(rows > 0 && columns > 0, "grid: {rows} x {columns} has no positions");
        for (method, map) in &self.maps {
            ensure!(
                Some(map.len()) == rows.checked_mul(columns),
                "maps.{method} has {} values for a grid of {rows} x {columns}",
                map.len()
            );
        }
        for (method, samples) in &self.pictures.samples {
            ensure!(
                samples.len() == self.pictures.classes.len(),
                "pictures.samples.{method} has {} classes instead of {}",
                samples.len(),
                self.pictures.classes.len()
            );
        }
        if let Some(class) =
            self.pictures.classes.iter().find(|&&class| class >= self.classes.len())
        {
            anyhow::bail!("pictures.classes: {class} is not below {}", self.classes.len());
        }
        for MethodName { name, .. } in &self.methods {
            let known = [&self.accuracy, &self.accuracy_se, &self.top5, &self.top5_se]
                .iter()
                .all(|table| table.contains_key(name));
            ensure!(known && self.kept.contains_key(name), "{name} is not in every table");
        }
        Ok(())
    }
}
