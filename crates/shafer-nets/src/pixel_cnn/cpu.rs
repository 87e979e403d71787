//! The operations as loops over slices, for the CPU.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::TensorData;
use fearless_simd::{Level, dispatch};
use rayon::prelude::*;

use super::ops::Kernels;
use super::product::{Packed, sum_of_products};
use super::window::Window;
use crate::fused::{sigmoid, tanh, whole};

type Primitive = FloatTensor<Flex>;

impl Kernels for Flex {
    fn convolution(x: Primitive, weight: Primitive, bias: Primitive, window: Window) -> Primitive {
        let [images, rows, columns, channels] = x.shape().dims();
        let [inputs, outputs] = weight.shape().dims();
        let (x, weight, bias) = (whole(x), whole(weight), whole(bias));
        let packed = Packed::new(weight.storage(), inputs, outputs, bias.storage());
        let grids = Images { values: x.storage(), shape: [rows, columns], channels };
        let mut out = vec![0.0; images * rows * columns * outputs];
        grids.product(window, &packed, &mut out);
        Primitive::from_data(TensorData::new(out, [images, rows, columns, outputs]))
    }

    fn convolution_backward(
        gradient: Primitive,
        x: Primitive,
        weight: Primitive,
        window: Window,
    ) -> (Primitive, Primitive, Primitive) {
        let [images, rows, columns, channels] = x.shape().dims();
        let [inputs, outputs] = weight.shape().dims();
        let (gradient, x, weight) = (whole(gradient), whole(x), whole(weight));
        let upstream = gradient.storage::<f32>();
        let shape = [rows, columns];

        let reversed = reversed(weight.storage(), channels, outputs);
        let packed = Packed::new(&reversed, window.taps() * outputs, channels, &[]);
        let grids = Images { values: upstream, shape, channels: outputs };
        let mut to_x = vec![0.0; images * rows * columns * channels];
        grids.product(window.reversed(), &packed, &mut to_x);

        let grids = Images { values: x.storage(), shape, channels };
        let to_weight = grids.sum_of_products(window, inputs, outputs, upstream);

        let mut to_bias = vec![0.0; outputs];
        for row in upstream.chunks_exact(outputs) {
            for (sum, gradient) in to_bias.iter_mut().zip(row) {
                *sum += gradient;
            }
        }
        (
            Primitive::from_data(TensorData::new(to_x, [images, rows, columns, channels])),
            Primitive::from_data(TensorData::new(to_weight, [inputs, outputs])),
            Primitive::from_data(TensorData::new(to_bias, [outputs])),
        )
    }

    fn gated(x: Primitive, class: Primitive) -> (Primitive, Primitive) {
        let [images, rows, columns, channels] = x.shape().dims();
        let (x, class) = (whole(x), whole(class));
        let mut kept = vec![0.0; images * rows * columns * channels];
        let mut out = vec![0.0; kept.len() / 2];
        let grid = rows * columns * channels;
        let read = x.storage::<f32>().par_chunks_exact(grid);
        let read = read.zip(class.storage::<f32>().par_chunks_exact(channels));
        let written = kept.par_chunks_exact_mut(grid).zip(out.par_chunks_exact_mut(grid / 2));
        read.zip(written).for_each(|((x, class), (kept, out))| gate_rows(x, class, kept, out));
        let kept = TensorData::new(kept, [images, rows, columns, channels]);
        let out = TensorData::new(out, [images, rows, columns, channels / 2]);
        (Primitive::from_data(out), Primitive::from_data(kept))
    }

    fn gated_backward(gradient: Primitive, kept: Primitive) -> (Primitive, Primitive) {
        let [images, rows, columns, channels] = kept.shape().dims();
        let (gradient, kept) = (whole(gradient), whole(kept));
        let grid = rows * columns * channels;
        let mut to_x = vec![0.0; images * grid];
        let mut to_class = vec![0.0; images * channels];
        let read = gradient.storage::<f32>().par_chunks_exact(grid / 2);
        let read = read.zip(kept.storage::<f32>().par_chunks_exact(grid));
        let written = to_x.par_chunks_exact_mut(grid).zip(to_class.par_chunks_exact_mut(channels));
        read.zip(written).for_each(|((gradient, kept), (to_x, to_class))| {
            gate_backward_rows(gradient, kept, to_x, to_class);
        });
        (
            Primitive::from_data(TensorData::new(to_x, [images, rows, columns, channels])),
            Primitive::from_data(TensorData::new(to_class, [images, channels])),
        )
    }
}

