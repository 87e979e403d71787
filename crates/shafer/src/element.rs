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

/// `$type` is computed in `$compute`.
macro_rules! storage {
    ($type:ty, $compute:ty, as_is: $as_is:expr, as_is_mut: $as_is_mut:expr,
     widen: $widen:expr, narrow: $narrow:expr) => {
        impl Storage for $type {
            type Compute = $compute;

            #[inline]
            fn as_compute(slice: &[Self]) -> Option<&[$compute]> {
                let as_is: fn(&[Self]) -> Option<&[$compute]> = $as_is;
                as_is(slice)
            }

            #[inline]
            fn as_compute_mut(slice: &mut [Self]) -> Option<&mut [$compute]> {
                let as_is: fn(&mut [Self]) -> Option<&mut [$compute]> = $as_is_mut;
                as_is(slice)
            }

            #[inline]
            fn widen(self) -> $compute {
                let widen: fn(Self) -> $compute = $widen;
                widen(self)
            }

            #[inline]
            fn narrow(value: $compute) -> Self {
                let narrow: fn($compute) -> Self = $narrow;
                narrow(value)
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
    };
}

storage!(f32, f32, as_is: |x| Some(x), as_is_mut: |x| Some(x), widen: |x| x, narrow: |x| x);
storage!(f64, f64, as_is: |x| Some(x), as_is_mut: |x| Some(x), widen: |x| x, narrow: |x| x);

impl Element for f32 {
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        value as f32
    }
}

impl Element for f64 {
    #[inline]
    fn to_f64(self) -> f64 {
        self
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        value
    }
}

#[cfg(feature = "half")]
macro_rules! half_element {
    ($half:ty) => {
        storage!($half, f32, as_is: |_| None, as_is_mut: |_| None,
            widen: |x| x.to_f32(), narrow: |x| <$half>::from_f32(x));

        impl Element for $half {
            #[inline]
            fn to_f64(self) -> f64 {
                <$half>::to_f64(self)
            }

            #[inline]
            fn from_f64(value: f64) -> Self {
                <$half>::from_f64(value)
            }
        }
    };
}

#[cfg(feature = "half")]
half_element!(half::f16);
#[cfg(feature = "half")]
half_element!(half::bf16);
