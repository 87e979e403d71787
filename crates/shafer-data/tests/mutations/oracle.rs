//! Independent readers, the oracles of mutated files.

use std::io::Cursor;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{Float16Type, Float32Type, Float64Type};
use arrow_array::{Array, RecordBatch};
use arrow_ipc::reader::{FileReader, StreamReader};
use arrow_schema::{ArrowError, DataType};
use half::{bf16, f16};
use parquet::basic::Type as Physical;
use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::Field;
use parquet::schema::types::Type;

/// The numbers that were read: an array, or the head of a model.
#[derive(Clone, Debug)]
pub(crate) struct Numbers {
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Vec<f64>,
    pub(crate) bias: Option<Vec<f64>>,
}

impl Numbers {
    fn array(shape: Vec<usize>, values: Vec<f64>) -> Self {
        Self { shape, values, bias: None }
    }

    /// Compares bits, so that NaN equals itself. The number of columns of an empty array is ignored.
    pub(crate) fn same(&self, other: &Self) -> bool {
        let bias = match (&self.bias, &other.bias) {
            (Some(a), Some(b)) => same(a, b),
            (a, b) => a.is_none() && b.is_none(),
        };
        let none = self.values.is_empty() && other.values.is_empty();
        (none || self.shape == other.shape) && same(&self.values, &other.values) && bias
    }

    /// Rows of equal length.
    fn rows(rows: &[Vec<f64>]) -> Option<Self> {
        let columns = rows.first().map_or(0, Vec::len);
        let even = rows.iter().all(|row| row.len() == columns);
        even.then(|| Self::array(vec![rows.len(), columns], rows.concat()))
    }
}

fn same(a: &[f64], b: &[f64]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.to_bits() == b.to_bits())
}

/// Elements of a little-endian type with this size.
fn floats(kind: &str, bytes: &[u8]) -> Option<Vec<f64>> {
    Some(match kind {
        "f2" => bytes.as_chunks().0.iter().map(|&b| f16::from_le_bytes(b).to_f64()).collect(),
        "bf16" => bytes.as_chunks().0.iter().map(|&b| bf16::from_le_bytes(b).to_f64()).collect(),
        "f4" => bytes.as_chunks().0.iter().map(|&b| f32::from_le_bytes(b).into()).collect(),
        "f8" => bytes.as_chunks().0.iter().map(|&b| f64::from_le_bytes(b)).collect(),
        _ => return None,
    })
}

/// Parses a `NumPy` header by searching for its keys, without white space.
fn read_npy(bytes: &[u8]) -> Option<Numbers> {
    let (start, length) = match bytes.get(6)? {
        1 => (10, u16::from_le_bytes(bytes.get(8..10)?.try_into().ok()?) as usize),
        _ => (12, u32::from_le_bytes(bytes.get(8..12)?.try_into().ok()?) as usize),
    };
    let header = std::str::from_utf8(bytes.get(start..start + length)?).ok()?;
    let header: String = header.replace('"', "'").split_ascii_whitespace().collect();
    let after = |key: &str| Some(header.split_once(&format!("'{key}':"))?.1);
    let descr = after("descr")?.strip_prefix('\'')?.split('\'').next()?;
    let kind = descr.trim_start_matches(['<', '>', '=', '|']);
    let shape = after("shape")?.strip_prefix('(')?.split(')').next()?;
    let shape = shape.split(',').filter(|n| !n.is_empty()).map(|n| n.parse().ok());
    let shape: Vec<usize> = shape.collect::<Option<_>>()?;
    let size = kind[1..].parse().ok()?;
    let mut data = bytes[start + length..].to_vec();
    if descr.starts_with('>') {
        data.chunks_mut(size).for_each(<[u8]>::reverse);
    }
    let values = floats(kind, &data)?;
    if !data.len().is_multiple_of(size) || values.len() != shape.iter().product::<usize>() {
        return None;
    }
    if after("fortran_order")?.starts_with("False") {
        return Some(Numbers::array(shape, values));
    }
    // The first index runs fastest.
    let mut sorted = Vec::with_capacity(values.len());
    for i in 0..values.len() {
        let (mut rest, mut place, mut stride) = (i, 0, values.len());
        for &n in shape.iter().rev() {
            stride /= n;
            place += rest % n * stride;
            rest /= n;
        }
        sorted.push(values[place]);
    }
    Some(Numbers::array(shape, sorted))
}

pub(crate) fn npy(bytes: &[u8], found: &Numbers) -> bool {
    read_npy(bytes).is_some_and(|numbers| numbers.same(found))
}

/// A tensor of a model or an array: its shape and numbers, in the precision in which models are loaded.
struct Tensor {
    shape: Vec<usize>,
    values: Vec<f64>,
}

