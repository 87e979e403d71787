//! Bytes to typed arrays.
//!
//! Files are read and written in blocks, so that memory does not grow with the number of rows. What
//! is wrong with a file is said in one line: what, where, and what to do.
//!
//! Reading: [`Location`] says where, [`open`] gives an [`ArrayReader`], [`list`] what there is;
//! [`open_with`] chooses columns of a table; [`open_mask`] gives 0 and 1 of any type,
//! [`open_labels`] integers of any type.
//! Models: [`heads`] lists what may be the last linear layer, [`load_head`] loads it; a [`HeadRequest`]
//! says how it lies where the file does not.
//! Data sets: [`dataset`] finds, verifies and reads them.
//! Writing: [`create`] gives a [`RowWriter`], which takes [`SparseRows`] or dense ones.

mod array;
mod atomic;
mod columns;
pub mod dataset;
mod delimiter;
mod entry;
mod error;
mod fortran;
mod gunzip;
mod lines;
mod location;
mod mask;
mod model;
mod npy;
mod npz;
mod open;
mod raw;
mod safetensors;
mod select;
mod text;
mod unchanged;
mod values;
mod write;

pub use array::{ArrayInfo, ArrayReader};
pub use atomic::AtomicFile;
pub use delimiter::Delimiter;
pub use error::{Error, Result};
pub use location::Location;
pub use mask::{MaskReader, open_mask};
pub use model::{
    BiasChoice, Doubt, HeadCandidate, HeadRequest, HeadWeights, ModelFile, Orientation, TensorInfo,
    heads, load_head,
};
pub use open::{list, open, open_labels, open_with};
pub use select::{Columns, TableOptions};
pub use values::{Dtype, Values, ValuesRef};
pub use write::{
    Column, CsrNpzWriter, CsvWriter, NpyWriter, ParquetWriter, RowWriter, SafetensorsWriter,
    SparseRows, TableWriter, create, write_table, written_here,
};
