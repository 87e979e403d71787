//! Fused operations with their own gradients: one pass over memory.
//!
//! burn composes a loss of a dozen operations, each of which reads and writes whole tensors, and its
//! gradient of a dozen more. Here each is one loop over slices. [`Kernels`] has the functions: the loops of
//! `cpu.rs` on the CPU, and the compositions of burn's operations in `composed.rs` on other backends.
//! `autodiff.rs` makes them differentiable, by [`differentiable`]. Another backend needs an empty `impl` of
//! [`Kernels`], and its name in the attribute of the trait.

mod autodiff;
mod batch_norm;
mod composed;
mod convolution;
mod cpu;
mod gradients;
mod kernels;
mod matrix;

pub(crate) use autodiff::{bernoulli_nll, lstm, without_traces};
pub(crate) use batch_norm::{Activation, batch_norm, normalise};
pub(crate) use convolution::{Window, convolve, convolve_transposed};
pub(crate) use cpu::{sigmoid, tanh, whole};
pub(crate) use gradients::differentiable;
pub(crate) use kernels::{AdamStep, NesterovStep, adam, nesterov, sgd};

#[cfg(doc)]
use kernels::Kernels;
