//! Networks with their weights, and the files of both.

use std::collections::BTreeMap;
use std::fmt::Debug;

use burn::module::Module;
use burn::tensor::Device;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::layers::Initialiser;
use crate::weights::{Precision, Tensors};
use crate::{Error, Result, cpu};

/// The parameters of a kind of networks, as a function of their shape.
pub trait Parameters: Module {
    /// The shape.
    type Config: Clone + Debug + PartialEq + Serialize + DeserializeOwned;

    /// The name of the kind, in the description of files.
    const NAME: &'static str;

    /// Checks that such a network can be made.
    fn check(config: &Self::Config) -> Result<()>;

    /// The parameters before a training; the shape has been checked.
    fn make(config: &Self::Config, init: &mut Initialiser) -> Self;

    /// The number of values that [`make`](Self::make) makes, state included.
    fn size(config: &Self::Config) -> usize {
        let mut init = Initialiser::measuring();
        drop(Self::make(config, &mut init));
        init.size()
    }
}

/// A network in evaluation mode: [`Cvae`](crate::Cvae), [`Classifier`](crate::Classifier) and others.
#[derive(Clone, Debug)]
pub struct Net<P: Parameters> {
    pub(crate) config: P::Config,
    pub(crate) network: P,
    pub(crate) device: Device,
}

impl<P: Parameters> Net<P> {
    /// With the initial parameters of a training with this seed, on the CPU.
    pub fn untrained(config: &P::Config, seed: u64) -> Result<Self> {
        P::check(config)?;
        Ok(Self::of(config.clone(), &P::make(config, &mut Initialiser::new(seed, &cpu()))))
    }

    pub(crate) fn of(config: P::Config, network: &P) -> Self {
        let device = network.devices().first().cloned().unwrap_or_else(cpu).inner();
        Self { config, network: network.valid(), device }
    }

    /// Its shape.
    pub fn config(&self) -> &P::Config {
        &self.config
    }

    /// The number of its parameters, state included.
    pub fn parameters(&self) -> usize {
        P::size(&self.config)
    }

    /// The same on another device.
    #[must_use]
    pub fn to(self, device: &Device) -> Self {
        Self { network: self.network.to_device(device), device: device.clone(), ..self }
    }

    /// The weights as the bytes of a safetensors file, with PyTorch's names and layout.
    pub fn to_safetensors(&self, precision: Precision) -> Result<Vec<u8>> {
        let description = BTreeMap::from([(P::NAME, &self.config)]);
        Tensors::of(&self.network).to_bytes(precision, &description)
    }

    /// Loads the bytes of [`to_safetensors`](Self::to_safetensors), on the CPU.
    pub fn from_safetensors(bytes: &[u8]) -> Result<Self> {
        let other = |problem| {
            Error::format(format!(
                "the file is of another kind or version than expected: {problem}"
            ))
        };
        let (tensors, mut description): (_, BTreeMap<String, serde_json::Value>) =
            Tensors::from_bytes(bytes)?;
        let Some(config) = description.remove(P::NAME).filter(|_| description.is_empty()) else {
            return Err(other(format!("it describes no {}", P::NAME)));
        };
        let config = serde_json::from_value(config).map_err(|e| other(e.to_string()))?;
        P::check(&config)?;
        let make = || P::make(&config, &mut Initialiser::new(0, &cpu()));
        let network = tensors.into_network(P::size(&config), make)?;
        Ok(Self::of(config, &network))
    }
}