/// Rows of [`Kernels::gated_backward`] that share a class: `to_x` is written, and its rows are added to
/// `to_class`.
fn gate_backward_rows(gradient: &[f32], kept: &[f32], to_x: &mut [f32], to_class: &mut [f32]) {
    let width = to_class.len() / 2;
    dispatch!(Level::new(), _simd => {
        let rows = gradient.chunks_exact(width).zip(kept.chunks_exact(2 * width));
        for ((gradient, kept), to_x) in rows.zip(to_x.chunks_exact_mut(2 * width)) {
            let (tangents, sigmoids) = kept.split_at(width);
            let (to_tangent, to_sigmoid) = to_x.split_at_mut(width);
            let values = gradient.iter().zip(tangents).zip(sigmoids);
            for (((&g, &t), &s), to) in values.clone().zip(to_tangent) {
                *to = g * s * (1.0 - t * t);
            }
            for (((&g, &t), &s), to) in values.zip(to_sigmoid) {
                *to = g * s * t * (1.0 - s);
            }
            for (sum, x) in to_class.iter_mut().zip(to_x) {
                *sum += *x;
            }
        }
    });
}

/// The weights of the gradient with respect to the input: those of each tap transposed, the last tap
/// first.
fn reversed(weight: &[f32], channels: usize, outputs: usize) -> Vec<f32> {
    let mut result = vec![0.0; weight.len()];
    let from = weight.chunks_exact(channels * outputs);
    for (to, from) in result.chunks_exact_mut(outputs * channels).zip(from.rev()) {
        for (channel, from) in from.chunks_exact(outputs).enumerate() {
            for (output, &weight) in from.iter().enumerate() {
                to[output * channels + channel] = weight;
            }
        }
    }
    result
}

/// Images with their channels last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Images<'a> {
    pub(super) values: &'a [f32],
    /// Rows and columns.
    pub(super) shape: [usize; 2],
    pub(super) channels: usize,
}

/// The positions that a thread computes in a row.
const SHARE: usize = 448;

/// The sums over positions that are computed side by side. A constant, so that the number of threads
/// changes no result.
const PARTIAL_SUMS: usize = 4;

impl Images<'_> {
    /// The weights times what the window sees from each position, on all threads of the pool.
    fn product(&self, window: Window, weights: &Packed, out: &mut [f32]) {
        let shares = out.par_chunks_mut(SHARE * weights.outputs()).enumerate();
        shares.for_each_init(Vec::new, |scratch, (share, out)| {
            let gather = |p: usize, seen: &mut [f32]| self.gather(window, share * SHARE + p, seen);
            weights.product(scratch, gather, out);
        });
    }

    /// The gradient of [`product`](Self::product) with respect to the weights.
    fn sum_of_products(
        &self,
        window: Window,
        inputs: usize,
        outputs: usize,
        gradient: &[f32],
    ) -> Vec<f32> {
        let share = (gradient.len() / outputs).div_ceil(PARTIAL_SUMS);
        let sums: Vec<Vec<f32>> = gradient
            .par_chunks(share * outputs)
            .enumerate()
            .map(|(i, gradient)| {
                let gather = |p: usize, seen: &mut [f32]| self.gather(window, i * share + p, seen);
                sum_of_products(inputs, outputs, gather, gradient)
            })
            .collect();
        let add = |mut sum: Vec<f32>, other: Vec<f32>| {
            sum.iter_mut().zip(other).for_each(|(sum, other)| *sum += other);
            sum
        };
        sums.into_iter().reduce(add).unwrap_or_else(|| vec![0.0; inputs * outputs])
    }

    /// Writes what a window sees from a position, counted over all images; what is 0 is left as it is.
    #[inline(always)]
    pub(super) fn gather(&self, window: Window, position: usize, seen: &mut [f32]) {
        let ([rows, columns], channels) = (self.shape, self.channels);
        let (row, column) = (position / columns % rows, position % columns);
        let image = position / (rows * columns);
        let first = column as isize + window.left;
        let start = first.max(0) as usize;
        let end = (first + window.columns as isize).clamp(0, columns as isize) as usize;
        if start >= end {
            return;
        }
        let missing = (start as isize - first) as usize;
        for down in 0..window.rows {
            let row = row as isize + window.top + down as isize;
            if (0..rows as isize).contains(&row) {
                let from = ((image * rows + row as usize) * columns + start) * channels;
                let to = (down * window.columns + missing) * channels;
                let count = (end - start) * channels;
                seen[to..to + count].copy_from_slice(&self.values[from..from + count]);
            }
        }
    }
}

