//! The element types of rows: `f32`, `f64` and, with the feature `half`, `f16` and `bf16`.

use std::fmt;

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
impl Element for half::f16 {
    #[inline]
    fn to_f64(self) -> f64 {
        half::f16::to_f64(self)
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        half::f16::from_f64(value)
    }
}

#[cfg(feature = "half")]
impl Element for half::bf16 {
    #[inline]
    fn to_f64(self) -> f64 {
        half::bf16::to_f64(self)
    }

    #[inline]
    fn from_f64(value: f64) -> Self {
        half::bf16::from_f64(value)
    }
}
