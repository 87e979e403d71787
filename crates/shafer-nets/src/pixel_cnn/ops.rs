//! The operations of the network, with their gradients: [`convolve`] and [`gate`].
//!
//! As in `fused/`: [`Kernels`] are the functions, for the CPU in `cpu.rs`, and for other backends as `composed.rs`
//! makes them of burn's operations. [`convolve`] and [`gate`] have gradients.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;

use super::composed;
use super::window::Window;
use crate::fused::differentiable;

/// What is computed, for each backend.
#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait Kernels: Backend {
    /// See [`convolve`].
    fn convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self> {
        composed::convolution::<Self>(x, weight, bias, window)
    }

    /// The gradients of [`convolve`] with respect to `x`, the weights and the biases.
    fn convolution_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        window: Window,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        composed::convolution_backward::<Self>(gradient, x, weight, window)
    }

    /// See [`gate`].
    fn gate(x: FloatTensor<Self>, class: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::gated(x, class).0
    }

    /// See [`gate`]: the result, and what its gradient is computed from, the hyperbolic tangents and the
    /// sigmoids.
    fn gated(
        x: FloatTensor<Self>,
        class: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::gated::<Self>(x, class)
    }

    /// The gradients of [`gate`] with respect to both inputs, from what [`gated`](Self::gated) kept.
    fn gated_backward(
        gradient: FloatTensor<Self>,
        kept: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::gated_backward::<Self>(&gradient, &kept)
    }
}

/// The convolution of images x rows x columns x channels with a window.
///
/// The weights are (window rows x window columns x channels) x outputs.
pub(crate) fn convolve(
    x: Tensor<4>,
    weight: Tensor<2>,
    bias: Tensor<1>,
    window: Window,
) -> Tensor<4> {
    Tensor::from_dispatch(<Dispatch as Kernels>::convolution(
        x.into_dispatch(),
        weight.into_dispatch(),
        bias.into_dispatch(),
        window,
    ))
}

/// `tanh(a) sigmoid(b)`, where `a` and `b` are the two halves of the channels of `x + class`.
///
/// `x` is images x rows x columns x channels, `class` is images x channels.
pub(crate) fn gate(x: Tensor<4>, class: Tensor<2>) -> Tensor<4> {
    let gated = <Dispatch as Kernels>::gate(x.into_dispatch(), class.into_dispatch());
    Tensor::from_dispatch(gated)
}

#[cfg(feature = "gpu")]
impl Kernels for burn::backend::Cube {}

