//! What one training leaves behind.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use crate::drawing::Image;

/// The record of one training. It holds logits, not distributions: those are computed in one place, by
/// [`Evaluation`](super::aggregate::Evaluation).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeedRecord {
    pub(crate) seed: u64,
    /// The fraction of the training set: 1 for the main experiment.
    pub(crate) fraction: f64,
    /// Posterior collapse: prior and posterior agree and use one class.
    pub(crate) collapsed: bool,
    /// A loss or a logit stopped being finite. The training is listed, and in no mean.
    pub(crate) diverged: bool,
    /// The number of updates.
    pub(crate) steps: u64,
    pub(crate) wall_seconds: f64,
    pub(crate) losses: Losses,
    /// In the order of training. A diverged training ends before the first logit that is not finite.
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// The decoded latent classes after training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latents: Option<Vec<LatentClass>>,
}

/// The last values of the loss and its terms: means over an epoch's images; missing if not finite.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Losses {
    pub(crate) total: Option<f64>,
    pub(crate) reconstruction: Option<f64>,
    pub(crate) kl: Option<f64>,
}

/// The prior at one point of the training.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Checkpoint {
    /// The number of updates before it.
    pub(crate) iteration: u64,
    /// Of `p(z | y)`, a row over all classes for each query.
    pub(crate) logits: Vec<Vec<f32>>,
}

/// One latent class of a trained network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LatentClass {
    /// The image that the decoder makes of it.
    pub(crate) image: Image,
    /// The classifier's prediction for the image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) judged: Option<Judgement>,
}

/// A classifier's prediction.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Judgement {
    /// The name of the class: `7`, `boot`.
    pub(crate) label: String,
    /// The index of the query that the class belongs to.
    pub(crate) query: usize,
}

impl SeedRecord {
    /// The number of latent classes; `None` if there is no checkpoint.
    pub(super) fn classes(&self) -> Option<usize> {
        self.checkpoints.first()?.logits.first().map(Vec::len)
    }

    /// Checks that a record can be evaluated.
    pub(super) fn check(&self, queries: usize, classes: usize) -> Result<()> {
        if !(self.fraction > 0.0 && self.fraction <= 1.0) {
            bail!("the fraction is {}, but must lie above 0 and not above 1", self.fraction);
        }
        if self.checkpoints.is_empty() && !self.diverged {
            bail!("there is no checkpoint");
        }
        let mut before = None;
        for Checkpoint { iteration, logits } in &self.checkpoints {
            if before.is_some_and(|before| before >= *iteration) {
                bail!("iteration {iteration} comes after a later or equal one");
            }
            before = Some(*iteration);
            if logits.len() != queries {
                bail!("iteration {iteration}: logits for {} of {queries} queries", logits.len());
            }
            for (query, row) in logits.iter().enumerate() {
                if row.len() != classes {
                    bail!(
                        "iteration {iteration}, query {query}: {} logits, but there are {classes} \
                         classes",
                        row.len()
                    );
                }
                if let Some(class) = row.iter().position(|logit| !logit.is_finite()) {
                    bail!(
                        "iteration {iteration}, query {query}, class {class}: the logit is {}, not finite; \
                         such a training has diverged",
                        row[class]
                    );
                }
            }
        }
        let Some(latents) = &self.latents else { return Ok(()) };
        if latents.len() != classes {
            bail!("{} decoded latent classes, but there are {classes}", latents.len());
        }
        let judged: Vec<&Judgement> = latents.iter().filter_map(|l| l.judged.as_ref()).collect();
        if !judged.is_empty() && judged.len() < classes {
            bail!("a classifier judged {} of {classes} latent classes", judged.len());
        }
        if let Some(judgement) = judged.iter().find(|judgement| judgement.query >= queries) {
            let Judgement { label, query } = judgement;
            bail!("{label} belongs to query {query}, but there are {queries}");
        }
        Ok(())
    }
}
