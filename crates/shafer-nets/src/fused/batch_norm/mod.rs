//! Batch normalisation (Ioffe and Szegedy, 2015) over the innermost dimension, with the ReLU that often
//! follows it: two passes over memory forward, two backward.

mod autodiff;
mod composed;
mod cpu;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;

/// What is added to variances.
const EPSILON: f32 = 1e-5;

/// What follows a normalisation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Activation {
    Identity,
    Relu,
}

/// Batch normalisation on the tensors of one backend.
///
/// `x` is of any rank; its innermost dimension are the channels. Statistics are 2 x channels: means, and
/// variances as means of squares.
#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait Normalisation: Backend {
    /// See [`batch_norm`]: the result and the statistics.
    fn normalise_batch(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let statistics = composed::statistics::<Self>(&x);
        let y = composed::normalise::<Self>(x, &statistics, scale, shift, activation);
        (y, statistics)
    }

    /// See [`normalise`].
    fn normalise(
        x: FloatTensor<Self>,
        statistics: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Activation,
    ) -> FloatTensor<Self> {
        composed::normalise::<Self>(x, &statistics, scale, shift, activation)
    }

    /// The gradients of [`normalise_batch`](Self::normalise_batch) with respect to `x`, scale and shift.
    fn normalise_backward(
        gradient: FloatTensor<Self>,
        x: FloatTensor<Self>,
        statistics: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        composed::normalise_backward::<Self>(gradient, &x, &statistics, &scale, shift, activation)
    }
}

#[cfg(feature = "gpu")]
impl Normalisation for burn::backend::Cube {}

/// Normalises each channel by its mean and variance over this batch, then scales and shifts it. Gradients
/// flow through the statistics; those returned have none.
pub(crate) fn batch_norm<const D: usize>(
    x: Tensor<D>,
    scale: Tensor<1>,
    shift: Tensor<1>,
    activation: Activation,
) -> (Tensor<D>, Tensor<2>) {
    let (y, statistics) = <Dispatch as Normalisation>::normalise_batch(
        x.into_dispatch(),
        scale.into_dispatch(),
        shift.into_dispatch(),
        activation,
    );
    (Tensor::from_dispatch(y), Tensor::from_dispatch(statistics))
}

/// Normalises each channel by these statistics, then scales and shifts it.
pub(crate) fn normalise<const D: usize>(
    x: Tensor<D>,
    statistics: Tensor<2>,
    scale: Tensor<1>,
    shift: Tensor<1>,
    activation: Activation,
) -> Tensor<D> {
    Tensor::from_dispatch(<Dispatch as Normalisation>::normalise(
        x.into_dispatch(),
        statistics.into_dispatch(),
        scale.into_dispatch(),
        shift.into_dispatch(),
        activation,
    ))
}

#[cfg(test)]
mod tests {
    use burn::backend::{Flex, TensorMetadata};
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::random::{Purpose, Random};
    use crate::weights::host;

    type Primitive = FloatTensor<Flex>;

    /// Numbers between -1 and 1.
    fn numbers(seed: u64, count: usize) -> Vec<f32> {
        let mut random = Random::new(seed, Purpose::Noise, 0);
        (0..count).map(|_| 2.0 * random.uniform() - 1.0).collect()
    }

    fn primitive<const D: usize>(values: Vec<f32>, shape: [usize; D]) -> Primitive {
        Primitive::from_data(TensorData::new(values, shape))
    }

    fn wide(values: &[f32]) -> Vec<f64> {
        values.iter().copied().map(f64::from).collect()
    }

    fn values(tensor: &Primitive) -> Vec<f64> {
        wide(tensor.to_contiguous().storage())
    }

