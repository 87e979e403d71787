//! Sparse distributions of lists of logits in Arrow arrays.
//!
//! A column of lists of `f16`, `f32` or `f64` goes in as [`LogitLists`], and lists or numbers come out, one for each
//! row: the transforms of the crate `shafer` as arrays. The command line tool, SQL and Python call this crate.
//!
//! ```
//! use arrow_array::{Array, ListArray, cast::AsArray, types::Float64Type};
//! use shafer::Method;
//! use shafer_arrow::LogitLists;
//!
//! let row = |logits: &[f64]| Some(logits.iter().copied().map(Some).collect::<Vec<_>>());
//! let rows = [row(&[1.0, 1.0, 0.0]), None, row(&[0.0, 3.0])];
//! let column = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
//! let logits = LogitLists::new(&column)?;
//!
//! // Lists of a class and its probability.
//! let (sparse, counts) = logits.sparse(Method::EVIDENTIAL)?;
//! let first = sparse.as_list::<i32>().value(0);
//! assert_eq!(first.as_struct().column(1).as_primitive::<Float64Type>().values(), &[0.5, 0.5]);
//! assert_eq!(counts.rows, 2);
//! assert!(sparse.is_null(1));
//!
//! assert_eq!(logits.support_size(Method::EVIDENTIAL)?.values(), &[2, 0, 1]);
//! # Ok::<(), shafer_arrow::Error>(())
//! ```
//!
//! # Rows
//!
//! - A null row gives a null row.
//! - Rows may differ in length, in lists and large lists. A row has at least one class.
//! - `-inf` masks a class. A null inside a row, NaN and `+inf` are errors that name row and column.
//! - The row of an error counts from the beginning of the array.
//!
//! # Contents
//!
//! | | |
//! |---|---|
//! | distributions | [`LogitLists::sparse`], [`LogitLists::dense`], [`sparse_type`], [`split`] |
//! | numbers | [`LogitLists::support_size`], [`LogitLists::ignorance`], [`LogitLists::conflict`], [`LogitLists::belief`], [`LogitLists::draw`] |
//! | errors | [`Error`], [`Result`] |

mod dense;
mod draw;
mod error;
mod evidence;
mod lists;
mod sets;
mod sparse;

pub use error::{Error, Result};
pub use lists::LogitLists;
pub use sparse::{sparse_type, split};
