//! Offsets of 0 in the metadata of Arrow.
//!
//! An offset leads from its own place to a later one, so that 0 is damage. The crate `flatbuffers` accepts it, and
//! takes the offset itself for a table without fields: a type of 32 bits becomes the first of its kind, of 16.

use arrow_ipc::{DictionaryBatch, Field, Footer, Message, RecordBatch, Schema, Timestamp, Union};

/// Whether none of these fields of a table, which are offsets, is 0.
macro_rules! sound {
    ($table:expr, $($slot:expr),+) => {{
        let table = &$table._tab;
        let places = [$(table.vtable().get($slot)),+];
        places.into_iter().all(|place| place == 0 || leads_on(table.buf(), table.loc(), place))
    }};
}

fn leads_on(bytes: &[u8], table: usize, place: u16) -> bool {
    let offset = bytes.get(table + usize::from(place)..).and_then(|rest| rest.first_chunk());
    offset.is_some_and(|offset: &[u8; 4]| *offset != [0; 4])
}

/// The directory of a file.
pub(super) fn footer(footer: Footer<'_>) -> bool {
    sound!(footer, Footer::VT_SCHEMA, Footer::VT_DICTIONARIES, Footer::VT_RECORDBATCHES)
}

/// A message with its batch.
pub(super) fn message(message: Message<'_>) -> bool {
    if !sound!(message, Message::VT_HEADER) {
        return false;
    }
    let mut batch = message.header_as_record_batch();
    if let Some(dictionary) = message.header_as_dictionary_batch() {
        if !sound!(dictionary, DictionaryBatch::VT_DATA) {
            return false;
        }
        batch = dictionary.data();
    }
    batch.is_none_or(|batch| {
        sound!(
            batch,
            RecordBatch::VT_NODES,
            RecordBatch::VT_BUFFERS,
            RecordBatch::VT_COMPRESSION,
            RecordBatch::VT_VARIADICBUFFERCOUNTS
        )
    })
}

/// A schema with the types of its columns.
pub(super) fn schema(schema: Schema<'_>) -> bool {
    sound!(schema, Schema::VT_FIELDS, Schema::VT_CUSTOM_METADATA, Schema::VT_FEATURES)
        && schema.fields().into_iter().flatten().all(field)
}

fn field(column: Field<'_>) -> bool {
    sound!(
        column,
        Field::VT_NAME,
        Field::VT_TYPE_,
        Field::VT_DICTIONARY,
        Field::VT_CHILDREN,
        Field::VT_CUSTOM_METADATA
    ) && column.type_as_timestamp().is_none_or(|time| sound!(time, Timestamp::VT_TIMEZONE))
        && column.type_as_union().is_none_or(|union| sound!(union, Union::VT_TYPEIDS))
        && column.children().into_iter().flatten().all(field)
}
