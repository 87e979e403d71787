//! Work on all threads of the pool, the caller's among them.
//!
//! A caller from outside the pool does not hand its work over and wait, but begins with it: the others take their
//! shares when they are awake. That takes them a twentieth of a millisecond, in which hundreds of rows of 512 classes are
//! done. And whoever sleeps while its work is done frees a processor at the moment when the others are given theirs, so
//! that two of them may find themselves on one, for milliseconds.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::error::{Error, Result};

/// Into how many shares for each thread the rest is divided when one of them is taken: large ones at first, since the
/// rows of a share follow each other in memory, and small ones in the end, so that all threads end together.
const SHARES: usize = 2;

/// Does it once on each thread of the pool, as far as there is time before the first one is done.
pub(crate) fn on_all(work: impl Fn() + Sync) {
    rayon::in_place_scope(|scope| {
        for _ in 1..rayon::current_num_threads() {
            scope.spawn(|_| work());
        }
        work();
    });
}

/// Works on chunks of `size` items, each with its number, and adds up what they return; of several
/// errors, the one of the first chunk counts, whichever thread came across it first.
pub(crate) fn for_chunks<T: Send, W>(
    items: &mut [T],
    size: usize,
    worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize, &mut [T]) -> Result<usize> + Sync,
) -> Result<usize> {
    let shared = Shared(Mutex::new(State { rest: items, next: 0, total: 0, error: None }));
    on_all(|| {
        let mut worker = worker();
        let mut total = 0;
        while let Some((first, share)) = shared.take(size) {
            for (i, chunk) in share.chunks_mut(size).enumerate() {
                match work(&mut worker, first + i, chunk) {
                    Ok(more) => total += more,
                    Err(error) => return shared.fail(first + i, error),
                }
            }
        }
        shared.lock().total += total;
    });
    let State { total, error, .. } = shared.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    error.map_or(Ok(total), |(_, error)| Err(error))
}

struct Shared<'a, T>(Mutex<State<'a, T>>);

struct State<'a, T> {
    /// What no thread has taken yet,
    rest: &'a mut [T],
    /// and the number of its first chunk.
    next: usize,
    total: usize,
    /// With the number of the chunk.
    error: Option<(usize, Error)>,
}

impl<'a, T> Shared<'a, T> {
    fn lock(&self) -> MutexGuard<'_, State<'a, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next few chunks and the number of the first one.
    fn take(&self, size: usize) -> Option<(usize, &'a mut [T])> {
        let mut state = self.lock();
        let chunks = state.rest.len().div_ceil(size);
        if chunks == 0 {
            return None;
        }
        let first = state.next;
        let count = chunks.div_ceil(SHARES * rayon::current_num_threads());
        state.next += count;
        let items = (count * size).min(state.rest.len());
        state.rest.split_off_mut(..items).map(|share| (first, share))
    }

    /// What comes later does not matter any more; what was taken before may still have an error of its own.
    fn fail(&self, chunk: usize, error: Error) {
        let mut state = self.lock();
        state.rest = &mut [];
        if state.error.as_ref().is_none_or(|(first, _)| chunk < *first) {
            state.error = Some((chunk, error));
        }
    }
}
