//! Typed blocks of numbers.

use std::collections::TryReserveError;
use std::fmt;

use bytemuck::Pod;
use half::{bf16, f16};

/// The supported element types.
///
/// ```
/// use shafer_data::Dtype;
///
/// assert_eq!(Dtype::Bf16.size(), 2);
/// assert_eq!(Dtype::F64.to_string(), "f64");
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dtype {
    /// IEEE half precision.
    F16,
    /// bfloat16: the upper half of an `f32`.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
}

impl Dtype {
    /// The size of an element in bytes.
    ///
    /// ```
    /// assert_eq!(shafer_data::Dtype::F32.size(), 4);
    /// ```
    pub fn size(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 2,
            Self::F32 => 4,
            Self::F64 => 8,
        }
    }
}

impl fmt::Display for Dtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::F32 => "f32",
            Self::F64 => "f64",
        })
    }
}

/// A vector of numbers of one of the types.
///
/// ```
/// use shafer_data::{Dtype, Values};
///
/// let values = Values::F64(vec![1.0, 2.0]);
/// assert_eq!((values.len(), values.dtype()), (2, Dtype::F64));
/// ```
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs, reason = "the types say it")]
pub enum Values {
    F16(Vec<f16>),
    Bf16(Vec<bf16>),
    F32(Vec<f32>),
    F64(Vec<f64>),
}

impl Default for Values {
    fn default() -> Self {
        Self::F32(Vec::new())
    }
}

impl Values {
    /// An empty vector of the given type.
    ///
    /// ```
    /// use shafer_data::{Dtype, Values};
    ///
    /// assert!(Values::new(Dtype::F16).is_empty());
    /// ```
    pub fn new(dtype: Dtype) -> Self {
        match dtype {
            Dtype::F16 => Self::F16(Vec::new()),
            Dtype::Bf16 => Self::Bf16(Vec::new()),
            Dtype::F32 => Self::F32(Vec::new()),
            Dtype::F64 => Self::F64(Vec::new()),
        }
    }

    /// The element type.
    ///
    /// ```
    /// use shafer_data::{Dtype, Values};
    ///
    /// assert_eq!(Values::default().dtype(), Dtype::F32);
    /// ```
    pub fn dtype(&self) -> Dtype {
        self.view().dtype()
    }

    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(shafer_data::Values::F32(vec![0.5; 3]).len(), 3);
    /// ```
    pub fn len(&self) -> usize {
        self.view().len()
    }

    /// Whether there are no elements.
    ///
    /// ```
    /// assert!(shafer_data::Values::default().is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Borrows the numbers.
    ///
    /// ```
    /// use shafer_data::{Values, ValuesRef};
    ///
    /// assert_eq!(Values::F64(vec![0.5]).view(), ValuesRef::F64(&[0.5]));
    /// ```
    pub fn view(&self) -> ValuesRef<'_> {
        match self {
            Self::F16(v) => ValuesRef::F16(v),
            Self::Bf16(v) => ValuesRef::Bf16(v),
            Self::F32(v) => ValuesRef::F32(v),
            Self::F64(v) => ValuesRef::F64(v),
        }
    }

    /// Replaces the contents by these elements.
    pub(crate) fn set_f32(
        &mut self,
        elements: impl ExactSizeIterator<Item = f32>,
    ) -> Result<(), TryReserveError> {
        let mut values = match std::mem::take(self) {
            Self::F32(values) => values,
            _ => Vec::new(),
        };
        values.clear();
        values.try_reserve_exact(elements.len())?;
        values.extend(elements);
        *self = Self::F32(values);
        Ok(())
    }

    /// Replaces the contents by these elements.
    pub(crate) fn set_f64(
        &mut self,
        elements: impl ExactSizeIterator<Item = f64>,
    ) -> Result<(), TryReserveError> {
        let mut values = match std::mem::take(self) {
            Self::F64(values) => values,
            _ => Vec::new(),
        };
        values.clear();
        values.try_reserve_exact(elements.len())?;
        values.extend(elements);
        *self = Self::F64(values);
        Ok(())
    }

    /// Resizes to `n` elements of the given type, and returns their bytes to be overwritten. Their values
    /// are unspecified: clearing them would cost as much as reading a file from the page cache.
    pub(crate) fn bytes_mut(
        &mut self,
        dtype: Dtype,
        n: usize,
    ) -> Result<&mut [u8], TryReserveError> {
        if self.dtype() != dtype {
            *self = Self::new(dtype);
        }
        match self {
            Self::F16(v) => resized(v, n),
            Self::Bf16(v) => resized(v, n),
            Self::F32(v) => resized(v, n),
            Self::F64(v) => resized(v, n),
        }
    }
}

