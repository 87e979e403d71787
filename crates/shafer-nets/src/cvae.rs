//! A conditional variational autoencoder, and its training.

use burn::tensor::Tensor;
use burn::tensor::activation::{log_softmax, sigmoid};
use serde::{Deserialize, Serialize};

use crate::config::{Config, DecoderBias, NetworkConfig, TrainingConfig};
use crate::diagnosis::Tally;
use crate::layers::Initialiser;
use crate::net::Parameters as _;
use crate::network::{Inputs, Network, Terms};
use crate::random::Purpose;
use crate::training::{Batch, Length, Model, Pass, Plan, Schedule};
use crate::weights::{host, tensor};
use crate::{Diagnosis, Examples, Net, PriorSnapshot, Result};

/// A conditional variational autoencoder with one categorical latent variable.
///
/// ```
/// use shafer_nets::{Cvae, NetworkConfig, Precision};
///
/// let cvae = Cvae::untrained(&NetworkConfig::default(), 0)?;
/// assert_eq!(cvae.decode().len(), 10 * 28 * 28); // The image of every latent class.
/// let bytes = cvae.to_safetensors(Precision::Half)?;
/// assert_eq!(Cvae::from_safetensors(&bytes)?.config(), cvae.config());
/// # Ok::<(), shafer_nets::Error>(())
/// ```
pub type Cvae = Net<Network>;

/// Examples in a block of an evaluation: memory does not grow with their number.
const EVALUATED_AT_ONCE: usize = 512;

fn log_probabilities(logits: Tensor<2>) -> Vec<f64> {
    host(log_softmax(logits, 1)).into_iter().map(f64::from).collect()
}

impl Cvae {
    /// The image of every latent class: `latent_classes x pixels`, from 0 to 1.
    pub fn decode(&self) -> Vec<f32> {
        let classes = Tensor::eye(self.config.latent_classes, &self.device);
        host(sigmoid(self.network.decoder(classes)))
    }

    /// The prior, as the paper's linear layer and its features.
    pub fn prior(&self) -> PriorSnapshot {
        let (weight, bias) = self.network.prior().output();
        let conditions = Tensor::eye(self.config.conditions, &self.device);
        PriorSnapshot {
            feature_count: self.config.prior_hidden,
            classes: self.config.latent_classes,
            weights: host(weight),
            bias: host(bias),
            features: host(self.network.prior().features(conditions)),
        }
    }

    /// The logits of q(z|x,y), `examples x latent_classes`.
    ///
    /// ```
    /// use shafer_nets::{Cvae, Examples, NetworkConfig};
    ///
    /// let cvae = Cvae::untrained(&NetworkConfig::default(), 0)?;
    /// let images = [0; 3 * 28 * 28];
    /// assert_eq!(cvae.posterior(Examples::new(&images, &[0, 1, 0], 28 * 28)?)?.len(), 3 * 10);
    /// # Ok::<(), shafer_nets::Error>(())
    /// ```
    pub fn posterior(&self, examples: Examples<'_>) -> Result<Vec<f32>> {
        examples.check(self.config.pixels(), self.config.conditions)?;
        let rows: Vec<u32> = (0..examples.len() as u32).collect();
        let block = |rows: &[u32]| {
            host(self.network.posterior(&Inputs::gather(
                &self.config,
                &examples,
                rows,
                &self.device,
            )))
        };
        Ok(rows.chunks(EVALUATED_AT_ONCE).flat_map(block).collect())
    }

    /// Measures posterior collapse over these examples.
    pub fn diagnose(&self, examples: Examples<'_>) -> Result<Diagnosis> {
        let NetworkConfig { conditions, latent_classes: classes, .. } = self.config;
        examples.check(self.config.pixels(), conditions)?;
        let one_hot = Tensor::eye(conditions, &self.device);
        let log_p = log_probabilities(self.network.prior().forward(one_hot));
        let mut tally = Tally::new(conditions, classes);
        let rows: Vec<u32> = (0..examples.len() as u32).collect();
        for rows in rows.chunks(EVALUATED_AT_ONCE) {
            let inputs = Inputs::gather(&self.config, &examples, rows, &self.device);
            let log_q = log_probabilities(self.network.posterior(&inputs));
            for (&row, log_q) in rows.iter().zip(log_q.chunks_exact(classes)) {
                let condition = examples.label(row);
                tally.add(condition, log_q, &log_p[condition * classes..][..classes]);
            }
        }
        Ok(tally.diagnosis())
    }
}

/// The terms of the evidence lower bound, in nats: means over the images of a batch or an epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Losses {
    /// The negative log-likelihood of the pixels.
    pub reconstruction: f64,
    /// KL(q || p).
    pub kl: f64,
}

impl crate::training::Losses for Losses {
    fn total(&self) -> f64 {
        self.reconstruction + self.kl
    }

    fn add(&mut self, batch: &Self) {
        self.reconstruction += batch.reconstruction;
        self.kl += batch.kl;
    }

    fn mean(&self, images: usize) -> Self {
        let by = 1.0 / images as f64;
        Self { reconstruction: self.reconstruction * by, kl: self.kl * by }
    }
}

impl Model for Cvae {
    type Config = Config;
    type Examples<'a> = Examples<'a>;
    type Losses = Losses;
    type Network = Network;

    fn shape(config: &Config) -> &NetworkConfig {
        &config.network
    }

    fn check(config: &Config, examples: &Examples<'_>) -> Result<()> {
        config.check()?;
        examples.check(config.network.pixels(), config.network.conditions)
    }

    fn plan(config: &Config) -> Plan {
        let TrainingConfig { batch_size, epochs, optimiser, learning_rate, .. } = config.training;
        Plan {
            batch_size,
            length: Length::Epochs(epochs),
            optimiser,
            learning_rate: Schedule::Constant(learning_rate),
            gradient_norm: None,
        }
    }

    fn network(config: &Config, examples: &Examples<'_>, init: &mut Initialiser) -> Network {
        let mut network = Network::make(&config.network, init);
        if config.training.decoder_bias == DecoderBias::MeanImage {
            network.set_decoder_bias(examples.mean_log_odds());
        }
        network
    }

    fn pass(
        config: &Config,
        examples: &Examples<'_>,
        network: &Network,
        batch: &Batch<'_>,
    ) -> Result<Pass<Self>> {
        let inputs = Inputs::gather(&config.network, examples, batch.rows, batch.device);
        let shape = [batch.rows.len(), config.network.latent_classes];
        let mut random = batch.random(Purpose::Noise);
        let noise = (0..shape[0] * shape[1]).map(|_| random.gumbel()).collect();
        let noise = tensor(noise, shape, batch.device);
        let Terms { reconstruction, kl } =
            network.terms(&inputs, noise, config.training.temperature);
        let weight = config.training.objective.kl_weight(batch.rows.len());
        let loss = reconstruction.clone() + kl.clone().mul_scalar(weight);
        let sum = |sum: Tensor<1>| f64::from(host(sum.inner())[0]);
        let losses = Losses { reconstruction: sum(reconstruction), kl: sum(kl) };
        Ok(Pass::new(loss, losses))
    }

    fn extended(mut saved: Config, to: &Config) -> Config {
        saved.training.epochs = to.training.epochs;
        saved
    }
}
