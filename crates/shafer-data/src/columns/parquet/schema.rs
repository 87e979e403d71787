//! The Arrow types of the columns of a Parquet file.

use std::sync::Arc;

use arrow_ipc::convert::try_schema_from_ipc_buffer;
use arrow_schema::{DataType, Field, Schema, TimeUnit};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use parquet::arrow::parquet_to_arrow_schema;
use parquet::basic::Type;
use parquet::errors::ParquetError;
use parquet::file::metadata::FileMetaData;
use parquet::schema::types::SchemaDescriptor;

/// The key of the schema that a writer of Arrow has left.
const SCHEMA: &str = "ARROW:schema";

/// The key of Spark's version in the files that it writes.
const SPARK: &str = "org.apache.spark.version";

/// The schema of a file. Its writer's own says what Parquet cannot.
pub(super) fn schema(file: &FileMetaData) -> Result<Schema, ParquetError> {
    let found = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
    let note = |key| file.key_value_metadata().into_iter().flatten().find(move |n| n.key == key);
    let written = note(SCHEMA)
        .and_then(|note| BASE64_STANDARD.decode(note.value.as_ref()?).ok())
        .and_then(|bytes| try_schema_from_ipc_buffer(&bytes).ok())
        .filter(|schema| schema.fields().len() == found.fields().len());
    let spark = note(SPARK).is_some();
    let mut leaves = Leaves { file: file.schema_descr(), next: 0, spark };
    let fields = found.fields().iter().enumerate().map(|(i, field)| {
        leaves.field(field, written.as_ref().map(|schema| schema.field(i).data_type()))
    });
    let fields: Vec<_> = fields.collect();
    Ok(Schema::new_with_metadata(fields, found.metadata().clone()))
}

/// The columns of a file that have values, in order: a type without types inside is the next of them.
struct Leaves<'a> {
    file: &'a SchemaDescriptor,
    next: usize,
    /// Whether Spark has written the file.
    spark: bool,
}

impl Leaves<'_> {
    fn field(&mut self, found: &Arc<Field>, written: Option<&DataType>) -> Arc<Field> {
        let kind = self.kind(found.data_type(), written);
        Arc::new(Field::clone(found).with_data_type(kind))
    }

    /// The type that is read as `found`, but for what the library forgets of the one that was `written`.
    fn kind(&mut self, found: &DataType, written: Option<&DataType>) -> DataType {
        use DataType as D;
        let inner = match written {
            Some(
                D::List(item)
                | D::LargeList(item)
                | D::ListView(item)
                | D::LargeListView(item)
                | D::FixedSizeList(item, _)
                | D::Map(item, _),
            ) => Some(item.data_type()),
            _ => None,
        };
        match found {
            D::List(item) => return D::List(self.field(item, inner)),
            D::LargeList(item) => return D::LargeList(self.field(item, inner)),
            D::ListView(item) => return D::ListView(self.field(item, inner)),
            D::LargeListView(item) => return D::LargeListView(self.field(item, inner)),
            D::FixedSizeList(item, n) => return D::FixedSizeList(self.field(item, inner), *n),
            D::Map(item, sorted) => return D::Map(self.field(item, inner), *sorted),
            D::Struct(fields) => {
                let written = match written {
                    Some(D::Struct(written)) if written.len() == fields.len() => Some(written),
                    _ => None,
                };
                let fields = fields.iter().enumerate();
                return D::Struct(
                    fields
                        .map(|(i, field)| self.field(field, written.map(|w| w[i].data_type())))
                        .collect(),
                );
            }
            _ => {}
        }
        let is = |physical| {
            let leaf = self.next;
            leaf < self.file.num_columns() && self.file.column(leaf).physical_type() == physical
        };
        let kind = match (found, written) {
            // The zone of seconds, which Parquet has as milliseconds.
            (
                D::Timestamp(TimeUnit::Millisecond, Some(_)),
                Some(D::Timestamp(TimeUnit::Second, zone @ Some(_))),
            ) => D::Timestamp(TimeUnit::Millisecond, zone.clone()),
            // Spark's times of 96 bits are instants in microseconds, and it does not read nanoseconds.
            (D::Timestamp(TimeUnit::Nanosecond, None), _) if self.spark && is(Type::INT96) => {
                D::Timestamp(TimeUnit::Microsecond, Some("UTC".into()))
            }
            // Days of 64 bits are days of 32 in Parquet. The library would write them as plain integers.
            (D::Date64, _) if is(Type::INT32) => D::Date32,
            _ => found.clone(),
        };
        self.next += 1;
        kind
    }
}
