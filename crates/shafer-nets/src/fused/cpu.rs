//! The functions as loops over slices, for the CPU.
//!
//! The loops are plain; `dispatch!` compiles them for each instruction set and selects one at run time.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Flex, TensorMetadata};
use burn::tensor::TensorData;
use fearless_simd::{Level, dispatch};

use super::kernels::{AdamStep, Kernels, NesterovStep, TRACE};

type Primitive = FloatTensor<Flex>;

/// The width of the loops.
const LANES: usize = 16;

/// The number of factors, at most 2 each, that are multiplied before the logarithm: the product must stay
/// within `f64`, and that of each lane within `f32`.
const BLOCK: usize = 32 * LANES;

impl Kernels for Flex {
    fn bernoulli(logits: Primitive, target: Primitive) -> (Primitive, Primitive) {
        let shape = logits.shape();
        let width = shape[1];
        let logits = whole(logits);
        let values: &[f32] = logits.storage();
        // The target is a column range of a wider tensor and is read in place.
        let (rows, stride) = (target.storage::<f32>(), target.layout().strides());
        assert_eq!(stride[1], 1, "the columns of the target must be contiguous");
        let start = target.layout().start_offset();
        let stride = stride[0] as usize;
        let mut gradient = vec![0.0; values.len()];
        let mut nll = 0.0;
        let examples = values.chunks_exact(width).zip(gradient.chunks_exact_mut(width));
        for (row, (logits, gradient)) in examples.enumerate() {
            let target = &rows[start + row * stride..][..width];
            nll += bernoulli_row(logits, target, gradient);
        }
        let nll = TensorData::new(vec![nll as f32], [1]);
        let gradient = TensorData::new(gradient, shape);
        (Primitive::from_data(nll), Primitive::from_data(gradient))
    }

    fn lstm(gates: Primitive, state: Primitive) -> (Primitive, Primitive) {
        let shape = state.shape();
        let (rows, width) = (shape[0], shape[1] / 2);
        let mut kept = vec![0.0; rows * 5 * width];
        let after = lstm_rows(gates, state, &mut kept);
        (after, Primitive::from_data(TensorData::new(kept, [rows, 5 * width])))
    }

    fn lstm_state(gates: Primitive, state: Primitive) -> Primitive {
        let mut kept = vec![0.0; 5 * state.shape()[1] / 2];
        lstm_rows(gates, state, &mut kept)
    }

    fn lstm_backward(
        gradient: Primitive,
        kept: Primitive,
        state: Primitive,
    ) -> (Primitive, Primitive) {
        let shape = state.shape();
        let (rows, width) = (shape[0], shape[1] / 2);
        let (gradient, kept, state) = (whole(gradient), whole(kept), whole(state));
        let mut gates = vec![0.0; rows * 4 * width];
        let mut before = vec![0.0; rows * 2 * width];
        let read = gradient.storage::<f32>().chunks_exact(2 * width);
        let read = read.zip(kept.storage::<f32>().chunks_exact(5 * width));
        let read = read.zip(state.storage::<f32>().chunks_exact(2 * width));
        let written = gates.chunks_exact_mut(4 * width).zip(before.chunks_exact_mut(2 * width));
        for (((gradient, kept), state), (gates, before)) in read.zip(written) {
            let (state, before) = (&state[width..], &mut before[width..]);
            dispatch!(Level::new(), _simd => {
                lstm_backward_row(gradient, kept, state, gates, before);
            });
        }
        let gates = TensorData::new(gates, [rows, 4 * width]);
        let before = TensorData::new(before, [rows, 2 * width]);
        (Primitive::from_data(gates), Primitive::from_data(before))
    }

    fn sgd(parameter: Primitive, gradient: Primitive, rate: f32) -> Primitive {
        let mut parameter = whole(parameter);
        let gradient = whole(gradient);
        let (p, g) = (parameter.storage_mut::<f32>(), gradient.storage::<f32>());
        dispatch!(Level::new(), _simd => {
            for (p, g) in p.iter_mut().zip(g) {
                *p -= rate * g;
            }
        });
        parameter
    }

    fn drop_traces(tensor: Primitive) -> Primitive {
        let mut tensor = whole(tensor);
        for x in tensor.storage_mut::<f32>() {
            if x.abs() <= TRACE {
                *x = 0.0;
            }
        }
        tensor
    }

