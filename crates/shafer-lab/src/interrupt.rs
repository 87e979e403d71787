//! Ctrl-C: stops between two blocks, so that temporary files are removed.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// 128 + SIGINT, the exit code that shells use.
pub(crate) const EXIT_CODE: u8 = 130;

/// Whether a job has started that needs cleaning up.
static HELD: AtomicBool = AtomicBool::new(false);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// The error of an interrupted job, with the state it leaves.
#[derive(Debug)]
pub(crate) struct Interrupted(pub(crate) &'static str);

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "interrupted; {}", self.0)
    }
}

impl std::error::Error for Interrupted {}

/// Installs the handler. The first Ctrl-C before [`hold`], and the second at any time, end the program at once.
pub(crate) fn listen() -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(|| {
        if !HELD.load(Ordering::Relaxed) || INTERRUPTED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(EXIT_CODE));
        }
    })
}

/// From now on, Ctrl-C only stops the job where it calls [`check`].
pub(crate) fn hold() {
    HELD.store(true, Ordering::Relaxed);
}

/// Fails after Ctrl-C.
pub(crate) fn check() -> Result<(), Interrupted> {
    if INTERRUPTED.load(Ordering::Relaxed) {
        return Err(Interrupted("nothing was written"));
    }
    Ok(())
}
