//! Trained networks that are part of the program, for `shafer demo`.

use anyhow::{Context as _, Result};
use shafer_data::dataset::set;
use shafer_nets::Cvae;

use super::aggregate::{Evaluation, Meta};
use super::judge::Judge;
use super::record::{Checkpoint, Losses, SeedRecord};
use super::results::{ImageResults, TargetFrom};
use super::train::prior_logits;
use crate::experiments::origin::Origin;

/// A trained network and its classifier: `trainings/seed-*.weights.safetensors` and
/// `trainings/classifier.weights.safetensors` of a run.
struct Embedded {
    data_set: &'static str,
    /// The first seed that did not collapse.
    seed: u64,
    cvae: &'static [u8],
    classifier: &'static [u8],
}

macro_rules! embedded {
    ($($name:literal seed $seed:literal),*) => {
        [$(Embedded {
            data_set: $name,
            seed: $seed,
            cvae: include_bytes!(concat!("../../../weights/", $name, ".safetensors")),
            classifier: include_bytes!(concat!("../../../weights/", $name, ".classifier.safetensors")),
        }),*]
    };
}

const NETWORKS: [Embedded; 3] = embedded!["mnist" seed 0, "fashion" seed 6, "notmnist" seed 0];

/// The results of each network, as of a training with a single checkpoint.
pub(crate) fn demo_results(samples: usize) -> Result<Vec<ImageResults>> {
    NETWORKS.iter().map(|network| network.results(samples)).collect()
}

impl Embedded {
    fn results(&self, samples: usize) -> Result<ImageResults> {
        let set = set(self.data_set)?;
        let about = set.images.as_ref().context("not a set of images")?;
        let cvae = Cvae::from_safetensors(self.cvae)?;
        let judge = Judge::new(self.classifier, about)?;
        let record = SeedRecord {
            seed: self.seed,
            fraction: 1.0,
            collapsed: false,
            diverged: false,
            steps: 0,
            wall_seconds: 0.0,
            losses: Losses::default(),
            checkpoints: vec![Checkpoint { iteration: 0, logits: prior_logits(&cvae.prior())? }],
            latents: Some(judge.latents(&cvae)?),
        };
        let meta = Meta {
            data_set: set.name.clone(),
            queries: about.groups.names.clone(),
            origin: Origin::here(),
            target: TargetFrom::LastCheckpoint,
            exemplar: None,
            samples,
        };
        Evaluation::new(&meta, &[record])?.results()
    }
}

#[cfg(test)]
mod tests {
    use super::NETWORKS;

    #[test]
    fn the_weights_take_less_than_five_megabytes() {
        let bytes: usize = NETWORKS.iter().map(|n| n.cvae.len() + n.classifier.len()).sum();
        assert!(bytes < 5_000_000, "{bytes}");
    }
}
