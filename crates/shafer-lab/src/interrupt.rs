//! Ctrl-C: stops between two blocks, so that no half-written file is left behind.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// The exit code of a program that was interrupted, as shells have it.
pub(crate) const EXIT_CODE: u8 = 130;

/// Whether there is something to be left in order.
static HELD: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// Why a job stopped.
#[derive(Debug)]
pub(crate) struct Interrupted;

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("interrupted; nothing was written")
    }
}

impl std::error::Error for Interrupted {}

/// Listens from now on. Before anything is held, the program simply ends; and whoever asks twice is
/// not kept waiting for the block.
pub(crate) fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if !HELD.load(Ordering::Relaxed) || INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_CODE));
        }
    })
}

/// From now on, a job is stopped where it calls [`check`].
pub(crate) fn hold() {
    HELD.store(true, Ordering::Relaxed);
}

/// An error once somebody has asked to stop.
pub(crate) fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::Relaxed) { Err(Interrupted) } else { Ok(()) }
}
