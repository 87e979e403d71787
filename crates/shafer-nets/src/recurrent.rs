//! Long short-term memory (Hochreiter and Schmidhuber, 1997).

use burn::module::{Module, Param};
use burn::tensor::Tensor;
use burn::tensor::module::linear;

use crate::fused::lstm;
use crate::layers::Initialiser;

/// A long short-term memory with PyTorch's names, layout and initialisation: input, forget, cell and output
/// gate, in this order, and two biases, which are added.
#[derive(Module, Debug)]
pub(crate) struct Lstm {
    /// Inputs x 4 width.
    weight_ih: Param<Tensor<2>>,
    /// Width x 4 width.
    weight_hh: Param<Tensor<2>>,
    bias_ih: Param<Tensor<1>>,
    bias_hh: Param<Tensor<1>>,
}

impl Lstm {
    pub(crate) fn new(init: &mut Initialiser, inputs: usize, width: usize) -> Self {
        Self {
            weight_ih: init.uniform([inputs, 4 * width], width),
            weight_hh: init.uniform([width, 4 * width], width),
            bias_ih: init.uniform([4 * width], width),
            bias_hh: init.uniform([4 * width], width),
        }
    }

    fn width(&self) -> usize {
        self.weight_hh.dims()[0]
    }

    fn bias(&self) -> Tensor<1> {
        self.bias_ih.val() + self.bias_hh.val()
    }

    /// The initial state: zeros.
    pub(crate) fn start(&self, rows: usize) -> Tensor<2> {
        Tensor::zeros([rows, 2 * self.width()], &self.weight_hh.val().device().inner())
    }

    /// Runs over a sequence. The state after a step is multiplied by the step's factor: 0 for rows whose
    /// sequence begins later.
    pub(crate) fn run<'a>(
        &self,
        start: Tensor<2>,
        steps: impl Iterator<Item = (&'a Tensor<2>, Option<&'a Tensor<2>>)>,
    ) -> Tensor<2> {
        let rest = Tensor::cat(vec![self.weight_ih.val(), self.weight_hh.val()], 0);
        let (bias, width) = (self.bias(), self.width());
        steps.fold(start, |state, (input, factor)| {
            let input = Tensor::cat(vec![input.clone(), hidden(&state, width)], 1);
            let state = lstm(linear(input, rest.clone(), Some(bias.clone())), state);
            match factor {
                None => state,
                Some(factor) => state * factor.clone(),
            }
        })
    }

    /// For sequences in which the first part of the input is the same at every step.
    pub(crate) fn with_constant(&self, constant: Tensor<2>) -> Driven {
        let width = self.width();
        let [inputs, gates] = self.weight_ih.dims();
        let same = constant.dims()[1];
        let weight = self.weight_ih.val();
        let rest = weight.clone().slice([same..inputs, 0..gates]);
        Driven {
            gates: linear(constant, weight.slice([0..same, 0..gates]), Some(self.bias())),
            rest: Tensor::cat(vec![rest, self.weight_hh.val()], 0),
            width,
        }
    }
}

/// An [`Lstm`] with a constant part of the input, which is multiplied by its weights once.
#[derive(Clone, Debug)]
pub(crate) struct Driven {
    gates: Tensor<2>,
    rest: Tensor<2>,
    width: usize,
}

impl Driven {
    /// The state after a step with the rest of the input.
    pub(crate) fn step(&self, input: Tensor<2>, state: Tensor<2>) -> Tensor<2> {
        let input = Tensor::cat(vec![input, self.hidden(&state)], 1);
        lstm(self.gates.clone() + input.matmul(self.rest.clone()), state)
    }

    /// The hidden part of a state.
    pub(crate) fn hidden(&self, state: &Tensor<2>) -> Tensor<2> {
        hidden(state, self.width)
    }

    /// Selects rows of the constant part.
    pub(crate) fn rows(&self, rows: &Tensor<1, burn::tensor::Int>) -> Self {
        Self { gates: self.gates.clone().select(0, rows.clone()), ..self.clone() }
    }
}

/// The hidden part of a state; the cell follows it.
pub(crate) fn hidden(state: &Tensor<2>, width: usize) -> Tensor<2> {
    let rows = state.dims()[0];
    state.clone().slice([0..rows, 0..width])
}
