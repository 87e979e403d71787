//! Sparse rows as a Parquet table with two columns of lists.

use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::Encoding;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use parquet::schema::types::ColumnPath;

use super::{Compressed, Form, NOTE, RowWriter, SparseRows};
use crate::{AtomicFile, Dtype, Error, Result, ValuesRef};

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
    writer: SerializedFileWriter<AtomicFile>,
    form: Form,
    group: Group,
    compressed: Compressed,
}

/// The buffered rows.
#[derive(Debug)]
struct Group {
    indices: Vec<i32>,
    values: Kept,
    /// Definition and repetition levels.
    present: Vec<i16>,
    goes_on: Vec<i16>,
}

/// Values in a type of Parquet.
#[derive(Debug)]
enum Kept {
    /// The bytes of each.
    Half(Vec<u8>),
    Single(Vec<f32>),
    Double(Vec<f64>),
}

impl ParquetWriter {
    /// Creates a file.
    pub fn create(path: &Path, classes: usize, dtype: Dtype) -> Result<Self> {
        let form = Form::new(path, classes, dtype)?;
        let element = match dtype {
            Dtype::F16 => "fixed_len_byte_array(2) element (FLOAT16)",
            Dtype::Bf16 | Dtype::F32 => "float element",
            Dtype::F64 => "double element",
        };
        let schema = format!(
            "message rows {{
                required group indices (LIST) {{ repeated group list {{ required int32 element; }} }}
                required group values (LIST) {{ repeated group list {{ required {element}; }} }}
            }}"
        );
        // Indices increase within a row, so their differences take few bits; probabilities hardly
        // repeat, and compressing them takes longer than writing them. Page statistics would be
        // kept in memory until the end, and are useless for these columns.
        let indices = ColumnPath::from(["indices", "list", "element"].map(str::to_owned).to_vec());
        let properties = WriterProperties::builder()
            .set_dictionary_enabled(false)
            .set_column_encoding(indices, Encoding::DELTA_BINARY_PACKED)
            .set_statistics_enabled(EnabledStatistics::None)
            .set_offset_index_disabled(true);
        let file = AtomicFile::create(path)?;
        let label = file.label().to_owned();
        let writer = parse_message_type(&schema)
            .and_then(|schema| {
                SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties.build()))
            })
            .map_err(|e| failed(&label, e))?;
        let group = Group::new(dtype);
        let this = Self { writer, form, group, compressed: Compressed::default() };
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

    fn label(&self) -> &str {
        self.writer.inner().label()
    }

    fn put(&mut self, rows: &SparseRows<'_>) -> Result<()> {
        for ends in rows.indptr.windows(2) {
            self.group.add(rows, ends[0]..ends[1]);
            // The ends of groups depend on the rows only, not on the blocks they arrive in.
            if self.group.present.len() >= GROUP {
                self.write_group()?;
            }
        }
        Ok(())
    }

    fn write_group(&mut self) -> Result<()> {
        let group = std::mem::replace(&mut self.group, Group::new(self.form.dtype));
        group.write(&mut self.writer).map_err(|e| failed(self.label(), e))
    }
}

impl Group {
    fn new(dtype: Dtype) -> Self {
        let values = match dtype {
            Dtype::F16 => Kept::Half(Vec::new()),
            Dtype::Bf16 | Dtype::F32 => Kept::Single(Vec::new()),
            Dtype::F64 => Kept::Double(Vec::new()),
        };
        Self { indices: Vec::new(), values, present: Vec::new(), goes_on: Vec::new() }
    }

    /// Adds a row.
    fn add(&mut self, rows: &SparseRows<'_>, row: Range<usize>) {
        // An empty list has levels without a value.
        self.present.resize(self.present.len() + row.len().max(1), i16::from(!row.is_empty()));
        self.goes_on.push(0);
        self.goes_on.resize(self.present.len(), 1);
        self.indices.extend(rows.indices[row.clone()].iter().map(|&class| class as i32));
        match (&mut self.values, rows.values) {
            (Kept::Half(bytes), ValuesRef::F16(v)) => {
                bytes.extend(v[row].iter().flat_map(|v| v.to_le_bytes()));
            }
            (Kept::Single(kept), ValuesRef::Bf16(v)) => {
                kept.extend(v[row].iter().map(|v| v.to_f32()));
            }
            (Kept::Single(kept), ValuesRef::F32(v)) => kept.extend_from_slice(&v[row]),
            (Kept::Double(kept), ValuesRef::F64(v)) => kept.extend_from_slice(&v[row]),
            // The caller checked the type of the rows.
            _ => {}
        }
    }

    fn write(mut self, writer: &mut SerializedFileWriter<AtomicFile>) -> Written<()> {
        let (present, goes_on) = (Some(&self.present[..]), Some(&self.goes_on[..]));
        let mut group = writer.next_row_group()?;
        while let Some(mut column) = group.next_column()? {
            match (column.untyped(), &mut self.values) {
                (ColumnWriter::Int32ColumnWriter(column), _) => {
                    column.write_batch(&self.indices, present, goes_on)?;
                }
                (ColumnWriter::FloatColumnWriter(column), Kept::Single(values)) => {
                    column.write_batch(values, present, goes_on)?;
                }
                (ColumnWriter::DoubleColumnWriter(column), Kept::Double(values)) => {
                    column.write_batch(values, present, goes_on)?;
                }
                (ColumnWriter::FixedLenByteArrayColumnWriter(column), Kept::Half(bytes)) => {
                    let all = ByteArray::from(std::mem::take(bytes));
                    let each = (0..all.len()).step_by(2).map(|at| all.slice(at, 2).into());
                    column.write_batch(&each.collect::<Vec<_>>(), present, goes_on)?;
                }
                // The schema has no other columns.
                _ => {}
            }
            column.close()?;
        }
        group.close()?;
        Ok(())
    }
}

pub(super) type Written<T> = std::result::Result<T, ParquetError>;

/// The underlying I/O error, if there is one, else that of the format.
pub(super) fn failed(label: &str, error: ParquetError) -> Error {
    let error = match error {
        ParquetError::External(error) => io::Error::other(error),
        error => io::Error::other(error),
    };
    Error::io(label, "write", error)
}

impl RowWriter for ParquetWriter {
    fn write(&mut self, rows: SparseRows<'_>) -> Result<()> {
        rows.check(self.label(), self.form)?;
        self.put(&rows)
    }

    fn write_dense(&mut self, values: ValuesRef<'_>) -> Result<()> {
        self.form.check_dense(self.label(), values)?;
        let mut compressed = std::mem::take(&mut self.compressed);
        let done = self.write(compressed.fill(values, self.form.classes));
        self.compressed = compressed;
        done
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        if !self.group.present.is_empty() {
            self.write_group()?;
        }
        let label = self.label().to_owned();
        self.writer.into_inner().map_err(|e| failed(&label, e))?.commit()
    }
}