    fn adam(
        parameter: Primitive,
        gradient: Primitive,
        first: Primitive,
        second: Primitive,
        step: AdamStep,
    ) -> (Primitive, Primitive, Primitive) {
        let (mut parameter, mut first, mut second) =
            (whole(parameter), whole(first), whole(second));
        let gradient = whole(gradient);
        let p = parameter.storage_mut::<f32>().iter_mut();
        let m = first.storage_mut::<f32>().iter_mut();
        let v = second.storage_mut::<f32>().iter_mut();
        let g = gradient.storage::<f32>();
        dispatch!(Level::new(), _simd => {
            for (((p, m), v), &g) in p.zip(m).zip(v).zip(g) {
                *m = normal(AdamStep::BETA1 * *m + (1.0 - AdamStep::BETA1) * g);
                // Subnormal squares are negligible beside epsilon.
                let g = if g.abs() < SQUARE_IS_NORMAL { 0.0 } else { g };
                *v = normal(AdamStep::BETA2 * *v + (1.0 - AdamStep::BETA2) * g * g);
                *p -= step.rate * *m / (v.sqrt() * step.scale + AdamStep::EPSILON);
            }
        });
        (parameter, first, second)
    }

    fn nesterov(
        parameter: Primitive,
        gradient: Primitive,
        velocity: Primitive,
        step: NesterovStep,
    ) -> (Primitive, Primitive) {
        let (mut parameter, mut velocity) = (whole(parameter), whole(velocity));
        let gradient = whole(gradient);
        let p = parameter.storage_mut::<f32>().iter_mut();
        let v = velocity.storage_mut::<f32>().iter_mut();
        let g = gradient.storage::<f32>();
        dispatch!(Level::new(), _simd => {
            for ((p, v), &g) in p.zip(v).zip(g) {
                let g = g + step.decay * *p;
                *v = normal(step.momentum * *v + g);
                *p -= step.rate * (g + step.momentum * *v);
            }
        });
        (parameter, velocity)
    }
}

/// Below this, a thousandth of the square of a number is subnormal.
const SQUARE_IS_NORMAL: f32 = 1e-16;

/// Flushes subnormal numbers to 0. They are up to a hundred times slower, and the moments of a parameter
/// without gradients would decay to them and stay: 0.9 times the smallest of them rounds to itself.
#[inline(always)]
fn normal(x: f32) -> f32 {
    if x.abs() < f32::MIN_POSITIVE { 0.0 } else { x }
}

/// The tensor in contiguous memory of exactly its size.
pub(crate) fn whole(tensor: Primitive) -> Primitive {
    let alone = tensor.storage::<f32>().len() == tensor.shape().num_elements();
    // `to_contiguous` would add a second owner, and shared memory is copied rather than changed in place.
    if alone && tensor.is_contiguous() { tensor } else { tensor.to_contiguous() }
}

/// One row of [`Kernels::bernoulli`]: returns its part of the sum and writes the gradient.
fn bernoulli_row(logits: &[f32], target: &[f32], gradient: &mut [f32]) -> f64 {
    dispatch!(Level::new(), _simd => {
        let blocks = logits.chunks(BLOCK).zip(target.chunks(BLOCK)).zip(gradient.chunks_mut(BLOCK));
        blocks.map(|((logits, target), gradient)| bernoulli_block(logits, target, gradient)).sum()
    })
}

/// The sum of `ln(1 + e^l) - l x = max(l, 0) - l x + ln(1 + e^-|l|)`. The logarithms of a block are taken
/// of one product: one logarithm for a block instead of one for each pixel.
#[inline(always)]
fn bernoulli_block(logits: &[f32], target: &[f32], gradient: &mut [f32]) -> f64 {
    let mut linear = [0.0; LANES];
    let mut product = [1.0; LANES];
    let mut one = |lane: usize, l: f32, x: f32| {
        let e = exp_minus(l.abs());
        let larger = 1.0 / (1.0 + e);
        linear[lane] += l.max(0.0) - l * x;
        product[lane] *= 1.0 + e;
        (if l >= 0.0 { larger } else { e * larger }) - x
    };
    let mut vectors =
        (logits.chunks_exact(LANES), target.chunks_exact(LANES), gradient.chunks_exact_mut(LANES));
    for ((l, x), g) in (&mut vectors.0).zip(&mut vectors.1).zip(&mut vectors.2) {
        for lane in 0..LANES {
            g[lane] = one(lane, l[lane], x[lane]);
        }
    }
    let rest = vectors.0.remainder().iter().zip(vectors.1.remainder());
    for (lane, ((&l, &x), g)) in rest.zip(vectors.2.into_remainder()).enumerate() {
        *g = one(lane, l, x);
    }
    let linear: f64 = linear.iter().map(|&x| f64::from(x)).sum();
    let product: f64 = product.iter().map(|&x| f64::from(x)).product();
    linear + product.ln()
}