    #[track_caller]
    fn assert_close(found: &[f64], expected: &[f64], tolerance: f64) {
        assert_eq!(found.len(), expected.len());
        for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
            let error = (found - expected).abs();
            assert!(error <= tolerance * expected.abs().max(1.0), "{i}: {found}, not {expected}");
        }
    }

    /// The result and the statistics, in double precision from the definition.
    fn plain(
        x: &[f64],
        scale: &[f64],
        shift: &[f64],
        activation: Activation,
    ) -> (Vec<f64>, Vec<f64>) {
        let channels = scale.len();
        let rows = (x.len() / channels) as f64;
        let mut y = vec![0.0; x.len()];
        let mut statistics = vec![0.0; 2 * channels];
        for c in 0..channels {
            let column = || x.iter().skip(c).step_by(channels);
            let mean = column().sum::<f64>() / rows;
            let variance = column().map(|x| (x - mean) * (x - mean)).sum::<f64>() / rows;
            (statistics[c], statistics[channels + c]) = (mean, variance);
            for (i, x) in column().enumerate() {
                let value = scale[c] * (x - mean) / (variance + 1e-5).sqrt() + shift[c];
                y[i * channels + c] = match activation {
                    Activation::Identity => value,
                    Activation::Relu => value.max(0.0),
                };
            }
        }
        (y, statistics)
    }

    const BOTH: [Activation; 2] = [Activation::Identity, Activation::Relu];

    /// Ours and burn's composition, with means far from 0 beside their spread, and more rows than are summed
    /// in single precision.
    #[test]
    fn batch_norm_equals_plain_loops() {
        for (rows, channels) in [([1, 1, 2], 1), ([3, 5, 7], 6), ([40, 9, 11], 33)] {
            let count: usize = rows.iter().product();
            let x: Vec<f32> = numbers(1, count * channels)
                .iter()
                .enumerate()
                .map(|(i, x)| x + [0.0, 30.0, -500.0][i % channels % 3])
                .collect();
            let scale: Vec<f32> = numbers(2, channels).iter().map(|x| x + 1.5).collect();
            let (shift, gradient) = (numbers(3, channels), numbers(4, count * channels));
            let shape = [rows[0], rows[1], rows[2], channels];
            for activation in BOTH {
                let (y, statistics) = plain(&wide(&x), &wide(&scale), &wide(&shift), activation);
                let of = || {
                    (
                        primitive(x.clone(), shape),
                        primitive(scale.clone(), [channels]),
                        primitive(shift.clone(), [channels]),
                    )
                };
                let (input, a, b) = of();
                let (found, seen) = Flex::normalise_batch(input, a, b, activation);
                assert_eq!((found.shape(), seen.shape()), (shape.into(), [2, channels].into()));
                assert_close(&values(&seen), &statistics, 1e-5);
                assert_close(&values(&found), &y, 3e-4);
                let (input, a, b) = of();
                let (composed, again) = (
                    composed::normalise::<Flex>(
                        input.clone(),
                        &seen,
                        a.clone(),
                        b.clone(),
                        activation,
                    ),
                    Flex::normalise(input.clone(), seen.clone(), a.clone(), b.clone(), activation),
                );
                assert_close(&values(&composed), &y, 3e-4);
                assert_close(&values(&again), &y, 3e-4);
                assert_close(&values(&composed::statistics::<Flex>(&input)), &statistics, 1e-3);

                let above = || primitive(gradient.clone(), shape);
                let found = Flex::normalise_backward(
                    above(),
                    input.clone(),
                    seen.clone(),
                    a.clone(),
                    b.clone(),
                    activation,
                );
                let expected =
                    composed::normalise_backward::<Flex>(above(), &input, &seen, &a, b, activation);
                assert_close(&values(&found.0), &values(&expected.0), 1e-3);
                assert_close(&values(&found.1), &values(&expected.1), 1e-3);
                assert_close(&values(&found.2), &values(&expected.2), 1e-3);
            }
        }
    }

    #[test]
    fn gradients_are_those_of_finite_differences() {
        let (rows, channels) = (6, 3);
        let weights = wide(&numbers(7, rows * channels));
        let inputs = [numbers(1, rows * channels), vec![0.7, -1.2, 1.9], vec![0.1, -0.2, 0.3]];
        for activation in BOTH {
            let device = Device::flex().autodiff();
            let x = Tensor::<2>::from_data(
                TensorData::new(inputs[0].clone(), [rows, channels]),
                &device,
            );
            let x = x.require_grad();
            let [scale, shift] = [1, 2].map(|i| {
                let data = TensorData::new(inputs[i].clone(), [channels]);
                Tensor::<1>::from_data(data, &device).require_grad()
            });
            let (y, _) = batch_norm(x.clone(), scale.clone(), shift.clone(), activation);
            let by = weights.iter().map(|&x| x as f32).collect::<Vec<f32>>();
            let by = Tensor::<2>::from_data(TensorData::new(by, [rows, channels]), &device);
            let gradients = (y * by).sum().backward();
            let found = [
                host(x.grad(&gradients).unwrap()),
                host(scale.grad(&gradients).unwrap()),
                host(shift.grad(&gradients).unwrap()),
            ];
            let inputs: Vec<Vec<f64>> = inputs.iter().map(|values| wide(values)).collect();
            let loss = |inputs: &[Vec<f64>]| {
                let (y, _) = plain(&inputs[0], &inputs[1], &inputs[2], activation);
                y.iter().zip(&weights).map(|(y, w)| y * w).sum::<f64>()
            };
            for (which, found) in found.iter().enumerate() {
                let expected: Vec<f64> = (0..found.len())
                    .map(|i| {
                        let moved = |by: f64| {
                            let mut moved = inputs.clone();
                            moved[which][i] += by;
                            loss(&moved)
                        };
                        (moved(1e-6) - moved(-1e-6)) / 2e-6
                    })
                    .collect();
                assert_close(&wide(found), &expected, 1e-4);
            }
        }
    }

    #[test]
    fn no_number_stays_none() {
        let x = primitive(vec![1.0, f32::NAN, 3.0, 4.0], [2, 2]);
        let one = || primitive(vec![1.0; 2], [2]);
        let (y, _) = Flex::normalise_batch(x, one(), one(), Activation::Relu);
        let y = values(&y);
        assert!(y[1].is_nan() && y[3].is_nan() && y[0].is_finite() && y[2].is_finite());
    }

    #[test]
    fn the_number_of_threads_changes_no_bit() {
        let all = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| {
                let x = primitive(numbers(1, 1000 * 5), [1000, 5]);
                let (a, b) = (primitive(numbers(2, 5), [5]), primitive(numbers(3, 5), [5]));
                let relu = Activation::Relu;
                let (y, s) = Flex::normalise_batch(x.clone(), a.clone(), b.clone(), relu);
                let back = Flex::normalise_backward(y.clone(), x, s.clone(), a, b, relu);
                [y, s, back.0, back.1, back.2].each_ref().map(values)
            })
        };
        assert_eq!(all(1), all(2));
        assert_eq!(all(1), all(5));
    }
}
