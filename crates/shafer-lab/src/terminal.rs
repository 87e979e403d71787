//! How much fits on a line.

use std::io;

use terminal_size::{Width, terminal_size_of};

/// The width of the terminal; where there is none, what `COLUMNS` says, or 80.
pub(crate) fn width() -> usize {
    let terminal = terminal_size_of(io::stdout()).map(|(Width(width), _)| width.into());
    let told = || std::env::var("COLUMNS").ok()?.parse().ok();
    terminal.or_else(told).unwrap_or(80)
}