/// Rows of [`gate`](super::ops::gate) that share a class: tangents and sigmoids, and their products.
pub(super) fn gate_rows(x: &[f32], class: &[f32], kept: &mut [f32], out: &mut [f32]) {
    dispatch!(Level::new(), _simd => {
        let width = class.len() / 2;
        let rows = x.chunks_exact(2 * width).zip(kept.chunks_exact_mut(2 * width));
        for ((x, kept), out) in rows.zip(out.chunks_exact_mut(width)) {
            let (tangents, sigmoids) = kept.split_at_mut(width);
            for ((kept, x), class) in tangents.iter_mut().zip(x).zip(class) {
                *kept = tanh(x + class);
            }
            for ((kept, x), class) in sigmoids.iter_mut().zip(&x[width..]).zip(&class[width..]) {
                *kept = sigmoid(x + class);
            }
            for ((out, a), b) in out.iter_mut().zip(tangents).zip(sigmoids) {
                *out = *a * *b;
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::super::composed;
    use super::*;
    use crate::random::{Purpose, Random};

    /// Numbers between -1 and 1.
    fn numbers<const D: usize>(seed: u64, shape: [usize; D]) -> Primitive {
        let mut random = Random::new(seed, Purpose::Noise, 0);
        let count = shape.iter().product();
        let values: Vec<f32> = (0..count).map(|_| 2.0 * random.uniform() - 1.0).collect();
        Primitive::from_data(TensorData::new(values, shape))
    }

    fn assert_close(found: &Primitive, expected: &Primitive, tolerance: f32) {
        assert_eq!(found.shape(), expected.shape());
        let (found, expected) = (found.to_contiguous(), expected.to_contiguous());
        let pairs = found.storage::<f32>().iter().zip(expected.storage::<f32>());
        for (i, (found, expected)) in pairs.enumerate() {
            let error = (found - expected).abs();
            assert!(error <= tolerance * expected.abs().max(1.0), "{i}: {found}, not {expected}");
        }
    }

    /// Through every window, on grids larger and smaller than it.
    #[test]
    fn convolutions_equal_the_composition() {
        for window in
            [Window::POINT, Window::ABOVE, Window::VERTICAL, Window::BEFORE, Window::HORIZONTAL]
        {
            for shape in [[2, 5, 6, 3], [1, 1, 1, 4], [3, 2, 2, 33], [1, 9, 4, 1]] {
                let [images, rows, columns, channels] = shape;
                let (inputs, outputs) = (window.taps() * channels, 5);
                let x = numbers(1, shape);
                let weight = numbers(2, [inputs, outputs]);
                let found = Flex::convolution(x.clone(), weight.clone(), numbers(3, [5]), window);
                let expected = composed::convolution::<Flex>(
                    x.clone(),
                    weight.clone(),
                    numbers(3, [5]),
                    window,
                );
                assert_close(&found, &expected, 1e-5);
                let gradient = numbers(4, [images, rows, columns, outputs]);
                let found =
                    Flex::convolution_backward(gradient.clone(), x.clone(), weight.clone(), window);
                let expected = composed::convolution_backward::<Flex>(gradient, x, weight, window);
                assert_close(&found.0, &expected.0, 1e-5);
                assert_close(&found.1, &expected.1, 1e-5);
                assert_close(&found.2, &expected.2, 1e-5);
            }
        }
    }

    /// With numbers of all sizes.
    #[test]
    fn gates_equal_the_composition() {
        let mut x = numbers(1, [2, 3, 4, 10]);
        for (i, x) in x.storage_mut::<f32>().iter_mut().enumerate() {
            *x *= [0.01, 1.0, 10.0, 200.0][i % 4];
        }
        let class = numbers(2, [2, 10]);
        let (out, kept) = Flex::gated(x.clone(), class.clone());
        let (expected, expected_kept) = composed::gated::<Flex>(x, class);
        assert_close(&out, &expected, 1e-6);
        assert_close(&kept, &expected_kept, 1e-6);
        let gradient = numbers(3, [2, 3, 4, 5]);
        let found = Flex::gated_backward(gradient.clone(), kept.clone());
        let expected = composed::gated_backward::<Flex>(&gradient, &kept);
        assert_close(&found.0, &expected.0, 1e-6);
        assert_close(&found.1, &expected.1, 1e-5);
    }

    #[test]
    fn a_gate_is_no_number_when_an_input_is_none() {
        for place in [1, 7] {
            let mut x = numbers(1, [1, 1, 1, 10]);
            x.storage_mut::<f32>()[place] = f32::NAN;
            let (out, _) = Flex::gated(x, numbers(2, [1, 10]));
            assert!(out.storage::<f32>()[place % 5].is_nan(), "{place}");
        }
    }
}
