//! Arrow's C data interface: arrays and streams in capsules of Python, in and out.
//!
//! The interface is a contract between libraries of one process: a capsule of one of these names holds the struct of that
//! name, valid until it is released, and whoever moves the struct out of the capsule releases it. The unsafe code here
//! relies on that contract, and on nothing else; that the contents of buffers agree with their type is part of it.
#![allow(unsafe_code, reason = "structs of C behind pointers; each block says why it is sound")]

use std::ffi::CStr;
use std::sync::Arc;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi_and_data_type};
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchIterator, make_array};
use arrow_schema::{ArrowError, Field, FieldRef, SchemaRef};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::error::caught;

const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";
const STREAM: &CStr = c"arrow_array_stream";

/// What an object of another library has: an array, or a stream of arrays.
pub(crate) struct Imported {
    pub(crate) chunks: Vec<ArrayRef>,
    pub(crate) field: Field,
    /// Not a stream.
    pub(crate) single: bool,
}

impl<'py> FromPyObject<'_, 'py> for Imported {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let py = object.py();
        caught(|| {
            if object.hasattr(intern!(py, "__arrow_c_array__"))? {
                import_array(&object)
            } else if object.hasattr(intern!(py, "__arrow_c_stream__"))? {
                import_stream(&object)
            } else {
                let message = "the column has neither __arrow_c_array__ nor __arrow_c_stream__";
                Err(PyTypeError::new_err(message))
            }
        })
    }
}

fn refused(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("the column cannot be read: {error}"))
}

fn import_array(object: &Bound<'_, PyAny>) -> PyResult<Imported> {
    let pair = object.call_method0(intern!(object.py(), "__arrow_c_array__"))?;
    let (schema, array): (Bound<'_, PyCapsule>, Bound<'_, PyCapsule>) = pair.extract()?;
    let schema = schema.pointer_checked(Some(SCHEMA))?.cast::<FFI_ArrowSchema>();
    // SAFETY: by its name, the capsule holds this struct. It owns it, and `pair` keeps the capsule until the end.
    let field = Field::try_from(unsafe { schema.as_ref() }).map_err(refused)?;
    let array = array.pointer_checked(Some(ARRAY))?.cast::<FFI_ArrowArray>();
    // SAFETY: as above. The struct is moved out, and a released one is left in the capsule, as the interface says.
    let array = unsafe { FFI_ArrowArray::from_raw(array.as_ptr()) };
    if array.is_released() {
        return Err(refused("its array was taken before"));
    }
    let chunks = vec![import(array, &field)?];
    Ok(Imported { chunks, field, single: true })
}

fn import_stream(object: &Bound<'_, PyAny>) -> PyResult<Imported> {
    let capsule = object.call_method0(intern!(object.py(), "__arrow_c_stream__"))?;
    let capsule = capsule.cast_into::<PyCapsule>()?;
    let stream = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: by its name, the capsule holds this struct, and `capsule` is referenced. The struct is moved out, and a
    // released one is left in the capsule, as the interface says.
    let mut stream = unsafe { FFI_ArrowArrayStream::from_raw(stream.as_ptr()) };
    let (Some(get_schema), Some(get_next)) = (stream.get_schema, stream.get_next) else {
        return Err(refused("its stream was taken before"));
    };
    let mut schema = FFI_ArrowSchema::empty();
    // SAFETY: the stream is not released, and its functions take it and a place for the result.
    let code = unsafe { get_schema(&raw mut stream, &raw mut schema) };
    if code != 0 {
        return Err(last_error(&mut stream, code));
    }
    let field = Field::try_from(&schema).map_err(refused)?;
    let mut chunks = Vec::new();
    loop {
        let mut array = FFI_ArrowArray::empty();
        // SAFETY: as above.
        let code = unsafe { get_next(&raw mut stream, &raw mut array) };
        if code != 0 {
            return Err(last_error(&mut stream, code));
        }
        // A released array is the end.
        if array.is_released() {
            return Ok(Imported { chunks, field, single: false });
        }
        chunks.push(import(array, &field)?);
    }
}

/// The values are not copied: the array releases them when it is dropped.
fn import(array: FFI_ArrowArray, field: &Field) -> PyResult<ArrayRef> {
    // SAFETY: the array is not released, and by the interface its buffers and children are those of the type that came
    // with it.
    let data = unsafe { from_ffi_and_data_type(array, field.data_type().clone()) };
    Ok(make_array(data.map_err(refused)?))
}

/// The message of the library that made the stream.
fn last_error(stream: &mut FFI_ArrowArrayStream, code: i32) -> PyErr {
    let Some(get) = stream.get_last_error else { return refused(format!("error {code}")) };
    // SAFETY: the stream is not released.
    let text = unsafe { get(&raw mut *stream) };
    if text.is_null() {
        return refused(format!("error {code}"));
    }
    // SAFETY: the interface gives a text that ends with 0 and is valid until the next call of the stream.
    refused(unsafe { CStr::from_ptr(text) }.to_string_lossy())
}

fn exported<T>(result: Result<T, ArrowError>) -> PyResult<T> {
    result.map_err(|error| PyValueError::new_err(error.to_string()))
}

fn schema_capsule(
    py: Python<'_>,
    schema: Result<FFI_ArrowSchema, ArrowError>,
) -> PyResult<Bound<'_, PyCapsule>> {
    PyCapsule::new_with_value(py, exported(schema)?, SCHEMA)
}

/// An array of Arrow, for any library that knows its interface.
#[pyclass(module = "shafer", frozen)]
pub(crate) struct ArrowArray {
    pub(crate) array: ArrayRef,
    pub(crate) field: FieldRef,
}

#[pymethods]
impl ArrowArray {
    fn __len__(&self) -> usize {
        self.array.len()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, FFI_ArrowSchema::try_from(self.field.as_ref()))
    }

    /// A wish for another type is not answered, which the interface allows.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_array__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyCapsule>, Bound<'py, PyCapsule>)> {
        let _ = requested_schema;
        let array = FFI_ArrowArray::new(&self.array.to_data());
        let schema = self.__arrow_c_schema__(py)?;
        Ok((schema, PyCapsule::new_with_value(py, array, ARRAY)?))
    }
}

/// A table of Arrow, for any library that knows its interface.
#[pyclass(module = "shafer", frozen)]
pub(crate) struct ArrowTable {
    pub(crate) schema: SchemaRef,
    pub(crate) batches: Vec<RecordBatch>,
}

#[pymethods]
impl ArrowTable {
    fn __len__(&self) -> usize {
        self.batches.iter().map(RecordBatch::num_rows).sum()
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        schema_capsule(py, FFI_ArrowSchema::try_from(self.schema.as_ref()))
    }

    /// As for arrays.
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = self.batches.clone().into_iter().map(Ok);
        let reader = RecordBatchIterator::new(batches, Arc::clone(&self.schema));
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), STREAM)
    }
}
