//! The rules that change the parameters.

use burn::module::{Module, ModuleMapper, Param};
use burn::tensor::{Device, Gradients, Tensor};

use crate::Result;
use crate::config::Optimiser;
use crate::fused::{AdamStep, adam, sgd};
use crate::weights::{Stored, Tensors, host, parameters};

/// An optimiser in the middle of its work.
#[derive(Debug)]
pub(crate) struct Descent {
    rule: Optimiser,
    learning_rate: f64,
    steps: u64,
    /// Adam's two moments of each parameter, in the order in which a module visits them.
    moments: Vec<[Tensor<1>; 2]>,
}

impl Descent {
    pub(crate) fn new(rule: Optimiser, learning_rate: f64) -> Self {
        Self { rule, learning_rate, steps: 0, moments: Vec::new() }
    }

    /// Takes one step.
    pub(crate) fn step<N: Module>(&mut self, network: N, gradients: Gradients) -> N {
        self.steps += 1;
        // The moments are handed over, not lent, so that they can be changed in place.
        let mut step = Step {
            rule: self.rule,
            learning_rate: self.learning_rate,
            adam: AdamStep::new(self.learning_rate, self.steps),
            gradients,
            before: std::mem::take(&mut self.moments).into_iter(),
            after: Vec::new(),
        };
        let network = network.map(&mut step);
        self.moments = step.after;
        network
    }

    /// Adds what it remembers of each parameter.
    pub(crate) fn save<N: Module>(&self, network: &N, tensors: &mut Tensors) {
        for ((parameter, _), moments) in parameters(network).into_iter().zip(&self.moments) {
            for (name, moment) in moment_names(&parameter).into_iter().zip(moments) {
                let values = host(moment.clone());
                tensors.insert(name, Stored { shape: vec![values.len()], values });
            }
        }
    }

    /// As [`save`](Self::save) left it after so many steps.
    pub(crate) fn load<N: Module>(
        rule: Optimiser,
        learning_rate: f64,
        steps: u64,
        network: &N,
        tensors: &mut Tensors,
    ) -> Result<Self> {
        let mut descent = Self { steps, ..Self::new(rule, learning_rate) };
        if rule == Optimiser::Adam && steps > 0 {
            for (parameter, stored) in parameters(network) {
                let [first, second] = moment_names(&parameter);
                let mut take = |name: &str| -> Result<Tensor<1>> {
                    let values = tensors.take(name, &[stored.values.len()])?;
                    Ok(Tensor::from_data(&values[..], &Device::flex()))
                };
                descent.moments.push([take(&first)?, take(&second)?]);
            }
        }
        Ok(descent)
    }
}

/// The names of a parameter's moments in a file.
fn moment_names(parameter: &str) -> [String; 2] {
    ["first", "second"].map(|moment| format!("adam.{moment}.{parameter}"))
}

struct Step {
    rule: Optimiser,
    learning_rate: f64,
    adam: AdamStep,
    gradients: Gradients,
    before: std::vec::IntoIter<[Tensor<1>; 2]>,
    after: Vec<[Tensor<1>; 2]>,
}

impl Step {
    fn updated<const D: usize>(&mut self, parameter: Tensor<D>, gradient: Tensor<D>) -> Tensor<D> {
        match self.rule {
            Optimiser::Sgd => sgd(parameter, gradient, self.learning_rate as f32),
            Optimiser::Adam => {
                let zeros =
                    || Tensor::zeros([parameter.shape().num_elements()], &parameter.device());
                let moments = self.before.next().unwrap_or_else(|| [zeros(), zeros()]);
                let (parameter, moments) = adam(parameter, gradient, moments, self.adam);
                self.after.push(moments);
                parameter
            }
        }
    }
}

impl ModuleMapper for Step {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = parameter.consume();
        // Every parameter of these networks has a part in the loss, and so a gradient.
        let tensor = match tensor.grad_remove(&mut self.gradients) {
            None => tensor,
            Some(gradient) => self.updated(tensor.inner(), gradient).autodiff().require_grad(),
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}
