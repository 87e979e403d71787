//! The operations composed of burn's own, for backends without kernels of ours.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Scalar, TensorMetadata};
use burn::tensor::Slice;

use super::window::Window;

pub(super) fn convolution<B: Backend>(
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    bias: FloatTensor<B>,
    window: Window,
) -> FloatTensor<B> {
    let [images, rows, columns, _] = dims::<B, 4>(&x);
    let outputs = dims::<B, 2>(&weight)[1];
    let product = B::float_matmul(seen::<B>(x, window), weight);
    let out = B::float_add(product, B::float_reshape(bias, [1, outputs].into()));
    B::float_reshape(out, [images, rows, columns, outputs].into())
}

pub(super) fn convolution_backward<B: Backend>(
    gradient: FloatTensor<B>,
    x: FloatTensor<B>,
    weight: FloatTensor<B>,
    window: Window,
) -> (FloatTensor<B>, FloatTensor<B>, FloatTensor<B>) {
    let [images, rows, columns, channels] = dims::<B, 4>(&x);
    let outputs = dims::<B, 2>(&weight)[1];
    let positions = images * rows * columns;
    let gradient = B::float_reshape(gradient, [positions, outputs].into());
    let to_bias = B::float_sum_dim(gradient.clone(), 0);
    let seen = seen::<B>(x.clone(), window);
    let to_weight = B::float_matmul(B::float_swap_dims(seen, 0, 1), gradient.clone());
    let to_seen = B::float_matmul(gradient, B::float_swap_dims(weight, 0, 1));
    let to_seen =
        B::float_reshape(to_seen, [images, rows, columns, window.taps() * channels].into());
    let mut to_padded = pad::<B>(B::float_mul_scalar(x, Scalar::from(0.0)), window);
    for tap in 0..window.taps() {
        let part = range::<B>(to_seen.clone(), 3, tap * channels, channels);
        let place = slices([images, rows, columns, channels], tap, window);
        let before = B::float_slice(to_padded.clone(), &place);
        to_padded = B::float_slice_assign(to_padded, &place, B::float_add(before, part));
    }
    let [[above, _], [before, _]] = window.padding();
    let to_x = range::<B>(range::<B>(to_padded, 1, above, rows), 2, before, columns);
    (to_x, to_weight, B::float_reshape(to_bias, [outputs].into()))
}

pub(super) fn gated<B: Backend>(
    x: FloatTensor<B>,
    class: FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let [images, _, _, channels] = dims::<B, 4>(&x);
    let sum = B::float_add(x, B::float_reshape(class, [images, 1, 1, channels].into()));
    let tanh = B::float_tanh(range::<B>(sum.clone(), 3, 0, channels / 2));
    let sigmoid = B::sigmoid(range::<B>(sum, 3, channels / 2, channels / 2));
    let out = B::float_mul(tanh.clone(), sigmoid.clone());
    (out, B::float_cat(vec![tanh, sigmoid], 3))
}

pub(super) fn gated_backward<B: Backend>(
    gradient: &FloatTensor<B>,
    kept: &FloatTensor<B>,
) -> (FloatTensor<B>, FloatTensor<B>) {
    let [images, _, _, channels] = dims::<B, 4>(kept);
    let tanh = range::<B>(kept.clone(), 3, 0, channels / 2);
    let sigmoid = range::<B>(kept.clone(), 3, channels / 2, channels / 2);
    let one_less = |x: FloatTensor<B>| B::float_add_scalar(B::float_neg(x), Scalar::from(1.0));
    let product = |a: &FloatTensor<B>, b: &FloatTensor<B>| B::float_mul(a.clone(), b.clone());
    let through = product(gradient, &sigmoid);
    let to_tanh = product(&through, &one_less(product(&tanh, &tanh)));
    let to_sigmoid = product(&product(&through, &tanh), &one_less(sigmoid));
    let to_x = B::float_cat(vec![to_tanh, to_sigmoid], 3);
    let to_class = B::float_sum_dim(B::float_sum_dim(to_x.clone(), 1), 2);
    (to_x, B::float_reshape(to_class, [images, channels].into()))
}

/// What the window sees from every position: positions of all images x (taps x channels).
fn seen<B: Backend>(x: FloatTensor<B>, window: Window) -> FloatTensor<B> {
    let shape = dims::<B, 4>(&x);
    let [images, rows, columns, channels] = shape;
    let padded = pad::<B>(x, window);
    let parts = (0..window.taps())
        .map(|tap| B::float_slice(padded.clone(), &slices(shape, tap, window)))
        .collect();
    let positions = images * rows * columns;
    B::float_reshape(B::float_cat(parts, 3), [positions, window.taps() * channels].into())
}

/// Zeros around an image, as far as the window sees.
fn pad<B: Backend>(x: FloatTensor<B>, window: Window) -> FloatTensor<B> {
    window.padding().into_iter().zip([1, 2]).fold(x, |x, ([before, after], dim)| {
        let zeros = |count: usize| {
            let mut shape = dims::<B, 4>(&x);
            shape[dim] = count;
            B::float_zeros(shape.into(), &x.device(), x.dtype().into())
        };
        let mut parts = vec![zeros(before), x.clone(), zeros(after)];
        parts.retain(|part| dims::<B, 4>(part)[dim] > 0);
        B::float_cat(parts, dim)
    })
}

/// Where a padded image has what `tap` sees. No window begins behind the position itself.
fn slices([images, rows, columns, channels]: [usize; 4], tap: usize, window: Window) -> [Slice; 4] {
    let (down, right) = (tap / window.columns, tap % window.columns);
    [0..images, down..down + rows, right..right + columns, 0..channels].map(Slice::from)
}

/// A part of one dimension.
fn range<B: Backend>(
    tensor: FloatTensor<B>,
    dim: usize,
    start: usize,
    count: usize,
) -> FloatTensor<B> {
    let mut slices = dims::<B, 4>(&tensor).map(|size| Slice::from(0..size));
    slices[dim] = Slice::from(start..start + count);
    B::float_slice(tensor, &slices)
}

fn dims<B: Backend, const D: usize>(tensor: &FloatTensor<B>) -> [usize; D] {
    tensor.shape().dims()
}
