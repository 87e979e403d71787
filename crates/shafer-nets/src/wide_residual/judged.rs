//! What a classifier says of images.

use crate::{Error, Result};

/// The logits and the features of images.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    logits: Vec<f32>,
    classes: usize,
    features: Vec<f32>,
}

impl Judged {
    pub(crate) fn new(logits: Vec<f32>, classes: usize, features: Vec<f32>) -> Self {
        Self { logits, classes, features }
    }

    /// The number of images.
    pub fn len(&self) -> usize {
        self.logits.len() / self.classes
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.logits.is_empty()
    }

    /// Images x classes.
    pub fn logits(&self) -> &[f32] {
        &self.logits
    }

    /// The inputs of the last layer: images x features.
    pub fn features(&self) -> &[f32] {
        &self.features
    }

    /// Whether the class of each image is among the `top` most probable ones. Of equally probable classes
    /// the first is the more probable one.
    pub fn hits(&self, labels: &[u16], top: usize) -> Result<Vec<bool>> {
        if labels.len() != self.len() {
            let (labels, images) = (labels.len(), self.len());
            return Err(Error::data("labels", format!("there are {labels} for {images} images")));
        }
        let rows = self.logits.chunks_exact(self.classes).zip(labels).enumerate();
        rows.map(|(row, (logits, &label))| {
            let label = usize::from(label);
            let Some(&own) = logits.get(label) else {
                let problem =
                    format!("that of image {row} is {label}, but must be below {}", self.classes);
                return Err(Error::data("labels", problem));
            };
            let before = |(class, &logit): (usize, &f32)| {
                logit > own || (logit == own && class < label) || logit.is_nan()
            };
            let rank = logits.iter().enumerate().filter(|&entry| before(entry)).count();
            Ok(rank < top && !own.is_nan())
        })
        .collect()
    }

    /// The share of [`hits`](Self::hits); NaN if there are no images.
    pub fn accuracy(&self, labels: &[u16], top: usize) -> Result<f64> {
        let hits = self.hits(labels, top)?;
        Ok(hits.iter().filter(|&&hit| hit).count() as f64 / hits.len() as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accuracies_by_hand() {
        let logits = vec![3.0, 1.0, 2.0, /* */ 0.0, 0.0, 0.0, /* */ f32::NAN, 1.0, 0.0];
        let judged = Judged::new(logits, 3, vec![0.0; 3]);
        assert_eq!(judged.len(), 3);
        assert_eq!(judged.hits(&[2, 1, 1], 1).unwrap(), [false, false, false]);
        assert_eq!(judged.hits(&[2, 1, 1], 2).unwrap(), [true, true, true]);
        assert_eq!(judged.hits(&[0, 0, 0], 3).unwrap(), [true, true, false]);
        assert_eq!(judged.accuracy(&[0, 2, 2], 1).unwrap(), 1.0 / 3.0);
        assert_eq!(
            judged.hits(&[0, 3, 0], 1).unwrap_err().to_string(),
            "labels: that of image 1 is 3, but must be below 3",
        );
        assert_eq!(
            judged.hits(&[0], 1).unwrap_err().to_string(),
            "labels: there are 1 for 3 images",
        );
    }
}
