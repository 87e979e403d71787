//! Compressed rows from several threads.
//!
//! Where a block of rows goes is only known when it is known how many entries all blocks before it have.
//! So every thread first finds that out for a block that is small enough to stay in its cache, waits
//! for its turn to take its place, and then writes the block, and prepares the next one meanwhile. A turn takes as
//! long as adding a number: the writing is done by all threads at once.

use std::hint::spin_loop;
use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::yield_now;

use crate::compressed::{CompressedRows, Places};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::threads::on_all;

/// After so many looks at whose turn it is, somebody else may need the processor: perhaps the thread whose turn it
/// is, which would otherwise stand still for as long as the others look.
const PATIENCE: usize = 1 << 6;

/// The turn of nobody any more.
const STOPPED: usize = usize::MAX;

/// What is known of a block before it has its place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    /// The number of entries.
    pub(crate) entries: usize,
    /// The number of vacuous rows.
    pub(crate) vacuous: usize,
}

/// What a thread does with blocks, one after the other.
pub(crate) trait BlockWriter<E> {
    /// Finds out the size of these rows.
    fn prepare(&mut self, rows: Range<usize>) -> Result<Size>;

    /// Writes what was prepared last to its place.
    fn write(&mut self, place: Places<'_, E>);

    /// The one and then, or meanwhile, the other, for the next rows.
    fn write_and_prepare(&mut self, place: Places<'_, E>, rows: Range<usize>) -> Result<Size>;
}

/// Adds rows to `out`, `block_rows` at a time; the number of vacuous ones. Of several errors, the one of the
/// first block counts.
pub(crate) fn add_rows<E: Element, W: BlockWriter<E>>(
    out: &mut CompressedRows<E>,
    rows: usize,
    block_rows: usize,
    writer: impl Fn() -> W + Sync,
) -> Result<usize> {
    let threads = rayon::current_num_threads();
    let mut vacuous = 0;
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
                vacuous: 0,
                error: None,
            }),
        };
        on_all(|| round.run(&writer));
        let State { places, vacuous: found, error } =
            round.state.into_inner().unwrap_or_else(PoisonError::into_inner);
        done = rows - places.rows();
        out.keep_rows(done);
        if let Some(error) = error {
            return Err(error);
        }
        vacuous += found;
    }
    Ok(vacuous)
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
    vacuous: usize,
    error: Option<Error>,
}

impl<'a, E: Element> Round<'a, E> {
    fn run<W: BlockWriter<E>>(&self, writer: impl Fn() -> W) {
        // Also if something panics: the others must not wait for it.
        let stop = StopWhenDropped(&self.turn);
        if let Some((mut number, mut rows)) = self.claim() {
            let mut writer = writer();
            let mut size = writer.prepare(rows.clone());
            loop {
                if !self.wait(number) {
                    return;
                }
                let Some(place) = self.take(size, rows.len()) else { return };
                // Not over the sign of a thread that panics just now.
                let (now, next) = (number, number + 1);
                let _ = self.turn.compare_exchange(now, next, Ordering::Release, Ordering::Relaxed);
                let Some(next) = self.claim() else {
                    writer.write(place);
                    break;
                };
                (number, rows) = next;
                size = writer.write_and_prepare(place, rows.clone());
            }
        }
        std::mem::forget(stop);
    }

    /// The number of the next block, and its rows.
    fn claim(&self) -> Option<(usize, Range<usize>)> {
        let number = self.claimed.fetch_add(1, Ordering::Relaxed);
        let start = self.first_row + number * self.block_rows;
        (start < self.rows).then(|| (number, start..self.rows.min(start + self.block_rows)))
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
    fn take(&self, size: Result<Size>, rows: usize) -> Option<Places<'a, E>> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        match size {
            Ok(Size { entries, vacuous }) => {
                let place = state.places.take(rows, entries)?;
                state.vacuous += vacuous;
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