impl<B: Kernels, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
    fn convolution(
        x: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        bias: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self> {
        let inputs = [x.node(), weight.node(), bias.node()];
        let kept = (x.into_primitive(), weight.into_primitive(), window);
        let out = B::convolution(kept.0.clone(), kept.1.clone(), bias.into_primitive(), window);
        differentiable::<B, C, _, 3>(inputs, out, kept, |gradient, (x, weight, window), _| {
            let (x, weight, bias) = B::convolution_backward(gradient, x, weight, window);
            [x, weight, bias].map(Some)
        })
    }

    fn gate(x: FloatTensor<Self>, class: FloatTensor<Self>) -> FloatTensor<Self> {
        let inputs = [x.node(), class.node()];
        let (out, kept) = B::gated(x.into_primitive(), class.into_primitive());
        differentiable::<B, C, _, 2>(inputs, out, kept, |gradient, kept, _| {
            let (x, class) = B::gated_backward(gradient, kept);
            [x, class].map(Some)
        })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::random::{Purpose, Random};
    use crate::weights::host;

    /// Numbers between -1 and 1.
    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut random = Random::new(seed, Purpose::Noise, 1);
        (0..count).map(|_| 2.0 * random.uniform() - 1.0).collect()
    }

    fn tensor<const D: usize>(values: &[f32], shape: [usize; D]) -> Tensor<D> {
        Tensor::from_data(TensorData::new(values.to_vec(), shape), &Device::flex())
    }

    /// Gradients by central differences of a function in double precision.
    fn differences(at: &[f32], f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
        let at: Vec<f64> = at.iter().copied().map(f64::from).collect();
        let moved = |i: usize, by: f64| {
            let mut at = at.clone();
            at[i] += by;
            f(&at)
        };
        (0..at.len()).map(|i| (moved(i, 1e-5) - moved(i, -1e-5)) / 2e-5).collect()
    }

    fn assert_close(found: Tensor<1>, expected: &[f64]) {
        for (i, (found, expected)) in host(found).into_iter().zip(expected).enumerate() {
            assert!((f64::from(found) - expected).abs() < 1e-4, "{i}: {found}, not {expected}");
        }
    }

    const IMAGES: usize = 2;
    const ROWS: usize = 3;
    const COLUMNS: usize = 4;
    const CHANNELS: usize = 2;

    /// From the definition, in double precision.
    fn plain(x: &[f64], weight: &[f64], bias: &[f64], window: Window) -> Vec<f64> {
        let outputs = bias.len();
        let mut out = Vec::new();
        for position in 0..IMAGES * ROWS * COLUMNS {
            let (image, row, column) =
                (position / (ROWS * COLUMNS), position / COLUMNS % ROWS, position % COLUMNS);
            for output in 0..outputs {
                let mut sum = bias[output];
                for tap in 0..window.taps() {
                    let row = row as isize + window.top + (tap / window.columns) as isize;
                    let column = column as isize + window.left + (tap % window.columns) as isize;
                    if (0..ROWS as isize).contains(&row) && (0..COLUMNS as isize).contains(&column)
                    {
                        let at = (image * ROWS + row as usize) * COLUMNS + column as usize;
                        for channel in 0..CHANNELS {
                            sum += x[at * CHANNELS + channel]
                                * weight[(tap * CHANNELS + channel) * outputs + output];
                        }
                    }
                }
                out.push(sum);
            }
        }
        out
    }

    #[test]
    fn convolutions_and_their_gradients_against_the_definition() {
        for window in
            [Window::POINT, Window::ABOVE, Window::VERTICAL, Window::BEFORE, Window::HORIZONTAL]
        {
            let outputs = 3;
            let x = numbers(1, IMAGES * ROWS * COLUMNS * CHANNELS);
            let weight = numbers(2, window.taps() * CHANNELS * outputs);
            let bias = numbers(3, outputs);
            let upstream = numbers(4, IMAGES * ROWS * COLUMNS * outputs);
            let tensors = (
                tensor(&x, [IMAGES, ROWS, COLUMNS, CHANNELS]).autodiff().require_grad(),
                tensor(&weight, [window.taps() * CHANNELS, outputs]).autodiff().require_grad(),
                tensor(&bias, [outputs]).autodiff().require_grad(),
            );
            let out = convolve(tensors.0.clone(), tensors.1.clone(), tensors.2.clone(), window);
            let wide = |x: &[f32]| -> Vec<f64> { x.iter().copied().map(f64::from).collect() };
            let (x64, w64, b64) = (wide(&x), wide(&weight), wide(&bias));
            assert_close(out.clone().inner().flatten(0, 3), &plain(&x64, &w64, &b64, window));
            let shape = [IMAGES, ROWS, COLUMNS, outputs];
            let gradients = (out * tensor(&upstream, shape).autodiff()).sum().backward();
            let loss = |x: &[f64], w: &[f64], b: &[f64]| -> f64 {
                plain(x, w, b, window).iter().zip(&upstream).map(|(y, &u)| y * f64::from(u)).sum()
            };
            let found = tensors.0.grad(&gradients).unwrap().flatten(0, 3);
            assert_close(found, &differences(&x, |x| loss(x, &w64, &b64)));
            let found = tensors.1.grad(&gradients).unwrap().flatten(0, 1);
            assert_close(found, &differences(&weight, |w| loss(&x64, w, &b64)));
            let found = tensors.2.grad(&gradients).unwrap();
            assert_close(found, &differences(&bias, |b| loss(&x64, &w64, b)));
        }
    }

    #[test]
    fn gates_and_their_gradients_against_the_definition() {
        let (images, positions, width) = (2, 6, 3);
        let x = numbers(1, images * positions * 2 * width);
        let class = numbers(2, images * 2 * width);
        let upstream = numbers(3, images * positions * width);
        let loss = |x: &[f64], class: &[f64]| {
            let mut sum = 0.0;
            for (i, &u) in upstream.iter().enumerate() {
                let (row, channel) = (i / width, i % width);
                let image = row / positions;
                let part = |half: usize| {
                    x[row * 2 * width + half * width + channel]
                        + class[image * 2 * width + half * width + channel]
                };
                sum += f64::from(u) * part(0).tanh() / (1.0 + (-part(1)).exp());
            }
            sum
        };
        let of_x = tensor(&x, [images, 2, 3, 2 * width]).autodiff().require_grad();
        let of_class = tensor(&class, [images, 2 * width]).autodiff().require_grad();
        let out = gate(of_x.clone(), of_class.clone());
        let weights = tensor(&upstream, [images, 2, 3, width]).autodiff();
        let total = (out * weights).sum();
        let wide = |x: &[f32]| -> Vec<f64> { x.iter().copied().map(f64::from).collect() };
        let (x64, class64) = (wide(&x), wide(&class));
        assert_close(total.clone().inner(), &[loss(&x64, &class64)]);
        let gradients = total.backward();
        let found = of_x.grad(&gradients).unwrap().flatten(0, 3);
        assert_close(found, &differences(&x, |x| loss(x, &class64)));
        let found = of_class.grad(&gradients).unwrap().flatten(0, 1);
        assert_close(found, &differences(&class, |class| loss(&x64, class)));
    }
}
