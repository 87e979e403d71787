//! The differentiable operations.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Dispatch};
use burn::tensor::Tensor;

use super::gradients::differentiable;
use super::kernels::Kernels;

/// The binary cross-entropy: the negative log-likelihood of `target`, from 0 to 1, under independent
/// Bernoulli variables with these `logits`, summed over all elements.
///
/// It has no gradient with respect to the target.
pub(crate) fn bernoulli_nll(logits: Tensor<2>, target: Tensor<2>) -> Tensor<1> {
    let nll = <Dispatch as Kernels>::bernoulli_nll(logits.into_dispatch(), target.into_dispatch());
    Tensor::from_dispatch(nll)
}

/// The next state of a long short-term memory, rows x (hidden, cell), from the previous one.
///
/// `gates` are rows x (input, forget, cell, output), before their activations.
pub(crate) fn lstm(gates: Tensor<2>, state: Tensor<2>) -> Tensor<2> {
    let state = <Dispatch as Kernels>::lstm_state(gates.into_dispatch(), state.into_dispatch());
    Tensor::from_dispatch(state)
}

/// Replaces magnitudes up to 1e-30 by 0, in the tensor and in its gradient.
///
/// The probabilities of a collapsed posterior are as small as `e^-100`. They are negligible in sums, but
/// their products are subnormal numbers, with which a matrix product takes several times as long.
pub(crate) fn without_traces(tensor: Tensor<2>) -> Tensor<2> {
    Tensor::from_dispatch(<Dispatch as Kernels>::drop_traces(tensor.into_dispatch()))
}

impl<B: Kernels, C: CheckpointStrategy> Kernels for Autodiff<B, C> {
    fn bernoulli_nll(logits: FloatTensor<Self>, target: FloatTensor<Self>) -> FloatTensor<Self> {
        let inputs = [logits.node()];
        let (nll, gradient) = B::bernoulli(logits.into_primitive(), target.into_primitive());
        // The incoming gradient has one element.
        differentiable::<B, C, _, 1>(inputs, nll, gradient, |by, gradient, _| {
            let by = B::float_reshape(by, [1, 1].into());
            [Some(B::float_mul(gradient, by))]
        })
    }

    fn lstm_state(gates: FloatTensor<Self>, state: FloatTensor<Self>) -> FloatTensor<Self> {
        let inputs = [gates.node(), state.node()];
        let before = state.into_primitive();
        let (after, kept) = B::lstm(gates.into_primitive(), before.clone());
        let kept = (kept, before);
        differentiable::<B, C, _, 2>(inputs, after, kept, |gradient, (kept, before), _| {
            let (gates, state) = B::lstm_backward(gradient, kept, before);
            [gates, state].map(Some)
        })
    }

