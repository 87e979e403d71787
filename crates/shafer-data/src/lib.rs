//! Reads and writes array files, reads models and data sets.
//!
//! Arrays are read and written in blocks, so memory use does not depend on the number of rows. Errors are
//! one line: what is wrong, where, and what to do.
//!
//! - Reading: [`open`] returns an [`ArrayReader`] for a [`Location`], and [`list`] the arrays of a file.
//!   [`open_with`] selects columns of a table, [`open_mask`] reads masks and [`open_labels`] integers.
//! - Models: [`heads`] lists the tensors that can be the last linear layer, and [`load_head`] loads one. A
//!   [`HeadRequest`] specifies the layout that the file leaves open.
//! - Data sets: [`dataset`] finds, verifies and reads them.
//! - Tables: [`Table`] reads any columns of Parquet and Arrow files, and [`TableCopy`] writes such files. [`table_files`]
//!   finds the parts of one.
//! - Writing: [`create`] returns a [`RowWriter`] for dense or [`SparseRows`].

mod array;
mod atomic;
mod columns;
pub mod dataset;
mod delimiter;
mod entry;
mod error;
mod find;
mod fortran;
mod gunzip;
mod lines;
mod location;
mod mask;
mod model;
mod npy;
mod npz;
mod open;
mod parts;
mod raw;
mod safetensors;
mod select;
mod text;
mod unchanged;
mod values;
mod write;

pub use array::{ArrayInfo, ArrayReader};
pub use atomic::AtomicFile;
pub use columns::{Table, TableBatches, TableForm};
pub use delimiter::Delimiter;
pub use error::{Error, Result};
pub use find::{has_wildcard, is_pattern, is_table, means_several, table_files};
pub use location::Location;
pub use mask::{MaskReader, open_mask};
pub use model::{
    BiasChoice, Doubt, HeadCandidate, HeadRequest, HeadWeights, ModelFile, Orientation, TensorInfo,
    heads, load_head,
};
pub use open::{list, open, open_labels, open_with};
pub use parts::{open_label_parts, open_parts};
pub use select::{Columns, TableOptions};
pub use values::{Dtype, Values, ValuesRef};
pub use write::{
    Column, CsrNpzWriter, CsvWriter, NpyWriter, ParquetWriter, RowWriter, SafetensorsWriter,
    SparseRows, TableCopy, TableWriter, create, table_note, write_table, written_here,
};
