//! The rules that change the parameters.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
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

    /// The size of the steps from now on.
    pub(crate) fn set_learning_rate(&mut self, learning_rate: f64) {
        self.learning_rate = learning_rate;
    }

    /// Takes one step.
    pub(crate) fn step<N: Module>(&mut self, network: N, gradients: Gradients) -> N {
        self.scaled(network, gradients, None)
    }

    /// Takes one step along a gradient that is at most so long, over all parameters; a longer one is
    /// shortened to that.
    pub(crate) fn clipped<N: Module>(
        &mut self,
        network: N,
        gradients: Gradients,
        longest: f64,
    ) -> N {
        let mut norm = Norm { gradients: &gradients, squares: 0.0 };
        network.visit(&mut norm);
        let length = norm.squares.sqrt();
        let scale = (length > longest).then(|| (longest / length) as f32);
        self.scaled(network, gradients, scale)
    }

    fn scaled<N: Module>(&mut self, network: N, gradients: Gradients, scale: Option<f32>) -> N {
        self.steps += 1;
        // The moments are handed over, not lent, so that they can be changed in place.
        let mut step = Step {
            rule: self.rule,
            learning_rate: self.learning_rate,
            adam: AdamStep::new(self.learning_rate, self.steps),
            gradients,
            scale,
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
    /// What gradients are multiplied by.
    scale: Option<f32>,
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
            Some(gradient) => {
                let gradient = match self.scale {
                    None => gradient,
                    Some(scale) => gradient.mul_scalar(scale),
                };
                self.updated(tensor.inner(), gradient).autodiff().require_grad()
            }
        };
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// The length of a gradient.
struct Norm<'a> {
    gradients: &'a Gradients,
    squares: f64,
}

impl ModuleVisitor for Norm<'_> {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        if let Some(gradient) = parameter.val().grad(self.gradients) {
            self.squares +=
                host(gradient).into_iter().map(|x| f64::from(x) * f64::from(x)).sum::<f64>();
        }
    }
}
