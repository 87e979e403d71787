//! Batch normalisation composed of burn's operations.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::{Shape, Slice};

use super::{Activation, EPSILON};

/// As rows of channels.
fn rows<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let shape = x.shape();
    let channels = shape[shape.num_dims() - 1];
    B::float_reshape(x, Shape::new([shape.num_elements() / channels, channels]))
}

fn row<B: Backend>(x: FloatTensor<B>) -> FloatTensor<B> {
    let channels = x.shape()[0];
    B::float_reshape(x, Shape::new([1, channels]))
}

pub(super) fn statistics<B: Backend>(x: &FloatTensor<B>) -> FloatTensor<B> {
    let x = rows::<B>(x.clone());
    let mean = B::float_mean_dim(x.clone(), 0);
    let centred = B::float_sub(x, mean.clone());
    let variance = B::float_mean_dim(B::float_mul(centred.clone(), centred), 0);
    B::float_cat(vec![mean, variance], 0)
}

/// Of rows of channels: centred and divided by their standard deviation. Also one over that.
fn standardised<B: Backend>(
    x: FloatTensor<B>,
    statistics: &FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let channels = statistics.shape()[1];
    let of = |i: usize| {
        let slices = [Slice::from(i..i + 1), Slice::from(0..channels)];
        B::float_slice(statistics.clone(), &slices)
    };
    let variance = B::float_add_scalar(of(1), Scalar::from(EPSILON));
    let inverse = B::float_recip(B::float_sqrt(variance));
    (B::float_mul(B::float_sub(x, of(0)), inverse.clone()), inverse)
}

pub(super) fn normalise<B: Backend>(
    x: FloatTensor<B>,
    statistics: &FloatTensor<B>,
    scale: FloatTensor<B>,
    shift: FloatTensor<B>,
    activation: Activation,
) -> FloatTensor<B> {
    let shape = x.shape();
    let (standard, _) = standardised::<B>(rows::<B>(x), statistics);
    let y = B::float_add(B::float_mul(standard, row::<B>(scale)), row::<B>(shift));
    let y = match activation {
        Activation::Identity => y,
        Activation::Relu => B::relu(y),
    };
    B::float_reshape(y, shape)
}

pub(super) fn normalise_backward<B: Backend>(
    gradient: FloatTensor<B>,
    x: &FloatTensor<B>,
    statistics: &FloatTensor<B>,
    scale: &FloatTensor<B>,
    shift: FloatTensor<B>,
    activation: Activation,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let shape = x.shape();
    let channels = statistics.shape()[1];
    let mut gradient = rows::<B>(gradient);
    let count = gradient.shape()[0] as f32;
    let (standard, inverse) = standardised::<B>(rows::<B>(x.clone()), statistics);
    let scale = row::<B>(scale.clone());
    if activation == Activation::Relu {
        let y = B::float_add(B::float_mul(standard.clone(), scale.clone()), row::<B>(shift));
        let passes = B::float_sign(B::float_clamp_min(y, Scalar::from(0.0)));
        gradient = B::float_mul(gradient, passes);
    }
    let to_shift = B::float_sum_dim(gradient.clone(), 0);
    let to_scale = B::float_sum_dim(B::float_mul(gradient.clone(), standard.clone()), 0);
    let mean = |sum: &FloatTensor<B>| B::float_div_scalar(sum.clone(), Scalar::from(count));
    let through_mean = B::float_sub(gradient, mean(&to_shift));
    let centred = B::float_sub(through_mean, B::float_mul(standard, mean(&to_scale)));
    let to_x = B::float_mul(centred, B::float_mul(scale, inverse));
    let flat = |x: FloatTensor<B>| B::float_reshape(x, Shape::new([channels]));
    (B::float_reshape(to_x, shape), flat(to_scale), flat(to_shift))
}
