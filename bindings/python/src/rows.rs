//! Arguments of the theory: rows of numbers, and sets of classes.

use numpy::{PyArray1, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::exceptions::{PyOverflowError, PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;

/// An array of float64 in C order: what NumPy makes of the object. Narrower floats are exact in it.
pub(crate) fn doubles<'py>(
    object: &Bound<'py, PyAny>,
    what: &str,
) -> PyResult<PyReadonlyArrayDyn<'py, f64>> {
    let py = object.py();
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = numpy
        .call_method1(intern!(py, "ascontiguousarray"), (object, intern!(py, "float64")))
        .map_err(|error| {
            if error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyTypeError>(py) {
                PyTypeError::new_err(format!("{what}: {}", error.value(py)))
            } else {
                error
            }
        })?;
    array.extract()
}

/// One row of numbers.
pub(crate) fn row(object: &Bound<'_, PyAny>, what: &str) -> PyResult<Vec<f64>> {
    // `ascontiguousarray` makes rows of single numbers.
    let array = doubles(object, what)?;
    if array.ndim() != 1 {
        let message = format!("{what} have {} axes, but must be one row", array.ndim());
        return Err(PyValueError::new_err(message));
    }
    Ok(array.as_slice()?.to_vec())
}

/// Numbers as a NumPy array.
pub(crate) fn array(py: Python<'_>, values: Vec<f64>) -> Bound<'_, PyArray1<f64>> {
    PyArray1::from_vec(py, values)
}

/// One class, or the classes of an iterable, such as a set.
pub(crate) fn classes(object: &Bound<'_, PyAny>) -> PyResult<Vec<usize>> {
    let mut classes = Vec::new();
    if let Ok(class) = class(object) {
        return Ok(vec![class]);
    }
    for item in object.try_iter()? {
        classes.push(class(&item?)?);
    }
    Ok(classes)
}

/// One class. A negative number is no class: it does not count from the end.
pub(crate) fn class(object: &Bound<'_, PyAny>) -> PyResult<usize> {
    object.extract().map_err(|error: PyErr| {
        if error.is_instance_of::<PyOverflowError>(object.py()) {
            PyValueError::new_err(format!("class {object} does not exist"))
        } else {
            error
        }
    })
}
