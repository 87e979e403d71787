//! Masks: arrays of 0 and 1 that select elements of another array.

use half::{bf16, f16};

use crate::array::Purpose;
use crate::open::open_for;
use crate::{ArrayInfo, ArrayReader, Error, Location, Result, TableOptions, Values};

/// Reads a mask sequentially, in C order whatever the order of the file.
///
/// ```
/// use shafer_data::{Location, open_mask};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("mask.csv");
/// std::fs::write(&path, "1,0,1\n0,0,1\n")?;
/// let mut mask = open_mask(&Location { path: Some(path), name: None })?;
/// assert_eq!(mask.at_most(3)?, None);
/// let mut block = Vec::new();
/// mask.read(4, &mut block)?;
/// assert_eq!(block, [true, false, true, false]);
/// assert!(mask.finish().is_err());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct MaskReader {
    label: String,
    reader: Box<dyn ArrayReader>,
    /// Values that were peeked at but not read yet.
    ahead: Vec<bool>,
    /// The number of values before them.
    read: usize,
    block: Values,
}

/// Opens a mask: an array of bool, u8, i8 or floating point whose values are 0 or 1. The array is found like
/// that of [`open`](crate::open).
///
/// ```
/// use shafer_data::{Location, open_mask};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("mask.csv");
/// std::fs::write(&path, "1,0,2\n")?;
/// let mut mask = open_mask(&Location { path: Some(path), name: None })?;
/// let error = mask.read(3, &mut Vec::new()).unwrap_err().to_string();
/// assert!(error.ends_with("the value at (0, 2) is 2; a mask has only 0 and 1"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_mask(location: &Location) -> Result<MaskReader> {
    Ok(MaskReader {
        label: location.label(),
        reader: open_for(Purpose::Mask, location, &TableOptions::default())?,
        ahead: Vec::new(),
        read: 0,
        block: Values::default(),
    })
}

impl MaskReader {
    /// The shape, and the type that values are converted to.
    pub fn info(&self) -> &ArrayInfo {
        self.reader.info()
    }

    /// Peeks at all remaining values, if there are at most this many.
    pub fn at_most(&mut self, values: usize) -> Result<Option<&[bool]>> {
        while self.ahead.len() <= values {
            let before = self.ahead.len();
            self.look_ahead(values + 1 - before)?;
            if self.ahead.len() == before {
                return Ok(Some(&self.ahead));
            }
        }
        Ok(None)
    }

    /// Replaces the contents of `mask` by exactly the next `elements` values.
    pub fn read(&mut self, values: usize, mask: &mut Vec<bool>) -> Result<()> {
        if self.at_most(values)?.is_some_and(|left| left.len() < values) {
            let (needed, found) = (self.read + values, self.read + self.ahead.len());
            let problem =
                format!("has {found} values, but the array that it masks {needed} or more");
            return Err(Error::request(&self.label, problem));
        }
        mask.clear();
        mask.extend_from_slice(&self.ahead[..values]);
        self.ahead.drain(..values);
        self.read += values;
        Ok(())
    }

    /// Fails if there are more values.
    pub fn finish(&mut self) -> Result<()> {
        if self.at_most(0)?.is_some() {
            return Ok(());
        }
        let problem = format!("has more values than the {} of the array that it masks", self.read);
        Err(Error::request(&self.label, problem))
    }

    fn look_ahead(&mut self, values: usize) -> Result<()> {
        self.reader.read(values, &mut self.block)?;
        let first = self.read + self.ahead.len();
        let wrong = match &self.block {
            Values::F16(block) => convert(block, f16::to_f64, &mut self.ahead),
            Values::Bf16(block) => convert(block, bf16::to_f64, &mut self.ahead),
            Values::F32(block) => convert(block, f64::from, &mut self.ahead),
            Values::F64(block) => convert(block, |x| x, &mut self.ahead),
        };
        let Some((at, value)) = wrong else { return Ok(()) };
        let place = self.reader.info().index_text(first + at);
        let problem = format!("the value at {place} is {value}; a mask has only 0 and 1");
        Err(Error::request(&self.label, problem))
    }
}

/// Adds the values of a block, or finds the first that is neither 0 nor 1.
fn convert<T: Copy>(
    block: &[T],
    to_f64: impl Fn(T) -> f64,
    mask: &mut Vec<bool>,
) -> Option<(usize, f64)> {
    let is_binary = |x: f64| x == 0.0 || x == 1.0;
    mask.extend(block.iter().map(|&x| to_f64(x) != 0.0));
    // A pass over all values first, which vectorises.
    if block.iter().fold(true, |all, &x| all & is_binary(to_f64(x))) {
        return None;
    }
    let wrong = block.iter().position(|&x| !is_binary(to_f64(x)))?;
    Some((wrong, to_f64(block[wrong])))
}
