//! The results file of an experiment with images.
//!
//! Tables map queries and methods to numbers; methods have their names on the command line. Infinite values are counted,
//! see [`Summary`]. `queries` and `methods` have the order in which to show them.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::record::{LatentClass, Losses};
use crate::experiments::methods::MethodName;
use crate::experiments::report::Results;
use crate::experiments::statistics::{Curve, Gain, Summary};

/// The key of the mean over all queries.
pub(crate) const BOTH: &str = "both";

/// By query, then by method.
pub(crate) type Table<T> = BTreeMap<String, BTreeMap<String, T>>;
/// By query.
pub(crate) type ByQuery<T> = BTreeMap<String, T>;

/// The results on one data set.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ImageResults {
    pub(crate) version: u32,
    pub(crate) experiment: String,
    pub(crate) data_set: String,
    pub(crate) queries: Vec<String>,
    pub(crate) methods: Vec<MethodName>,
    /// The number of latent classes.
    pub(crate) classes: usize,
    /// The number of trainings on the whole data set, and how many of them collapsed or diverged.
    pub(crate) seeds: usize,
    pub(crate) collapsed: usize,
    pub(crate) diverged: usize,
    /// The number of updates of a training.
    pub(crate) steps: u64,
    /// Of the whole run.
    pub(crate) wall_seconds: f64,
    pub(crate) revision: String,
    pub(crate) machine: String,
    pub(crate) config: serde_json::Value,
    pub(crate) target: TargetFrom,
    /// After the last update, over all seeds that did not diverge.
    #[serde(rename = "final")]
    pub(crate) final_values: Final,
    pub(crate) improvement: Improvement,
    pub(crate) evolution: Evolution,
    /// The same over the seeds that did not collapse; missing if none did, or if all did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) without_collapsed: Option<WithoutCollapsed>,
    /// Final values by the share of the training set, in increasing order; empty if there is only one.
    pub(crate) reduced: Vec<Reduced>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) exemplar: Option<Exemplar>,
    pub(crate) trainings: Vec<Training>,
}

/// Which prior the target distribution is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum TargetFrom {
    /// That of the last checkpoint, for all of them.
    #[default]
    LastCheckpoint,
    /// Each checkpoint has its own target, as in the published evaluation of `NotMNIST`.
    EachCheckpoint,
}

/// Numbers at one point of the training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Final {
    pub(crate) bhattacharyya: Table<Summary>,
    pub(crate) wasserstein: Table<Summary>,
    /// The number of classes kept.
    pub(crate) kept: Table<Summary>,
    /// The probability of a sample that a classifier assigns to another query. Exact: the sum of the probabilities of
    /// those classes. Missing without a classifier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wrong: Option<Table<Summary>>,
    pub(crate) ignorance: ByQuery<Summary>,
    pub(crate) internal_conflict: ByQuery<Summary>,
}

/// The improvement by evidential over softmax and over sparsemax.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Improvement {
    /// Of the intervals.
    pub(crate) confidence: f64,
    /// At the last checkpoint.
    #[serde(rename = "final")]
    pub(crate) final_values: Gains,
    /// Of the mean over all checkpoints.
    pub(crate) training: Gains,
}

/// By query, or [`BOTH`] for the mean over all, then by baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Gains {
    pub(crate) bhattacharyya: Table<Gain>,
    pub(crate) wasserstein: Table<Gain>,
}

/// Curves over the training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Evolution {
    /// The x of all curves.
    pub(crate) iterations: Vec<u64>,
    pub(crate) bhattacharyya: Table<Curve>,
    pub(crate) wasserstein: Table<Curve>,
    pub(crate) kept: Table<Curve>,
    /// The mass on no class in particular, m(Z).
    pub(crate) ignorance: ByQuery<Curve>,
    /// Conflict between evidence for different classes.
    pub(crate) internal_conflict: ByQuery<Curve>,
}

/// The means over the seeds whose posterior did not collapse.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WithoutCollapsed {
    #[serde(rename = "final")]
    pub(crate) final_values: Final,
    pub(crate) improvement: Improvement,
    pub(crate) evolution: Evolution,
}