/// The rows of [`Kernels::lstm`]. `kept` has room for the values of all rows, or for those of one row, which
/// every row then overwrites.
fn lstm_rows(gates: Primitive, state: Primitive, kept: &mut [f32]) -> Primitive {
    let shape = state.shape();
    let (rows, width) = (shape[0], shape[1] / 2);
    let (gates, state) = (whole(gates), whole(state));
    let mut after = vec![0.0; rows * 2 * width];
    let before = gates.storage::<f32>().chunks_exact(4 * width);
    let before = before.zip(state.storage::<f32>().chunks_exact(2 * width));
    for (row, ((gates, state), after)) in before.zip(after.chunks_exact_mut(2 * width)).enumerate()
    {
        let place = row * 5 * width % kept.len();
        let kept = &mut kept[place..][..5 * width];
        dispatch!(Level::new(), _simd => lstm_row(gates, &state[width..], after, kept));
    }
    Primitive::from_data(TensorData::new(after, [rows, 2 * width]))
}

/// One row of [`Kernels::lstm`]; `cell` is the previous one.
#[inline(always)]
fn lstm_row(gates: &[f32], cell: &[f32], after: &mut [f32], kept: &mut [f32]) {
    let width = cell.len();
    // One loop for each activation: interleaving them is slower.
    for (i, (gates, kept)) in
        gates.chunks_exact(width).zip(kept.chunks_exact_mut(width)).enumerate()
    {
        if i == 2 {
            for (kept, x) in kept.iter_mut().zip(gates) {
                *kept = tanh(*x);
            }
        } else {
            for (kept, x) in kept.iter_mut().zip(gates) {
                *kept = sigmoid(*x);
            }
        }
    }
    let (gates, seen) = kept.split_at_mut(4 * width);
    let (input, rest) = gates.split_at(width);
    let (forget, rest) = rest.split_at(width);
    let (new, output) = rest.split_at(width);
    let (hidden, after) = after.split_at_mut(width);
    // Equal lengths remove the bounds checks, which would prevent vectorisation.
    let (output, seen, after) = (&output[..width], &mut seen[..width], &mut after[..width]);
    for i in 0..width {
        after[i] = forget[i] * cell[i] + input[i] * new[i];
        seen[i] = tanh(after[i]);
        hidden[i] = output[i] * seen[i];
    }
}

/// One row of [`Kernels::lstm_backward`]; `cell` is the previous one, and `before` its gradient.
#[inline(always)]
fn lstm_backward_row(
    gradient: &[f32],
    kept: &[f32],
    cell: &[f32],
    gates: &mut [f32],
    before: &mut [f32],
) {
    let width = cell.len();
    let (hidden, later) = gradient.split_at(width);
    let (input, rest) = kept.split_at(width);
    let (forget, rest) = rest.split_at(width);
    let (new, rest) = rest.split_at(width);
    let (output, seen) = rest.split_at(width);
    let (to_input, rest) = gates.split_at_mut(width);
    let (to_forget, rest) = rest.split_at_mut(width);
    let (to_new, to_output) = rest.split_at_mut(width);
    let (later, seen) = (&later[..width], &seen[..width]);
    let (to_output, before) = (&mut to_output[..width], &mut before[..width]);
    for i in 0..width {
        let to_cell = later[i] + hidden[i] * output[i] * (1.0 - seen[i] * seen[i]);
        to_input[i] = to_cell * new[i] * input[i] * (1.0 - input[i]);
        to_forget[i] = to_cell * cell[i] * forget[i] * (1.0 - forget[i]);
        to_new[i] = to_cell * input[i] * (1.0 - new[i] * new[i]);
        to_output[i] = hidden[i] * seen[i] * output[i] * (1.0 - output[i]);
        before[i] = to_cell * forget[i];
    }
}

#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    let e = exp_or_nan(x, x.abs());
    let larger = 1.0 / (1.0 + e);
    if x >= 0.0 { larger } else { e * larger }
}

#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let e = exp_or_nan(x, 2.0 * x.abs());
    ((1.0 - e) / (1.0 + e)).copysign(x)
}

