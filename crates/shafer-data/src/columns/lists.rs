//! The values of a column in a batch of a table: checked to be complete, and of one length in all rows.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, Float64Array};
use arrow_buffer::{Buffer, NullBuffer};
use arrow_schema::DataType;

use super::{DENSE, Place};
use crate::{Error, Result};

/// The bytes of the values of a column, row after row.
pub(super) struct Numbers {
    bytes: Buffer,
    used: usize,
}

impl Numbers {
    /// Checks a column of numbers or lists. Its first row is row `place.first` of the table.
    pub(super) fn new(place: &Place, column: &dyn Array) -> Result<Self> {
        let rows = column.len();
        let null_row = first_null(column.nulls(), 0, rows);
        let (values, start) = match column.data_type() {
            DataType::List(_) => {
                let lists = column.as_list::<i32>();
                let ends = lists.offsets();
                place.check(&mut ends.windows(2).map(|e| (e[1] - e[0]) as usize), null_row)?;
                (lists.values(), ends[0] as usize)
            }
            DataType::LargeList(_) => {
                let lists = column.as_list::<i64>();
                let ends = lists.offsets();
                place.check(&mut ends.windows(2).map(|e| (e[1] - e[0]) as usize), null_row)?;
                (lists.values(), ends[0] as usize)
            }
            DataType::FixedSizeList(_, length) => {
                place.check(&mut std::iter::repeat_n(*length as usize, rows), null_row)?;
                (column.as_fixed_size_list().values(), 0)
            }
            _ => {
                if let Some(row) = null_row {
                    return Err(place.null(row));
                }
                if column.data_type().is_integer() {
                    return Ok(Self::of(&as_floats(column), 0, rows));
                }
                return Ok(Self::of(column, 0, rows));
            }
        };
        let count = rows * place.length;
        if let Some(value) = first_null(values.nulls(), start, count) {
            return Err(place.null(value));
        }
        Ok(Self::of(values, start, count))
    }

    /// `count` numbers from one on.
    fn of(values: &dyn Array, start: usize, count: usize) -> Self {
        let size = values.data_type().primitive_width().unwrap_or(1);
        let data = values.to_data();
        let start = (data.offset() + start) * size;
        let bytes = data.buffers().first().map(|all| all.slice_with_length(start, count * size));
        Self { bytes: bytes.unwrap_or_default(), used: 0 }
    }

    /// Fills `bytes` with the next values.
    pub(super) fn read(&mut self, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.bytes[self.used..][..bytes.len()]);
        self.used += bytes.len();
    }
}

/// Integers without nulls, those beyond 2^53 rounded.
fn as_floats(column: &dyn Array) -> Float64Array {
    fn narrow<T: ArrowPrimitiveType<Native: Into<f64>>>(column: &dyn Array) -> Vec<f64> {
        column.as_primitive::<T>().values().iter().map(|&x| x.into()).collect()
    }
    let values = match column.data_type() {
        DataType::Int8 => narrow::<Int8Type>(column),
        DataType::Int16 => narrow::<Int16Type>(column),
        DataType::Int32 => narrow::<Int32Type>(column),
        DataType::UInt8 => narrow::<UInt8Type>(column),
        DataType::UInt16 => narrow::<UInt16Type>(column),
        DataType::UInt32 => narrow::<UInt32Type>(column),
        DataType::Int64 => {
            column.as_primitive::<Int64Type>().values().iter().map(|&x| x as f64).collect()
        }
        DataType::UInt64 => {
            column.as_primitive::<UInt64Type>().values().iter().map(|&x| x as f64).collect()
        }
        // There are no others.
        _ => Vec::new(),
    };
    Float64Array::from(values)
}

/// The first null of `count` values from one on.
fn first_null(nulls: Option<&NullBuffer>, start: usize, count: usize) -> Option<usize> {
    let nulls = nulls.filter(|nulls| nulls.null_count() > 0)?.slice(start, count);
    if nulls.null_count() == 0 { None } else { (0..count).find(|&i| nulls.is_null(i)) }
}

/// The length of the first row of a column of lists.
pub(super) fn first_length(place: &Place, column: &dyn Array) -> Result<usize> {
    if column.is_null(0) {
        return Err(place.null_row(0));
    }
    Ok(match column.data_type() {
        DataType::List(_) => column.as_list::<i32>().value_length(0) as usize,
        DataType::LargeList(_) => column.as_list::<i64>().value_length(0) as usize,
        DataType::FixedSizeList(_, length) => *length as usize,
        _ => 1,
    })
}

impl Place {
    /// Checks the lengths of rows, up to the first that is null.
    fn check(
        &self,
        lengths: &mut dyn Iterator<Item = usize>,
        null_row: Option<usize>,
    ) -> Result<()> {
        for (row, length) in lengths.enumerate() {
            if Some(row) == null_row {
                return Err(self.null_row(row));
            }
            if length != self.length {
                return Err(self.ragged(row, length));
            }
        }
        Ok(())
    }

    /// The error of a null value, at an index in the batch.
    fn null(&self, value: usize) -> Error {
        let row = self.first + value / self.length;
        let problem = match self.length {
            1 => format!("row {row} is null"),
            length => format!("row {row}, column {} is null", value % length),
        };
        Error::format(&self.label, problem, DENSE)
    }

    /// The error of a null row of the batch.
    fn null_row(&self, row: usize) -> Error {
        Error::format(&self.label, format!("row {} is null", self.first + row), DENSE)
    }

    /// The error of a row of the batch with another length.
    fn ragged(&self, row: usize, found: usize) -> Error {
        let s = if found == 1 { "" } else { "s" };
        let (row, length) = (self.first + row, self.length);
        let problem = format!("row {row} has {found} value{s}, the first has {length}");
        Error::format(&self.label, problem, DENSE)
    }
}
