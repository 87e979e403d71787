//! The layers of a wide residual network. Images have their channels innermost.

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;
use burn::tensor::module::max_pool2d;
use burn::tensor::ops::MaxPoolOptions;

use super::config::{Block as Kind, NetworkConfig, Stem};
use crate::Result;
use crate::batch_norm::{BatchNorm, Mode};
use crate::channels_last::{Convolution, Scale};
use crate::fused::{Activation, Window};
use crate::layers::{Initialiser, Linear};
use crate::net::Parameters;

/// A convolution and its normalisation.
#[derive(Module, Debug)]
struct Layer {
    convolution: Convolution,
    norm: BatchNorm,
}

impl Layer {
    fn new(init: &mut Initialiser, inputs: usize, outputs: usize, window: Window) -> Self {
        Self {
            convolution: Convolution::new(init, inputs, outputs, window, Scale::He),
            norm: BatchNorm::new(init, outputs),
        }
    }

    fn forward(&self, x: Tensor<4>, activation: Activation, mode: &mut Mode<'_>) -> Tensor<4> {
        self.norm.forward(self.convolution.forward(x), activation, mode)
    }
}

/// Layers whose output is added to their input, which a layer of its own fits to it if their shapes differ.
#[derive(Module, Debug)]
struct Block {
    layers: Vec<Layer>,
    downsample: Option<Layer>,
}

impl Block {
    fn new(init: &mut Initialiser, config: &NetworkConfig, stage: usize, block: usize) -> Self {
        let (inner, output) = (config.inner(stage), config.output(stage));
        let input = match (stage, block) {
            (0, 0) => config.width,
            (_, 0) => config.output(stage - 1),
            _ => output,
        };
        let stride = if stage > 0 && block == 0 { 2 } else { 1 };
        let point = |stride| Window::square(1, stride, 0);
        let same = |stride| Window::square(3, stride, 1);
        // Inputs, outputs and window of each layer.
        let layers = match config.block {
            Kind::Basic => vec![(input, inner, same(stride)), (inner, output, same(1))],
            Kind::Bottleneck => vec![
                (input, inner, point(1)),
                (inner, inner, same(stride)),
                (inner, output, point(1)),
            ],
        };
        let mut layer = |(inputs, outputs, window)| Layer::new(init, inputs, outputs, window);
        let layers = layers.into_iter().map(&mut layer).collect();
        let fits = stride == 1 && input == output;
        Self { layers, downsample: (!fits).then(|| layer((input, output, point(stride)))) }
    }

    fn forward(&self, x: Tensor<4>, mode: &mut Mode<'_>) -> Tensor<4> {
        let last = self.layers.len() - 1;
        let y = self.layers.iter().enumerate().fold(x.clone(), |x, (i, layer)| {
            let activation = if i == last { Activation::Identity } else { Activation::Relu };
            layer.forward(x, activation, mode)
        });
        let x = match &self.downsample {
            None => x,
            Some(layer) => layer.forward(x, Activation::Identity, mode),
        };
        relu(x + y)
    }
}

/// A wide residual network.
#[derive(Module, Debug)]
pub struct Network {
    stem: Layer,
    stages: Vec<Vec<Block>>,
    classes: Linear,
    #[module(skip)]
    pool: bool,
}

fn stem(config: &NetworkConfig) -> (usize, usize, Window) {
    let window = match config.stem {
        Stem::Small => Window::square(3, 1, 1),
        Stem::Large => Window::square(7, 2, 3),
    };
    (3, config.width, window)
}

impl Parameters for Network {
    type Config = NetworkConfig;

    const NAME: &'static str = "wide_residual";

    fn check(config: &NetworkConfig) -> Result<()> {
        config.check()
    }

    fn make(config: &NetworkConfig, init: &mut Initialiser) -> Self {
        let (inputs, outputs, window) = stem(config);
        let first = Layer::new(init, inputs, outputs, window);
        let mut stages = Vec::new();
        for (stage, &blocks) in config.blocks.iter().enumerate() {
            let block = |block| Block::new(init, config, stage, block);
            stages.push((0..blocks).map(block).collect());
        }
        let classes = Linear::new(init, config.features(), config.classes);
        Self { stem: first, stages, classes, pool: config.stem == Stem::Large }
    }
}

impl Network {
    /// The features of images: means over all positions of what the last stage gives.
    pub(crate) fn features(&self, images: Tensor<4>, mode: &mut Mode<'_>) -> Tensor<2> {
        let mut x = self.stem.forward(images, Activation::Relu, mode);
        if self.pool {
            let options = MaxPoolOptions::new([3, 3]).with_stride([2, 2]).with_padding([1, 1]);
            let channels_first = x.permute([0, 3, 1, 2]);
            let pooled = max_pool2d(channels_first, options);
            x = pooled.permute([0, 2, 3, 1]);
        }
        for block in self.stages.iter().flatten() {
            x = block.forward(x, mode);
        }
        let [images, rows, columns, channels] = x.dims();
        let positions = x.reshape([images, rows * columns, channels]);
        positions.mean_dim(1).reshape([images, channels])
    }

    /// The logits of the classes, from features.
    pub(crate) fn logits(&self, features: Tensor<2>) -> Tensor<2> {
        self.classes.forward(features)
    }
}
