//! Labels the images of latent classes with a classifier.

use anyhow::{Context as _, Result};
use shafer_data::dataset::ImageSet;
use shafer_nets::{Classifier, Cvae};

use crate::experiment::{GreyImage, Judgement, LatentClass};

/// A classifier and the data set that names its classes.
pub(crate) struct Judge<'a> {
    classifier: Classifier,
    set: &'a ImageSet,
}

impl<'a> Judge<'a> {
    /// Loads the weights from the bytes of a safetensors file.
    pub(crate) fn new(weights: &[u8], set: &'a ImageSet) -> Result<Self> {
        let classifier = Classifier::from_safetensors(weights)?;
        Ok(Self { classifier, set })
    }

    /// The decoded image of each latent class, with its label.
    pub(crate) fn latents(&self, cvae: &Cvae) -> Result<Vec<LatentClass>> {
        let [_, width] = cvae.config().image;
        cvae.decode()
            .chunks_exact(cvae.config().pixels())
            .map(|image| {
                let grey = image.iter().map(|p| (p * 255.0).round() as u8).collect();
                let judged = Some(self.judgement(image)?);
                Ok(LatentClass { image: GreyImage::new(width, grey)?, judged })
            })
            .collect()
    }

    fn judgement(&self, image: &[f32]) -> Result<Judgement> {
        let probabilities = self.classifier.probabilities(image)?;
        let class = most_probable(&probabilities);
        let label = self
            .set
            .classes
            .get(class)
            .context("the classifier has other classes than the data set")?;
        let query =
            *self.set.groups.of_class.get(class).context("the class belongs to no query")?;
        Ok(Judgement { label: label.clone(), query: query.into() })
    }
}

fn most_probable(probabilities: &[f32]) -> usize {
    let mut best = 0;
    for (class, &p) in probabilities.iter().enumerate() {
        if p > probabilities[best] {
            best = class;
        }
    }
    best
}
