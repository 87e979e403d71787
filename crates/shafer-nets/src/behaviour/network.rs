//! The networks of the predictor, and their forward pass.

use burn::module::Module;
use burn::tensor::activation::{log_softmax, softmax};
use burn::tensor::{Device, Tensor};

use super::config::{Feedback, Likelihood, NetworkConfig, TrainingConfig};
use super::example::{Example, Observation};
use super::mixture;
use crate::Result;
use crate::layers::{Initialiser, Linear, Perceptron};
use crate::net::Parameters;
use crate::recurrent::{Driven, Lstm, hidden};
use crate::weights::tensor;

/// Values of a state.
const STATE: usize = 6;
/// Values of a velocity.
const ACTION: usize = 2;

/// All networks.
///
/// Trajectron++ weighs the encodings of different kinds of edges by additive attention. Here is one kind,
/// whose weight is always 1, so the attention is left out.
#[derive(Module, Debug)]
pub struct Network {
    history: Lstm,
    edges: Lstm,
    /// From the present state to the initial hidden and cell state of the forward network over the future;
    /// those of the backward network are 0.
    future_hidden: Linear,
    future_cell: Linear,
    future_forward: Lstm,
    future_backward: Lstm,
    prior: Perceptron,
    posterior: Linear,
    decoder_hidden: Linear,
    decoder_cell: Linear,
    /// From the present state to the decoder's input at its first step, in place of the previous velocity.
    first_action: Linear,
    decoder: Lstm,
    mixture: Linear,
}

/// The terms of the objective, averaged over a batch.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The log-density of the future, given a sample of the latent variables.
    pub(crate) log_likelihood: Tensor<1>,
    /// KL(q || p) of each variable.
    pub(crate) kl: Tensor<1>,
    /// I(z; x) under p, over the variables.
    pub(crate) information: Tensor<1>,
}

/// The decoder between two steps.
#[derive(Clone, Debug)]
pub(crate) struct Decoding {
    cell: Driven,
    state: Tensor<2>,
    action: Tensor<2>,
}

impl Parameters for Network {
    type Config = NetworkConfig;

    const NAME: &'static str = "behaviour";

    fn check(config: &NetworkConfig) -> Result<()> {
        config.check()
    }

    fn make(config: &NetworkConfig, init: &mut Initialiser) -> Self {
        let Sizes { history, future, edges, hidden, x, latent, decoder, gaussians } =
            Sizes::of(config);
        Self {
            history: Lstm::new(init, STATE, history),
            edges: Lstm::new(init, 2 * STATE, edges),
            future_hidden: Linear::new(init, STATE, future),
            future_cell: Linear::new(init, STATE, future),
            future_forward: Lstm::new(init, STATE, future),
            future_backward: Lstm::new(init, STATE, future),
            prior: Perceptron::new(init, x, hidden, latent),
            posterior: Linear::new(init, x + 4 * future, latent),
            decoder_hidden: Linear::new(init, latent + x, decoder),
            decoder_cell: Linear::new(init, latent + x, decoder),
            first_action: Linear::new(init, STATE, ACTION),
            decoder: Lstm::new(init, latent + x + ACTION, decoder),
            mixture: Linear::new(init, decoder, gaussians),
        }
    }
}

impl Network {
    /// What is known at present, as the paper's `x`.
    pub(crate) fn encode(&self, seen: &Seen, config: &NetworkConfig) -> Tensor<2> {
        let rows = seen.present.dims()[0];
        let run = |network: &Lstm, inputs: &[Tensor<2>]| {
            let known = seen.known.iter().map(Option::as_ref);
            network.run(network.start(rows), inputs.iter().zip(known))
        };
        let history = hidden(&run(&self.history, &seen.history), config.history_width);
        let edges = hidden(&run(&self.edges, &seen.edges), config.edge_width);
        Tensor::cat(vec![history, edges], 1)
    }

    /// The logits of p(z|x).
    pub(crate) fn prior(&self, x: Tensor<2>) -> Tensor<2> {
        self.prior.forward(x)
    }

    /// The logits of q(z|x,y).
    fn posterior(&self, x: Tensor<2>, seen: &Seen, future: &[Tensor<2>]) -> Tensor<2> {
        let present = &seen.present;
        let start = vec![
            self.future_hidden.forward(present.clone()),
            self.future_cell.forward(present.clone()),
        ];
        let forward =
            self.future_forward.run(Tensor::cat(start, 1), future.iter().map(|step| (step, None)));
        let start = self.future_backward.start(present.dims()[0]);
        let backward =
            self.future_backward.run(start, future.iter().rev().map(|step| (step, None)));
        self.posterior.forward(Tensor::cat(vec![x, forward, backward], 1))
    }

