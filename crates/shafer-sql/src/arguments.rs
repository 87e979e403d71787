//! The types of arguments, and what they are cast to.

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Field, FieldRef};
use shafer::Method;

/// The type of lists of logits that a type is cast to; the same for one that needs no cast.
pub(crate) fn logits(given: &DataType) -> Option<DataType> {
    let item = |field: &FieldRef| -> Option<FieldRef> {
        let float = match field.data_type() {
            DataType::Float16 | DataType::Float32 | DataType::Float64 => {
                return Some(field.clone());
            }
            other if is_number(other) => DataType::Float64,
            // A list without entries has no type of them.
            DataType::Null => DataType::Float64,
            _ => return None,
        };
        Some(Arc::new(Field::new(field.name(), float, field.is_nullable())))
    };
    Some(match given {
        DataType::List(field) | DataType::ListView(field) => DataType::List(item(field)?),
        DataType::LargeList(field) | DataType::LargeListView(field) => {
            DataType::LargeList(item(field)?)
        }
        DataType::FixedSizeList(field, length) => DataType::FixedSizeList(item(field)?, *length),
        DataType::Null => DataType::new_list(DataType::Float64, true),
        _ => return None,
    })
}

/// The same for a set of classes: lists of integers.
pub(crate) fn set(given: &DataType) -> Option<DataType> {
    match given {
        DataType::List(field) | DataType::LargeList(field) | DataType::FixedSizeList(field, _)
            if field.data_type().is_integer() || field.data_type().is_null() =>
        {
            Some(given.clone())
        }
        DataType::Null => Some(DataType::new_list(DataType::Int64, true)),
        _ => None,
    }
}

pub(crate) fn is_number(given: &DataType) -> bool {
    given.is_numeric() || given.is_null()
}

pub(crate) fn is_text(given: &DataType) -> bool {
    matches!(given, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View | DataType::Null)
}

pub(crate) fn is_seed(given: &DataType) -> bool {
    given.is_integer() || given.is_null()
}

/// Seeds are integers of 64 bits.
pub(crate) fn seed(given: &DataType) -> DataType {
    match given {
        DataType::UInt64 => DataType::UInt64,
        _ => DataType::Int64,
    }
}

/// Whether the method of this name has a parameter.
pub(crate) fn has_parameter(name: &str) -> bool {
    Method::named(name, None).is_ok_and(|method| method.parameter().is_some())
}
