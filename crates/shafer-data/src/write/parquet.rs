//! Sparse rows as a Parquet table with two columns of lists.

use std::io;
use std::path::Path;
use std::sync::Arc;

use arrow_array::{
    ArrayRef, Float16Array, Float32Array, Float64Array, Int32Array, ListArray, RecordBatch,
};
use arrow_buffer::{OffsetBuffer, ScalarBuffer};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_writer::ArrowWriterOptions;
use parquet::basic::Encoding;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::schema::types::ColumnPath;

use super::{Compressed, Form, NOTE, RowWriter, SparseRows};
use crate::{AtomicFile, Dtype, Error, Result, Values, ValuesRef};

/// The values of a row group, which is buffered in memory. With at most 32,767 groups, a file can have 34
/// billion values.
const GROUP: usize = 1 << 20;

/// Writes the columns `indices` and `values`: for each row, a list of the kept classes and a list of their
/// values. The metadata has the number of classes as `shafer.classes`.
///
/// Indices are signed 32-bit integers, as in the other sparse formats and in `SciPy`. Values keep their type,
/// except that bf16, which Parquet lacks, is written as f32 without loss.
///
/// ```
/// use shafer_data::{Dtype, ParquetWriter, RowWriter, SparseRows};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("rows.parquet");
/// let mut writer = Box::new(ParquetWriter::create(&path, 3, Dtype::F64)?.noted("method", "top-k"));
/// writer.write(SparseRows::new(&[0, 1, 2], &[2, 0], [1.0, 0.5][..].into()))?;
/// writer.finish()?;
/// assert_eq!(shafer_data::list(&path)?[0].to_string(), "values: f64 (2, 1)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct ParquetWriter {
    label: String,
    writer: ArrowWriter<AtomicFile>,
    schema: Arc<Schema>,
    form: Form,
    group: Group,
    compressed: Compressed,
}

/// The buffered rows.
#[derive(Debug)]
struct Group {
    ends: Vec<i32>,
    indices: Vec<i32>,
    values: Values,
    /// The number of values, with an empty row as one.
    places: usize,
}

impl ParquetWriter {
    /// Creates a file.
    pub fn create(path: &Path, classes: usize, dtype: Dtype) -> Result<Self> {
        let form = Form::new(path, classes, dtype)?;
        let lists = |name, kind| Field::new(name, DataType::List(element(kind)), false);
        let schema =
            Schema::new(vec![lists("indices", DataType::Int32), lists("values", stored(dtype).1)]);
        // Indices increase within a row, so their differences take few bits; probabilities hardly
        // repeat, and compressing them takes longer than writing them. Page statistics would be
        // kept in memory until the end, and are useless for these columns.
        let indices = ColumnPath::from(["indices", "list", "element"].map(str::to_owned).to_vec());
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_column_encoding(indices, Encoding::DELTA_BINARY_PACKED)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true)
            .set_max_row_group_row_count(None);
        let options = ArrowWriterOptions::new()
            .with_properties(properties.build())
            .with_skip_arrow_metadata(true);
        let file = AtomicFile::create(path)?;
        let label = file.label().to_owned();
        let schema = Arc::new(schema);
        let writer = ArrowWriter::try_new_with_options(file, Arc::clone(&schema), options)
            .map_err(|e| failed(&label, e))?;
        let (group, compressed) = (Group::new(dtype), Compressed::default());
        let this = Self { label, writer, schema, form, group, compressed };
        Ok(this.noted("classes", &classes.to_string()))
    }

    /// Adds a key to the metadata: `method` becomes `shafer.method`.
    ///
    /// ```
    /// use shafer_data::{Dtype, ParquetWriter, RowWriter};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("rows.parquet");
    /// let writer = ParquetWriter::create(&path, 3, Dtype::F32)?.noted("method", "evidential");
    /// Box::new(writer).finish()?;
    /// # let bytes = std::fs::read(&path)?;
    /// # assert!(bytes.windows(13).any(|part| part == b"shafer.method"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn noted(mut self, key: &str, value: &str) -> Self {
        let note = KeyValue::new(format!("{NOTE}{key}"), value.to_owned());
        self.writer.append_key_value_metadata(note);
        self
    }

    fn write_group(&mut self) -> Result<()> {
        let group = std::mem::replace(&mut self.group, Group::new(self.form.dtype));
        group
            .batch(&self.schema)
            .and_then(|batch| self.writer.write(&batch))
            .and_then(|()| self.writer.flush())
            .map_err(|e| failed(&self.label, e))
    }
}