/// `e^-magnitude`, or NaN if `x` is: divergence must not be hidden.
#[inline(always)]
fn exp_or_nan(x: f32, magnitude: f32) -> f32 {
    if x.is_nan() { x } else { exp_minus(magnitude) }
}

/// `e^-x` for `x >= 0`, within three units in the last place: `2^n e^r` with `|r| <= ln(2) / 2`, and
/// `e^r` by its series, truncated where a term is 5e-9.
#[inline(always)]
fn exp_minus(x: f32) -> f32 {
    /// Adding it rounds to an integer, which is then in the low bits.
    const ROUND: f32 = 12_582_912.0;
    // ln 2 in two parts; the first has so few bits that its product with `n` is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    let x = -x.min(87.0);
    let rounded = x * std::f32::consts::LOG2_E + ROUND;
    let n = rounded - ROUND;
    let r = (x - n * LN2_HIGH) - n * LN2_LOW;
    let p = 1.0 / 5040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    let p = p * r + 1.0;
    let p = p * r + 1.0;
    f32::from_bits(p.to_bits().wrapping_add(rounded.to_bits() << 23))
}

#[cfg(test)]
mod tests {
    use burn::backend::ops::FloatTensorOps;
    use burn::tensor::Tensor;

    use super::super::composed;
    use super::*;
    use crate::random::{Purpose, Random};

    /// Numbers between -1 and 1.
    fn numbers(seed: u64, shape: [usize; 2]) -> Primitive {
        let mut random = Random::new(seed, Purpose::Noise, 0);
        let values: Vec<f32> =
            (0..shape[0] * shape[1]).map(|_| 2.0 * random.uniform() - 1.0).collect();
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

    /// For widths around those of blocks, logits of all magnitudes, and a target that is a view of a wider
    /// tensor.
    #[test]
    fn bernoulli_equals_the_composition() {
        for width in [1, 15, 16, 17, 511, 512, 513, 784, 1100] {
            let mut logits = numbers(1, [3, width]);
            for (i, l) in logits.storage_mut::<f32>().iter_mut().enumerate() {
                *l *= [0.01, 1.0, 10.0, 200.0][i % 4];
            }
            let wide = Tensor::<2>::from_primitive::<Flex>(numbers(2, [3, width + 2])).abs();
            let target = wide.slice([0..3, 0..width]);
            let target = target.try_into_primitive::<Flex>().unwrap();
            let (nll, gradient) = Flex::bernoulli(logits.clone(), target.clone());
            let (expected_nll, expected) = composed::bernoulli::<Flex>(logits, target);
            assert_close(&nll, &expected_nll, 1e-5);
            assert_close(&gradient, &expected, 1e-6);
        }
    }

    #[test]
    fn bernoulli_is_not_finite_if_a_logit_is_not() {
        for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            let mut logits = numbers(1, [2, 20]);
            logits.storage_mut::<f32>()[7] = bad;
            let (nll, _) = Flex::bernoulli(logits, numbers(2, [2, 20]));
            assert!(!nll.storage::<f32>()[0].is_finite());
        }
    }

    /// For gates of all magnitudes and widths around those of vectors.
    #[test]
    fn lstm_equals_the_composition() {
        for width in [1, 7, 16, 33, 128] {
            let mut gates = numbers(1, [3, 4 * width]);
            for (i, x) in gates.storage_mut::<f32>().iter_mut().enumerate() {
                *x *= [0.01, 1.0, 10.0, 200.0][i % 4];
            }
            let state = numbers(2, [3, 2 * width]);
            let (after, kept) = Flex::lstm(gates.clone(), state.clone());
            let (expected, expected_kept) = composed::lstm::<Flex>(&gates, &state);
            assert_close(&after, &expected, 1e-6);
            assert_close(&kept, &expected_kept, 1e-6);
            let alone = Flex::lstm_state(gates, state.clone());
            assert_eq!(alone.storage::<f32>(), after.storage::<f32>());
            let gradient = numbers(3, [3, 2 * width]);
            let found = Flex::lstm_backward(gradient.clone(), kept.clone(), state.clone());
            let expected = composed::lstm_backward::<Flex>(&gradient, &kept, &state);
            assert_close(&found.0, &expected.0, 1e-6);
            assert_close(&found.1, &expected.1, 1e-6);
        }
    }

