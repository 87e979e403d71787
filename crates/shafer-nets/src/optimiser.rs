//! Optimisers: the rules that change the parameters, and their state.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param};
use burn::tensor::{Gradients, Tensor};

use crate::Result;
use crate::config::Optimiser;
use crate::fused::{AdamStep, NesterovStep, adam, nesterov, sgd};
use crate::weights::{Stored, Tensors, host, parameters, tensor};

/// An optimiser and its state.
#[derive(Debug)]
pub(crate) struct Descent {
    rule: Optimiser,
    steps: u64,
    /// The state of each trained parameter, in the order in which a module visits them: Adam's two
    /// moments, or the velocity.
    state: Vec<Vec<Tensor<1>>>,
}

impl Descent {
    pub(crate) fn new(rule: Optimiser) -> Self {
        Self { rule, steps: 0, state: Vec::new() }
    }

    /// Takes one step, along a gradient whose global norm is clipped to `longest`.
    pub(crate) fn step<N: Module>(
        &mut self,
        network: N,
        gradients: Gradients,
        learning_rate: f64,
        longest: Option<f64>,
    ) -> N {
        let scale = longest.and_then(|longest| {
            let mut norm = Norm { gradients: &gradients, squares: 0.0 };
            network.visit(&mut norm);
            let length = norm.squares.sqrt();
            (length > longest).then(|| (longest / length) as f32)
        });
        self.steps += 1;
        // The state is moved rather than borrowed, so that it can be changed in place.
        let mut step = Step {
            rule: self.rule,
            learning_rate,
            steps: self.steps,
            gradients,
            scale,
            before: std::mem::take(&mut self.state).into_iter(),
            after: Vec::new(),
        };
        let network = network.map(&mut step);
        self.state = step.after;
        network
    }

    /// The names of a parameter's state in a file.
    fn names(&self, parameter: &str) -> Vec<String> {
        let kinds: &[&str] = match self.rule {
            Optimiser::Sgd => &[],
            Optimiser::Adam => &["adam.first", "adam.second"],
            Optimiser::Nesterov { .. } => &["nesterov.velocity"],
        };
        kinds.iter().map(|kind| format!("{kind}.{parameter}")).collect()
    }

    /// Adds its state to the tensors of a file.
    pub(crate) fn save<N: Module>(&self, network: &N, tensors: &mut Tensors) {
        let trained = parameters(network).into_iter().filter(|(_, stored)| stored.trained);
        for ((parameter, _), state) in trained.zip(&self.state) {
            for (name, tensor) in self.names(&parameter).into_iter().zip(state) {
                let values = host(tensor.clone());
                let shape = vec![values.len()];
                tensors.insert(name, Stored { shape, values, trained: false });
            }
        }
    }

    /// Takes the state that [`save`](Self::save) added after this number of steps.
    pub(crate) fn load<N: Module>(
        &mut self,
        steps: u64,
        network: &N,
        tensors: &mut Tensors,
    ) -> Result<()> {
        self.steps = steps;
        self.state.clear();
        if steps == 0 {
            return Ok(());
        }
        let device = network.devices().first().cloned().unwrap_or_else(crate::cpu).inner();
        for (parameter, stored) in parameters(network) {
            if stored.trained {
                let length = stored.values.len();
                let take =
                    |name: String| Ok(tensor(tensors.take(&name, &[length])?, [length], &device));
                let state = self.names(&parameter).into_iter().map(take);
                self.state.push(state.collect::<Result<_>>()?);
            }
        }
        Ok(())
    }
}

struct Step {
    rule: Optimiser,
    learning_rate: f64,
    /// The number of steps, this one included.
    steps: u64,
    gradients: Gradients,
    /// The factor of the gradients.
    scale: Option<f32>,
    before: std::vec::IntoIter<Vec<Tensor<1>>>,
    after: Vec<Vec<Tensor<1>>>,
}

impl Step {
    fn updated<const D: usize>(&mut self, parameter: Tensor<D>, gradient: Tensor<D>) -> Tensor<D> {
        let (size, device) = (parameter.shape().num_elements(), parameter.device());
        let zeros = || Tensor::zeros([size], &device);
        let mut state = self.before.next().unwrap_or_default().into_iter();
        let mut state = || state.next().unwrap_or_else(zeros);
        match self.rule {
            Optimiser::Sgd => {
                self.after.push(Vec::new());
                sgd(parameter, gradient, self.learning_rate as f32)
            }
            Optimiser::Adam => {
                let moments = [state(), state()];
                let step = AdamStep::new(self.learning_rate, self.steps);
                let (parameter, moments) = adam(parameter, gradient, moments, step);
                self.after.push(moments.into());
                parameter
            }
            Optimiser::Nesterov { momentum, weight_decay } => {
                let step = NesterovStep {
                    rate: self.learning_rate as f32,
                    momentum: momentum as f32,
                    decay: weight_decay as f32,
                };
                let (parameter, velocity) = nesterov(parameter, gradient, state(), step);
                self.after.push(vec![velocity]);
                parameter
            }
        }
    }
}

impl ModuleMapper for Step {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (id, tensor, mapper) = parameter.consume();
        if !tensor.is_require_grad() {
            return Param::from_mapped_value(id, tensor, mapper);
        }
        // A parameter without a part in the loss has a gradient of 0.
        let gradient = tensor.grad_remove(&mut self.gradients);
        let tensor = tensor.inner();
        let gradient = match (gradient, self.scale) {
            (None, _) => tensor.zeros_like(),
            (Some(gradient), None) => gradient,
            (Some(gradient), Some(scale)) => gradient.mul_scalar(scale),
        };
        let tensor = self.updated(tensor, gradient).autodiff().require_grad();
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// Adds up the squares of a gradient.
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
