//! The training of a gated PixelCNN.

use serde::{Deserialize, Serialize};

use super::config::PixelCnnConfig;
use super::model::PixelCnn;
use super::network::{Grids, Network};
use crate::Result;
use crate::config::{finite_positive, positive};
use crate::examples::Fingerprint;
use crate::training::{Batch, CrossEntropy, Dataset, Model, Pass, Plan};
use crate::weights::host;

/// A gated PixelCNN and its training with Adam. The defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PixelCnnTraining {
    /// The network.
    pub network: PixelCnnConfig,
    /// The size of a step.
    pub learning_rate: f64,
    /// Grids in a batch.
    pub batch_size: usize,
    /// Passes over all grids.
    pub epochs: usize,
}

impl Default for PixelCnnTraining {
    fn default() -> Self {
        Self {
            network: PixelCnnConfig::default(),
            learning_rate: 3e-4,
            batch_size: 32,
            epochs: 100,
        }
    }
}

/// Grids of codes, one after the other, each row by row, with the class of each; borrowed.
#[derive(Clone, Copy, Debug)]
pub struct CodeGrids<'a> {
    codes: &'a [u16],
    classes: &'a [u16],
}

impl<'a> CodeGrids<'a> {
    /// They are checked against the network when a training begins.
    pub fn new(codes: &'a [u16], classes: &'a [u16]) -> Self {
        Self { codes, classes }
    }
}

impl Dataset for CodeGrids<'_> {
    fn count(&self) -> usize {
        self.classes.len()
    }

    fn fingerprint(&self) -> u64 {
        let mut fingerprint = Fingerprint::new(self.classes.len());
        self.classes.iter().chain(self.codes).for_each(|&word| fingerprint.add(word.into()));
        fingerprint.finish()
    }
}

/// The losses are means over the positions of a grid, in nats.
///
/// ```
/// use shafer_nets::pixel_cnn::{CodeGrids, PixelCnn, PixelCnnConfig, PixelCnnTraining};
/// use shafer_nets::{Trainer, cpu};
///
/// // Grids of one code: that of their class.
/// let classes = [0, 1, 2, 0, 1, 2, 0, 1];
/// let codes: Vec<u16> = classes.iter().flat_map(|&class| [class; 9]).collect();
/// let training = PixelCnnTraining {
///     network: PixelCnnConfig {
///         codes: 3,
///         classes: 3,
///         latent: [3, 3],
///         layers: 2,
///         width: 8,
///         head_width: 16,
///     },
///     learning_rate: 0.01,
///     batch_size: 4,
///     epochs: 20,
/// };
/// let grids = CodeGrids::new(&codes, &classes);
/// let mut trainer = Trainer::<PixelCnn>::new(&training, grids, 0, &cpu())?;
/// while trainer.step()?.is_some() {}
/// let prior = trainer.model();
/// assert!(prior.negative_log_likelihood(&codes, &classes)? < 0.1);
/// # Ok::<(), shafer_nets::Error>(())
/// ```
impl Model for PixelCnn {
    type Config = PixelCnnTraining;
    type Examples<'a> = CodeGrids<'a>;
    type Losses = CrossEntropy;
    type Network = Network;

    fn shape(config: &PixelCnnTraining) -> &PixelCnnConfig {
        &config.network
    }

    fn check(config: &PixelCnnTraining, examples: &CodeGrids<'_>) -> Result<()> {
        config.network.check()?;
        positive("batch_size", config.batch_size)?;
        positive("epochs", config.epochs)?;
        finite_positive("learning_rate", config.learning_rate)?;
        config.network.check_grids(examples.codes, examples.classes)
    }

    fn plan(config: &PixelCnnTraining) -> Plan {
        Plan::adam(config.batch_size, config.epochs, config.learning_rate)
    }

    fn pass(
        config: &PixelCnnTraining,
        examples: &CodeGrids<'_>,
        network: &Network,
        batch: &Batch<'_>,
    ) -> Result<Pass<Self>> {
        let positions = config.network.positions();
        let rows = || batch.rows.iter().map(|&row| row as usize);
        let codes: Vec<u16> = rows()
            .flat_map(|row| &examples.codes[row * positions..][..positions])
            .copied()
            .collect();
        let classes: Vec<u16> = rows().map(|row| examples.classes[row]).collect();
        let grids = Grids::new(&config.network, &codes, &classes, batch.device);
        let loss = network.loss(&grids);
        let losses = CrossEntropy::of_mean(host(loss.clone().inner())[0], batch.rows.len());
        Ok(Pass::new(loss, losses))
    }

    fn extended(mut saved: PixelCnnTraining, to: &PixelCnnTraining) -> PixelCnnTraining {
        saved.epochs = to.epochs;
        saved
    }
}
