//! Sets of classes: lists of integers.

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Int8Type, Int16Type, Int32Type, Int64Type, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef};
use arrow_schema::DataType;

use crate::{Error, Result};

/// Lists of integers.
pub(crate) struct Sets {
    classes: Vec<i64>,
    /// Of the integers.
    values: ArrayRef,
    /// The list of each row; `None` is null.
    rows: Vec<Option<std::ops::Range<usize>>>,
}

impl Sets {
    pub(crate) fn new(sets: &dyn Array) -> Result<Self> {
        let wrong = || Error::Type {
            what: "sets",
            expected: "lists of integers",
            found: sets.data_type().to_string(),
        };
        let rows = 0..sets.len();
        let valid = |row: usize| sets.is_valid(row);
        let (values, rows): (ArrayRef, Vec<_>) = match sets.data_type() {
            DataType::List(_) => {
                let lists = sets.as_list::<i32>();
                let ends = lists.offsets();
                let list = |row: usize| ends[row] as usize..ends[row + 1] as usize;
                (lists.values().clone(), rows.map(|row| valid(row).then(|| list(row))).collect())
            }
            DataType::LargeList(_) => {
                let lists = sets.as_list::<i64>();
                let ends = lists.offsets();
                let list = |row: usize| ends[row] as usize..ends[row + 1] as usize;
                (lists.values().clone(), rows.map(|row| valid(row).then(|| list(row))).collect())
            }
            DataType::FixedSizeList(..) => {
                let lists = sets.as_fixed_size_list();
                let n = lists.value_length() as usize;
                let list = |row: usize| row * n..(row + 1) * n;
                (lists.values().clone(), rows.map(|row| valid(row).then(|| list(row))).collect())
            }
            _ => return Err(wrong()),
        };
        let classes = match values.data_type() {
            DataType::Int8 => integers::<Int8Type>(&values),
            DataType::Int16 => integers::<Int16Type>(&values),
            DataType::Int32 => integers::<Int32Type>(&values),
            DataType::Int64 => integers::<Int64Type>(&values),
            DataType::UInt8 => integers::<UInt8Type>(&values),
            DataType::UInt16 => integers::<UInt16Type>(&values),
            DataType::UInt32 => integers::<UInt32Type>(&values),
            DataType::UInt64 => integers::<UInt64Type>(&values),
            // An empty set has no type.
            DataType::Null => vec![0; values.len()],
            _ => return Err(wrong()),
        };
        Ok(Self { classes, values, rows })
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// The classes of a set, or `None` if it is null. A class that is null is `None`.
    pub(crate) fn get(&self, row: usize) -> Option<impl Iterator<Item = Option<i64>> + '_> {
        let places = self.rows[row].clone()?;
        let null = self.values.logical_nulls();
        Some(places.map(move |place| {
            let null = null.as_ref().is_some_and(|nulls| nulls.is_null(place));
            (!null).then(|| self.classes[place])
        }))
    }
}

/// Integers as `i64`. Those beyond it are no classes: they become the largest.
fn integers<T: ArrowPrimitiveType<Native: TryInto<i64>>>(values: &dyn Array) -> Vec<i64> {
    let values = values.as_primitive::<T>().values();
    values.iter().map(|&value| value.try_into().unwrap_or(i64::MAX)).collect()
}