    /// The logits of q(z|x,y) of a batch.
    pub(crate) fn posterior_of(&self, inputs: &Inputs, config: &NetworkConfig) -> Tensor<2> {
        let x = self.encode(&inputs.seen, config);
        self.posterior(x, &inputs.seen, &inputs.future)
    }

    /// The decoder before its first step, for these latent variables.
    pub(crate) fn start(&self, z: Tensor<2>, x: Tensor<2>, present: Tensor<2>) -> Decoding {
        let zx = Tensor::cat(vec![z, x], 1);
        let state =
            vec![self.decoder_hidden.forward(zx.clone()), self.decoder_cell.forward(zx.clone())];
        Decoding {
            cell: self.decoder.with_constant(zx),
            state: Tensor::cat(state, 1),
            action: self.first_action.forward(present),
        }
    }

    /// The raw parameters of the mixture of velocities at the next step. The velocity of that step is then
    /// given to [`Decoding::act`].
    pub(crate) fn step(&self, decoding: &mut Decoding) -> Tensor<2> {
        decoding.state = decoding.cell.step(decoding.action.clone(), decoding.state.clone());
        self.mixture.forward(decoding.cell.hidden(&decoding.state))
    }

    /// The forward pass over a batch.
    pub(crate) fn terms(
        &self,
        inputs: &Inputs,
        noise: &Noise,
        temperature: f64,
        config: &NetworkConfig,
        training: &TrainingConfig,
    ) -> Terms {
        let rows = inputs.seen.present.dims()[0];
        let x = self.encode(&inputs.seen, config);
        let each = [rows, config.variables, config.classes];
        let p = self.prior(x.clone()).reshape(each);
        let q = self.posterior(x.clone(), &inputs.seen, &inputs.future).reshape(each);
        let gumbel = noise.gumbel.clone().reshape(each);
        let z = softmax((q.clone() + gumbel).div_scalar(temperature), 2);
        let z = z.reshape([rows, config.logits()]);
        let mut decoding = self.start(z, x, inputs.seen.present.clone());
        let mut steps = Vec::with_capacity(config.future_steps);
        for (step, truth) in inputs.velocities.iter().enumerate() {
            let raw = self.step(&mut decoding);
            decoding.action = match training.feedback {
                Feedback::Sample => mixture::sample(&raw, &noise.feedback[step]),
                Feedback::Truth => truth.clone(),
            };
            steps.push(raw);
        }
        let raw = Tensor::stack(steps, 1);
        let density = match training.likelihood {
            Likelihood::Positions => {
                let by = config.seconds_per_step;
                mixture::position_log_density(&raw, inputs.positions.clone(), by)
            }
            Likelihood::Velocities => {
                let truth = Tensor::stack(inputs.velocities.clone(), 1);
                mixture::velocity_log_density(&raw, truth)
            }
        };
        let density = density.clamp_max(training.density_ceiling);
        let (log_q, log_p) = (log_softmax(q, 2), log_softmax(p, 2));
        let kl = log_q.clone().exp() * (log_q - log_p.clone());
        let kl = kl.sum_dim(2).mean_dim(0).reshape([config.variables]);
        Terms {
            log_likelihood: density.sum().div_scalar(rows as f64),
            kl,
            information: information(log_p),
        }
    }
}

/// The entropy of the mean distribution minus the mean entropy, summed over the variables, for
/// rows x variables x classes.
fn information(log_p: Tensor<3>) -> Tensor<1> {
    let rows = log_p.dims()[0] as f64;
    let p = log_p.clone().exp();
    let mean = p.clone().mean_dim(0);
    // A class without probability contributes 0; its logarithm must be finite.
    let of_mean = -(mean.clone() * mean.clamp_min(1e-30).log()).sum();
    of_mean + (p * log_p).sum().div_scalar(rows)
}

impl Decoding {
    /// Sets the velocity of the step, the input of the next.
    pub(crate) fn act(&mut self, action: Tensor<2>) {
        self.action = action;
    }

    /// Selects rows.
    pub(crate) fn rows(&self, rows: &Tensor<1, burn::tensor::Int>) -> Self {
        let select = |tensor: &Tensor<2>| tensor.clone().select(0, rows.clone());
        Self {
            cell: self.cell.rows(rows),
            state: select(&self.state),
            action: select(&self.action),
        }
    }
}

struct Sizes {
    history: usize,
    future: usize,
    edges: usize,
    hidden: usize,
    x: usize,
    latent: usize,
    decoder: usize,
    gaussians: usize,
}

