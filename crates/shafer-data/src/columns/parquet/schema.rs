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

/// The key of the schema that a writer of Arrow has left.
const SCHEMA: &str = "ARROW:schema";

/// The schema of a file. Its writer's own says what Parquet cannot.
pub(super) fn schema(file: &FileMetaData) -> Result<Schema, ParquetError> {
    let found = parquet_to_arrow_schema(file.schema_descr(), file.key_value_metadata())?;
    let note = file.key_value_metadata().into_iter().flatten().find(|note| note.key == SCHEMA);
    let written = note
        .and_then(|note| BASE64_STANDARD.decode(note.value.as_ref()?).ok())
        .and_then(|bytes| try_schema_from_ipc_buffer(&bytes).ok());
    let Some(written) = written.filter(|schema| schema.fields().len() == found.fields().len())
    else {
        return Ok(found);
    };
    let mut fields = Vec::with_capacity(found.fields().len());
    for (i, (field, written)) in found.fields().iter().zip(written.fields()).enumerate() {
        let kind = match (field.data_type(), written.data_type()) {
            // The library forgets the zone of seconds, which Parquet has as milliseconds.
            (
                DataType::Timestamp(TimeUnit::Millisecond, Some(_)),
                DataType::Timestamp(TimeUnit::Second, zone @ Some(_)),
            ) => Some(DataType::Timestamp(TimeUnit::Millisecond, zone.clone())),
            // Days of 64 bits are days of 32 in Parquet. The library would write them as plain integers.
            (DataType::Date64, _) if is_narrow(file, i) => Some(DataType::Date32),
            _ => None,
        };
        fields.push(match kind {
            Some(kind) => Arc::new(Field::clone(field).with_data_type(kind)),
            None => Arc::clone(field),
        });
    }
    Ok(Schema::new_with_metadata(fields, found.metadata().clone()))
}

/// Whether a column has numbers of 32 bits.
fn is_narrow(file: &FileMetaData, column: usize) -> bool {
    let descriptor = file.schema_descr();
    let mut leaves = 0..descriptor.num_columns();
    leaves
        .find(|&leaf| descriptor.get_column_root_idx(leaf) == column)
        .is_some_and(|leaf| descriptor.column(leaf).physical_type() == Type::INT32)
}
