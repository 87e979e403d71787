//! What one training leaves behind.

use anyhow::{Result, bail};
use serde::{Deserialize, Serialize};

use super::GreyImage;

/// One training of one seed. It holds logits, not distributions: what follows from them is computed
/// in one place, by [`ImageResults::aggregate`](super::ImageResults::aggregate).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeedRecord {
    pub(crate) seed: u64,
    /// The share of the training set that was used: 1 for the main experiment.
    pub(crate) fraction: f64,
    /// Whether the posterior collapsed: the prior and the posterior agree, and one class is used.
    pub(crate) collapsed: bool,
    /// Whether a loss or a logit stopped being finite. Such a training has no distribution that could
    /// be measured: it is named, and left out of every mean.
    pub(crate) diverged: bool,
    /// The number of updates.
    pub(crate) steps: u64,
    pub(crate) wall_seconds: f64,
    pub(crate) losses: Losses,
    /// In the order of training. A diverged one ends before the first logit that is not finite.
    pub(crate) checkpoints: Vec<Checkpoint>,
    /// What the trained decoder makes of each class, if that was looked at.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) latents: Option<Vec<LatentClass>>,
}

/// The last values of the loss and its parts, means over an epoch's images; missing where they are
/// not finite.
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
    /// Of `p(z | y)`, a row of all classes for each of the two queries.
    pub(crate) logits: [Vec<f32>; 2],
}

/// One latent class of a trained network.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LatentClass {
    /// What the decoder makes of it.
    pub(crate) image: GreyImage,
    /// What a classifier takes the image for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) judged: Option<Judgement>,
}

/// A classifier's opinion of an image.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Judgement {
    /// The name of the category: `7`, `boot`.
    pub(crate) label: String,
    /// The number of the query that the category belongs to: 0 or 1.
    pub(crate) query: usize,
}

impl SeedRecord {
    /// The number of latent classes; `None` if there is no checkpoint.
    pub(super) fn classes(&self) -> Option<usize> {
        self.checkpoints.first().map(|checkpoint| checkpoint.logits[0].len())
    }

    /// Says which rule a record breaks.
    pub(super) fn check(&self, classes: usize) -> Result<()> {
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
                        "iteration {iteration}, query {query}, class {class}: the logit is {}, but \
                         must be finite; a training that goes there has diverged",
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
        if let Some(judgement) = judged.iter().find(|judgement| judgement.query > 1) {
            bail!("{} belongs to query {}, but there are two", judgement.label, judgement.query);
        }
        Ok(())
    }
}
