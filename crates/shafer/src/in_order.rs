//! Compressed rows from several threads.
//!
//! Where a block of rows goes is only known when all blocks before it have been computed. So every
//! thread computes blocks into memory of its own, small enough to stay in its cache, and puts each
//! in its place when its turn comes. A turn takes as long as adding a number: the copying is done
//! by all threads at once.

use std::hint::spin_loop;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::yield_now;

use crate::compressed::{CompressedRows, Places, Unscaled};
use crate::element::Element;
use crate::error::{Error, Result};

/// After so many looks at whose turn it is, somebody else may need the processor.
const PATIENCE: usize = 1 << 12;

/// The turn of nobody any more.
const STOPPED: usize = usize::MAX;

/// Adds rows to `out`, `block_rows` at a time; the sum of what `work` returns. It is given the first
/// row and the number of rows of a block, and memory to compute them in. Of several errors, the one of
/// the first block counts.
pub(crate) fn add_rows<E: Element, W>(
    out: &mut CompressedRows<E>,
    rows: usize,
    block_rows: usize,
    worker: impl Fn() -> W + Sync,
    work: impl Fn(&mut W, usize, usize, &mut Unscaled<E>) -> Result<usize> + Sync,
) -> Result<usize> {
    let threads = rayon::current_num_threads();
    let mut total = 0;
    let mut done = 0;
    // Once, as a rule: only where there is not enough room for all is there another round.
    while done < rows {
        let most = (rows - done).min(threads * block_rows) * out.classes();
        let round = Round {
            first_row: done,
            rows,
            block_rows,
            claimed: AtomicUsize::new(0),
            turn: AtomicUsize::new(0),
            state: Mutex::new(State {
                places: out.places(rows - done, most),
                total: 0,
                error: None,
            }),
        };
        rayon::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|_| round.run(&worker, &work));
            }
        });
        let State { places, total: sum, error } =
            round.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        done = rows - places.rows();
        out.keep_rows(done);
        if let Some(error) = error {
            return Err(error);
        }
        total += sum;
    }
    Ok(total)
}

/// What the threads share until all rows are in place or the room is used up.
struct Round<'a, E> {
    first_row: usize,
    rows: usize,
    block_rows: usize,
    /// The next block to compute.
    claimed: AtomicUsize,
    /// The next block to be put in its place.
    turn: AtomicUsize,
    state: Mutex<State<'a, E>>,
}

struct State<'a, E> {
    /// What is left of them.
    places: Places<'a, E>,
    total: usize,
    error: Option<Error>,
}

impl<'a, E: Element> Round<'a, E> {
    fn run<W>(
        &self,
        worker: impl Fn() -> W,
        work: impl Fn(&mut W, usize, usize, &mut Unscaled<E>) -> Result<usize>,
    ) {
        // Also if something panics: the others must not wait for it.
        let stop = StopWhenDropped(&self.turn);
        let mut worker = worker();
        let mut block = Unscaled::default();
        loop {
            let number = self.claimed.fetch_add(1, Ordering::Relaxed);
            let start = self.first_row + number * self.block_rows;
            if start >= self.rows {
                break;
            }
            let count = self.block_rows.min(self.rows - start);
            let result = work(&mut worker, start, count, &mut block);
            if !self.wait(number) {
                return;
            }
            let Some(place) = self.take(result, count, block.rows.stored()) else { return };
            self.turn.store(number + 1, Ordering::Release);
            place.put(&block);
        }
        std::mem::forget(stop);
    }

    /// Until it is the turn of this block; false if that will never be.
    ///
    /// The blocks before it have been claimed by threads that are at work on them, so the wait is
    /// short.
    fn wait(&self, number: usize) -> bool {
        let mut looks = 0;
        loop {
            match self.turn.load(Ordering::Acquire) {
                STOPPED => return false,
                turn if turn == number => return true,
                _ if looks < PATIENCE => spin_loop(),
                _ => yield_now(),
            }
            looks += 1;
        }
    }

    /// The place of the block whose turn it is, if it has no error and there is room.
    fn take(&self, result: Result<usize>, rows: usize, entries: usize) -> Option<Places<'a, E>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match result {
            Ok(number) => {
                let place = state.places.take(rows, entries)?;
                state.total += number;
                Some(place)
            }
            Err(error) => {
                state.error = Some(error);
                None
            }
        }
    }
}

/// Ends the round, unless it is forgotten.
struct StopWhenDropped<'a>(&'a AtomicUsize);

impl Drop for StopWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(STOPPED, Ordering::Release);
    }
}
