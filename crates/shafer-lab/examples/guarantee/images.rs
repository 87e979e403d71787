//! Images: the classifier's digits, and the latent class of the autoencoder.

use std::path::PathBuf;

use serde::Serialize;
use shafer_data::dataset::{Split, set};
use shafer_nets::{Classifier, Cvae, Examples};

use crate::Outcome;
use crate::found::{Rows, Table};

/// The test images of a data set.
#[derive(Serialize)]
pub(crate) struct Measured {
    data_set: &'static str,
    /// Logits of a classifier; the true class is that of the image.
    classifier: Table,
    /// Logits of the prior p(z|y) of the CVAE; the true class is the latent class that the posterior q(z|x,y) chooses. There are
    /// two rows of logits only, one a condition.
    latent: Table,
}

/// Weights that are part of the program.
struct Weights {
    data_set: &'static str,
    cvae: &'static [u8],
    classifier: &'static [u8],
}

const NETWORKS: [Weights; 2] = [
    Weights {
        data_set: "mnist",
        cvae: include_bytes!("../../weights/mnist.safetensors"),
        classifier: include_bytes!("../../weights/mnist.classifier.safetensors"),
    },
    Weights {
        data_set: "fashion",
        cvae: include_bytes!("../../weights/fashion.safetensors"),
        classifier: include_bytes!("../../weights/fashion.classifier.safetensors"),
    },
];

pub(crate) fn measure(folders: &[PathBuf]) -> Outcome<Vec<Measured>> {
    NETWORKS.iter().map(|network| network.measure(folders)).collect()
}

impl Weights {
    fn measure(&self, folders: &[PathBuf]) -> Outcome<Measured> {
        let set = set(self.data_set)?;
        let groups = &set.images.as_ref().ok_or("not a set of images")?.groups;
        let images = set.images(Split::Test, folders)?;
        let pixels: Vec<f32> = images.pixels.iter().map(|&x| f32::from(x) / 255.0).collect();
        let classifier = Rows {
            logits: Classifier::from_safetensors(self.classifier)?.logits(&pixels)?,
            labels: images.labels.iter().copied().map(u32::from).collect(),
        };
        let cvae = Cvae::from_safetensors(self.cvae)?;
        let conditions = groups.of_labels(&images.labels)?;
        let width = pixels.len() / conditions.len();
        let posterior = cvae.posterior(Examples::new(&images.pixels, &conditions, width)?)?;
        let prior = cvae.prior();
        let rows = (0..prior.conditions()).map(|condition| prior.logits(condition));
        let rows = rows.collect::<Result<Vec<_>, _>>()?;
        let classes = cvae.config().latent_classes;
        let of_condition = |&y: &u8| rows[usize::from(y)].iter().map(|&x| x as f32);
        let latent = Rows {
            logits: conditions.iter().flat_map(of_condition).collect(),
            labels: posterior.chunks_exact(classes).map(best).collect(),
        };
        Ok(Measured {
            data_set: self.data_set,
            classifier: classifier.table()?,
            latent: latent.table()?,
        })
    }
}

/// The class of the largest logit.
pub(crate) fn best(logits: &[f32]) -> u32 {
    let best = (0..logits.len()).reduce(|a, b| if logits[b] > logits[a] { b } else { a });
    best.unwrap_or(0) as u32
}
