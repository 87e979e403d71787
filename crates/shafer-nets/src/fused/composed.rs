//! The operations composed of burn's own: what a backend has that has nothing better.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Scalar};

use super::kernels::AdamStep;

pub(super) fn bernoulli<B: Backend>(
    logits: FloatTensor<B>,
    target: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    // ln(1 + e^l) - l x, with the exponential of a number that is not positive.
    let magnitude = B::float_abs(logits.clone());
    let softplus = B::float_add(
        B::float_clamp_min(logits.clone(), Scalar::from(0.0)),
        B::float_log1p(B::float_exp(B::float_neg(magnitude))),
    );
    let explained = B::float_mul(logits.clone(), target.clone());
    let nll = B::float_sum(B::float_sub(softplus, explained));
    (nll, B::float_sub(B::sigmoid(logits), target))
}

pub(super) fn sgd<B: Backend>(
    parameter: FloatTensor<B>,
    gradient: FloatTensor<B>,
    rate: f32,
) -> FloatTensor<B> {
    B::float_sub(parameter, scaled::<B>(gradient, rate))
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

fn scaled<B: Backend>(tensor: FloatTensor<B>, by: f32) -> FloatTensor<B> {
    B::float_mul_scalar(tensor, Scalar::from(by))
}
