//! The results file of the experiment with pedestrians.
//!
//! Scenes are at the top level, beside what they have in common. The keys of tables are the methods' names on the
//! command line.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::exemplar::Exemplar;
use super::train::PedestrianRecord;
use crate::experiments::methods::MethodName;
use crate::experiments::report::Results;
use crate::experiments::statistics::{Curve, Summary};
use crate::summary::SizeSummary;

/// By method.
pub(crate) type ByMethod<T> = BTreeMap<String, T>;

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct PedestrianResults {
    pub(crate) version: u32,
    pub(crate) experiment: String,
    pub(crate) methods: Vec<MethodName>,
    /// The number of joint classes.
    pub(crate) classes: usize,
    /// The number of trainings for each scene.
    pub(crate) seeds: usize,
    /// Of all trainings.
    pub(crate) diverged: usize,
    /// Of the whole run.
    pub(crate) wall_seconds: f64,
    pub(crate) revision: String,
    pub(crate) machine: String,
    pub(crate) config: serde_json::Value,
    /// In metres: see [`SceneResults::within`].
    pub(crate) distances: Vec<f64>,
    pub(crate) trainings: Vec<PedestrianRecord>,
    /// Every other key.
    #[serde(flatten)]
    pub(crate) scenes: BTreeMap<String, SceneResults>,
}

/// The results on one test scene: means over the seeds for each pedestrian, then over the pedestrians.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SceneResults {
    /// The scene that the networks were not trained on.
    pub(crate) fold: String,
    /// The number of pedestrians.
    pub(crate) agents: usize,
    /// The trainings that did not diverge.
    pub(crate) seeds: Vec<u64>,
    /// Of paths drawn from each distribution.
    pub(crate) direct: ByMethod<ErrorMetrics>,
    /// The expected best of 20 such paths, each error by itself. Older files have none.
    #[serde(default)]
    pub(crate) best20: ByMethod<Distances>,
    /// Best of the most likely joint classes.
    pub(crate) top5: ByMethod<ErrorMetrics>,
    /// A histogram over pedestrians and seeds: evidential keeps 0, 1, 2... joint classes.
    pub(crate) kept: Vec<u64>,
    /// The number of joint classes that each method keeps.
    pub(crate) kept_by_method: ByMethod<SizeSummary>,
    /// For each of the distances: the share of pedestrians who end within it of the end of a kept mode.
    pub(crate) within: ByMethod<Vec<Metric>>,
    /// The same over a range of distances.
    pub(crate) reach: Reach,
    pub(crate) decoding: DecodingSummary,
    pub(crate) exemplars: Vec<Exemplar>,
}

/// The errors of a prediction; lower is better.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ErrorMetrics {
    /// The negative log-density of the truth, by kernel density estimation.
    pub(crate) nll: Metric,
    /// In metres, averaged over the steps.
    pub(crate) ade: Metric,
    /// In metres, at the last step.
    pub(crate) fde: Metric,
}

impl ErrorMetrics {
    /// In the order of the paper's table, with their names.
    pub(crate) fn all(&self) -> [(&'static str, &Metric); 3] {
        [("NLL", &self.nll), ("ADE", &self.ade), ("FDE", &self.fde)]
    }
}

/// The displacement errors of [`ErrorMetrics`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Distances {
    pub(crate) ade: Metric,
    pub(crate) fde: Metric,
}

impl Distances {
    /// In this order.
    pub(crate) fn all(&self) -> [&Metric; 2] {
        [&self.ade, &self.fde]
    }
}

/// A number measured for several pedestrians.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Metric {
    pub(crate) mean: Option<f64>,
    /// The standard error over the pedestrians; missing if there is one only.
    pub(crate) se: Option<f64>,
    /// The number of pedestrians.
    pub(crate) n: usize,
    /// The mean with each seed, in the order of [`SceneResults::seeds`].
    pub(crate) by_seed: Vec<f64>,
}

impl Metric {
    pub(super) fn summary(&self) -> Summary {
        Summary { mean: self.mean, se: self.se, n: self.n, infinite: 0 }
    }
}

/// The share of pedestrians who end near a kept mode, over the distance.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reach {
    /// In metres.
    pub(crate) distances: Vec<f64>,
    pub(crate) shares: ByMethod<Curve>,
}

/// The time that decoding only the classes kept by evidential saves: medians over some pedestrians and all seeds, on one
/// thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct DecodingSummary {
    /// The mean number of decoded joint classes.
    pub(crate) calls_kept: f64,
    pub(crate) calls_all: usize,
    pub(crate) milliseconds_kept: f64,
    pub(crate) milliseconds_all: f64,
    /// The median of the ratios.
    pub(crate) speedup: f64,
}

impl PedestrianResults {
    /// The paper's scene, or else the first.
    pub(crate) fn first_scene(&self) -> Option<(&String, &SceneResults)> {
        let paper = self.scenes.get_key_value(super::folds::PAPER_SCENE);
        paper.or_else(|| self.scenes.iter().next())
    }

    /// All scenes, beginning with that one.
    pub(crate) fn ordered_scenes(&self) -> impl Iterator<Item = (&String, &SceneResults)> {
        let first = self.first_scene();
        let others = self.scenes.iter().filter(move |(name, _)| Some(*name) != first.map(|f| f.0));
        first.into_iter().chain(others)
    }
}

impl Results for PedestrianResults {
    const KIND: &'static str = "behaviour";

    fn check(&self) -> Result<()> {
        for (name, scene) in &self.scenes {
            let wrong = |what: &str| bail!("{name}: {what}");
            if scene.kept.len() != self.classes + 1 {
                return wrong("the histogram does not have a number for each number of classes");
            }
            let points = scene.reach.distances.len();
            if !scene.reach.distances.is_sorted() {
                return wrong("the distances do not increase");
            }
            if scene.reach.shares.values().any(|curve| !curve.has(points)) {
                return wrong("a curve does not have a point for each distance");
            }
            if scene.within.values().any(|within| within.len() != self.distances.len()) {
                return wrong("there is not a share for each distance");
            }
            for exemplar in &scene.exemplars {
                let places = exemplar.history.iter().chain(&exemplar.truth);
                let mut places = places.chain(exemplar.paths.iter().flatten());
                let near = |place: &[f64; 2]| place.iter().all(|x| x.abs() <= 1e6);
                if places.any(|place| !near(place)) {
                    return wrong("a pedestrian is nowhere near");
                }
                if exemplar.history.is_empty() || exemplar.paths.len() != self.classes {
                    return wrong("a pedestrian has no history, or not a path for each class");
                }
                if exemplar.kept.values().flatten().any(|class| *class >= self.classes) {
                    return wrong("a class is kept that does not exist");
                }
            }
        }
        Ok(())
    }
}
