//! Operations in one pass over memory, with gradients of their own.
//!
//! burn composes a loss of a dozen operations, each of which reads and writes whole tensors, and its
//! gradient of a dozen more. Here each of them is one loop over slices. [`Kernels`] are the functions: on
//! the CPU the loops of `cpu.rs`, on any other backend what `composed.rs` makes of burn's operations.
//! [`Fused`] makes them differentiable. A further backend needs an empty `impl` of the one, a forward pass
//! for the other, and its name in the attribute above each.

mod autodiff;
mod composed;
mod cpu;
mod kernels;

pub(crate) use autodiff::{bernoulli_nll, lstm, without_traces};
pub(crate) use cpu::{sigmoid, tanh, whole};
pub(crate) use kernels::{AdamStep, adam, sgd};

#[cfg(doc)]
use {autodiff::Fused, kernels::Kernels};
