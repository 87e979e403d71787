//! Mixtures of Gaussians over the plane, from the raw outputs of the decoder.
//!
//! The last layer has six outputs for each component, grouped by kind: logits of the weights, means of x
//! and y, logarithms of the standard deviations of x and y, and the inverse hyperbolic tangent of the
//! correlation.

use burn::tensor::Tensor;
use burn::tensor::activation::log_softmax;

use crate::random::Random;
use crate::weights::{host, tensor};

/// Raw outputs for each component.
pub(crate) const PARAMETERS: usize = 6;

/// The largest correlation: no covariance is singular in single precision.
const CORRELATION: f64 = 0.99;

/// The log-density, rows x steps x 1, of velocities, rows x steps x 2, under mixtures, rows x steps x raw
/// outputs.
pub(crate) fn velocity_log_density(raw: &Tensor<3>, truth: Tensor<3>) -> Tensor<3> {
    let Gaussians { log_weights, means, covariances } = Gaussians::of(raw);
    log_density(log_weights, means, covariances, truth)
}

/// The log-density of positions: velocities integrated over steps of `seconds`. Means and covariances are
/// cumulated for each component separately.
pub(crate) fn position_log_density(raw: &Tensor<3>, truth: Tensor<3>, seconds: f64) -> Tensor<3> {
    let Gaussians { log_weights, means, covariances } = Gaussians::of(raw);
    let means = means.map(|mean| mean.cumsum(1).mul_scalar(seconds));
    let covariances = covariances.map(|c| c.cumsum(1).mul_scalar(seconds * seconds));
    log_density(log_weights, means, covariances, truth)
}

/// Each rows x steps x components.
struct Gaussians {
    log_weights: Tensor<3>,
    /// x and y.
    means: [Tensor<3>; 2],
    /// xx, xy and yy.
    covariances: [Tensor<3>; 3],
}

impl Gaussians {
    fn of(raw: &Tensor<3>) -> Self {
        let [rows, steps, width] = raw.dims();
        let components = width / PARAMETERS;
        let part = |i: usize| {
            let columns = i * components..(i + 1) * components;
            raw.clone().slice([0..rows, 0..steps, columns])
        };
        let (sx, sy) = (part(3).exp(), part(4).exp());
        let correlation = part(5).tanh().mul_scalar(CORRELATION);
        Self {
            log_weights: log_softmax(part(0), 2),
            means: [part(1), part(2)],
            covariances: [sx.clone() * sx.clone(), correlation * sx * sy.clone(), sy.clone() * sy],
        }
    }
}

fn log_density(
    log_weights: Tensor<3>,
    [mx, my]: [Tensor<3>; 2],
    [xx, xy, yy]: [Tensor<3>; 3],
    truth: Tensor<3>,
) -> Tensor<3> {
    let [rows, steps, _] = truth.dims();
    let x = truth.clone().slice([0..rows, 0..steps, 0..1]) - mx;
    let y = truth.slice([0..rows, 0..steps, 1..2]) - my;
    let determinant = xx.clone() * yy.clone() - xy.clone() * xy.clone();
    let square =
        yy * x.clone() * x.clone() - (xy * x * y.clone()).mul_scalar(2.0) + xx * y.clone() * y;
    let exponent = log_weights
        - (square / determinant.clone() + determinant.log()).mul_scalar(0.5)
        - std::f64::consts::TAU.ln();
    let largest = exponent.clone().detach().max_dim(2);
    (exponent - largest.clone()).exp().sum_dim(2).log() + largest
}

/// The random numbers of [`sample`] for one row: a uniform one for the component, and two standard normal
/// ones.
pub(crate) fn draw(random: &mut Random) -> [f32; 3] {
    let component = random.uniform();
    let [a, b] = random.normals();
    [component, a, b]
}

