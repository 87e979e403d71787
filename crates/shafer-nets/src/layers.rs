//! Layers.
//!
//! They differ from burn's in their initial values: every parameter is uniform within `1 / sqrt(fan_in)` of
//! 0, as in the paper's experiments, and has its own stream of random numbers.

use burn::module::{Module, Param, ParamId};
use burn::tensor::activation::relu;
use burn::tensor::module::{conv_transpose2d, conv2d, linear};
use burn::tensor::ops::{ConvOptions, ConvTransposeOptions};
use burn::tensor::{Device, Tensor, TensorData};

use crate::device::cpu;
use crate::random::{Purpose, Random};

/// Draws the initial values of a network's parameters.
#[derive(Debug)]
pub struct Initialiser {
    seed: u64,
    drawn: u64,
    device: Device,
    /// Whether parameters have only a shape.
    measures: bool,
    /// The values of all parameters so far.
    size: usize,
}

impl Initialiser {
    /// Parameters will be on this device, with gradients.
    pub fn new(seed: u64, device: &Device) -> Self {
        Self { seed, drawn: 0, device: device.clone().autodiff(), measures: false, size: 0 }
    }

    /// Counts the values of parameters without making any.
    pub(crate) fn measuring() -> Self {
        Self { measures: true, ..Self::new(0, &cpu()) }
    }

    /// The number of values of all parameters so far.
    pub(crate) fn size(&self) -> usize {
        self.size
    }

    /// A parameter that is uniform within `1 / sqrt(fan_in)` of 0.
    pub fn uniform<const D: usize>(
        &mut self,
        shape: [usize; D],
        fan_in: usize,
    ) -> Param<Tensor<D>> {
        self.within(shape, 1.0 / (fan_in as f32).sqrt())
    }

    /// A parameter that is uniform within `bound` of 0.
    pub fn within<const D: usize>(&mut self, shape: [usize; D], bound: f32) -> Param<Tensor<D>> {
        self.filled(shape, |random| bound * (2.0 * random.uniform() - 1.0))
    }

    /// From the standard normal distribution.
    pub(crate) fn normal<const D: usize>(&mut self, shape: [usize; D]) -> Param<Tensor<D>> {
        self.filled(shape, |random| random.normals()[0])
    }

    fn filled<const D: usize>(
        &mut self,
        shape: [usize; D],
        draw: impl Fn(&mut Random) -> f32,
    ) -> Param<Tensor<D>> {
        let mut random = Random::new(self.seed, Purpose::Parameters, self.drawn);
        self.drawn += 1;
        self.parameter(shape, || draw(&mut random))
    }

    /// A parameter that starts from the same value everywhere.
    pub(crate) fn constant<const D: usize>(
        &mut self,
        value: f32,
        shape: [usize; D],
    ) -> Param<Tensor<D>> {
        self.parameter(shape, || value)
    }

    /// State that starts from the same value everywhere. It is saved with the parameters, but not changed by the
    /// optimiser.
    pub fn state<const D: usize>(&mut self, value: f32, shape: [usize; D]) -> Param<Tensor<D>> {
        self.constant(value, shape).set_require_grad(false)
    }

    fn parameter<const D: usize>(
        &mut self,
        shape: [usize; D],
        mut value: impl FnMut() -> f32,
    ) -> Param<Tensor<D>> {
        let size = shape.iter().product();
        self.size += size;
        if self.measures {
            let zeros = move |device: &Device, _| Tensor::zeros(shape, device);
            let device = self.device.clone();
            return Param::uninitialized(ParamId::new(), zeros, device, true, shape.into());
        }
        let values: Vec<f32> = (0..size).map(|_| value()).collect();
        Param::from_data(TensorData::new(values, shape), &self.device)
    }
}

/// `x W + b`.
#[derive(Module, Debug)]
pub(crate) struct Linear {
    /// Inputs x outputs.
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Linear {
    pub(crate) fn new(init: &mut Initialiser, inputs: usize, outputs: usize) -> Self {
        Self {
            weight: init.uniform([inputs, outputs], inputs),
            bias: init.uniform([outputs], inputs),
        }
    }

    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        linear(x, self.weight.val(), Some(self.bias.val()))
    }
}

/// Two linear layers with a ReLU between them.
#[derive(Module, Debug)]
pub struct Perceptron {
    hidden: Linear,
    output: Linear,
}

impl Perceptron {
    pub(crate) fn new(
        init: &mut Initialiser,
        inputs: usize,
        hidden: usize,
        outputs: usize,
    ) -> Self {
        Self {
            hidden: Linear::new(init, inputs, hidden),
            output: Linear::new(init, hidden, outputs),
        }
    }

    pub(crate) fn forward(&self, x: Tensor<2>) -> Tensor<2> {
        self.output.forward(self.features(x))
    }

    /// The outputs of the hidden layer.
    pub(crate) fn features(&self, x: Tensor<2>) -> Tensor<2> {
        relu(self.hidden.forward(x))
    }

    /// Replaces the biases of the last layer.
    pub(crate) fn set_output_bias(&mut self, bias: Vec<f32>) {
        let shape = [bias.len()];
        let device = self.output.bias.val().device();
        self.output.bias = Param::from_data(TensorData::new(bias, shape), &device);
    }

    /// Weights and biases of the last layer.
    pub(crate) fn output(&self) -> (Tensor<2>, Tensor<1>) {
        (self.output.weight.val(), self.output.bias.val())
    }
}

/// A two-dimensional convolution, or a transposed one.
#[derive(Module, Debug)]
pub(crate) struct Convolution {
    /// Outputs x inputs x rows x columns; inputs x outputs x rows x columns if transposed.
    weight: Param<Tensor<4>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    window: Window,
    #[module(skip)]
    transposed: bool,
}

/// The kernel of a convolution: square.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) side: usize,
    pub(crate) stride: usize,
    pub(crate) padding: usize,
}

impl Convolution {
    pub(crate) fn new(
        init: &mut Initialiser,
        inputs: usize,
        outputs: usize,
        window: Window,
    ) -> Self {
        Self::of(init, [outputs, inputs], outputs, window, false)
    }

    /// The transpose of a convolution from `outputs` to `inputs`.
    pub(crate) fn transposed(
        init: &mut Initialiser,
        inputs: usize,
        outputs: usize,
        window: Window,
    ) -> Self {
        Self::of(init, [inputs, outputs], outputs, window, true)
    }

    fn of(
        init: &mut Initialiser,
        channels: [usize; 2],
        outputs: usize,
        window: Window,
        transposed: bool,
    ) -> Self {
        // Also if transposed, as in PyTorch: the fan-in is that of the convolution.
        let fan_in = channels[1] * window.side * window.side;
        let shape = [channels[0], channels[1], window.side, window.side];
        Self {
            weight: init.uniform(shape, fan_in),
            bias: init.uniform([outputs], fan_in),
            window,
            transposed,
        }
    }

    pub(crate) fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let (weight, bias) = (self.weight.val(), Some(self.bias.val()));
        let (stride, padding) = ([self.window.stride; 2], [self.window.padding; 2]);
        if self.transposed {
            let options = ConvTransposeOptions::new(stride, padding, [0, 0], [1, 1], 1);
            conv_transpose2d(x, weight, bias, options)
        } else {
            conv2d(x, weight, bias, ConvOptions::new(stride, padding, [1, 1], 1))
        }
    }
}
