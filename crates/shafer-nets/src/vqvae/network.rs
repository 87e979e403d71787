//! The encoder and the decoder of a VQ-VAE. Images and grids have their channels innermost.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;

use super::codebook::{Codebook, Quantised};
use super::config::NetworkConfig;
use crate::Result;
use crate::batch_norm::{BatchNorm, Mode, Updates};
use crate::channels_last::{Convolution, Scale};
use crate::fused::{Activation, Window};
use crate::layers::Initialiser;
use crate::net::Parameters;
use crate::random::Random;

/// Halves or doubles both sides of an image.
const RESIZE: Window = Window::square(4, 2, 1);
const SAME: Window = Window::square(3, 1, 1);
const POINT: Window = Window::square(1, 1, 0);

/// ReLU, 3 x 3 convolution, batch normalisation, ReLU, 1 x 1 convolution, batch normalisation; added to its
/// input.
#[derive(Module, Debug)]
struct Residual {
    first: Convolution,
    first_norm: BatchNorm,
    second: Convolution,
    second_norm: BatchNorm,
}

impl Residual {
    fn new(init: &mut Initialiser, width: usize) -> Self {
        Self {
            first: Convolution::new(init, width, width, SAME, Scale::Glorot),
            first_norm: BatchNorm::new(init, width),
            second: Convolution::new(init, width, width, POINT, Scale::Glorot),
            second_norm: BatchNorm::new(init, width),
        }
    }

    fn forward(&self, x: Tensor<4>, mode: &mut Mode<'_>) -> Tensor<4> {
        let y = self.first.forward(relu(x.clone()));
        let y = self.first_norm.forward(y, Activation::Relu, mode);
        let y = self.second.forward(y);
        x + self.second_norm.forward(y, Activation::Identity, mode)
    }
}

/// From images to encodings.
#[derive(Module, Debug)]
struct Encoder {
    input: Convolution,
    norm: BatchNorm,
    reduce: Convolution,
    blocks: Vec<Residual>,
}

impl Encoder {
    fn new(init: &mut Initialiser, config: &NetworkConfig) -> Self {
        let width = config.width;
        Self {
            input: Convolution::new(init, 3, width, RESIZE, Scale::Glorot),
            norm: BatchNorm::new(init, width),
            reduce: Convolution::new(init, width, width, RESIZE, Scale::Glorot).with_bias(init),
            blocks: (0..config.residual_blocks).map(|_| Residual::new(init, width)).collect(),
        }
    }

    fn forward(&self, images: Tensor<4>, mode: &mut Mode<'_>) -> Tensor<4> {
        let x = self.norm.forward(self.input.forward(images), Activation::Relu, mode);
        let x = self.reduce.forward(x);
        self.blocks.iter().fold(x, |x, block| block.forward(x, mode))
    }
}

/// From the vectors of codes to images.
#[derive(Module, Debug)]
struct Decoder {
    blocks: Vec<Residual>,
    enlarge: Convolution,
    norm: BatchNorm,
    output: Convolution,
}

impl Decoder {
    fn new(init: &mut Initialiser, config: &NetworkConfig) -> Self {
        let width = config.width;
        Self {
            blocks: (0..config.residual_blocks).map(|_| Residual::new(init, width)).collect(),
            enlarge: Convolution::transposed(init, width, width, RESIZE, Scale::Glorot),
            norm: BatchNorm::new(init, width),
            output: Convolution::transposed(init, width, 3, RESIZE, Scale::Glorot).with_bias(init),
        }
    }

    fn forward(&self, grids: Tensor<4>, mode: &mut Mode<'_>) -> Tensor<4> {
        let x = self.blocks.iter().fold(grids, |x, block| block.forward(x, mode));
        let x = self.enlarge.forward(relu(x));
        let x = self.norm.forward(x, Activation::Relu, mode);
        self.output.forward(x).tanh()
    }
}

/// A VQ-VAE.
#[derive(Module, Debug)]
pub struct Network {
    encoder: Encoder,
    codebook: Codebook,
    decoder: Decoder,
}

/// A forward pass in training.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The mean squared error of the images.
    pub(crate) reconstruction: Tensor<1>,
    /// The mean squared distance of the codes from the encodings, with a gradient to the codes.
    pub(crate) codebook: Tensor<1>,
    /// The same, with a gradient to the encodings.
    pub(crate) commitment: Tensor<1>,
    /// The code at each position of each image.
    pub(crate) codes: Vec<u32>,
}

impl Parameters for Network {
    type Config = NetworkConfig;

    const NAME: &'static str = "vqvae";

    fn check(config: &NetworkConfig) -> Result<()> {
        config.check()
    }

    fn make(config: &NetworkConfig, init: &mut Initialiser) -> Self {
        Self {
            encoder: Encoder::new(init, config),
            codebook: Codebook::new(init, config),
            decoder: Decoder::new(init, config),
        }
    }
}

impl Network {
    /// The codes of images, image after image and row after row.
    pub(crate) fn encode(&self, images: Tensor<4>) -> Vec<u32> {
        let encodings = self.encoder.forward(images, &mut Mode::Evaluation);
        self.codebook.quantise(rows(encodings)).codes
    }

    /// The images of codes, which are below the number of codes.
    pub(crate) fn decode(&self, codes: Vec<u32>, [rows, columns]: [usize; 2]) -> Tensor<4> {
        let images = codes.len() / (rows * columns);
        let Quantised { vectors, .. } = self.codebook.look_up(codes);
        let width = vectors.dims()[1];
        let grids = vectors.reshape([images, rows, columns, width]);
        self.decoder.forward(grids, &mut Mode::Evaluation)
    }

    /// The vectors of the codes, codes x width.
    pub(crate) fn code_vectors(&self) -> Tensor<2> {
        self.codebook.vectors()
    }

    /// A pass in training over images. `random` chooses the encodings that become codes of a live codebook.
    pub(crate) fn terms(
        &self,
        images: Tensor<4>,
        config: &NetworkConfig,
        random: Random,
        updates: &mut Updates,
    ) -> Terms {
        let encoded = self.encoder.forward(images.clone(), &mut Mode::Training(updates));
        let shape = encoded.dims();
        let encodings = rows(encoded);
        let Quantised { codes, vectors } =
            self.codebook.learn(encodings.clone(), config.codebook, random, updates);
        let vectors = vectors.autodiff();
        let codebook = mean_square(vectors.clone() - encodings.clone().detach());
        let commitment = mean_square(encodings.clone() - vectors.clone().detach());
        // The decoder sees the codes; its gradient goes to the encodings as if it had seen those.
        let straight = encodings.clone() + (vectors - encodings).detach();
        let decoded = self.decoder.forward(straight.reshape(shape), &mut Mode::Training(updates));
        Terms { reconstruction: mean_square(decoded - images), codebook, commitment, codes }
    }
}

/// Every position as a row of channels.
fn rows(grids: Tensor<4>) -> Tensor<2> {
    let [images, rows, columns, width] = grids.dims();
    grids.reshape([images * rows * columns, width])
}

fn mean_square<const D: usize>(x: Tensor<D>) -> Tensor<1> {
    (x.clone() * x).mean()
}
