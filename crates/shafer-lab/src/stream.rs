//! Rows of logits, block after block: one thread reads while the others compute.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use anyhow::{Result, bail};
use shafer_data::{ArrayReader, Dtype, Values};

use crate::interrupt;

/// How many logits a block has, more or less: enough that handing it over costs nothing, and few
/// enough that three of them are no memory to speak of.
const BLOCK: usize = 1 << 21;

/// Rows of equal length.
pub(crate) struct Rows {
    reader: Box<dyn ArrayReader>,
    shape: Shape,
    count: Option<usize>,
    mask: Option<Vec<bool>>,
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
    fn slab(self) -> usize {
        self.classes * self.inner
    }
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
        Ok(Self { reader, shape: Shape { classes, inner }, count, mask: None })
    }

    /// Masks out the classes whose number is 0.
    pub(crate) fn masked(mut self, mask: Box<dyn ArrayReader>) -> Result<Self> {
        let numbers = whole(mask, self.shape.classes + 1)?;
        if numbers.len() != self.shape.classes {
            bail!("a mask of {} numbers is needed, one for each class", self.shape.classes);
        }
        self.mask = Some(numbers.iter().map(|&number| number != 0.0).collect());
        Ok(self)
    }

    /// Which classes take part, if not all.
    pub(crate) fn mask(&self) -> Option<&[bool]> {
        self.mask.as_deref()
    }

    /// How the rows lie in a block.
    pub(crate) fn shape(&self) -> Shape {
        self.shape
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

    /// Calls `work` with the number of the first row of each block, and the block.
    pub(crate) fn for_each(self, mut work: impl FnMut(usize, &Values) -> Result<()>) -> Result<()> {
        let classes = self.shape.classes;
        // An array without elements has slabs of none.
        let slab = self.shape.slab().max(1);
        let elements = (BLOCK / slab).max(1) * slab;
        let (full, blocks) = sync_channel(1);
        let (empty, used) = sync_channel(3);
        std::thread::scope(|scope| {
            let reader = scope.spawn(move || read(self.reader, elements, &full, &used));
            let mut first = 0;
            let mut result = Ok(());
            for block in blocks {
                result = interrupt::check().map_err(Into::into).and_then(|()| work(first, &block));
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

/// The first numbers of an array, at most so many.
fn whole(mut reader: Box<dyn ArrayReader>, most: usize) -> Result<Vec<f64>> {
    let mut block = Values::default();
    reader.read(most, &mut block)?;
    Ok(match block {
        Values::F16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Values::Bf16(v) => v.iter().map(|x| x.to_f64()).collect(),
        Values::F32(v) => v.iter().map(|&x| f64::from(x)).collect(),
        Values::F64(v) => v,
    })
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
        reader.read(elements, &mut block)?;
        if block.is_empty() || full.send(block).is_err() {
            return Ok(());
        }
    }
}