fn resized<T: Pod>(values: &mut Vec<T>, n: usize) -> Result<&mut [u8], TryReserveError> {
    values.try_reserve_exact(n.saturating_sub(values.len()))?;
    values.resize(n, T::zeroed());
    Ok(bytemuck::cast_slice_mut(values))
}

/// A slice of numbers of one of the types.
///
/// ```
/// use shafer_data::ValuesRef;
///
/// let values: ValuesRef = [0.25_f32, 0.75][..].into();
/// assert_eq!(values.len(), 2);
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs, reason = "the types say it")]
pub enum ValuesRef<'a> {
    F16(&'a [f16]),
    Bf16(&'a [bf16]),
    F32(&'a [f32]),
    F64(&'a [f64]),
}

impl ValuesRef<'_> {
    /// The element type.
    ///
    /// ```
    /// use shafer_data::{Dtype, ValuesRef};
    ///
    /// assert_eq!(ValuesRef::F64(&[]).dtype(), Dtype::F64);
    /// ```
    pub fn dtype(&self) -> Dtype {
        match self {
            Self::F16(_) => Dtype::F16,
            Self::Bf16(_) => Dtype::Bf16,
            Self::F32(_) => Dtype::F32,
            Self::F64(_) => Dtype::F64,
        }
    }

    /// The number of elements.
    ///
    /// ```
    /// assert_eq!(shafer_data::ValuesRef::F32(&[1.0]).len(), 1);
    /// ```
    pub fn len(&self) -> usize {
        match self {
            Self::F16(v) => v.len(),
            Self::Bf16(v) => v.len(),
            Self::F32(v) => v.len(),
            Self::F64(v) => v.len(),
        }
    }

    /// Whether there are no elements.
    ///
    /// ```
    /// assert!(shafer_data::ValuesRef::F32(&[]).is_empty());
    /// ```
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bytes of the elements, in native byte order.
    pub(crate) fn bytes(&self) -> &[u8] {
        match self {
            Self::F16(v) => bytemuck::cast_slice(v),
            Self::Bf16(v) => bytemuck::cast_slice(v),
            Self::F32(v) => bytemuck::cast_slice(v),
            Self::F64(v) => bytemuck::cast_slice(v),
        }
    }
}

impl<'a> From<&'a [f16]> for ValuesRef<'a> {
    fn from(values: &'a [f16]) -> Self {
        Self::F16(values)
    }
}

impl<'a> From<&'a [bf16]> for ValuesRef<'a> {
    fn from(values: &'a [bf16]) -> Self {
        Self::Bf16(values)
    }
}

impl<'a> From<&'a [f32]> for ValuesRef<'a> {
    fn from(values: &'a [f32]) -> Self {
        Self::F32(values)
    }
}

impl<'a> From<&'a [f64]> for ValuesRef<'a> {
    fn from(values: &'a [f64]) -> Self {
        Self::F64(values)
    }
}

/// Reverses the bytes of every element of `size` bytes.
pub(crate) fn swap_bytes(bytes: &mut [u8], size: usize) {
    fn swap<const N: usize>(bytes: &mut [u8]) {
        for element in bytes.as_chunks_mut::<N>().0 {
            element.reverse();
        }
    }
    match size {
        2 => swap::<2>(bytes),
        4 => swap::<4>(bytes),
        _ => swap::<8>(bytes),
    }
}
