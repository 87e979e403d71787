//! The element types of rows: `f32`, `f64` and, with the feature `half`, `f16` and `bf16`.

use std::fmt;

use crate::csr::CsrRows;
use crate::engine;
use crate::error::Result;
use crate::kernel::Float;
use crate::logits::Logits;
use crate::method::{RowCounts, Rule};
use crate::threads::Threads;

/// A floating-point type that logits and probabilities can be stored in: `f32`, `f64`, and with the
/// feature `half` `f16` and `bf16`. It cannot be implemented elsewhere.
///
/// ```
/// use shafer::Element;
///
/// assert_eq!(0.5_f32.to_f64(), 0.5);
/// assert_eq!(f32::from_f64(0.1), 0.1_f32);
/// ```
pub trait Element:
    Storage + Copy + Default + PartialEq + PartialOrd + fmt::Debug + Send + Sync + 'static
{
    /// The value in double precision; exact.
    fn to_f64(self) -> f64;

    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;
}

/// How rows of a type are computed. Outside of this crate it has no name, which seals [`Element`].
pub trait Storage: Sized {
    /// The type that rows of this one are computed in: itself, or `f32` for the half types.
    type Compute: Float;

    /// The slice itself, if it can be computed on as it is.
    fn as_compute(slice: &[Self]) -> Option<&[Self::Compute]>;

    /// As [`Self::as_compute`], to write to.
    fn as_compute_mut(slice: &mut [Self]) -> Option<&mut [Self::Compute]>;

    /// The value in the type it is computed in; exact.
    fn widen(self) -> Self::Compute;

    /// The nearest value of this type.
    fn narrow(value: Self::Compute) -> Self;

    // The engine is entered through functions that are not generic, so that its loops are compiled
    // with this crate and its settings, not again with each program that calls them.

    /// See [`engine::dense`].
    fn dense(
        rule: Rule,
        logits: &Logits<'_, Self>,
        threads: Threads,
        out: &mut [Self],
        sizes: &mut [u32],
    ) -> Result<RowCounts>;

    /// See [`engine::csr`].
    fn csr(
        rule: Rule,
        logits: &Logits<'_, Self>,
        threads: Threads,
        out: &mut CsrRows<Self>,
    ) -> Result<RowCounts>;
}

/// `$type`, which is computed in `$compute`. `$as_is` is `Some` if they are the same.
macro_rules! element {
    ($type:ty, $compute:ty, as_is: $as_is:expr, widen: $widen:expr, narrow: $narrow:expr,
     to_f64: $to_f64:expr, from_f64: $from_f64:expr) => {
        impl Storage for $type {
            type Compute = $compute;

            #[inline]
            fn as_compute(slice: &[Self]) -> Option<&[$compute]> {
                $as_is(slice)
            }

            #[inline]
            fn as_compute_mut(slice: &mut [Self]) -> Option<&mut [$compute]> {
                $as_is(slice)
            }

            #[inline]
            fn widen(self) -> $compute {
                $widen(self)
            }

            #[inline]
            fn narrow(value: $compute) -> Self {
                $narrow(value)
            }

            fn dense(
                rule: Rule,
                logits: &Logits<'_, Self>,
                threads: Threads,
                out: &mut [Self],
                sizes: &mut [u32],
            ) -> Result<RowCounts> {
                engine::dense(rule, logits, threads, out, sizes)
            }

            fn csr(
                rule: Rule,
                logits: &Logits<'_, Self>,
                threads: Threads,
                out: &mut CsrRows<Self>,
            ) -> Result<RowCounts> {
                engine::csr(rule, logits, threads, out)
            }
        }

        impl Element for $type {
            #[inline]
            fn to_f64(self) -> f64 {
                $to_f64(self)
            }

            #[inline]
            fn from_f64(value: f64) -> Self {
                $from_f64(value)
            }
        }
    };
}

fn nearest(value: f64) -> f32 {
    value as f32
}

#[cfg(feature = "half")]
fn never<S, C>(_: S) -> Option<C> {
    None
}

element!(f32, f32, as_is: Some, widen: f32::from, narrow: f32::from,
    to_f64: f64::from, from_f64: nearest);
element!(f64, f64, as_is: Some, widen: f64::from, narrow: f64::from,
    to_f64: f64::from, from_f64: f64::from);
#[cfg(feature = "half")]
element!(half::f16, f32, as_is: never, widen: half::f16::to_f32, narrow: half::f16::from_f32,
    to_f64: half::f16::to_f64, from_f64: half::f16::from_f64);
#[cfg(feature = "half")]
element!(half::bf16, f32, as_is: never, widen: half::bf16::to_f32, narrow: half::bf16::from_f32,
    to_f64: half::bf16::to_f64, from_f64: half::bf16::from_f64);
