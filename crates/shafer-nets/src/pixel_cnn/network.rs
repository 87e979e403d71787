//! The gated PixelCNN: one pass over whole grids.
//!
//! Van den Oord, Kalchbrenner, Vinyals, Espeholt, Graves and Kavukcuoglu, *Conditional Image Generation
//! with PixelCNN Decoders* (2016), wired as the public code for VQ-VAE priors: the vertical stack sees the rows above, the
//! horizontal stack the positions before in the same row and, through a linear layer, what the vertical
//! stack has before its gate.

use burn::module::{Module, Param};
use burn::tensor::activation::{log_softmax, relu};
use burn::tensor::{Device, Int, Tensor, TensorData};

use super::config::PixelCnnConfig;
use super::ops::gate;
use super::window::{Convolution, Pointwise, Window};
use crate::Result;
use crate::layers::Initialiser;
use crate::net::Parameters;

/// Embedding, gated layers and head.
#[derive(Module, Debug)]
pub struct Network {
    /// Width x codes; in files codes x width.
    embedding: Param<Tensor<2>>,
    layers: Vec<Layer>,
    hidden: Pointwise,
    output: Pointwise,
}

/// One layer of both stacks.
#[derive(Module, Debug)]
pub(crate) struct Layer {
    /// 2 width x classes; in files classes x 2 width.
    pub(super) class_embedding: Param<Tensor<2>>,
    pub(super) vertical: Convolution,
    pub(super) vertical_to_horizontal: Pointwise,
    pub(super) horizontal: Convolution,
    pub(super) residual: Pointwise,
}

/// Grids of codes on a device, with the class of each.
#[derive(Clone, Debug)]
pub(crate) struct Grids {
    codes: Tensor<1, Int>,
    classes: Tensor<1, Int>,
    /// Grids, rows and columns.
    shape: [usize; 3],
}

impl Grids {
    /// They have been checked against the configuration.
    pub(crate) fn new(
        config: &PixelCnnConfig,
        codes: &[u16],
        classes: &[u16],
        device: &Device,
    ) -> Self {
        let tensor = |values: &[u16]| {
            let values: Vec<i64> = values.iter().map(|&value| value.into()).collect();
            let shape = [values.len()];
            Tensor::from_data(TensorData::new(values, shape), device)
        };
        let [rows, columns] = config.latent;
        Self {
            codes: tensor(codes),
            classes: tensor(classes),
            shape: [classes.len(), rows, columns],
        }
    }
}

impl Parameters for Network {
    type Config = PixelCnnConfig;

    const NAME: &'static str = "pixel_cnn";

    fn check(config: &PixelCnnConfig) -> Result<()> {
        config.check()
    }

    fn make(config: &PixelCnnConfig, init: &mut Initialiser) -> Self {
        let PixelCnnConfig { codes, classes, layers, width, head_width, .. } = *config;
        Self {
            embedding: init.normal([width, codes]),
            layers: (0..layers).map(|i| Layer::new(init, i == 0, width, classes)).collect(),
            hidden: Pointwise::new(init, width, head_width),
            output: Pointwise::new(init, head_width, codes),
        }
    }
}

impl Network {
    /// The logits of the code at every position, given all codes before it: positions of all grids x codes.
    pub(crate) fn logits(&self, grids: &Grids) -> Tensor<2> {
        let [count, rows, columns] = grids.shape;
        let embedding = self.embedding.val().swap_dims(0, 1);
        let width = embedding.dims()[1];
        let x = embedding.select(0, grids.codes.clone()).reshape([count, rows, columns, width]);
        let (mut vertical, mut horizontal) = (x.clone(), x);
        let last = self.layers.len() - 1;
        for (i, layer) in self.layers.iter().enumerate() {
            (vertical, horizontal) =
                layer.forward(vertical, horizontal, &grids.classes, [i == 0, i == last]);
        }
        let logits = self.output.forward(relu(self.hidden.forward(horizontal)));
        logits.flatten(0, 2)
    }

    /// The negative log-likelihood of the codes in nats, as a mean over positions.
    pub(crate) fn loss(&self, grids: &Grids) -> Tensor<1> {
        let log_likelihood = log_softmax(self.logits(grids), 1);
        let of_codes = log_likelihood.gather(1, grids.codes.clone().unsqueeze_dim(1));
        -of_codes.mean()
    }

    pub(crate) fn embedding(&self) -> Tensor<2> {
        self.embedding.val()
    }

    pub(crate) fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// The two linear layers of the head.
    pub(crate) fn head(&self) -> [&Pointwise; 2] {
        [&self.hidden, &self.output]
    }
}

impl Layer {
    fn new(init: &mut Initialiser, first: bool, width: usize, classes: usize) -> Self {
        let [vertical, horizontal] = windows(first);
        Self {
            class_embedding: init.normal([2 * width, classes]),
            vertical: Convolution::new(init, width, 2 * width, vertical),
            vertical_to_horizontal: Pointwise::new(init, 2 * width, 2 * width),
            horizontal: Convolution::new(init, width, 2 * width, horizontal),
            residual: Pointwise::new(init, width, width),
        }
    }

    /// Both stacks after this layer. The vertical one's of the last layer is not used, and not computed.
    fn forward(
        &self,
        vertical: Tensor<4>,
        horizontal: Tensor<4>,
        classes: &Tensor<1, Int>,
        [first, last]: [bool; 2],
    ) -> (Tensor<4>, Tensor<4>) {
        let class = self.class_embedding.val().swap_dims(0, 1).select(0, classes.clone());
        let above = self.vertical.forward(vertical.clone());
        let seen = self.vertical_to_horizontal.forward(above.clone());
        let vertical = if last { vertical } else { gate(above, class.clone()) };
        let gated = gate(self.horizontal.forward(horizontal.clone()) + seen, class);
        let added = self.residual.forward(gated);
        (vertical, if first { added } else { added + horizontal })
    }
}

/// The windows of the vertical and of the horizontal stack.
fn windows(first: bool) -> [Window; 2] {
    if first { [Window::ABOVE, Window::BEFORE] } else { [Window::VERTICAL, Window::HORIZONTAL] }
}
