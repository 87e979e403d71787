//! Tables for the terminal.

use std::fmt::Write as _;

/// Adds a row: the first cell begins its column, the others end theirs.
pub(crate) fn row(text: &mut String, widths: &[usize], cells: impl IntoIterator<Item = String>) {
    for (place, (cell, width)) in cells.into_iter().zip(widths).enumerate() {
        let _ = match place {
            0 => write!(text, "{cell:<width$}"),
            _ => write!(text, "{cell:>width$}"),
        };
    }
    text.push('\n');
}
