//! Errors of the core as exceptions, and panics as exceptions too.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

/// The error of one of our crates as an exception: `ValueError` with its message, or the `OSError` of the system.
pub(crate) trait IntoPyErr {
    fn into_py_err(self) -> PyErr;
}

impl IntoPyErr for shafer::Error {
    fn into_py_err(self) -> PyErr {
        PyValueError::new_err(self.to_string())
    }
}

impl IntoPyErr for shafer_arrow::Error {
    fn into_py_err(self) -> PyErr {
        PyValueError::new_err(self.to_string())
    }
}

impl IntoPyErr for shafer_data::Error {
    fn into_py_err(self) -> PyErr {
        let message = self.to_string();
        match self {
            // PyO3 chooses the subclass, such as FileNotFoundError, by the kind.
            Self::Io { source, .. } => io::Error::new(source.kind(), message).into(),
            _ => PyValueError::new_err(message),
        }
    }
}

/// `?` for the errors of our crates.
pub(crate) trait OrRaise<T> {
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: IntoPyErr> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(IntoPyErr::into_py_err)
    }
}

/// Calls `work`; a panic, which would be a bug, becomes a `RuntimeError`.
pub(crate) fn caught<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    // The state that a panic could leave inconsistent is dropped with `work`, or is an output whose contents are not
    // specified after an error.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let message = panic
            .downcast_ref::<String>()
            .map(String::as_str)
            .or_else(|| panic.downcast_ref::<&str>().copied())
            .unwrap_or("unknown panic");
        Err(PyRuntimeError::new_err(format!(
            "internal error in shafer, please report it: {message}"
        )))
    })
}
