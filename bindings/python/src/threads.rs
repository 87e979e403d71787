//! Computing outside of the interpreter, on one thread or several.

use std::process;
use std::sync::{Mutex, OnceLock, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use rayon::ThreadPool;
use shafer::Threads;

use crate::error::caught;

/// With fewer elements, releasing the interpreter takes longer than computing, and getting it back can take the
/// 5 ms for which another thread may hold it.
const RELEASE: usize = 2048;

/// The number of threads of a call; `None` is all.
pub(crate) fn threads(number: Option<usize>) -> PyResult<Threads> {
    match number {
        None => Ok(Threads::All),
        Some(0) => {
            Err(PyValueError::new_err("threads is 0, but must be at least 1, or None for all"))
        }
        Some(1) => Ok(Threads::One),
        Some(most) => Ok(Threads::AtMost(most)),
    }
}

/// Computes on `elements` elements, with the interpreter released if there are many.
pub(crate) fn compute<T: Send>(
    py: Python<'_>,
    elements: usize,
    threads: Threads,
    work: impl FnOnce() -> PyResult<T> + Send,
) -> PyResult<T> {
    caught(|| {
        if elements < RELEASE {
            work()
        } else if threads == Threads::One {
            py.detach(work)
        } else {
            py.detach(|| in_pool(work))
        }
    })
}

/// Runs `work` with a pool of threads that exist.
///
/// A process made by `fork`, as `multiprocessing` does, has rayon's global pool without its threads: waiting for them
/// would never end. It gets a pool of its own.
fn in_pool<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    static HOME: OnceLock<u32> = OnceLock::new();
    static FORKED: Mutex<Option<(u32, &'static ThreadPool)>> = Mutex::new(None);

    let id = process::id();
    if *HOME.get_or_init(|| id) == id {
        return work();
    }
    let pool = {
        let mut forked = FORKED.lock().unwrap_or_else(PoisonError::into_inner);
        match *forked {
            Some((owner, pool)) if owner == id => Some(pool),
            _ => {
                // The pool of the parent, if it was a fork too, is leaked: it cannot be joined.
                let pool = rayon::ThreadPoolBuilder::new().build().ok();
                let pool = pool.map(|pool| &*Box::leak(Box::new(pool)));
                *forked = pool.map(|pool| (id, pool));
                pool
            }
        }
    };
    match pool {
        Some(pool) => pool.install(work),
        // No thread can be started: a pool of the calling thread alone always can.
        None => work(),
    }
}
