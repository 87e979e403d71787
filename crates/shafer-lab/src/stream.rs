//! Rows of logits, block after block: one thread reads while the others compute.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Context as _, Result, bail};
use shafer_data::{ArrayReader, Values};

/// How many logits a block has, more or less: enough that handing it over costs nothing, and few
/// enough that three of them are no memory to speak of.
const BLOCK: usize = 1 << 21;

/// Rows of equal length.
pub(crate) struct Rows {
    reader: Box<dyn ArrayReader>,
    classes: usize,
    count: Option<usize>,
}

impl Rows {
    /// The vectors along the last axis of an array.
    pub(crate) fn new(reader: Box<dyn ArrayReader>) -> Result<Self> {
        let info = reader.info();
        let Some(&classes) = info.shape.last() else {
            bail!("the array is a single number, but rows of logits are needed");
        };
        if classes == 0 {
            bail!("the array {info} has no classes: its last axis is empty");
        }
        let count = info.elements().map(|elements| elements / classes);
        Ok(Self { reader, classes, count })
    }

    /// The number of classes in a row.
    pub(crate) fn classes(&self) -> usize {
        self.classes
    }

    /// The number of rows, where the file tells it beforehand.
    pub(crate) fn count(&self) -> Option<usize> {
        self.count
    }

    /// Calls `work` with the number of the first row of each block, and the block.
    pub(crate) fn for_each(
        self,
        mut work: impl FnMut(usize, &Values) -> Result<()>,
    ) -> Result<()> {
        let classes = self.classes;
        let elements = (BLOCK / classes).max(1) * classes;
        let (full, blocks) = sync_channel(1);
        let (empty, used) = sync_channel(3);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || read(self.reader, elements, &full, &used));
            let mut first = 0;
            let mut result = Ok(());
            for block in blocks {
                result = work(first, &block);
                if result.is_err() {
                    break;
                }
                first += block.len() / classes;
                // The reader may have come to the end, and then does not want it back.
                let _ = empty.send(block);
            }
            // Lets a reader that waits for a place know that nobody takes its blocks any more.
            drop(empty);
            let read = reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result.and(read)
        })
    }
}

/// Reads blocks until the end, or until nobody wants them.
fn read(
    mut reader: Box<dyn ArrayReader>,
    elements: usize,
    full: &SyncSender<Values>,
    used: &Receiver<Values>,
) -> Result<()> {
    loop {
        // Blocks that have been worked on are filled again.
        let mut block = used.try_recv().unwrap_or_default();
        reader.read(elements, &mut block).context("while reading")?;
        if block.is_empty() || full.send(block).is_err() {
            return Ok(());
        }
    }
}
