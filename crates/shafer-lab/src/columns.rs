//! The columns of a table that are read as classes.

use std::fmt;

use anyhow::{Result, bail};
use serde::Serialize;
use shafer_data::{ArrayReader, Columns};

use crate::stream::Rows;

/// The line of a summary about the columns of a table; empty for other files.
#[derive(Clone, Debug)]
pub(crate) struct Taken(Option<Columns>);

impl Taken {
    pub(crate) fn of(rows: &Rows) -> Self {
        Self(rows.columns().cloned())
    }

    /// Adds the key `columns` to a report.
    pub(crate) fn beside<'a, T: Serialize>(&'a self, report: &'a T) -> impl Serialize + 'a {
        #[derive(Serialize)]
        struct Names<'a> {
            taken: &'a [String],
            left_out: &'a [String],
        }
        #[derive(Serialize)]
        struct Beside<'a, T> {
            #[serde(flatten)]
            report: &'a T,
            #[serde(skip_serializing_if = "Option::is_none")]
            columns: Option<Names<'a>>,
        }
        let names =
            |columns: &'a Columns| Names { taken: &columns.taken, left_out: &columns.left_out };
        Beside { report, columns: self.0.as_ref().map(names) }
    }
}

/// One line or nothing.
impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |columns| writeln!(f, "columns         {columns}"))
    }
}

/// Refuses rows of a single number, which are no distributions over classes.
pub(crate) fn check_classes(reader: &dyn ArrayReader) -> Result<()> {
    match reader.columns() {
        Some(columns) if columns.lists => {}
        Some(Columns { taken, .. }) => {
            if let [only] = &taken[..] {
                bail!(
                    "`{}` has one number per row instead of one per class; choose a column of \
                     lists, or several columns with --columns",
                    only.escape_debug()
                );
            }
        }
        None if reader.info().open_ended && reader.info().shape == [1] => bail!(
            "has one number per line instead of one per class; write one row per line, or name \
             the separator with --delimiter"
        ),
        None => {}
    }
    Ok(())
}