impl Sizes {
    fn of(config: &NetworkConfig) -> Self {
        Self {
            history: config.history_width,
            future: config.future_width,
            edges: config.edge_width,
            hidden: config.prior_hidden,
            x: config.history_width + config.edge_width,
            latent: config.logits(),
            decoder: config.decoder_width,
            gaussians: mixture::PARAMETERS * config.components,
        }
    }
}

/// Observations in the units of the networks, step by step.
#[derive(Debug)]
pub(crate) struct Seen {
    history: Vec<Tensor<2>>,
    edges: Vec<Tensor<2>>,
    /// 1 for rows whose history has the step, 0 for others; `None` if all have it.
    known: Vec<Option<Tensor<2>>>,
    pub(crate) present: Tensor<2>,
}

/// A state in the units of the networks.
fn scaled(state: [f32; STATE], config: &NetworkConfig) -> [f32; STATE] {
    let [p, v, a] = [config.position_scale, config.velocity_scale, config.acceleration_scale]
        .map(|scale| scale as f32);
    let [x, y, u, w, b, c] = state;
    [x / p, y / p, u / v, w / v, b / a, c / a]
}

fn states(
    rows: usize,
    states: impl Iterator<Item = [f32; STATE]>,
    config: &NetworkConfig,
    device: &Device,
) -> Tensor<2> {
    tensor(states.flat_map(|state| scaled(state, config)).collect(), [rows, STATE], device)
}

impl Seen {
    pub(crate) fn of(
        observations: &[&Observation],
        config: &NetworkConfig,
        device: &Device,
    ) -> Self {
        let rows = observations.len();
        let longest = observations.iter().map(|seen| seen.steps()).max().unwrap_or(1);
        let mut seen = Self {
            history: Vec::new(),
            edges: Vec::new(),
            known: Vec::new(),
            present: states(rows, observations.iter().map(|seen| seen.present()), config, device),
        };
        for ago in (0..longest.min(config.history_steps + 1)).rev() {
            let at: Vec<Option<[[f32; STATE]; 2]>> =
                observations.iter().map(|seen| seen.ago(ago)).collect();
            let both = |at: &Option<[[f32; STATE]; 2]>| at.unwrap_or([[0.0; STATE]; 2]);
            seen.history.push(states(rows, at.iter().map(|at| both(at)[0]), config, device));
            let edges = at.iter().map(both).flat_map(|[own, neighbours]| {
                [scaled(neighbours, config), scaled(own, config)].into_iter().flatten()
            });
            seen.edges.push(tensor(edges.collect(), [rows, 2 * STATE], device));
            let known: Vec<f32> = at.iter().map(|at| f32::from(at.is_some())).collect();
            seen.known.push(known.contains(&0.0).then(|| tensor(known, [rows, 1], device)));
        }
        seen
    }
}

/// The inputs of the networks for a batch of a training.
#[derive(Debug)]
pub(crate) struct Inputs {
    seen: Seen,
    future: Vec<Tensor<2>>,
    /// In metres: rows x steps x 2.
    positions: Tensor<3>,
    /// In metres a second, for each step.
    velocities: Vec<Tensor<2>>,
}

impl Inputs {
    /// The examples have been checked against the configuration.
    pub(crate) fn gather(examples: &[Example], config: &NetworkConfig, device: &Device) -> Self {
        let rows = examples.len();
        let seen: Vec<&Observation> = examples.iter().map(|e| &e.observation).collect();
        let steps = 0..config.future_steps;
        let at = |step: usize| examples.iter().map(move |example: &Example| example.future[step]);
        let positions = examples
            .iter()
            .flat_map(|example| &example.future[steps.clone()])
            .flat_map(|&[x, y, ..]| [x, y]);
        let velocity = |step| at(step).flat_map(|[_, _, u, v, ..]| [u, v]).collect();
        Self {
            seen: Seen::of(&seen, config, device),
            future: steps.clone().map(|step| states(rows, at(step), config, device)).collect(),
            positions: tensor(positions.collect(), [rows, config.future_steps, ACTION], device),
            velocities: steps.map(|step| tensor(velocity(step), [rows, ACTION], device)).collect(),
        }
    }
}

/// The random numbers of a forward pass.
#[derive(Debug)]
pub(crate) struct Noise {
    /// Rows x logits.
    pub(crate) gumbel: Tensor<2>,
    /// For each step, the argument of [`mixture::sample`].
    pub(crate) feedback: Vec<Vec<[f32; 3]>>,
}
