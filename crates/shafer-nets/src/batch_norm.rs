//! Batch normalisation as a layer, with running statistics for evaluation.

use std::collections::HashMap;

use burn::module::{Module, ModuleMapper, Param, ParamId};
use burn::tensor::Tensor;

use crate::fused::{Activation, batch_norm, normalise};
use crate::training::Initialiser;

/// The share of a batch in the running statistics.
const MOMENTUM: f32 = 0.1;

/// Named as PyTorch's.
#[derive(Module, Debug)]
pub(crate) struct BatchNorm {
    weight: Param<Tensor<1>>,
    bias: Param<Tensor<1>>,
    running_mean: Param<Tensor<1>>,
    running_var: Param<Tensor<1>>,
}

/// What a forward pass is for.
#[derive(Debug)]
pub(crate) enum Mode<'a> {
    /// Statistics are those of the batch. They also move the running ones, once the updates are applied.
    Training(&'a mut Updates),
    /// Statistics are the running ones.
    Evaluation,
}

impl BatchNorm {
    pub(crate) fn new(init: &mut Initialiser, channels: usize) -> Self {
        Self {
            weight: init.constant(1.0, [channels]),
            bias: init.constant(0.0, [channels]),
            running_mean: init.state(0.0, [channels]),
            running_var: init.state(1.0, [channels]),
        }
    }

    pub(crate) fn forward(
        &self,
        x: Tensor<4>,
        activation: Activation,
        mode: &mut Mode<'_>,
    ) -> Tensor<4> {
        let (scale, shift) = (self.weight.val(), self.bias.val());
        match mode {
            Mode::Evaluation => {
                let means = self.running_mean.val().unsqueeze::<2>();
                let variances = self.running_var.val().unsqueeze::<2>();
                normalise(x, Tensor::cat(vec![means, variances], 0), scale, shift, activation)
            }
            Mode::Training(updates) => {
                let rows: usize = x.dims()[..3].iter().product();
                let (y, statistics) = batch_norm(x, scale, shift, activation);
                let statistics = statistics.inner();
                let channels = statistics.dims()[1];
                let of = |i: usize| {
                    statistics.clone().slice([i..i + 1, 0..channels]).reshape([channels])
                };
                // As in PyTorch, the running variance is without bias, that of the batch is not.
                let unbiased = of(1).mul_scalar(rows as f32 / rows.saturating_sub(1).max(1) as f32);
                let moved = |running: &Param<Tensor<1>>, seen: Tensor<1>| {
                    running.val().inner().mul_scalar(1.0 - MOMENTUM) + seen.mul_scalar(MOMENTUM)
                };
                updates.set(&self.running_mean, moved(&self.running_mean, of(0)));
                updates.set(&self.running_var, moved(&self.running_var, unbiased));
                y
            }
        }
    }
}

/// New values of state that the optimiser does not change: running statistics and moving averages.
#[derive(Debug, Default)]
pub(crate) struct Updates(HashMap<ParamId, Tensor<1>>);

impl Updates {
    /// Sets the value that a parameter will have. It is without gradients.
    pub(crate) fn set<const D: usize>(&mut self, parameter: &Param<Tensor<D>>, value: Tensor<D>) {
        self.0.insert(parameter.id, value.flatten(0, D - 1));
    }

    /// The network with the new values.
    pub(crate) fn apply<N: Module>(mut self, network: N) -> N {
        network.map(&mut self)
    }
}

impl ModuleMapper for Updates {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        match self.0.remove(&parameter.id) {
            None => parameter,
            Some(value) => {
                let (id, before, mapper) = parameter.consume();
                let value = value.reshape(before.shape());
                let value = if before.device().is_autodiff() { value.autodiff() } else { value };
                Param::from_mapped_value(id, value.set_require_grad(false), mapper)
            }
        }
    }
}