    #[test]
    fn lstm_is_nan_if_a_gate_is() {
        for place in [3, 10, 18, 25] {
            let mut gates = numbers(1, [1, 32]);
            gates.storage_mut::<f32>()[place] = f32::NAN;
            let (after, _) = Flex::lstm(gates, numbers(2, [1, 16]));
            let hidden = &after.storage::<f32>()[..8];
            assert!(hidden[place % 8].is_nan(), "{place}: {hidden:?}");
        }
    }

    #[test]
    fn activations_against_double_precision() {
        for i in -100_000..100_000 {
            let x = i as f32 * 2e-4;
            let wide = f64::from(x);
            assert!((f64::from(sigmoid(x)) - 1.0 / (1.0 + (-wide).exp())).abs() < 2e-7, "{x}");
            assert!((f64::from(tanh(x)) - wide.tanh()).abs() < 3e-7, "{x}");
        }
    }

    #[test]
    fn updates_equal_the_composition() {
        let [p, g, m, v] = [1, 2, 3, 4].map(|seed| numbers(seed, [7, 13]));
        let v = Flex::float_abs(v);
        assert_close(
            &Flex::sgd(p.clone(), g.clone(), 0.1),
            &composed::sgd::<Flex>(p.clone(), g.clone(), 0.1),
            1e-7,
        );
        let step = NesterovStep { rate: 0.1, momentum: 0.9, decay: 0.01 };
        let found = Flex::nesterov(p.clone(), g.clone(), m.clone(), step);
        let expected = composed::nesterov::<Flex>(p.clone(), g.clone(), m.clone(), step);
        assert_close(&found.0, &expected.0, 1e-6);
        assert_close(&found.1, &expected.1, 1e-6);
        for t in [1, 2, 1000] {
            let step = AdamStep::new(0.01, t);
            let found = Flex::adam(p.clone(), g.clone(), m.clone(), v.clone(), step);
            let expected = composed::adam::<Flex>(p.clone(), g.clone(), m.clone(), v.clone(), step);
            assert_close(&found.0, &expected.0, 1e-5);
            assert_close(&found.1, &expected.1, 1e-6);
            assert_close(&found.2, &expected.2, 1e-6);
        }
    }

    #[test]
    fn traces_are_dropped_as_in_the_composition() {
        let numbers: Vec<f32> = vec![0.5, -1e-29, 1e-29, 9e-31, -9e-31, 1e-40, 0.0, -2.0];
        let tensor = || Primitive::from_data(TensorData::new(numbers.clone(), [2, 4]));
        let found = Flex::drop_traces(tensor());
        assert_eq!(found.storage::<f32>(), [0.5, -1e-29, 1e-29, 0.0, 0.0, 0.0, 0.0, -2.0]);
        let composed = composed::drop_traces::<Flex>(tensor());
        assert_eq!(found.storage::<f32>(), composed.storage::<f32>());
    }

    #[test]
    fn moments_without_gradients_end_at_0() {
        let tensor = |values: Vec<f32>| Primitive::from_data(TensorData::new(values, [4]));
        let gradient = tensor(vec![0.0, 1e-17, -1e-20, 0.0]);
        let (mut p, mut m, mut v) = (
            tensor(vec![1.0; 4]),
            tensor(vec![0.1, -0.1, 1e-37, 1.0]),
            tensor(vec![0.1, 1e-30, 1e-37, 1.0]),
        );
        for t in 1..=2000 {
            (p, m, v) = Flex::adam(p, gradient.clone(), m, v, AdamStep::new(1e-3, t));
            for moment in [&m, &v] {
                assert!(moment.storage::<f32>().iter().all(|x| !x.is_subnormal()), "{t}");
            }
        }
        let [first, second, third, fourth] = m.storage::<f32>().try_into().unwrap();
        assert_eq!((first, fourth), (0.0, 0.0));
        // Parameters with gradients have their mean.
        assert!((second / 1e-17 - 1.0).abs() < 1e-5 && (third / -1e-20 - 1.0).abs() < 1e-5);
        assert!(p.storage::<f32>().iter().all(|p| p.is_finite()));
    }

    #[test]
    fn exponential_against_double_precision() {
        for i in 0..100_000 {
            let x = i as f32 * 1e-3;
            let expected = if x > 87.0 { (-87.0_f64).exp() } else { f64::from(-x).exp() };
            let error = (f64::from(exp_minus(x)) - expected).abs() / expected;
            assert!(error < 3.0 * f64::from(f32::EPSILON), "{x}: {error}");
        }
    }
}
