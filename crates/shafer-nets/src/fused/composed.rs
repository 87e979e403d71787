//! The functions composed of burn's operations: the default for a backend.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::Slice;

use super::kernels::{AdamStep, NesterovStep, TRACE};

pub(super) fn bernoulli<B: Backend>(
    logits: FloatTensor<B>,
    target: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    // ln(1 + e^l) - l x, with the exponential of -|l| so that it cannot overflow.
    let magnitude = B::float_abs(logits.clone());
    let softplus = B::float_add(
        B::float_clamp_min(logits.clone(), Scalar::from(0.0)),
        B::float_log1p(B::float_exp(B::float_neg(magnitude))),
    );
    let explained = B::float_mul(logits.clone(), target.clone());
    // By dimension: on a GPU the sum over everything adds in an order that changes from run to run.
    let nll = B::float_sum_dim(B::float_sum_dim(B::float_sub(softplus, explained), 1), 0);
    let nll = B::float_reshape(nll, [1].into());
    (nll, B::float_sub(B::sigmoid(logits), target))
}

pub(super) fn lstm<B: Backend>(
    gates: &FloatTensor<B>,
    state: &FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let width = state.shape()[1] / 2;
    let part = |i: usize| columns::<B>(gates, i, width);
    let (input, forget, output) = (B::sigmoid(part(0)), B::sigmoid(part(1)), B::sigmoid(part(3)));
    let new = B::float_tanh(part(2));
    let cell = B::float_add(
        B::float_mul(forget.clone(), columns::<B>(state, 1, width)),
        B::float_mul(input.clone(), new.clone()),
    );
    let seen = B::float_tanh(cell.clone());
    let hidden = B::float_mul(output.clone(), seen.clone());
    let kept = B::float_cat(vec![input, forget, new, output, seen], 1);
    (B::float_cat(vec![hidden, cell], 1), kept)
}

pub(super) fn lstm_backward<B: Backend>(
    gradient: &FloatTensor<B>,
    kept: &FloatTensor<B>,
    state: &FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let width = state.shape()[1] / 2;
    let [input, forget, new, output, seen] = [0, 1, 2, 3, 4].map(|i| columns::<B>(kept, i, width));
    let one_less = |x: FloatTensor<B>| B::float_add_scalar(B::float_neg(x), Scalar::from(1.0));
    // Derivatives of the sigmoid and the hyperbolic tangent, from their values.
    let sigmoid = |y: FloatTensor<B>| B::float_mul(y.clone(), one_less(y));
    let tanh = |y: FloatTensor<B>| one_less(B::float_mul(y.clone(), y));
    let product = |a: &FloatTensor<B>, b: &FloatTensor<B>| B::float_mul(a.clone(), b.clone());
    let (hidden, cell) = (columns::<B>(gradient, 0, width), columns::<B>(gradient, 1, width));
    let through = B::float_mul(product(&hidden, &output), tanh(seen.clone()));
    let cell = B::float_add(cell, through);
    let gates = vec![
        B::float_mul(product(&cell, &new), sigmoid(input.clone())),
        B::float_mul(
            B::float_mul(cell.clone(), columns::<B>(state, 1, width)),
            sigmoid(forget.clone()),
        ),
        B::float_mul(product(&cell, &input), tanh(new)),
        B::float_mul(product(&hidden, &seen), sigmoid(output)),
    ];
    let before = B::float_mul(cell, forget);
    let none = scaled::<B>(before.clone(), 0.0);
    (B::float_cat(gates, 1), B::float_cat(vec![none, before], 1))
}

/// The `i`-th block of columns.
fn columns<B: Backend>(tensor: &FloatTensor<B>, i: usize, width: usize) -> FloatTensor<B> {
    let rows = tensor.shape()[0];
    let slices = [Slice::from(0..rows), Slice::from(i * width..(i + 1) * width)];
    B::float_slice(tensor.clone(), &slices)
}

pub(super) fn sgd<B: Backend>(
    parameter: FloatTensor<B>,
    gradient: FloatTensor<B>,
    rate: f32,
) -> FloatTensor<B> {
    B::float_sub(parameter, scaled::<B>(gradient, rate))
}

pub(super) fn drop_traces<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    let beyond = B::float_sub_scalar(B::float_abs(tensor.clone()), Scalar::from(TRACE));
    let kept = B::float_clamp_min(B::float_sign(beyond), Scalar::from(0.0));
    B::float_mul(tensor, kept)
}

pub(super) fn adam<B: Backend>(
    parameter: FloatTensor<B>,
    gradient: FloatTensor<B>,
    first: FloatTensor<B>,
    second: FloatTensor<B>,
    step: AdamStep,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let square = B::float_mul(gradient.clone(), gradient.clone());
    let first = B::float_add(
        scaled::<B>(first, AdamStep::BETA1),
        scaled::<B>(gradient, 1.0 - AdamStep::BETA1),
    );
    let second = B::float_add(
        scaled::<B>(second, AdamStep::BETA2),
        scaled::<B>(square, 1.0 - AdamStep::BETA2),
    );
    let root = scaled::<B>(B::float_sqrt(second.clone()), step.scale);
    let deviation = B::float_add_scalar(root, Scalar::from(AdamStep::EPSILON));
    let change = scaled::<B>(B::float_div(first.clone(), deviation), step.rate);
    (B::float_sub(parameter, change), first, second)
}

pub(super) fn nesterov<B: Backend>(
    parameter: FloatTensor<B>,
    gradient: FloatTensor<B>,
    velocity: FloatTensor<B>,
    step: NesterovStep,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let gradient = B::float_add(gradient, scaled::<B>(parameter.clone(), step.decay));
    let velocity = B::float_add(scaled::<B>(velocity, step.momentum), gradient.clone());
    let change = B::float_add(gradient, scaled::<B>(velocity.clone(), step.momentum));
    (B::float_sub(parameter, scaled::<B>(change, step.rate)), velocity)
}

fn scaled<B: Backend>(tensor: FloatTensor<B>, by: f32) -> FloatTensor<B> {
    B::float_mul_scalar(tensor, Scalar::from(by))
}
