//! How many threads a call may use, and how they share its work.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// How many threads a call may use. The results are the same to the bit.
///
/// ```
/// use shafer::{Logits, Method, Threads};
///
/// let logits = [0.5_f32; 4096];
/// let batch = Logits::rows(&logits, 8)?;
/// let one = Method::SOFTMAX.dense(&batch, Threads::One)?;
/// assert_eq!(one, Method::SOFTMAX.dense(&batch, Threads::All)?);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// The calling thread only.
    #[default]
    One,
    /// The calling thread and the current `rayon` pool. Without the feature `parallel`, as
    /// [`Self::One`].
    All,
    /// As [`Self::All`], but at most this number of threads, the calling one included.
    AtMost(usize),
}

impl Threads {
    /// The number of threads to use for `tasks` tasks.
    pub(crate) fn count(self, tasks: usize) -> usize {
        #[cfg(feature = "parallel")]
        let pool = rayon::current_num_threads;
        #[cfg(not(feature = "parallel"))]
        let pool = || 1;
        let most = match self {
            _ if tasks <= 1 => 1,
            Self::One => 1,
            Self::All => pool(),
            Self::AtMost(most) => pool().min(most),
        };
        most.clamp(1, tasks.max(1))
    }
}

/// Runs `work` on this thread, and `help` on `threads - 1` threads of the pool meanwhile.
///
/// The calling thread does not wait for the pool to wake up: it begins, and the others join it.
pub(crate) fn with_help<R>(threads: usize, help: impl Fn() + Sync, work: impl FnOnce() -> R) -> R {
    #[cfg(feature = "parallel")]
    if threads > 1 {
        return rayon::in_place_scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|_| help());
            }
            work()
        });
    }
    let _ = (threads, help);
    work()
}

/// Does tasks in any order on `threads` threads, each with a worker, and sums what they return. Of
/// several errors, the one of the first task is returned.
pub(crate) fn share<T, W>(
    threads: usize,
    tasks: impl Iterator<Item = T> + Send,
    worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, T) -> Result<usize> + Sync,
) -> Result<usize> {
    let queue = Mutex::new(tasks.enumerate().fuse());
    let (total, failed) = (AtomicUsize::new(0), Mutex::new(None::<(usize, Error)>));
    let next = || lock(&queue).next();
    let run = || {
        let mut worker = worker();
        while let Some((number, task)) = next() {
            match work(&mut worker, task) {
                Ok(count) => {
                    total.fetch_add(count, Ordering::Relaxed);
                }
                Err(error) => {
                    // Later tasks are given up; earlier ones have been taken and may still fail.
                    lock(&queue).by_ref().for_each(drop);
                    let mut failed = lock(&failed);
                    if failed.as_ref().is_none_or(|(first, _)| number < *first) {
                        *failed = Some((number, error));
                    }
                }
            }
        }
    };
    with_help(threads, run, run);
    let failed = lock(&failed).take();
    failed.map_or(Ok(total.into_inner()), |(_, error)| Err(error))
}

/// Locks a mutex. Poisoning is ignored: the panic of the other thread is propagated anyway.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
