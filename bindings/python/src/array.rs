//! NumPy arrays as slices, in any memory order, and the arrays of results.
//!
//! All `unsafe` code of the package is in this file and in `capsule.rs`. It relies on the invariants of a NumPy array: `data`, `shape` and
//! `strides` describe elements inside of one allocation, which lives as long as the array, or its base, is referenced.
//! NumPy itself does not protect elements against being written by another thread while they are read; neither does
//! this module: the result is then unspecified, as that of `numpy.add` would be.
#![allow(unsafe_code, reason = "NumPy arrays are raw memory; each block says why it is sound")]

use std::slice;

use half::{bf16, f16};
use numpy::npyffi::{self, NPY_TYPES, PY_ARRAY_API};
use numpy::{PyArrayDescrMethods, PyUntypedArray, PyUntypedArrayMethods};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use shafer::{Element, Logits};

/// The element types.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dtype {
    F16,
    Bf16,
    F32,
    F64,
}

/// Runs a block with the type of the elements as `$E`.
macro_rules! typed {
    ($dtype:expr, $E:ident => $body:expr) => {
        match $dtype {
            $crate::array::Dtype::F16 => {
                type $E = half::f16;
                $body
            }
            $crate::array::Dtype::Bf16 => {
                type $E = half::bf16;
                $body
            }
            $crate::array::Dtype::F32 => {
                type $E = f32;
                $body
            }
            $crate::array::Dtype::F64 => {
                type $E = f64;
                $body
            }
        }
    };
}
pub(crate) use typed;

/// An element type, and the [`Dtype`] that stands for it. Every pattern of its bits is a value.
pub(crate) trait Typed: Element {
    const DTYPE: Dtype;
}

impl Typed for f16 {
    const DTYPE: Dtype = Dtype::F16;
}
impl Typed for bf16 {
    const DTYPE: Dtype = Dtype::Bf16;
}
impl Typed for f32 {
    const DTYPE: Dtype = Dtype::F32;
}
impl Typed for f64 {
    const DTYPE: Dtype = Dtype::F64;
}

/// An array of NumPy's own class, of one of the types, aligned and in native byte order.
pub(crate) struct Array<'py> {
    pub(crate) object: Bound<'py, PyUntypedArray>,
    pub(crate) view: View,
}

/// Where the elements of an array are: a copy of its description.
///
/// It does not keep the array alive: whoever has a view has a reference to the array, too. Another thread can change the
/// description of the array meanwhile, but NumPy does not move the memory of an array that is referenced.
pub(crate) struct View {
    pub(crate) dtype: Dtype,
    pub(crate) shape: Vec<usize>,
    /// In elements.
    strides: Vec<isize>,
    contiguous: bool,
    /// The element with the lowest address.
    start: *mut u8,
    /// The number of elements from the lowest address to the highest.
    len: usize,
    /// The position of the element with index 0.
    offset: usize,
}

// SAFETY: it describes plain memory, which any thread may read.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

impl<'py> Array<'py> {
    /// The array, or `None` if it has to be converted first. With `words`, integers of 16 bits are bfloat16.
    pub(crate) fn new(object: &Bound<'py, PyAny>, words: bool) -> Option<Self> {
        let py = object.py();
        // SAFETY: `object` is a live object.
        if unsafe { npyffi::PyArray_CheckExact(py, object.as_ptr()) } == 0 {
            return None;
        }
        let object = object.cast::<PyUntypedArray>().ok()?.clone();
        let descr = object.dtype();
        let dtype = match descr.num() {
            n if n == NPY_TYPES::NPY_FLOAT as i32 => Dtype::F32,
            n if n == NPY_TYPES::NPY_DOUBLE as i32 => Dtype::F64,
            n if n == NPY_TYPES::NPY_HALF as i32 => Dtype::F16,
            n if words && n == NPY_TYPES::NPY_SHORT as i32 => Dtype::Bf16,
            n if is_bfloat16(n, &descr) => Dtype::Bf16,
            _ => return None,
        };
        if descr.is_native_byteorder() == Some(false) || !object.is_aligned() {
            return None;
        }
        let size = size_of_dtype(dtype) as isize;
        if object.strides().iter().any(|stride| stride % size != 0) {
            return None;
        }
        let strides = object.strides().iter().map(|stride| stride / size).collect();
        // SAFETY: the pointer is that of a live array.
        let data: *mut u8 = unsafe { (*object.as_array_ptr()).fields.data.cast() };
        let (shape, contiguous) = (object.shape().to_vec(), object.is_c_contiguous());
        let view = View::new(dtype, shape, strides, contiguous, data);
        Some(Self { object, view })
    }

