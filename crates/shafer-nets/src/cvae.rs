//! A conditional variational autoencoder, trained or not.

use burn::module::Module;
use burn::tensor::activation::{log_softmax, sigmoid};
use burn::tensor::{Device, Tensor};
use serde::{Deserialize, Serialize};

use crate::config::NetworkConfig;
use crate::diagnosis::Tally;
use crate::layers::Initialiser;
use crate::network::{Batch, Network};
use crate::weights::{Precision, Tensors, host};
use crate::{Diagnosis, Examples, PriorSnapshot, Result};

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
#[derive(Clone, Debug)]
pub struct Cvae {
    config: NetworkConfig,
    network: Network,
}

/// What the metadata of a file of weights says.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    cvae: NetworkConfig,
}

/// How many examples are looked at together, so that memory does not grow with their number.
const EVALUATED_AT_ONCE: usize = 512;

/// Row by row.
fn log_probabilities(logits: Tensor<2>) -> Vec<f64> {
    host(log_softmax(logits, 1)).into_iter().map(f64::from).collect()
}

impl Cvae {
    /// With the parameters that a training with this seed starts from, if its decoder's biases are random.
    pub fn untrained(config: &NetworkConfig, seed: u64) -> Result<Self> {
        config.check()?;
        let network = Network::new(config, &mut Initialiser::new(seed));
        Ok(Self::of(config.clone(), &network))
    }

    pub(crate) fn of(config: NetworkConfig, network: &Network) -> Self {
        Self { config, network: network.valid() }
    }

    /// The shapes of its networks.
    pub fn config(&self) -> &NetworkConfig {
        &self.config
    }

    /// The image of every latent class: `latent_classes x pixels`, from 0 to 1.
    pub fn decode(&self) -> Vec<f32> {
        let classes = Tensor::eye(self.config.latent_classes, &Device::flex());
        host(sigmoid(self.network.decoder(classes)))
    }

    /// The prior, as the linear layer that the evidence is read from.
    pub fn prior(&self) -> PriorSnapshot {
        let (weight, bias) = self.network.prior().output();
        let conditions = Tensor::eye(self.config.conditions, &Device::flex());
        PriorSnapshot {
            feature_count: self.config.prior_hidden,
            classes: self.config.latent_classes,
            weights: host(weight),
            bias: host(bias),
            features: host(self.network.prior().features(conditions)),
        }
    }

    /// How the posterior uses the latent classes over these examples.
    pub fn diagnose(&self, examples: Examples<'_>) -> Result<Diagnosis> {
        let NetworkConfig { conditions, latent_classes: classes, .. } = self.config;
        examples.check(self.config.pixels(), conditions)?;
        let one_hot = Tensor::eye(conditions, &Device::flex());
        let log_p = log_probabilities(self.network.prior().forward(one_hot));
        let mut tally = Tally::new(conditions, classes);
        let rows: Vec<u32> = (0..examples.len() as u32).collect();
        for rows in rows.chunks(EVALUATED_AT_ONCE) {
            let batch = Batch::gather(&self.config, &examples, rows);
            let log_q = log_probabilities(self.network.posterior(&batch));
            for (&row, log_q) in rows.iter().zip(log_q.chunks_exact(classes)) {
                let condition = examples.label(row);
                tally.add(condition, log_q, &log_p[condition * classes..][..classes]);
            }
        }
        Ok(tally.diagnosis())
    }

    /// The weights as the bytes of a safetensors file, named and laid out as PyTorch has them.
    pub fn to_safetensors(&self, precision: Precision) -> Result<Vec<u8>> {
        let description = Description { cvae: self.config.clone() };
        Tensors::of(&self.network).to_bytes(precision, &description)
    }

    /// From the bytes of such a file.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self> {
        let (tensors, Description { cvae: config }) = Tensors::from_bytes(bytes)?;
        config.check()?;
        let make = || Network::new(&config, &mut Initialiser::new(0));
        let network = tensors.into_network(Network::size(&config), make)?;
        Ok(Self::of(config, &network))
    }
}