/// One velocity from each mixture, rows x raw outputs. Gradients flow through mean and covariance of the
/// drawn component, and not through the draw.
pub(crate) fn sample(raw: &Tensor<2>, noise: &[[f32; 3]]) -> Tensor<2> {
    let [rows, width] = raw.dims();
    let components = width / PARAMETERS;
    let logits = host(raw.clone().inner().slice([0..rows, 0..components]));
    let mut chosen = vec![0.0; rows * components];
    let each = logits.chunks_exact(components).zip(chosen.chunks_exact_mut(components));
    let mut weights = Vec::with_capacity(components);
    for ((logits, chosen), noise) in each.zip(noise) {
        chosen[choose(logits, noise[0], &mut weights)] = 1.0;
    }
    let kinds = raw.clone().reshape([rows, PARAMETERS, components]);
    let device = raw.device().inner();
    let kinds = kinds * tensor(chosen, [rows, 1, components], &device);
    let kinds = kinds.sum_dim(2).reshape([rows, PARAMETERS]);
    let kind = |from: usize, to: usize| kinds.clone().slice([0..rows, from..to]);
    let column = |i: usize| tensor(noise.iter().map(|n| n[i]).collect(), [rows, 1], &device);
    let correlation = kind(5, 6).tanh().mul_scalar(CORRELATION);
    let rest = (-(correlation.clone() * correlation.clone()) + 1.0).sqrt();
    let y = correlation * column(1) + rest * column(2);
    kind(1, 3) + kind(3, 5).exp() * Tensor::cat(vec![column(1), y], 1)
}

/// [`sample`] for one row and without gradients; `weights` is a scratch buffer.
pub(crate) fn sample_row(raw: &[f32], noise: [f32; 3], weights: &mut Vec<f32>) -> [f32; 2] {
    let components = raw.len() / PARAMETERS;
    let [uniform, a, b] = noise;
    let chosen = choose(&raw[..components], uniform, weights);
    let [_, mx, my, sx, sy, correlation]: [f32; PARAMETERS] =
        std::array::from_fn(|kind| raw[kind * components + chosen]);
    let correlation = correlation.tanh() * CORRELATION as f32;
    let rest = (1.0 - correlation * correlation).sqrt();
    [mx + sx.exp() * a, my + sy.exp() * (correlation * a + rest * b)]
}

/// Draws a component from its logits by inverting the cumulative distribution; `weights` is a scratch
/// buffer.
fn choose(logits: &[f32], uniform: f32, weights: &mut Vec<f32>) -> usize {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    weights.clear();
    weights.extend(logits.iter().map(|l| (l - largest).exp()));
    let mut left = uniform * weights.iter().sum::<f32>();
    for (i, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return i;
        }
    }
    logits.len() - 1
}

/// The mean and the covariance (xx, xy, yy) of a mixture.
pub(crate) fn moments(raw: &[f32]) -> ([f64; 2], [f64; 3]) {
    let components = raw.len() / PARAMETERS;
    let part = |kind: usize, i: usize| f64::from(raw[kind * components + i]);
    let largest = (0..components).map(|i| part(0, i)).fold(f64::NEG_INFINITY, f64::max);
    let (mut total, mut mean, mut square) = (0.0, [0.0; 2], [0.0; 3]);
    for i in 0..components {
        let weight = (part(0, i) - largest).exp();
        let (x, y) = (part(1, i), part(2, i));
        let (sx, sy) = (part(3, i).exp(), part(4, i).exp());
        let both = CORRELATION * part(5, i).tanh() * sx * sy;
        total += weight;
        mean[0] += weight * x;
        mean[1] += weight * y;
        square[0] += weight * (sx * sx + x * x);
        square[1] += weight * (both + x * y);
        square[2] += weight * (sy * sy + y * y);
    }
    let mean = mean.map(|sum| sum / total);
    let [xx, xy, yy] = square.map(|sum| sum / total);
    (mean, [xx - mean[0] * mean[0], xy - mean[0] * mean[1], yy - mean[1] * mean[1]])
}