    pub(crate) fn is_writeable(&self) -> bool {
        // SAFETY: the pointer is that of a live array.
        let flags = unsafe { (*self.object.as_array_ptr()).fields.flags };
        flags & npyffi::flags::NPY_ARRAY_WRITEABLE != 0
    }

    /// A new array of zeros of the same type, in C order.
    pub(crate) fn zeros(&self, shape: &[usize]) -> PyResult<Self> {
        let py = self.object.py();
        let mut shape: Vec<npyffi::npy_intp> =
            shape.iter().map(|&n| n as npyffi::npy_intp).collect();
        // SAFETY: `shape` has as many sizes as it is said to have. The function steals the reference to the type that
        // `into_dtype_ptr` gives, and returns a new reference, or null with an exception set.
        let array = unsafe {
            let array = PY_ARRAY_API.PyArray_Zeros(
                py,
                shape.len() as i32,
                shape.as_mut_ptr(),
                self.object.dtype().into_dtype_ptr(),
                0,
            );
            Bound::from_owned_ptr_or_err(py, array)?
        };
        Self::new(&array, true)
            .ok_or_else(|| PyTypeError::new_err("NumPy made an array of another type"))
    }
}

impl View {
    fn new(
        dtype: Dtype,
        shape: Vec<usize>,
        strides: Vec<isize>,
        contiguous: bool,
        data: *mut u8,
    ) -> Self {
        let (mut low, mut high) = (0_isize, 0_isize);
        let empty = shape.contains(&0);
        if !empty {
            for (&size, &stride) in shape.iter().zip(&strides) {
                // Within the allocation, so it cannot overflow.
                let reach = (size as isize - 1) * stride;
                low += reach.min(0);
                high += reach.max(0);
            }
        }
        let len = if empty { 0 } else { (high - low) as usize + 1 };
        let start = data.wrapping_offset(low * size_of_dtype(dtype) as isize);
        Self { dtype, shape, strides, contiguous, start, len, offset: low.unsigned_abs() }
    }

    /// The number of elements of the array; of an array with strides of 0, more than there are in memory.
    pub(crate) fn size(&self) -> usize {
        // NumPy keeps it in range; a shape with a 0 has none, whatever its other sizes.
        if self.shape.contains(&0) { 0 } else { self.shape.iter().product() }
    }

    /// The position of an axis, which counts from the end if it is negative.
    pub(crate) fn axis(&self, axis: isize) -> PyResult<usize> {
        let n = self.shape.len();
        if n == 0 {
            let message = "the logits are a single number, but must have at least one axis";
            return Err(PyValueError::new_err(message));
        }
        let position = if axis < 0 { axis.checked_add_unsigned(n) } else { Some(axis) };
        match position.and_then(|position| usize::try_from(position).ok()) {
            Some(position) if position < n => Ok(position),
            _ => {
                let axes = if n == 1 { "axis" } else { "axes" };
                let message = format!("axis {axis} does not exist: the array has {n} {axes}");
                Err(PyValueError::new_err(message))
            }
        }
    }

