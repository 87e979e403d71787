//! Labels the images of latent classes with a classifier.

use anyhow::{Context as _, Result};
use shafer_data::dataset::ImageSet;
use shafer_nets::{Classifier, Cvae};

use super::record::{Judgement, LatentClass};
use crate::drawing::Image;

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
                Ok(LatentClass { image: Image::grey(width, grey)?, judged })
            })
            .collect()
    }

    fn judgement(&self, image: &[f32]) -> Result<Judgement> {
        let probabilities = self.classifier.probabilities(image)?;
        // The first of equally probable classes.
        let best = probabilities.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let class = probabilities.iter().position(|&p| p == best).unwrap_or(0);
        let label = self.set.classes.get(class).context("the classifier knows other classes")?;
        let query = *self.set.groups.of_class.get(class).context("a class belongs to no query")?;
        Ok(Judgement { label: label.clone(), query: query.into() })
    }
}