/// The type of values in Parquet, which has no bf16.
fn stored(dtype: Dtype) -> (Dtype, DataType) {
    match dtype {
        Dtype::F16 => (Dtype::F16, DataType::Float16),
        Dtype::Bf16 | Dtype::F32 => (Dtype::F32, DataType::Float32),
        Dtype::F64 => (Dtype::F64, DataType::Float64),
    }
}

fn element(kind: DataType) -> Arc<Field> {
    Arc::new(Field::new("element", kind, false))
}

impl Group {
    fn new(dtype: Dtype) -> Self {
        Self { ends: vec![0], indices: Vec::new(), values: Values::new(stored(dtype).0), places: 0 }
    }

    /// Adds a row.
    fn add(&mut self, rows: &SparseRows<'_>, row: std::ops::Range<usize>) {
        self.places += row.len().max(1);
        self.indices.extend(rows.indices[row.clone()].iter().map(|&class| class as i32));
        match (&mut self.values, rows.values) {
            (Values::F16(kept), ValuesRef::F16(v)) => kept.extend_from_slice(&v[row]),
            (Values::F32(kept), ValuesRef::Bf16(v)) => {
                kept.extend(v[row].iter().map(|v| v.to_f32()));
            }
            (Values::F32(kept), ValuesRef::F32(v)) => kept.extend_from_slice(&v[row]),
            (Values::F64(kept), ValuesRef::F64(v)) => kept.extend_from_slice(&v[row]),
            // The caller checked the type of the rows.
            _ => {}
        }
        // Groups are shorter than this, but for a single row, whose classes are fewer.
        self.ends.push(self.indices.len() as i32);
    }

    fn batch(self, schema: &Arc<Schema>) -> std::result::Result<RecordBatch, ParquetError> {
        let values: ArrayRef = match self.values {
            Values::F16(v) => Arc::new(Float16Array::from(v)),
            Values::F32(v) => Arc::new(Float32Array::from(v)),
            Values::F64(v) => Arc::new(Float64Array::from(v)),
            // Written as f32.
            Values::Bf16(_) => Arc::new(Float32Array::from(Vec::<f32>::new())),
        };
        let ends = OffsetBuffer::new(ScalarBuffer::from(self.ends));
        let lists = |values: ArrayRef| -> std::result::Result<ArrayRef, ArrowError> {
            let item = element(values.data_type().clone());
            Ok(Arc::new(ListArray::try_new(item, ends.clone(), values, None)?))
        };
        let columns = vec![lists(Arc::new(Int32Array::from(self.indices)))?, lists(values)?];
        Ok(RecordBatch::try_new(Arc::clone(schema), columns)?)
    }
}

/// The underlying I/O error, if there is one, else that of the format.
pub(super) fn failed(label: &str, error: ParquetError) -> Error {
    let error = match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    };
    Error::io(label, "write", error)
}

impl RowWriter for ParquetWriter {
    fn write(&mut self, rows: SparseRows<'_>) -> Result<()> {
        rows.check(&self.label, self.form)?;
        for ends in rows.indptr.windows(2) {
            self.group.add(&rows, ends[0]..ends[1]);
            // The ends of groups depend on the rows only, not on the blocks they arrive in.
            if self.group.places >= GROUP {
                self.write_group()?;
            }
        }
        Ok(())
    }

    fn write_dense(&mut self, values: ValuesRef<'_>) -> Result<()> {
        self.form.check_dense(&self.label, values)?;
        let mut compressed = std::mem::take(&mut self.compressed);
        let done = self.write(compressed.fill(values, self.form.classes));
        self.compressed = compressed;
        done
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if self.group.ends.len() > 1 {
            self.write_group()?;
        }
        let Self { label, writer, .. } = *self;
        writer.into_inner().map_err(|e| failed(&label, e))?.commit()
    }
}