    /// The elements from the lowest address to the highest.
    ///
    /// # Panics
    /// The elements are of another type.
    pub(crate) fn memory<E: Typed>(&self) -> &[E] {
        assert!(E::DTYPE == self.dtype, "an array of another type");
        if self.len == 0 {
            return &[];
        }
        // SAFETY: `new` computed the range from the shape and the strides of the array, so it lies inside of its
        // allocation. That is aligned, which `Array::new` checked, and every pattern of bits is an element. Whoever has
        // the view keeps the array alive.
        unsafe { slice::from_raw_parts(self.start.cast(), self.len) }
    }

    /// The logits along an axis.
    pub(crate) fn logits<E: Typed>(&self, axis: usize) -> shafer::Result<Logits<'_, E>> {
        let memory = self.memory();
        match self.shape.get(axis) {
            // Spares the copies that strides need.
            Some(&classes) if classes > 0 && self.contiguous && axis + 1 == self.shape.len() => {
                Logits::rows(memory, classes)
            }
            _ => Logits::strided(memory, &self.shape, &self.strides, self.offset, axis),
        }
    }

    /// Whether the elements are in C order, of the type and the shape of `other`.
    pub(crate) fn is_packed_as(&self, other: &Self) -> bool {
        self.contiguous && self.dtype == other.dtype && self.shape == other.shape
    }

    /// Whether the memory of the two arrays may overlap.
    pub(crate) fn overlaps(&self, other: &Self) -> bool {
        let addresses = |view: &Self| {
            let start = view.start.addr();
            start..start + view.len * size_of_dtype(view.dtype)
        };
        let (a, b) = (addresses(self), addresses(other));
        a.start < b.end && b.start < a.end
    }
}

/// The memory of an array that results are written to.
pub(crate) struct Output(View);

impl Output {
    /// `None` if the array is not writeable, is not in C order, or may overlap an input.
    pub(crate) fn new(array: Array<'_>, inputs: &[&View]) -> Option<Self> {
        let overlaps = || inputs.iter().any(|input| input.overlaps(&array.view));
        let fits = array.view.contiguous && array.is_writeable() && !overlaps();
        fits.then_some(Self(array.view))
    }

    /// The elements, in C order.
    ///
    /// # Panics
    /// The elements are of another type.
    pub(crate) fn elements<E: Typed>(&mut self) -> &mut [E] {
        assert!(E::DTYPE == self.0.dtype, "an array of another type");
        if self.0.len == 0 {
            return &mut [];
        }
        // SAFETY: as in `View::memory`. No other slice of this call overlaps it: `new` has checked the inputs, and
        // `&mut self` excludes a second slice of the output.
        unsafe { slice::from_raw_parts_mut(self.0.start.cast(), self.0.len) }
    }
}

/// The elements of a C-contiguous array of booleans, copied: NumPy lets bytes other than 0 and 1 into them.
pub(crate) fn booleans(object: &Bound<'_, PyAny>) -> Option<(Vec<usize>, Vec<bool>)> {
    let array = object.cast::<PyUntypedArray>().ok()?;
    if array.dtype().num() != NPY_TYPES::NPY_BOOL as i32 || !array.is_c_contiguous() {
        return None;
    }
    let n = array.len();
    let mut mask = vec![false; n];
    if n > 0 {
        // SAFETY: the array is contiguous and has `n` elements of one byte each; it is referenced.
        let bytes =
            unsafe { slice::from_raw_parts((*array.as_array_ptr()).fields.data.cast::<u8>(), n) };
        for (kept, &byte) in mask.iter_mut().zip(bytes) {
            *kept = byte != 0;
        }
    }
    Some((array.shape().to_vec(), mask))
}

fn is_bfloat16(number: i32, descr: &Bound<'_, numpy::PyArrayDescr>) -> bool {
    // Types of packages have numbers from 256 on. That of ml_dtypes, which JAX and TensorFlow use too, has this name.
    number >= 256
        && descr.itemsize() == size_of::<bf16>()
        && descr.typeobj().name().is_ok_and(|name| name == "bfloat16")
}

fn size_of_dtype(dtype: Dtype) -> usize {
    typed!(dtype, E => size_of::<E>())
}
