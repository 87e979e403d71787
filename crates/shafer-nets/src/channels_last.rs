//! Layers for images whose channels are innermost: images x rows x columns x channels.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use crate::fused::{Window, convolve, convolve_transposed};
use crate::training::Initialiser;

/// A convolution or a transposed one, with PyTorch's layout of weights.
#[derive(Module, Debug)]
pub(crate) struct Convolution {
    weight: Param<Tensor<4>>,
    bias: Option<Param<Tensor<1>>>,
    #[module(skip)]
    window: Window,
    #[module(skip)]
    transposed: bool,
}

/// How the weights of a [`Convolution`] are drawn: uniformly within a bound.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Scale {
    /// Glorot and Bengio (2010): the variance is `2 / (fan_in + fan_out)`.
    Glorot,
    /// He et al. (2015): the variance is `2 / fan_out`.
    He,
}

impl Convolution {
    /// Without a bias: for the input of a batch normalisation, which would cancel it.
    pub(crate) fn new(
        init: &mut Initialiser,
        inputs: usize,
        outputs: usize,
        window: Window,
        scale: Scale,
    ) -> Self {
        Self::of(init, [outputs, inputs], window, scale, false)
    }

    /// The transpose of a convolution from `outputs` to `inputs`, without a bias.
    pub(crate) fn transposed(
        init: &mut Initialiser,
        inputs: usize,
        outputs: usize,
        window: Window,
        scale: Scale,
    ) -> Self {
        Self::of(init, [inputs, outputs], window, scale, true)
    }

    fn of(
        init: &mut Initialiser,
        [outer, inner]: [usize; 2],
        window: Window,
        scale: Scale,
        transposed: bool,
    ) -> Self {
        let [rows, columns] = window.kernel;
        let area = rows * columns;
        let variance = match scale {
            Scale::Glorot => 2.0 / ((outer + inner) * area) as f32,
            Scale::He => 2.0 / (outer * area) as f32,
        };
        // The variance of a uniform distribution is a third of its squared bound.
        let weight = init.within([outer, inner, rows, columns], (3.0 * variance).sqrt());
        Self { weight, bias: None, window, transposed }
    }

    /// With a bias that starts from 0.
    pub(crate) fn with_bias(self, init: &mut Initialiser) -> Self {
        let shape = self.weight.lazy_shape();
        let outputs = shape[usize::from(self.transposed)];
        Self { bias: Some(init.constant(0.0, [outputs])), ..self }
    }

    pub(crate) fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let (weight, window) = (self.weight.val(), self.window);
        let y = if self.transposed {
            let [_, rows, columns, _] = x.dims();
            convolve_transposed(x, weight, window.image([rows, columns]), window)
        } else {
            convolve(x, weight, window)
        };
        match &self.bias {
            None => y,
            Some(bias) => y + bias.val().reshape([1, 1, 1, -1]),
        }
    }
}
