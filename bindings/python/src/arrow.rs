//! Arrow columns of lists, by the C data interface.

use std::slice;
use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, FieldRef, Fields, Schema};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use shafer::{Method, Threads};
use shafer_arrow::{LogitLists, split};

use crate::capsule::{ArrowArray, ArrowTable, Imported};
use crate::error::OrRaise;
use crate::threads::{compute, threads};
use crate::transforms::method;

/// What came: an array, or a stream of arrays, which can be a table.
enum Kind {
    Array,
    Chunks,
    /// Of one column of this name.
    Table(String),
}

/// The chunks of a column.
struct Column {
    chunks: Vec<ArrayRef>,
    kind: Kind,
    /// Their type.
    logits: DataType,
}

impl Column {
    fn new(Imported { chunks, field, single }: Imported) -> PyResult<Self> {
        let DataType::Struct(fields) = field.data_type() else {
            LogitLists::check_type(field.data_type()).or_raise()?;
            let kind = if single { Kind::Array } else { Kind::Chunks };
            return Ok(Self { chunks, kind, logits: field.data_type().clone() });
        };
        let lists = |field: &FieldRef| LogitLists::check_type(field.data_type()).is_ok();
        let [column] = fields.iter().as_slice() else {
            let named = fields.iter().filter(|&field| lists(field));
            let names: Vec<&str> = named.map(|field| field.name().as_str()).collect();
            let hint = match names.as_slice() {
                [] => "none of them has lists of f16, f32 or f64".to_owned(),
                names => format!("pass one with lists of logits: {}", names.join(", ")),
            };
            let message = format!("the table has {} columns; {hint}", fields.len());
            return Err(PyValueError::new_err(message));
        };
        LogitLists::check_type(column.data_type()).or_raise()?;
        let kind = Kind::Table(column.name().clone());
        let chunks = chunks.iter().map(|chunk| Arc::clone(chunk.as_struct().column(0))).collect();
        Ok(Self { chunks, kind, logits: column.data_type().clone() })
    }
}

/// Columns of results, in the form that the logits had.
fn give<'py>(
    py: Python<'py>,
    kind: &Kind,
    names: &[String],
    columns: Vec<Vec<ArrayRef>>,
    types: &[DataType],
) -> PyResult<Bound<'py, PyAny>> {
    let field = |name: &str, of: &DataType| Arc::new(Field::new(name, of.clone(), true));
    let table = |names: &[String], types: &[DataType], columns: &[Vec<ArrayRef>]| {
        let fields: Fields = names.iter().zip(types).map(|(name, of)| field(name, of)).collect();
        let schema = Arc::new(Schema::new(fields));
        let batch = |chunk: usize| {
            let columns = columns.iter().map(|column| Arc::clone(&column[chunk]));
            RecordBatch::try_new(Arc::clone(&schema), columns.collect())
        };
        let count = columns.first().map_or(0, Vec::len);
        let batches = (0..count).map(batch).collect::<Result<_, _>>();
        let batches = batches.map_err(|error| PyValueError::new_err(error.to_string()))?;
        ArrowTable { schema: Arc::clone(&schema), batches }.into_bound_py_any(py)
    };
    if let Kind::Table(_) = kind {
        return table(names, types, &columns);
    }
    let mut objects = Vec::new();
    for ((name, of), column) in names.iter().zip(types).zip(columns) {
        objects.push(match (kind, column.as_slice()) {
            (Kind::Array, [array]) => {
                let (array, field) = (Arc::clone(array), field(name, of));
                ArrowArray { array, field }.into_bound_py_any(py)?
            }
            // The chunks are those of the only column of a table.
            _ => table(slice::from_ref(name), slice::from_ref(of), &[column])?,
        });
    }
    match objects.as_slice() {
        [only] => Ok(only.clone()),
        _ => Ok(PyTuple::new(py, objects)?.into_any()),
    }
}

/// The distributions of a column of lists: for `shafer.sparsify`.
#[pyfunction]
pub(crate) fn sparsify_arrow<'py>(
    py: Python<'py>,
    column: Imported,
    method: &str,
    temperature: f64,
    sparse: bool,
    threads: Option<usize>,
) -> PyResult<Bound<'py, PyAny>> {
    let method = self::method(method)?;
    let threads = self::threads(threads)?;
    let Column { chunks, kind, logits } = Column::new(column)?;
    let run = Run { method, temperature, threads, sparse };
    let size = chunks.iter().map(Array::len).sum::<usize>();
    // The interpreter is not needed, however long the lists are.
    let results = compute(py, size.max(1 << 16), threads, || run.all(&chunks))?;
    let (names, types) = run.columns(&kind, &logits)?;
    let columns = (0..names.len())
        .map(|i| results.iter().map(|columns| Arc::clone(&columns[i])).collect())
        .collect();
    give(py, &kind, &names, columns, &types)
}

struct Run {
    method: Method,
    temperature: f64,
    threads: Threads,
    sparse: bool,
}

impl Run {
    /// The resulting columns of each chunk.
    fn all(&self, chunks: &[ArrayRef]) -> PyResult<Vec<Vec<ArrayRef>>> {
        let mut first = 0;
        let mut results = Vec::new();
        for chunk in chunks {
            let columns = self.chunk(chunk).map_err(|error| {
                // Rows count from the beginning of the chunk.
                let within = if chunks.len() > 1 {
                    format!(" (in the chunk that begins at row {first})")
                } else {
                    String::new()
                };
                PyValueError::new_err(format!("{error}{within}"))
            })?;
            results.push(columns);
            first += chunk.len();
        }
        Ok(results)
    }

    fn chunk(&self, chunk: &dyn Array) -> shafer_arrow::Result<Vec<ArrayRef>> {
        let logits = LogitLists::new(chunk)?.temperature(self.temperature)?.threads(self.threads);
        if self.sparse {
            let (rows, _) = logits.sparse(self.method)?;
            Ok(split(&rows)?.to_vec())
        } else {
            Ok(vec![logits.dense(self.method)?])
        }
    }

    /// Names and types of the resulting columns.
    fn columns(&self, kind: &Kind, logits: &DataType) -> PyResult<(Vec<String>, Vec<DataType>)> {
        if self.sparse {
            // Of no rows, so that the types are known even without a chunk.
            let none = arrow_array::new_empty_array(logits);
            let columns = self.chunk(&none).or_raise()?;
            let types = columns.iter().map(|column| column.data_type().clone()).collect();
            return Ok((vec!["class".to_owned(), "p".to_owned()], types));
        }
        let name = match kind {
            Kind::Table(name) => name.clone(),
            Kind::Array | Kind::Chunks => String::new(),
        };
        Ok((vec![name], vec![logits.clone()]))
    }
}

/// Where the values of a column are in memory, chunk by chunk: for tests that nothing is copied on the way in.
#[pyfunction]
pub(crate) fn arrow_addresses(column: Imported) -> PyResult<Vec<usize>> {
    let Column { chunks, .. } = Column::new(column)?;
    let address = |chunk: &ArrayRef| {
        let values = match chunk.data_type() {
            DataType::List(_) => chunk.as_list::<i32>().values(),
            DataType::LargeList(_) => chunk.as_list::<i64>().values(),
            _ => chunk.as_fixed_size_list().values(),
        };
        let data = values.to_data();
        data.buffers().first().map_or(0, |buffer| buffer.as_ptr().addr())
    };
    Ok(chunks.iter().map(address).collect())
}
