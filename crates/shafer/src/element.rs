//! The element types of rows: `f32`, `f64` and, with the feature `half`, `f16` and `bf16`.

use std::fmt;

use crate::compressed::CompressedRows;
use crate::engine;
use crate::error::Result;
use crate::kernel::Float;
use crate::logits::Logits;
use crate::transform::{Report, Rule};

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
    #[cfg(feature = "half")]
    impl Sealed for half::f16 {}
    #[cfg(feature = "half")]
    impl Sealed for half::bf16 {}
}

/// A floating-point type that logits and probabilities can be stored in.
///
/// ```
/// use shafer::Element;
///
/// assert_eq!(0.5_f32.to_f64(), 0.5);
/// assert_eq!(f32::from_f64(0.1), 0.1_f32);
/// ```
pub trait Element:
    sealed::Sealed + Copy + Default + PartialEq + PartialOrd + fmt::Debug + Send + Sync + 'static
{
    /// The value in double precision; exact.
    fn to_f64(self) -> f64;

    /// The nearest value of this type.
    fn from_f64(value: f64) -> Self;

    /// The type that rows of this one are computed in: itself, or `f32` for the half types.
    #[doc(hidden)]
    #[allow(private_bounds, reason = "an implementation detail, and the trait is sealed")]
    type Compute: Float;

    /// The slice itself, if it can be computed on as it is.
    #[doc(hidden)]
    fn as_compute(slice: &[Self]) -> Option<&[Self::Compute]>;

    /// As `as_compute`, to write to.
    #[doc(hidden)]
    fn as_compute_mut(slice: &mut [Self]) -> Option<&mut [Self::Compute]>;

    /// The value in the type it is computed in; exact.
    #[doc(hidden)]
    fn widen(self) -> Self::Compute;

    /// The nearest value of this type.
    #[doc(hidden)]
    fn narrow(value: Self::Compute) -> Self;

    /// See [`engine::dense`].
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "as above")]
    fn dense(rule: &Rule, logits: &Logits<'_, Self>, out: &mut [Self]) -> Result<Report>;

    /// See [`engine::compressed`].
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "as above")]
    fn compressed(
        rule: &Rule,
        logits: &Logits<'_, Self>,
        out: &mut CompressedRows<Self>,
    ) -> Result<Report>;

    /// See [`engine::support_sizes`].
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "as above")]
    fn support_sizes(rule: &Rule, logits: &Logits<'_, Self>, sizes: &mut [u32]) -> Result<Report>;
}

/// The ways into the engine for one type. They are no generic functions, so that the loops behind them are compiled with
/// this crate, and not with each program that calls them, in as many ways as there are programs.
macro_rules! entrances {
    () => {
        #[allow(private_interfaces, reason = "see Element::dense")]
        fn dense(rule: &Rule, logits: &Logits<'_, Self>, out: &mut [Self]) -> Result<Report> {
            engine::dense(rule, logits, out)
        }

        #[allow(private_interfaces, reason = "see Element::compressed")]
        fn compressed(
            rule: &Rule,
            logits: &Logits<'_, Self>,
            out: &mut CompressedRows<Self>,
        ) -> Result<Report> {
            engine::compressed(rule, logits, out)
        }

        #[allow(private_interfaces, reason = "see Element::support_sizes")]
        fn support_sizes(
            rule: &Rule,
            logits: &Logits<'_, Self>,
            sizes: &mut [u32],
        ) -> Result<Report> {
            engine::support_sizes(rule, logits, sizes)
        }
    };
}

impl Element for f32 {
    #[inline]
    fn to_f64(self) -> f64 {
        f64::from(self)
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        value as f32
    }

    type Compute = f32;

    #[inline]
    fn as_compute(slice: &[Self]) -> Option<&[f32]> {
        Some(slice)
    }

    #[inline]
    fn as_compute_mut(slice: &mut [Self]) -> Option<&mut [f32]> {
        Some(slice)
    }

    #[inline]
    fn widen(self) -> f32 {
        self
    }

    #[inline]
    fn narrow(value: f32) -> Self {
        value
    }

    entrances!();
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

    type Compute = f64;

    #[inline]
    fn as_compute(slice: &[Self]) -> Option<&[f64]> {
        Some(slice)
    }

    #[inline]
    fn as_compute_mut(slice: &mut [Self]) -> Option<&mut [f64]> {
        Some(slice)
    }

    #[inline]
    fn widen(self) -> f64 {
        self
    }

    #[inline]
    fn narrow(value: f64) -> Self {
        value
    }

    entrances!();
}

#[cfg(feature = "half")]
macro_rules! half_element {
    ($half:ty) => {
        impl Element for $half {
            #[inline]
            fn to_f64(self) -> f64 {
                <$half>::to_f64(self)
            }

            #[inline]
            fn from_f64(value: f64) -> Self {
                <$half>::from_f64(value)
            }

            type Compute = f32;

            #[inline]
            fn as_compute(_: &[Self]) -> Option<&[f32]> {
                None
            }

            #[inline]
            fn as_compute_mut(_: &mut [Self]) -> Option<&mut [f32]> {
                None
            }

            #[inline]
            fn widen(self) -> f32 {
                self.to_f32()
            }

            #[inline]
            fn narrow(value: f32) -> Self {
                <$half>::from_f32(value)
            }

            entrances!();
        }
    };
}

#[cfg(feature = "half")]
half_element!(half::f16);
#[cfg(feature = "half")]
half_element!(half::bf16);
