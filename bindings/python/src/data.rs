//! Arrays in files.

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use numpy::IntoPyArray;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use shafer_data::{ArrayInfo, Dtype, Location, TableOptions, Values};

use crate::error::{OrRaise, caught};

/// An array in a file, read in blocks: `.npy`, `.npz`, `.safetensors`, `.parquet`, `.arrow` or text.
///
/// Iterating gives blocks of rows; `read` gives the rest in one array. The array is read once, from front to back.
#[pyclass(module = "shafer", frozen)]
pub(crate) struct ArrayReader {
    path: PathBuf,
    info: ArrayInfo,
    columns: Option<Vec<String>>,
    reader: Mutex<Box<dyn shafer_data::ArrayReader>>,
}

/// The default size of a block: a few megabytes.
const BLOCK: usize = 1 << 20;

fn name_of(dtype: Dtype) -> &'static str {
    match dtype {
        Dtype::F16 => "float16",
        Dtype::Bf16 => "bfloat16",
        Dtype::F32 => "float32",
        Dtype::F64 => "float64",
    }
}

/// The numbers as a NumPy array. Without ml_dtypes there is no bfloat16, and float32 holds its values exactly.
fn array(py: Python<'_>, values: Values) -> PyResult<Bound<'_, PyAny>> {
    Ok(match values {
        Values::F16(values) => values.into_pyarray(py).into_any(),
        Values::F32(values) => values.into_pyarray(py).into_any(),
        Values::F64(values) => values.into_pyarray(py).into_any(),
        Values::Bf16(values) => {
            let values: Vec<f32> = values.into_iter().map(f32::from).collect();
            let array = values.into_pyarray(py).into_any();
            match py.import("ml_dtypes") {
                Ok(types) => array.call_method1("astype", (types.getattr("bfloat16")?,))?,
                Err(_) => array,
            }
        }
    })
}

impl ArrayReader {
    fn row_shape(&self) -> &[usize] {
        let shape = &self.info.shape;
        if self.info.open_ended { shape } else { shape.get(1..).unwrap_or_default() }
    }

    fn lock(&self) -> MutexGuard<'_, Box<dyn shafer_data::ArrayReader>> {
        self.reader.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next elements: whole rows, up to a maximum number.
    fn next<'py>(&self, py: Python<'py>, rows: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        let row: usize = self.row_shape().iter().product();
        // Rows without elements: there is nothing to read, and any number of them.
        let wanted = rows.map_or(usize::MAX, |rows| rows.saturating_mul(row));
        let values = caught(|| {
            py.detach(|| {
                let mut values = Values::default();
                let mut reader = self.lock();
                if let Some(rest) = self.info.elements() {
                    reader.read(wanted.min(rest), &mut values).or_raise()?;
                    return Ok(values);
                }
                if rows.is_some() {
                    reader.read(wanted, &mut values).or_raise()?;
                    return Ok(values);
                }
                // The number of rows of text is only known at its end.
                let block = (BLOCK / row.max(1)).max(1) * row;
                reader.read(block, &mut values).or_raise()?;
                let mut more = Values::default();
                loop {
                    reader.read(block, &mut more).or_raise()?;
                    if more.is_empty() {
                        return Ok(values);
                    }
                    append(&mut values, &more)?;
                }
            })
        })?;
        let rows = values.len().checked_div(row).unwrap_or_default();
        let array = array(py, values)?;
        if !self.info.open_ended && self.info.shape.is_empty() {
            return array.call_method1("reshape", (PyTuple::empty(py),));
        }
        let shape: Vec<usize> =
            std::iter::once(rows).chain(self.row_shape().iter().copied()).collect();
        array.call_method1("reshape", (shape,))
    }
}

fn append(values: &mut Values, more: &Values) -> PyResult<()> {
    match (values, more) {
        (Values::F16(values), Values::F16(more)) => values.extend_from_slice(more),
        (Values::Bf16(values), Values::Bf16(more)) => values.extend_from_slice(more),
        (Values::F32(values), Values::F32(more)) => values.extend_from_slice(more),
        (Values::F64(values), Values::F64(more)) => values.extend_from_slice(more),
        _ => return Err(PyValueError::new_err("the type of the array changed while it was read")),
    }
    Ok(())
}

#[pymethods]
impl ArrayReader {
    /// The name of the array, in files with several.
    #[getter]
    fn name(&self) -> Option<&str> {
        self.info.name.as_deref()
    }

    /// The element type: ``"float16"``, ``"bfloat16"``, ``"float32"`` or ``"float64"``.
    #[getter]
    fn dtype(&self) -> &'static str {
        name_of(self.info.dtype)
    }

    /// The shape, whose first size is None in text, where it is not known before the end.
    #[getter]
    fn shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let known = self.info.shape.iter().copied().map(Some);
        let rows = self.info.open_ended.then_some(None);
        PyTuple::new(py, rows.into_iter().chain(known).collect::<Vec<Option<usize>>>())
    }

    /// The columns that were selected, in tables.
    #[getter]
    fn columns(&self) -> Option<Vec<String>> {
        self.columns.clone()
    }

    /// The next `rows` rows, or all that are left.
    #[pyo3(signature = (rows = None))]
    fn read<'py>(&self, py: Python<'py>, rows: Option<usize>) -> PyResult<Bound<'py, PyAny>> {
        self.next(py, rows)
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let row: usize = self.row_shape().iter().product();
        let block = self.next(py, Some((BLOCK / row.max(1)).max(1)))?;
        Ok((block.len().unwrap_or_default() > 0).then_some(block))
    }

    fn __repr__(&self) -> String {
        format!("<ArrayReader: {}: {}>", self.path.display(), self.info)
    }
}

/// Opens an array of a file for reading in blocks.
///
/// `path` is a file, or ``file:name`` of a file with several arrays. `columns` and `exclude` select columns of a table by
/// name, range (``"logit_0..logit_9"``) or pattern (``"logit_*"``).
///
/// >>> import pathlib, tempfile, shafer
/// >>> folder = tempfile.TemporaryDirectory()
/// >>> path = pathlib.Path(folder.name) / "logits.csv"
/// >>> _ = path.write_text("cat,dog\n0.5,-1\n2,0\n")
/// >>> shafer.open(path).read()
/// array([[ 0.5, -1. ],
///        [ 2. ,  0. ]])
/// >>> folder.cleanup()
#[pyfunction]
#[pyo3(signature = (path, name = None, *, columns = None, exclude = None))]
pub(crate) fn open(
    py: Python<'_>,
    path: PathBuf,
    name: Option<String>,
    columns: Option<Vec<String>>,
    exclude: Option<Vec<String>>,
) -> PyResult<ArrayReader> {
    let location = match name {
        Some(name) => Location { path: Some(path), name: Some(name) },
        None => Location::parse(path),
    };
    let Some(path) = location.path.clone() else {
        return Err(PyValueError::new_err("- is standard input; give the path of a file"));
    };
    let options = TableOptions {
        columns: columns.unwrap_or_default(),
        exclude: exclude.unwrap_or_default(),
        ..TableOptions::default()
    };
    let reader = caught(|| py.detach(|| shafer_data::open_with(&location, &options).or_raise()))?;
    let columns = reader.columns().map(|columns| columns.taken.clone());
    Ok(ArrayReader { path, info: reader.info().clone(), columns, reader: Mutex::new(reader) })
}
