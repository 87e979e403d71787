//! The three networks of a conditional variational autoencoder, and their forward pass.

use burn::module::Module;
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Device, Tensor};

use crate::Result;
use crate::config::{Architecture, NetworkConfig};
use crate::convolution::{Decoder, Encoder};
use crate::examples::Examples;
use crate::fused::{bernoulli_nll, without_traces};
use crate::layers::{Initialiser, Perceptron};
use crate::net::Parameters;
use crate::weights::tensor;

/// The posterior `q(z|x,y)`, the prior `p(z|y)` and the decoder `p(x|z)`.
#[derive(Module, Debug)]
pub struct Network {
    posterior: Posterior,
    prior: Perceptron,
    decoder: Generator,
}

#[derive(Module, Debug)]
enum Posterior {
    Mlp(Perceptron),
    Convolutional(Encoder),
}

#[derive(Module, Debug)]
enum Generator {
    Mlp(Perceptron),
    Convolutional(Decoder),
}

/// The terms of the evidence lower bound, summed over a batch.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The negative log-likelihood of the pixels, given a sample of the latent class.
    pub(crate) reconstruction: Tensor<1>,
    /// KL(q || p).
    pub(crate) kl: Tensor<1>,
}

impl Parameters for Network {
    type Config = NetworkConfig;

    const NAME: &'static str = "cvae";

    fn check(config: &NetworkConfig) -> Result<()> {
        config.check()
    }

    fn make(config: &NetworkConfig, init: &mut Initialiser) -> Self {
        let classes = config.latent_classes;
        let (pixels, conditions) = (config.pixels(), config.conditions);
        let posterior = match config.architecture {
            Architecture::Mlp { hidden } => {
                Posterior::Mlp(Perceptron::new(init, pixels + conditions, hidden, classes))
            }
            Architecture::Convolutional { channels } => Posterior::Convolutional(Encoder::new(
                init,
                config.image,
                1 + conditions,
                channels,
                classes,
            )),
        };
        let prior = Perceptron::new(init, conditions, config.prior_hidden, classes);
        let decoder = match config.architecture {
            Architecture::Mlp { hidden } => {
                Generator::Mlp(Perceptron::new(init, classes, hidden, pixels))
            }
            Architecture::Convolutional { channels } => {
                Generator::Convolutional(Decoder::new(init, config.image, channels, classes))
            }
        };
        Self { posterior, prior, decoder }
    }
}

impl Network {
    /// Sets the biases of the decoder's last layer to these logits of the pixels, if it is a perceptron: a
    /// convolution has no bias for each pixel.
    pub(crate) fn set_decoder_bias(&mut self, logits: Vec<f32>) {
        if let Generator::Mlp(network) = &mut self.decoder {
            network.set_output_bias(logits);
        }
    }

    /// The logits of q.
    pub(crate) fn posterior(&self, inputs: &Inputs) -> Tensor<2> {
        match &self.posterior {
            Posterior::Mlp(network) => network.forward(inputs.input.clone()),
            Posterior::Convolutional(network) => {
                let [rows, columns] = inputs.image;
                let [examples, width] = inputs.input.dims();
                let channels = width / (rows * columns);
                network.forward(inputs.input.clone().reshape([examples, channels, rows, columns]))
            }
        }
    }

    /// The prior's network.
    pub(crate) fn prior(&self) -> &Perceptron {
        &self.prior
    }

    /// The logits of the pixels.
    pub(crate) fn decoder(&self, z: Tensor<2>) -> Tensor<2> {
        match &self.decoder {
            Generator::Mlp(network) => network.forward(z),
            Generator::Convolutional(network) => network.forward(z),
        }
    }

    /// The forward pass over a batch, with this Gumbel noise.
    pub(crate) fn terms(&self, inputs: &Inputs, noise: Tensor<2>, temperature: f32) -> Terms {
        let posterior = without_traces(self.posterior(inputs));
        let prior = self.prior.forward(inputs.conditions.clone());
        let z = without_traces(softmax((posterior.clone() + noise).div_scalar(temperature), 1));
        let reconstruction = bernoulli_nll(self.decoder(z), inputs.target());
        let log_q = log_softmax(posterior, 1);
        let kl = (log_q.clone().exp() * (log_q - log_softmax(prior, 1))).sum();
        Terms { reconstruction, kl }
    }
}

/// The inputs of the networks for a batch.
#[derive(Debug)]
pub(crate) struct Inputs {
    /// For each example its pixels, from 0 to 1, followed by its one-hot condition; for a convolution each
    /// of its values is repeated to a constant channel.
    input: Tensor<2>,
    /// The conditions, one-hot.
    conditions: Tensor<2>,
    image: [usize; 2],
}

impl Inputs {
    /// The examples have been checked against the configuration.
    pub(crate) fn gather(
        config: &NetworkConfig,
        examples: &Examples<'_>,
        rows: &[u32],
        device: &Device,
    ) -> Self {
        let pixels = config.pixels();
        let copies = match config.architecture {
            Architecture::Mlp { .. } => 1,
            Architecture::Convolutional { .. } => pixels,
        };
        let width = pixels + config.conditions * copies;
        let mut input = Vec::with_capacity(rows.len() * width);
        let conditions = examples.one_hot(rows, config.conditions);
        for (&row, one_hot) in rows.iter().zip(conditions.chunks_exact(config.conditions)) {
            input.extend(examples.image(row));
            for &condition in one_hot {
                input.extend(std::iter::repeat_n(condition, copies));
            }
        }
        Self {
            input: tensor(input, [rows.len(), width], device),
            conditions: tensor(conditions, [rows.len(), config.conditions], device),
            image: config.image,
        }
    }

    /// The number of examples.
    pub(crate) fn len(&self) -> usize {
        self.input.dims()[0]
    }

    /// The pixels.
    fn target(&self) -> Tensor<2> {
        let pixels = self.image[0] * self.image[1];
        self.input.clone().slice([0..self.len(), 0..pixels])
    }
}