/// An array is one of the tensors. Weights are one of them, or its transpose, by a factor that the file has; so is
/// the bias.
fn among(tensors: &[Tensor], factors: &[f64], found: &Numbers) -> bool {
    let scaled = |values: &[f64], factor: f64| -> Vec<f64> {
        values.iter().map(|&v| f64::from(v as f32 * factor as f32)).collect()
    };
    let held = |wanted: &[f64]| {
        factors.iter().any(|&factor| {
            tensors.iter().any(|tensor| same(&scaled(&tensor.values, factor), wanted))
        })
    };
    let [rows, columns] = found.shape[..] else {
        return tensors.iter().any(|t| t.shape == found.shape && same(&t.values, &found.values));
    };
    let turned = (0..found.values.len()).map(|i| found.values[i % rows * columns + i / rows]);
    let turned: Vec<f64> =
        if rows * columns == found.values.len() { turned.collect() } else { vec![] };
    let bias = found.bias.as_ref().is_none_or(|bias| {
        bias.len() == columns
            && (held(bias) || same(bias, &vec![bias[0]; columns]) && held(&bias[..1]))
    });
    bias && (held(&found.values) || held(&turned))
}

/// Uses the header only. Tensors of unknown types are skipped.
pub(crate) fn safetensors(bytes: &[u8], found: &Numbers) -> bool {
    let read = || -> Option<Vec<Tensor>> {
        let length = u64::from_le_bytes(*bytes.first_chunk()?) as usize;
        let (header, data) = bytes[8..].split_at_checked(length)?;
        let header: serde_json::Value = serde_json::from_slice(header).ok()?;
        let tensors = header.as_object()?.values().filter_map(|tensor| {
            let kind = match tensor["dtype"].as_str()? {
                "F16" => "f2",
                "BF16" => "bf16",
                "F32" => "f4",
                "F64" => "f8",
                _ => return None,
            };
            let number = |n: &serde_json::Value| n.as_u64().map(|n| n as usize);
            let shape = tensor["shape"].as_array()?.iter().map(number).collect::<Option<_>>()?;
            let [start, end] = [0, 1].map(|i| number(&tensor["data_offsets"][i]));
            Some(Tensor { shape, values: floats(kind, data.get(start?..end?)?)? })
        });
        Some(tensors.collect())
    };
    read().is_some_and(|tensors| among(&tensors, &[1.0], found))
}

/// Splits at any common delimiter. Lines that begin with `#` are comments, as for `numpy.loadtxt`.
pub(crate) fn csv(bytes: &[u8], found: &Numbers) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let lines = || {
        text.split(['\n', '\r'])
            .filter(|line| !line.is_empty() && !line.trim_start().starts_with('#'))
    };
    let number = |field: &str| field.trim().trim_matches('"').trim().parse::<f64>().ok();
    [',', ';', '\t', ' '].into_iter().any(|separator| {
        let named =
            lines().next().is_some_and(|line| line.split(separator).all(|f| number(f).is_none()));
        let rows = lines().skip(usize::from(named));
        let rows: Option<Vec<Vec<f64>>> =
            rows.map(|line| line.split(separator).map(number).collect()).collect();
        let none = || Numbers::array(vec![0, found.shape[1]], Vec::new());
        rows.is_some_and(|rows| Numbers::rows(&rows).unwrap_or_else(none).same(found))
    })
}

fn field_number(field: &Field) -> Option<f64> {
    match field {
        Field::Float16(x) => Some(x.to_f64()),
        Field::Float(x) => Some(f64::from(*x)),
        Field::Double(x) => Some(*x),
        _ => None,
    }
}

/// Whether a column has numbers or lists of these, and nothing else.
fn is_of_numbers(column: &Type) -> bool {
    if column.is_group() {
        return column.get_fields().iter().all(|field| is_of_numbers(field));
    }
    let numbers = [Physical::FLOAT, Physical::DOUBLE, Physical::FIXED_LEN_BYTE_ARRAY];
    numbers.contains(&column.get_physical_type())
}

pub(crate) fn parquet(bytes: &[u8], found: &Numbers) -> bool {
    let read = || -> Option<Vec<Vec<f64>>> {
        let reader = SerializedFileReader::new(bytes::Bytes::copy_from_slice(bytes)).ok()?;
        // Other columns are not read, and may be damaged.
        let schema = reader.metadata().file_metadata().schema();
        let columns = schema.get_fields().iter().filter(|column| is_of_numbers(column));
        let columns =
            Type::group_type_builder(schema.name()).with_fields(columns.cloned().collect());
        let mut rows = Vec::new();
        for row in reader.get_row_iter(Some(columns.build().ok()?)).ok()? {
            let row = row.ok()?;
            let list = row.get_column_iter().find_map(|(_, field)| match field {
                Field::ListInternal(list) => list.elements().iter().map(field_number).collect(),
                _ => None,
            });
            let scalars = || row.get_column_iter().filter_map(|(_, f)| field_number(f)).collect();
            rows.push(list.unwrap_or_else(scalars));
        }
        Some(rows)
    };
    read().and_then(|rows| Numbers::rows(&rows)).is_some_and(|numbers| numbers.same(found))
}

fn column(array: &dyn Array) -> Option<Vec<f64>> {
    if array.null_count() > 0 {
        return None;
    }
    Some(match array.data_type() {
        DataType::Float16 => {
            array.as_primitive::<Float16Type>().values().iter().map(|v| v.to_f64()).collect()
        }
        DataType::Float32 => {
            array.as_primitive::<Float32Type>().values().iter().map(|&v| v.into()).collect()
        }
        DataType::Float64 => array.as_primitive::<Float64Type>().values().to_vec(),
        _ => return None,
    })
}