/// Trainings on a part of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Reduced {
    pub(crate) fraction: f64,
    pub(crate) seeds: usize,
    pub(crate) collapsed: usize,
    pub(crate) diverged: usize,
    #[serde(rename = "final")]
    pub(crate) final_values: Final,
    /// Missing if none collapsed, or all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) without_collapsed: Option<Final>,
}

/// A training to show.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Exemplar {
    pub(crate) seed: u64,
    pub(crate) latents: Vec<LatentClass>,
    pub(crate) queries: ByQuery<QueryBars>,
}

/// The distributions for a query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueryBars {
    pub(crate) target: Vec<f64>,
    pub(crate) methods: BTreeMap<String, Bars>,
}

/// The distribution of a method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Bars {
    pub(crate) probabilities: Vec<f64>,
    /// Classes drawn with these probabilities. The decoder depends on the class alone, so the samples are the images of
    /// these classes.
    pub(crate) samples: Vec<usize>,
    /// The number of samples that a classifier assigns to another query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wrong_samples: Option<usize>,
}

/// One training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Training {
    pub(crate) seed: u64,
    pub(crate) fraction: f64,
    pub(crate) collapsed: bool,
    pub(crate) diverged: bool,
    pub(crate) steps: u64,
    pub(crate) wall_seconds: f64,
    pub(crate) losses: Losses,
    /// `null` is infinity; both are missing if the training diverged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) bhattacharyya: Option<Table<Option<f64>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wasserstein: Option<Table<Option<f64>>>,
}

impl Results for ImageResults {
    const KIND: &'static str = "image";

    /// Every curve has a point for each iteration, every image a class.
    fn check(&self) -> Result<()> {
        check_queries(&self.queries)?;
        let counts = self.reduced.iter().map(|r| (r.seeds, r.collapsed, r.diverged));
        for (seeds, collapsed, diverged) in
            counts.chain([(self.seeds, self.collapsed, self.diverged)])
        {
            if collapsed.saturating_add(diverged) > seeds {
                bail!("{collapsed} collapsed and {diverged} diverged seeds are more than {seeds}");
            }
        }
        if !self.reduced.is_sorted_by(|a, b| a.fraction < b.fraction) {
            bail!("the fractions of reduced data do not increase");
        }
        if !self.evolution.iterations.is_sorted() {
            bail!("the iterations do not increase");
        }
        let evolutions =
            [Some(&self.evolution), self.without_collapsed.as_ref().map(|w| &w.evolution)];
        for evolution in evolutions.into_iter().flatten() {
            let points = evolution.iterations.len();
            let tables = [&evolution.bhattacharyya, &evolution.wasserstein, &evolution.kept];
            let curves =
                tables.into_iter().flat_map(|table| table.values()).flat_map(|c| c.values());
            let evidence = evolution.ignorance.values().chain(evolution.internal_conflict.values());
            if let Some(curve) = curves.chain(evidence).find(|curve| !curve.has(points)) {
                bail!("a curve has {} points for {points} iterations", curve.mean.len());
            }
        }
        let Some(exemplar) = &self.exemplar else { return Ok(()) };
        if exemplar.latents.len() != self.classes {
            bail!("{} latent classes are decoded of {}", exemplar.latents.len(), self.classes);
        }
        for bars in exemplar.queries.values() {
            let rows = bars.methods.values().map(|bars| &bars.probabilities);
            if let Some(row) = rows.chain([&bars.target]).find(|row| row.len() != self.classes) {
                bail!("the exemplar has {} probabilities of {}", row.len(), self.classes);
            }
            let mut samples = bars.methods.values().flat_map(|bars| &bars.samples);
            if let Some(class) = samples.find(|class| **class >= self.classes) {
                bail!("there is a sample of class {class} of {}", self.classes);
            }
        }
        Ok(())
    }
}

/// The queries are keys of tables, beside [`BOTH`].
pub(super) fn check_queries(queries: &[String]) -> Result<()> {
    for (place, query) in queries.iter().enumerate() {
        if query.is_empty() || query == BOTH || queries[..place].contains(query) {
            bail!("queries need different names, not empty and not {BOTH:?}, but are {queries:?}");
        }
    }
    Ok(())
}
