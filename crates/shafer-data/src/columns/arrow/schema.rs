//! The columns of an Arrow schema, and the arrays and buffers of each in a batch.

use arrow_ipc::{Endianness, Field, MetadataVersion, Precision, Schema, Type, UnionMode};

use crate::columns::{Column, DAMAGED, Kind};
use crate::npy::shortened;
use crate::{Dtype, Error, Result};

/// The arrays and buffers of a column in a batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    /// The numbers of arrays and buffers.
    pub(super) nodes: usize,
    pub(super) buffers: usize,
    /// The number of arrays with a variable number of buffers, which each batch specifies.
    pub(super) views: usize,
    pub(super) size: usize,
    pub(super) lists: Lists,
}

/// The layout of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Lists {
    /// One number per row.
    None,
    /// A fixed number per row.
    Fixed(usize),
    /// Lists, with offsets of this many bytes.
    Offsets(usize),
}

/// The columns, with the arrays and buffers of each.
pub(super) fn columns(
    label: &str,
    schema: Schema<'_>,
    version: MetadataVersion,
) -> Result<(Vec<Column>, Vec<Layout>)> {
    if schema.endianness() != Endianness::Little {
        return Err(Error::format(
            label,
            "has the bytes of its numbers in the order of other machines",
            "write it on one that has the lowest byte first",
        ));
    }
    let (mut columns, mut layouts) = (Vec::new(), Vec::new());
    for field in schema.fields().iter().flatten() {
        let name = field.name().unwrap_or_default().to_owned();
        let mut layout = Layout { nodes: 0, buffers: 0, views: 0, size: 0, lists: Lists::None };
        if !layout.add(field, version) {
            let problem = format!("has a column `{}` of an unknown type", shortened(&name));
            return Err(Error::format(label, problem, DAMAGED));
        }
        let kind = layout.kind(field);
        columns.push(Column { name, kind });
        layouts.push(layout);
    }
    Ok((columns, layouts))
}

impl Layout {
    /// Adds the arrays and buffers of a field, or returns `false` if its type is unknown.
    fn add(&mut self, field: Field<'_>, version: MetadataVersion) -> bool {
        self.nodes += 1;
        // An unknown width is an error: skipping the column would lose a class.
        let float = field.type_as_floating_point();
        if float.is_some_and(|float| float.precision().variant_name().is_none()) {
            return false;
        }
        // The batch has the indices into the dictionary.
        if field.dictionary().is_some() {
            self.buffers += 2;
            return true;
        }
        self.buffers += match field.type_type() {
            Type::Null | Type::RunEndEncoded => 0,
            Type::Struct_ | Type::FixedSizeList => 1,
            Type::Int
            | Type::FloatingPoint
            | Type::Bool
            | Type::Decimal
            | Type::Date
            | Type::Time
            | Type::Timestamp
            | Type::Interval
            | Type::Duration
            | Type::FixedSizeBinary
            | Type::List
            | Type::LargeList
            | Type::Map => 2,
            Type::Binary
            | Type::Utf8
            | Type::LargeBinary
            | Type::LargeUtf8
            | Type::ListView
            | Type::LargeListView => 3,
            Type::BinaryView | Type::Utf8View => {
                self.views += 1;
                2
            }
            Type::Union => {
                let dense = field.type_as_union().is_some_and(|u| u.mode() == UnionMode::Dense);
                // Until version 4 unions had a null bitmap.
                1 + usize::from(dense) + usize::from(version == MetadataVersion::V4)
            }
            _ => return false,
        };
        field.children().iter().flatten().all(|child| self.add(child, version))
    }

    /// The supported layout of a field, if it has one.
    fn kind(&mut self, field: Field<'_>) -> Kind {
        let child = field.children().filter(|all| all.len() == 1).map(|all| all.get(0));
        self.lists = match field.type_type() {
            _ if field.dictionary().is_some() => return Kind::Other("a dictionary".to_owned()),
            Type::List => Lists::Offsets(4),
            Type::LargeList => Lists::Offsets(8),
            Type::FixedSizeList => {
                let size = field.type_as_fixed_size_list().map_or(0, |list| list.listSize());
                Lists::Fixed(usize::try_from(size).unwrap_or(0))
            }
            _ => Lists::None,
        };
        let is_list = self.lists != Lists::None;
        let values = if is_list { child } else { Some(field) };
        let Some(values) = values.filter(|values| values.dictionary().is_none()) else {
            return Kind::Other("nested values".to_owned());
        };
        let dtype = values.type_as_floating_point().and_then(|float| match float.precision() {
            Precision::HALF => Some(Dtype::F16),
            Precision::SINGLE => Some(Dtype::F32),
            Precision::DOUBLE => Some(Dtype::F64),
            _ => None,
        });
        self.size = dtype.map_or(0, Dtype::size);
        match (dtype, is_list) {
            (Some(dtype), true) => Kind::Lists(dtype),
            (Some(dtype), false) => Kind::Numbers(dtype),
            (None, true) => Kind::Other(format!("list of {}", type_name(values))),
            (None, false) => Kind::Other(type_name(values)),
        }
    }
}

fn type_name(field: Field<'_>) -> String {
    match (field.type_as_int(), field.type_type().variant_name()) {
        (Some(int), _) => {
            let sign = if int.is_signed() { "" } else { "u" };
            format!("{sign}int{}", int.bitWidth())
        }
        (None, name) => name.unwrap_or("nested values").trim_end_matches('_').to_lowercase(),
    }
}
