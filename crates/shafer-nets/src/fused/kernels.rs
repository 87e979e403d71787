//! The functions, for each backend.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;

use super::composed;

/// The constants of one step of Adam (Kingma and Ba, 2015, algorithm 1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct AdamStep {
    /// The learning rate over `1 - beta1^t`.
    pub(crate) rate: f32,
    /// One over the square root of `1 - beta2^t`.
    pub(crate) scale: f32,
}

impl AdamStep {
    pub(crate) const BETA1: f32 = 0.9;
    pub(crate) const BETA2: f32 = 0.999;
    pub(crate) const EPSILON: f32 = 1e-8;

    /// For step `t`, counted from 1.
    pub(crate) fn new(learning_rate: f64, t: u64) -> Self {
        let power = |beta: f64| beta.powf(t as f64);
        Self {
            rate: (learning_rate / (1.0 - power(0.9))) as f32,
            scale: (1.0 / (1.0 - power(0.999)).sqrt()) as f32,
        }
    }
}

/// The constants of one step with Nesterov momentum (Sutskever, Martens, Dahl and Hinton, 2013).
#[derive(Clone, Copy, Debug)]
pub(crate) struct NesterovStep {
    /// The learning rate.
    pub(crate) rate: f32,
    pub(crate) momentum: f32,
    /// The weight decay: this times a parameter is added to its gradient.
    pub(crate) decay: f32,
}

/// Magnitudes up to this count as 0: they are negligible in sums, and far enough from the subnormal numbers
/// that products with a weight and a pixel are normal.
pub(crate) const TRACE: f32 = 1e-30;

/// The operations of this module on the tensors of one backend: forward, and what their gradients need. With
/// gradients, [`bernoulli_nll`](Self::bernoulli_nll), [`lstm_state`](Self::lstm_state) and
/// [`drop_traces`](Self::drop_traces) are used.
#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait Kernels: Backend {
    /// See [`bernoulli_nll`](super::bernoulli_nll).
    fn bernoulli_nll(logits: FloatTensor<Self>, target: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::bernoulli(logits, target).0
    }

    /// The negative log-likelihood of `target` under Bernoulli variables with these logits, summed to one
    /// element, and its gradient with respect to the logits.
    fn bernoulli(
        logits: FloatTensor<Self>,
        target: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::bernoulli::<Self>(logits, target)
    }

    /// See [`lstm`](super::lstm).
    fn lstm_state(gates: FloatTensor<Self>, state: FloatTensor<Self>) -> FloatTensor<Self> {
        Self::lstm(gates, state).0
    }

    /// See [`lstm`](super::lstm). Returns the state, and for the backward pass the four gates and the
    /// hyperbolic tangent of the cell, concatenated.
    fn lstm(
        gates: FloatTensor<Self>,
        state: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::lstm::<Self>(&gates, &state)
    }

    /// The gradients with respect to the gates and the previous state, from the gradient with respect to the
    /// state, the second result of [`lstm`](Self::lstm), and the previous state.
    fn lstm_backward(
        gradient: FloatTensor<Self>,
        kept: FloatTensor<Self>,
        state: FloatTensor<Self>,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::lstm_backward::<Self>(&gradient, &kept, &state)
    }

    /// See [`without_traces`](super::without_traces); used for values and for gradients.
    fn drop_traces(tensor: FloatTensor<Self>) -> FloatTensor<Self> {
        composed::drop_traces::<Self>(tensor)
    }

    /// A step of gradient descent.
    fn sgd(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        rate: f32,
    ) -> FloatTensor<Self> {
        composed::sgd::<Self>(parameter, gradient, rate)
    }

    /// A step of Adam: the updated parameter and moments.
    fn adam(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        first: FloatTensor<Self>,
        second: FloatTensor<Self>,
        step: AdamStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>, FloatTensor<Self>) {
        composed::adam::<Self>(parameter, gradient, first, second, step)
    }

    /// A step with Nesterov momentum: the updated parameter and velocity.
    fn nesterov(
        parameter: FloatTensor<Self>,
        gradient: FloatTensor<Self>,
        velocity: FloatTensor<Self>,
        step: NesterovStep,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        composed::nesterov::<Self>(parameter, gradient, velocity, step)
    }
}

#[cfg(feature = "gpu")]
impl Kernels for burn::backend::Cube {}

/// A step of gradient descent.
pub(crate) fn sgd<const D: usize>(
    parameter: Tensor<D>,
    gradient: Tensor<D>,
    rate: f32,
) -> Tensor<D> {
    let (parameter, gradient) = (parameter.into_dispatch(), gradient.into_dispatch());
    Tensor::from_dispatch(<Dispatch as Kernels>::sgd(parameter, gradient, rate))
}

/// A step of Adam: the updated parameter and moments. The moments are flat.
pub(crate) fn adam<const D: usize>(
    parameter: Tensor<D>,
    gradient: Tensor<D>,
    [first, second]: [Tensor<1>; 2],
    step: AdamStep,
) -> (Tensor<D>, [Tensor<1>; 2]) {
    let shape = parameter.shape();
    let (parameter, first, second) = <Dispatch as Kernels>::adam(
        flat(parameter),
        flat(gradient),
        first.into_dispatch(),
        second.into_dispatch(),
        step,
    );
    let parameter = Tensor::<1>::from_dispatch(parameter).reshape(shape);
    (parameter, [first, second].map(Tensor::from_dispatch))
}

/// A step with Nesterov momentum: the updated parameter and velocity. The velocity is flat.
pub(crate) fn nesterov<const D: usize>(
    parameter: Tensor<D>,
    gradient: Tensor<D>,
    velocity: Tensor<1>,
    step: NesterovStep,
) -> (Tensor<D>, Tensor<1>) {
    let shape = parameter.shape();
    let velocity = velocity.into_dispatch();
    let (parameter, velocity) =
        <Dispatch as Kernels>::nesterov(flat(parameter), flat(gradient), velocity, step);
    (Tensor::<1>::from_dispatch(parameter).reshape(shape), Tensor::from_dispatch(velocity))
}

fn flat<const D: usize>(tensor: Tensor<D>) -> FloatTensor<Dispatch> {
    tensor.flatten::<1>(0, D - 1).into_dispatch()
}
