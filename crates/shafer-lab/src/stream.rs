//! Reads rows of logits in blocks: one thread reads ahead while the others compute.

use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use shafer_data::{ArrayInfo, ArrayReader, Columns, Dtype, MaskReader, Values};

use crate::{groups, interrupt};

/// The target size of a block in logits: large enough to make the hand-over free, small enough that three
/// blocks take little memory.
const BLOCK: usize = 1 << 18;

/// The interval at which a wait for the next block checks for Ctrl-C.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Rows of equal length.
pub(crate) struct Rows {
    reader: Box<dyn ArrayReader>,
    shape: Shape,
    count: Option<usize>,
    groups: Vec<Range<usize>>,
    mask: Option<Mask>,
}

/// The memory layout of rows in a C-order array of shape `[outer, classes, inner]`: the classes of a row are
/// `inner` elements apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) classes: usize,
    pub(crate) inner: usize,
}

impl Shape {
    /// The number of elements of `inner` interleaved rows, the smallest unit of complete rows.
    pub(crate) fn slab(self) -> usize {
        self.classes * self.inner
    }

    /// The number of elements of a block.
    fn block(self) -> usize {
        // The slabs of an empty array have no elements.
        let slab = self.slab().max(1);
        (BLOCK / slab).max(1) * slab
    }

    /// Whether a logit of a block is unmasked. A mask has one entry per class or one per logit.
    pub(crate) fn takes_part(self, mask: Option<&[bool]>, place: usize) -> bool {
        let by_class = || place / self.inner % self.classes;
        mask.is_none_or(|mask| mask[if mask.len() == self.classes { by_class() } else { place }])
    }
}

/// The unmasked logits.
enum Mask {
    /// The same classes in every row.
    Classes(Vec<bool>),
    /// An array of the shape of the logits, read block by block with them.
    Elements(MaskReader),
}

/// A block of rows in memory.
pub(crate) struct Block<'a> {
    /// The index of the first row.
    pub(crate) first: usize,
    pub(crate) logits: &'a Values,
    /// The mask, if any: one entry per class or per logit.
    pub(crate) mask: Option<&'a [bool]>,
    /// The share of the file read up to the end of this block, if the number of rows is unknown.
    pub(crate) share_read: Option<f64>,
}

impl Rows {
    /// The rows along an axis of an array; a negative axis counts from the end.
    pub(crate) fn new(reader: Box<dyn ArrayReader>, axis: isize) -> Result<Self> {
        let info = reader.info();
        // Text has a hidden first axis of unknown length.
        let hidden = usize::from(info.open_ended);
        let axes = info.shape.len() + hidden;
        if info.shape.is_empty() {
            bail!("the array is a single number, but rows of logits are needed");
        }
        let place = if axis < 0 { axis + axes as isize } else { axis } - hidden as isize;
        let Some(place) = usize::try_from(place).ok().filter(|&p| p < info.shape.len()) else {
            bail!("there is no axis {axis}: the array is {info}");
        };
        let classes = info.shape[place];
        let inner: usize = info.shape[place + 1..].iter().product();
        if classes == 0 {
            bail!("there are no classes along axis {axis}: the array is {info}");
        }
        let count = info.elements().map(|elements| elements / classes);
        if count == Some(0) {
            bail!("there are no rows: the array is {info}");
        }
        let (shape, whole) = (Shape { classes, inner }, 0..classes);
        Ok(Self { reader, shape, count, groups: vec![whole], mask: None })
    }

    /// Splits the classes into variables of these sizes. An empty list leaves one variable.
    pub(crate) fn grouped(mut self, sizes: &[usize]) -> Result<Self> {
        if !sizes.is_empty() {
            self.groups = groups::ranges(sizes, self.shape.classes)?;
        }
        Ok(self)
    }

    /// Applies a mask with one entry per class, or one per logit in the shape of the logits.
    pub(crate) fn masked(mut self, mut mask: MaskReader) -> Result<Self> {
        let classes = self.shape.classes;
        let by_class = match mask.info().elements() {
            Some(values) => values == classes,
            None => mask.at_most(classes)?.is_some_and(|values| values.len() == classes),
        };
        self.mask = Some(if by_class {
            let mut values = Vec::new();
            mask.read(classes, &mut values)?;
            Mask::Classes(values)
        } else if same_rows(mask.info(), self.reader.info()) {
            Mask::Elements(mask)
        } else {
            bail!(
                "the mask is {}, but must have {classes} values, one per class, or the shape of the \
                 logits, {}",
                mask.info().shape_text(),
                self.reader.info().shape_text()
            )
        });
        Ok(self)
    }

    /// The columns of a table that make up the rows.
    pub(crate) fn columns(&self) -> Option<&Columns> {
        self.reader.columns()
    }

