//! Rows of logits, block after block: one thread reads while the others compute.

use std::ops::{ControlFlow, Range};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use shafer_data::{ArrayInfo, ArrayReader, Columns, Dtype, MaskReader, Values};

use crate::{groups, interrupt};

/// How many logits a block has, more or less: enough that handing it over costs nothing, and few
/// enough that three of them are no memory to speak of.
const BLOCK: usize = 1 << 18;

/// How long a wait for the next block may take before somebody who wants to stop is heard.
const PATIENCE: Duration = Duration::from_millis(100);

/// Rows of equal length.
pub(crate) struct Rows {
    reader: Box<dyn ArrayReader>,
    shape: Shape,
    count: Option<usize>,
    groups: Vec<Range<usize>>,
    mask: Option<Mask>,
}

/// How rows lie in an array: `outer` times, `classes` groups of `inner` numbers, of which each is of
/// another row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub(crate) classes: usize,
    pub(crate) inner: usize,
}

impl Shape {
    /// The number of elements that rows can only be read together with.
    pub(crate) fn slab(self) -> usize {
        self.classes * self.inner
    }

    /// The number of elements of a block.
    fn block(self) -> usize {
        // An array without elements has slabs of none.
        let slab = self.slab().max(1);
        (BLOCK / slab).max(1) * slab
    }

    /// Whether a logit of a block takes part, by a mask with an entry for each class or each logit.
    pub(crate) fn takes_part(self, mask: Option<&[bool]>, place: usize) -> bool {
        let by_class = || place / self.inner % self.classes;
        mask.is_none_or(|mask| mask[if mask.len() == self.classes { by_class() } else { place }])
    }
}

/// What takes part.
enum Mask {
    /// These classes, in every row.
    Classes(Vec<bool>),
    /// What an array of the shape of the logits says, which is read along with them.
    Elements(MaskReader),
}

/// Some rows in memory.
pub(crate) struct Block<'a> {
    /// The number of the first.
    pub(crate) first: usize,
    pub(crate) logits: &'a Values,
    /// What takes part, if not all: one entry a class, or one a logit.
    pub(crate) mask: Option<&'a [bool]>,
    /// How much of the file has been read with it, where the file does not tell the number of its rows.
    pub(crate) share_read: Option<f64>,
}

impl Rows {
    /// The vectors along an axis of an array, counted from the end if it is negative.
    pub(crate) fn new(reader: Box<dyn ArrayReader>, axis: isize) -> Result<Self> {
        let info = reader.info();
        // A stream of text is a list of rows whose number is not known yet.
        let hidden = usize::from(info.open_ended);
        let axes = info.shape.len() + hidden;
        if info.shape.is_empty() {
            bail!("the array is a single number, but rows of logits are needed");
        }
        let place = if axis < 0 { axis + axes as isize } else { axis } - hidden as isize;
        let Some(place) = usize::try_from(place).ok().filter(|&p| p < info.shape.len()) else {
            bail!("there is no axis {axis} to go along: the array is {info}");
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

    /// Divides the classes into variables of so many each. None leaves them one variable.
    pub(crate) fn grouped(mut self, sizes: &[usize]) -> Result<Self> {
        if !sizes.is_empty() {
            self.groups = groups::ranges(sizes, self.shape.classes)?;
        }
        Ok(self)
    }

    /// Masks out the classes that have a 0, in every row, or the logits that have one, if the mask
    /// is of their shape.
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
                "the mask is {}, but must be {classes} values, one for each class, or {}, as the \
                 logits are",
                mask.info().shape_text(),
                self.reader.info().shape_text()
            )
        });
        Ok(self)
    }

    /// Which columns the rows come from, where columns have names.
    pub(crate) fn columns(&self) -> Option<&Columns> {
        self.reader.columns()
    }

    /// How the rows lie in a block.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
    }

    /// The classes of each variable.
    pub(crate) fn groups(&self) -> &[Range<usize>] {
        &self.groups
    }

    /// The shape of the whole array, where the file tells it beforehand.
    pub(crate) fn array_shape(&self) -> Option<&[usize]> {
        let info = self.reader.info();
        (!info.open_ended).then_some(info.shape.as_slice())
    }

    /// The type of the logits.
    pub(crate) fn dtype(&self) -> Dtype {
        self.reader.info().dtype
    }

    /// The number of rows, where the file tells it beforehand.
    pub(crate) fn count(&self) -> Option<usize> {
        self.count
    }

    /// The number of logits of all blocks that are in memory at the same time: one is read while one waits and
    /// one is worked on.
    pub(crate) fn held(&self) -> usize {
        let three = self.shape.block().saturating_mul(3);
        self.reader.info().elements().map_or(three, |elements| elements.min(three))
    }

    /// Calls `work` with each block, until it has seen enough.
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
        // Not joined if work ends before its time: a pipe may keep it waiting for ever.
        let reader = std::thread::Builder::new()
            .spawn(move || source.read(elements, &full, &used))
            .context("cannot start a thread")?;
        let mut first = 0;
        loop {
            let buffer: Buffer = match blocks.recv_timeout(PATIENCE) {
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
            // The reader may have come to the end, and then does not want it back.
            let _ = empty.send(buffer);
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }
}

/// Whether one array has a row for each row of another, as far as can be known.
fn same_rows(a: &ArrayInfo, b: &ArrayInfo) -> bool {
    let row = |info: &ArrayInfo| info.shape[usize::from(!info.open_ended)..].to_vec();
    match (a.open_ended, b.open_ended) {
        (false, false) => a.shape == b.shape,
        _ => !a.shape.is_empty() && !b.shape.is_empty() && row(a) == row(b),
    }
}

/// What a block is read into.
#[derive(Default)]
struct Buffer {
    logits: Values,
    mask: Option<Vec<bool>>,
    share_read: Option<f64>,
}

/// Where blocks come from.
struct Source {
    reader: Box<dyn ArrayReader>,
    mask: Option<MaskReader>,
}

impl Source {
    /// Reads blocks until the end, or until nobody wants them.
    fn read(
        mut self,
        elements: usize,
        full: &SyncSender<Buffer>,
        used: &Receiver<Buffer>,
    ) -> Result<()> {
        loop {
            // Blocks that have been worked on are filled again.
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

    /// With each block, as far as the file was read for it, whoever reads on meanwhile.
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
