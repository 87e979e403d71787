//! The windows of causal convolutions, and the layers that look through them.

use burn::module::{Module, Param};
use burn::tensor::Tensor;

use super::ops;
use crate::layers::Initialiser;

/// The positions that a convolution sees: `rows x columns`, the first of them `top` rows below and `left`
/// columns after the position itself. Positions outside the grid count as 0.
///
/// A masked convolution is a convolution with a smaller window: only the part of the kernel that is not
/// masked is stored and computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) top: isize,
    pub(crate) left: isize,
}

impl Window {
    /// The position itself.
    pub(crate) const POINT: Self = Self { rows: 1, columns: 1, top: 0, left: 0 };

    /// The vertical stack's first layer: kernel 7, mask A. The three rows above.
    pub(crate) const ABOVE: Self = Self { rows: 3, columns: 7, top: -3, left: -3 };

    /// The vertical stack's other layers: kernel 3, mask B. The row itself and the one above.
    pub(crate) const VERTICAL: Self = Self { rows: 2, columns: 3, top: -1, left: -1 };

    /// The horizontal stack's first layer: kernel 7, mask A. The three positions before.
    pub(crate) const BEFORE: Self = Self { rows: 1, columns: 3, top: 0, left: -3 };

    /// The horizontal stack's other layers: kernel 3, mask B. The position itself and the one before.
    pub(crate) const HORIZONTAL: Self = Self { rows: 1, columns: 2, top: 0, left: -1 };

    /// The number of positions seen.
    pub(crate) fn taps(self) -> usize {
        self.rows * self.columns
    }

    /// The positions that see a position: the window of the gradient.
    pub(crate) fn reversed(self) -> Self {
        let last = |first: isize, count: usize| -(first + count as isize - 1);
        Self { top: last(self.top, self.rows), left: last(self.left, self.columns), ..self }
    }

    /// The rows of zeros that a grid needs above and below, and the columns before and after.
    pub(crate) fn padding(self) -> [[usize; 2]; 2] {
        let beyond = |first: isize, count: usize| {
            [(-first).max(0) as usize, (first + count as isize - 1).max(0) as usize]
        };
        [beyond(self.top, self.rows), beyond(self.left, self.columns)]
    }
}

/// A causal convolution of images with their channels last.
#[derive(Module, Debug)]
pub(crate) struct Convolution {
    /// Outputs x inputs x rows x columns of the window, as PyTorch has them.
    weight: Param<Tensor<4>>,
    bias: Param<Tensor<1>>,
    #[module(skip)]
    window: Window,
}

impl Convolution {
    pub(crate) fn new(
        init: &mut Initialiser,
        inputs: usize,
        outputs: usize,
        window: Window,
    ) -> Self {
        let Window { rows, columns, .. } = window;
        let bound = glorot(inputs * window.taps(), outputs * window.taps());
        let weight = init.within([outputs, inputs, rows, columns], bound);
        Self { weight, bias: init.within([outputs], 0.0), window }
    }

    /// The weights as a matrix: (rows x columns x inputs) x outputs, and the biases.
    pub(crate) fn matrix(&self) -> (Tensor<2>, Tensor<1>) {
        let [outputs, inputs, rows, columns] = self.weight.dims();
        let weight = self.weight.val().permute([2, 3, 1, 0]);
        (weight.reshape([rows * columns * inputs, outputs]), self.bias.val())
    }

    pub(crate) fn window(&self) -> Window {
        self.window
    }

    pub(crate) fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let (weight, bias) = self.matrix();
        ops::convolve(x, weight, bias, self.window)
    }
}

/// A convolution with a window of one position: a linear layer for each of them.
#[derive(Module, Debug)]
pub(crate) struct Pointwise {
    /// Inputs x outputs.
    weight: Param<Tensor<2>>,
    bias: Param<Tensor<1>>,
}

impl Pointwise {
    pub(crate) fn new(init: &mut Initialiser, inputs: usize, outputs: usize) -> Self {
        let weight = init.within([inputs, outputs], glorot(inputs, outputs));
        Self { weight, bias: init.within([outputs], 0.0) }
    }

    /// Inputs x outputs, and the biases.
    pub(crate) fn matrix(&self) -> (Tensor<2>, Tensor<1>) {
        (self.weight.val(), self.bias.val())
    }

    pub(crate) fn forward(&self, x: Tensor<4>) -> Tensor<4> {
        let (weight, bias) = self.matrix();
        ops::convolve(x, weight, bias, Window::POINT)
    }
}

/// The bound of Glorot and Bengio's uniform initial values (2010).
fn glorot(fan_in: usize, fan_out: usize) -> f32 {
    (6.0 / (fan_in + fan_out) as f32).sqrt()
}