    /// The memory layout of the rows.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The classes of each variable.
    pub(crate) fn groups(&self) -> &[Range<usize>] {
        &self.groups
    }

    /// The shape of the whole array, if known before reading.
    pub(crate) fn array_shape(&self) -> Option<&[usize]> {
        let info = self.reader.info();
        (!info.open_ended).then_some(info.shape.as_slice())
    }

    /// The type of the logits.
    pub(crate) fn dtype(&self) -> Dtype {
        self.reader.info().dtype
    }

    /// The number of rows, if known before reading.
    pub(crate) fn count(&self) -> Option<usize> {
        self.count
    }

    /// The largest number of logits in memory: one block is being read, one waits, one is being processed.
    pub(crate) fn held(&self) -> usize {
        let three = self.shape.block().saturating_mul(3);
        self.reader.info().elements().map_or(three, |elements| elements.min(three))
    }

    /// Calls `work` for each block until it breaks.
    pub(crate) fn for_each(
        self,
        mut work: impl FnMut(Block<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let (classes, mask_reader) = match self.mask {
            Some(Mask::Classes(mask)) => (Some(mask), None),
            Some(Mask::Elements(reader)) => (None, Some(reader)),
            None => (None, None),
        };
        let elements = self.shape.block();
        let source = Source { reader: self.reader, mask: mask_reader };
        let (full, blocks) = sync_channel(1);
        let (empty, used) = sync_channel(3);
        // Not joined if `work` breaks: the reader of a pipe can block forever.
        let reader = std::thread::Builder::new()
            .spawn(move || source.read(elements, &full, &used))
            .context("cannot start a thread")?;
        let mut first = 0;
        loop {
            let buffer: Buffer = match blocks.recv_timeout(POLL_INTERVAL) {
                Ok(buffer) => buffer,
                Err(RecvTimeoutError::Timeout) => {
                    interrupt::check()?;
                    continue;
                }
                Err(RecvTimeoutError::Disconnected) => break,
            };
            interrupt::check()?;
            let mask = classes.as_deref().or(buffer.mask.as_deref());
            let (logits, share_read) = (&buffer.logits, buffer.share_read);
            if work(Block { first, logits, mask, share_read })?.is_break() {
                return Ok(());
            }
            first += buffer.logits.len() / self.shape.classes;
            // Fails after the last block, when the reader is gone.
            let _ = empty.send(buffer);
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Whether two arrays have the same shape, as far as it is known.
fn same_rows(a: &ArrayInfo, b: &ArrayInfo) -> bool {
    let row = |info: &ArrayInfo| info.shape[usize::from(!info.open_ended)..].to_vec();
    match (a.open_ended, b.open_ended) {
        (false, false) => a.shape == b.shape,
        _ => !a.shape.is_empty() && !b.shape.is_empty() && row(a) == row(b),
    }
}

/// The buffers of a block.
#[derive(Default)]
struct Buffer {
    logits: Values,
    mask: Option<Vec<bool>>,
    share_read: Option<f64>,
}

/// The reading side.
struct Source {
    reader: Box<dyn ArrayReader>,
    mask: Option<MaskReader>,
}

impl Source {
    /// Reads blocks until the end of the file or until the receiver is dropped.
    fn read(
        mut self,
        elements: usize,
        full: &SyncSender<Buffer>,
        used: &Receiver<Buffer>,
    ) -> Result<()> {
        loop {
            // Reuses the buffers of processed blocks.
            let mut block = used.try_recv().unwrap_or_default();
            self.reader.read(elements, &mut block.logits)?;
            block.share_read = self.reader.share_read();
            if let Some(mask) = &mut self.mask {
                if block.logits.is_empty() {
                    mask.finish()?;
                }
                mask.read(block.logits.len(), block.mask.get_or_insert_default())?;
            }
            if block.logits.is_empty() || full.send(block).is_err() {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// The share belongs to the block, not to the reader, which is ahead.
    #[test]
    fn blocks_of_text_say_how_far_they_reach() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("logits.csv");
        // Four blocks, the last of half the length.
        let rows = BLOCK / 8 * 7 / 2;
        std::fs::write(&path, "0,1,2,3,4,5,6,7\n".repeat(rows)).unwrap();
        let location = shafer_data::Location { path: Some(path), name: None };
        let mut shares = Vec::new();
        Rows::new(shafer_data::open(&location).unwrap(), -1)
            .unwrap()
            .for_each(|block| {
                shares.push(block.share_read.unwrap());
                Ok(ControlFlow::Continue(()))
            })
            .unwrap();
        assert_eq!(shares, [2.0 / 7.0, 4.0 / 7.0, 6.0 / 7.0, 1.0]);
    }
}