fn batch_rows(batch: &RecordBatch) -> Option<Vec<Vec<f64>>> {
    for array in batch.columns() {
        let rows: Vec<_> = match array.data_type() {
            DataType::List(_) => array.as_list::<i32>().iter().collect(),
            DataType::LargeList(_) => array.as_list::<i64>().iter().collect(),
            DataType::FixedSizeList(..) => array.as_fixed_size_list().iter().collect(),
            _ => continue,
        };
        return rows.into_iter().map(|row| column(&*row?)).collect();
    }
    let columns: Vec<Vec<f64>> = batch.columns().iter().filter_map(|array| column(array)).collect();
    Some(
        (0..batch.num_rows())
            .map(|row| columns.iter().map(|column| column[row]).collect())
            .collect(),
    )
}

pub(crate) fn arrow(bytes: &[u8], found: &Numbers) -> bool {
    let all = |batches: &mut dyn Iterator<Item = Result<RecordBatch, ArrowError>>| {
        let batches: Vec<RecordBatch> = batches.collect::<Result<_, _>>().ok()?;
        let rows = batches.iter().map(batch_rows).collect::<Option<Vec<_>>>()?;
        Numbers::rows(&rows.concat())
    };
    let source = || Cursor::new(bytes.to_vec());
    let numbers = if bytes.starts_with(b"ARROW1") {
        FileReader::try_new(source(), None).ok().and_then(|mut reader| all(&mut reader))
    } else {
        StreamReader::try_new(source(), None).ok().and_then(|mut reader| all(&mut reader))
    };
    numbers.is_some_and(|numbers| numbers.same(found))
}

/// A field of protocol buffers: a number, or bytes.
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// The fields of a message, up to the first invalid one.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Wire<'_>)> {
    fn varint(bytes: &mut &[u8]) -> Option<u64> {
        let mut n = 0;
        for shift in (0..70).step_by(7) {
            let (&byte, rest) = bytes.split_first()?;
            *bytes = rest;
            n |= u64::from(byte & 0x7f).checked_shl(shift)?;
            if byte < 0x80 {
                return Some(n);
            }
        }
        None
    }
    fn take<'a>(bytes: &mut &'a [u8], n: u64) -> Option<&'a [u8]> {
        let (taken, rest) = bytes.split_at_checked(usize::try_from(n).ok()?)?;
        *bytes = rest;
        Some(taken)
    }
    let mut fields = Vec::new();
    while let Some(key) = varint(&mut bytes) {
        let wire = match key & 7 {
            0 => varint(&mut bytes).map(Wire::Number),
            1 => take(&mut bytes, 8).map(Wire::Bytes),
            2 => varint(&mut bytes).and_then(|n| take(&mut bytes, n)).map(Wire::Bytes),
            5 => take(&mut bytes, 4).map(Wire::Bytes),
            _ => None,
        };
        let Some(wire) = wire else { break };
        fields.push((key >> 3, wire));
    }
    fields
}

fn messages(message: &[u8], tag: u64) -> impl Iterator<Item = &[u8]> {
    fields(message).into_iter().filter_map(move |(found, wire)| match wire {
        Wire::Bytes(bytes) if found == tag => Some(bytes),
        _ => None,
    })
}

/// A `TensorProto`: its data are raw, or numbers of their type in fields that may come in pieces.
fn onnx_tensor(message: &[u8]) -> Option<Tensor> {
    let data_type = fields(message).iter().rev().find_map(|(tag, wire)| match wire {
        Wire::Number(n) if *tag == 2 => Some(*n),
        _ => None,
    })?;
    let kind = match data_type {
        1 => "f4",
        10 => "f2",
        11 => "f8",
        16 => "bf16",
        _ => return None,
    };
    let raw = messages(message, 9).last();
    let (typed, tag) = if kind == "f8" { ("f8", 10) } else { ("f4", 4) };
    let values = match raw {
        Some(raw) => floats(kind, raw)?,
        None => floats(typed, &messages(message, tag).collect::<Vec<_>>().concat())?,
    };
    Some(Tensor {
        shape: Vec::new(),
        values: values.iter().map(|&v| f64::from(v as f32)).collect(),
    })
}

/// The initialisers and constants of a graph, and the factors among its attributes.
pub(crate) fn onnx(bytes: &[u8], found: &Numbers) -> bool {
    let (mut tensors, mut factors) = (Vec::new(), vec![1.0]);
    for graph in messages(bytes, 7) {
        tensors.extend(messages(graph, 5).filter_map(onnx_tensor));
        for attribute in messages(graph, 1).flat_map(|node| messages(node, 5)) {
            tensors.extend(messages(attribute, 5).filter_map(onnx_tensor));
            let factor =
                messages(attribute, 2).filter_map(|f| Some(f32::from_le_bytes(f.try_into().ok()?)));
            factors.extend(factor.map(f64::from));
        }
    }
    among(&tensors, &factors, found)
}