    fn drop_traces(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        let inputs = [tensor.node()];
        let kept = B::drop_traces(tensor.into_primitive());
        differentiable::<B, C, _, 1>(inputs, kept, (), |gradient, (), _| {
            [Some(B::drop_traces(gradient))]
        })
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::activation::{log_sigmoid, sigmoid};
    use burn::tensor::{Device, TensorData};

    use super::*;
    use crate::random::{Purpose, Random};
    use crate::weights::host;

    const SHAPE: [usize; 2] = [3, 37];

    /// Numbers between 0 and 1.
    fn numbers(seed: u64) -> Vec<f32> {
        let mut random = Random::new(seed, Purpose::Noise, 0);
        (0..SHAPE[0] * SHAPE[1]).map(|_| random.uniform()).collect()
    }

    fn tensor(values: &[f32]) -> Tensor<2> {
        Tensor::from_data(TensorData::new(values.to_vec(), SHAPE), &Device::flex())
    }

    fn logits() -> Vec<f32> {
        numbers(1).iter().map(|u| 8.0 * (u - 0.5)).collect()
    }

    /// The gradient of a function of the logits.
    fn gradient(loss: impl Fn(Tensor<2>) -> Tensor<1>) -> Vec<f32> {
        let logits = tensor(&logits()).autodiff().require_grad();
        let gradients = loss(logits.clone()).backward();
        host(logits.grad(&gradients).unwrap())
    }

    /// Scaled, so that the incoming gradient is not 1.
    fn fused(logits: Tensor<2>) -> Tensor<1> {
        bernoulli_nll(logits, tensor(&numbers(2))).mul_scalar(3.0)
    }

    #[test]
    fn the_gradient_is_that_of_burns_composition() {
        let composed = gradient(|logits| {
            let target = tensor(&numbers(2));
            let explained = target.clone() * log_sigmoid(logits.clone());
            let rest = (-target + 1.0) * log_sigmoid(-logits);
            (explained + rest).sum().mul_scalar(-3.0)
        });
        for (found, expected) in gradient(fused).iter().zip(composed) {
            assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
        }
    }

    #[test]
    fn the_gradient_is_that_of_finite_differences() {
        // In double precision, from the definition.
        let target = numbers(2);
        let loss = |l: f64, x: f64| {
            let p = 1.0 / (1.0 + (-l).exp());
            -3.0 * (x * p.ln() + (1.0 - x) * (1.0 - p).ln())
        };
        for ((found, &l), &x) in gradient(fused).iter().zip(&logits()).zip(&target) {
            let (l, x, h) = (f64::from(l), f64::from(x), 1e-5);
            let expected = (loss(l + h, x) - loss(l - h, x)) / (2.0 * h);
            assert!((f64::from(*found) - expected).abs() < 1e-5, "{found}, not {expected}");
        }
    }

    #[test]
    fn without_a_gradient_the_value_is_the_same() {
        let plain = host(fused(tensor(&logits())));
        let tracked = host(fused(tensor(&logits()).autodiff().require_grad()).inner());
        assert_eq!(plain, tracked);
        let p = host(sigmoid(tensor(&logits())));
        let expected: f64 = p
            .iter()
            .zip(numbers(2))
            .map(|(&p, x)| (f64::from(p), f64::from(x)))
            .map(|(p, x)| -3.0 * (x * p.ln() + (1.0 - x) * (1.0 - p).ln()))
            .sum();
        assert!((f64::from(plain[0]) / expected - 1.0).abs() < 1e-5);
    }

    #[test]
    fn the_gradient_of_what_has_no_traces() {
        // The identity, but for magnitudes up to 1e-30.
        let values = [logits(), vec![1e-35; 3]].concat();
        let weights = [numbers(2), vec![1.0, -1e-31, 3.0]].concat();
        let row = |values: &[f32]| {
            let data = TensorData::new(values.to_vec(), [1, values.len()]);
            Tensor::<2>::from_data(data, &Device::flex())
        };
        let tensor = row(&values).autodiff().require_grad();
        let kept = without_traces(tensor.clone());
        let gradients = (kept.clone() * row(&weights).autodiff()).sum().backward();
        let mut expected = [logits(), vec![0.0; 3]].concat();
        assert_eq!(host(kept.inner()), expected);
        expected = weights;
        let last = expected.len() - 2;
        expected[last] = 0.0;
        assert_eq!(host(tensor.grad(&gradients).unwrap()), expected);
    }

    const WIDTH: usize = 5;
    const STEPS: usize = 3;

    /// Numbers between -1 and 1: rows x columns.
    fn signed(seed: u64, columns: usize) -> Tensor<2> {
        let mut random = Random::new(seed, Purpose::Noise, 1);
        let values: Vec<f32> = (0..4 * columns).map(|_| 2.0 * random.uniform() - 1.0).collect();
        Tensor::from_data(TensorData::new(values, [4, columns]), &Device::flex())
    }

    /// Several steps, with gates that depend on the previous state: the loss, and its gradients with
    /// respect to the constant part of the gates and the initial state.
    fn lstm_gradients(step: impl Fn(Tensor<2>, Tensor<2>) -> Tensor<2>) -> (f64, [Vec<f32>; 2]) {
        let gates = signed(1, 4 * WIDTH).mul_scalar(2.0).autodiff().require_grad();
        let start = signed(2, 2 * WIDTH).autodiff().require_grad();
        let mut state = start.clone();
        for _ in 0..STEPS {
            let seen = Tensor::cat(vec![state.clone(), state.clone()], 1);
            state = step(gates.clone() + seen, state);
        }
        let loss = (state * signed(3, 2 * WIDTH)).sum();
        let gradients = loss.backward();
        let of = |tensor: &Tensor<2>| host(tensor.grad(&gradients).unwrap());
        (f64::from(host(loss.inner())[0]), [of(&gates), of(&start)])
    }

    #[test]
    fn the_gradient_of_lstm_is_that_of_burns_composition() {
        let (loss, found) = lstm_gradients(lstm);
        let (expected_loss, expected) = lstm_gradients(|gates, state| {
            let part =
                |of: &Tensor<2>, i: usize| of.clone().slice([0..4, i * WIDTH..(i + 1) * WIDTH]);
            let cell = sigmoid(part(&gates, 1)) * part(&state, 1)
                + sigmoid(part(&gates, 0)) * part(&gates, 2).tanh();
            let hidden = sigmoid(part(&gates, 3)) * cell.clone().tanh();
            Tensor::cat(vec![hidden, cell], 1)
        });
        assert!((loss - expected_loss).abs() < 1e-5);
        for (found, expected) in found.iter().flatten().zip(expected.iter().flatten()) {
            assert!((found - expected).abs() < 1e-5, "{found}, not {expected}");
        }
    }

    #[test]
    fn the_gradient_of_lstm_is_that_of_finite_differences() {
        let wide =
            |tensor: Tensor<2>| -> Vec<f64> { host(tensor).into_iter().map(f64::from).collect() };
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let weights = wide(signed(3, 2 * WIDTH));
        // In double precision, from the definition.
        let loss = |gates: &[f64], start: &[f64]| {
            let mut sum = 0.0;
            for row in 0..4 {
                let gates = &gates[row * 4 * WIDTH..][..4 * WIDTH];
                let mut state = start[row * 2 * WIDTH..][..2 * WIDTH].to_vec();
                for _ in 0..STEPS {
                    let before = state.clone();
                    for i in 0..WIDTH {
                        let gate =
                            |j: usize| gates[j * WIDTH + i] + before[(j * WIDTH + i) % (2 * WIDTH)];
                        let cell = sigmoid(gate(1)) * before[WIDTH + i]
                            + sigmoid(gate(0)) * gate(2).tanh();
                        state[WIDTH + i] = cell;
                        state[i] = sigmoid(gate(3)) * cell.tanh();
                    }
                }
                let weights = &weights[row * 2 * WIDTH..][..2 * WIDTH];
                sum += state.iter().zip(weights).map(|(s, w)| s * w).sum::<f64>();
            }
            sum
        };
        let gates = wide(signed(1, 4 * WIDTH).mul_scalar(2.0));
        let start = wide(signed(2, 2 * WIDTH));
        let (_, [to_gates, to_start]) = lstm_gradients(lstm);
        let moved = |values: &[f64], i: usize, by: f64| {
            let mut values = values.to_vec();
            values[i] += by;
            values
        };
        let h = 1e-5;
        for (i, found) in to_gates.iter().enumerate() {
            let difference =
                loss(&moved(&gates, i, h), &start) - loss(&moved(&gates, i, -h), &start);
            assert!((f64::from(*found) - difference / (2.0 * h)).abs() < 1e-5, "gate {i}");
        }
        for (i, found) in to_start.iter().enumerate() {
            let difference =
                loss(&gates, &moved(&start, i, h)) - loss(&gates, &moved(&start, i, -h));
            assert!((f64::from(*found) - difference / (2.0 * h)).abs() < 1e-5, "state {i}");
        }
    }
}
