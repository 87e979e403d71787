//! SQL over tables of logits.
//!
//! The transforms of the crate `shafer` as scalar functions of `DataFusion`, over columns of lists of `f16`, `f32` or
//! `f64`. [`functions`] are for a session of your own, a [`Query`] is one over folders and patterns of Parquet
//! files, on this machine or, with the feature `cluster`, on a cluster of Ballista.
//!
//! ```
//! use shafer_sql::Query;
//!
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("part.parquet");
//! # let ids = shafer_data::Column::Integers(vec![7, 8]);
//! # shafer_data::write_table(&path, &[("id", ids)])?;
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! let sql = format!("SELECT id, conflict([2.0, 2.0, -4.0]) AS c FROM '{}/*.parquet'", folder.path().display());
//! let mut batches = Vec::new();
//! let query = Query::new(&sql).prepare().await?;
//! let counts = query.run(&mut |batch| { batches.push(batch.clone()); Ok(()) }).await?;
//! assert_eq!(counts.rows, 2);
//! # anyhow::Ok(())
//! # })?;
//! # anyhow::Ok(())
//! ```
//!
//! # Rows
//!
//! - A null row gives null. A row that is empty or has NaN is an error that names the function, the column and the row;
//!   `logits_error(logits)` finds such rows.
//! - Draws depend on the row and its seed alone, so that they are the same on any machine.

mod arguments;
mod context;
mod error;
mod functions;
mod output;
mod query;
mod tables;

#[cfg(feature = "cluster")]
pub mod cluster;

pub use error::RowError;
pub use functions::{Description, descriptions, functions};
pub use output::{Format, Output};
pub use query::{Counts, Lost, Prepared, Query};
