//! Files that hold several arrays, and which one is meant.

use std::fmt::Write;

use crate::array::shape_text;
use crate::npy::shortened;
use crate::{ArrayInfo, Dtype, Error, Result};

/// How many arrays an error lists; models have thousands.
const LISTED: usize = 20;

/// An array in a file that holds several. `dtype` is the file's own word for a type that is not
/// read.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) dtype: std::result::Result<Dtype, String>,
    pub(crate) shape: Vec<usize>,
}

impl Entry {
    /// `None` for an array of another type.
    pub(crate) fn info(&self) -> Option<ArrayInfo> {
        let dtype = *self.dtype.as_ref().ok()?;
        let (name, shape) = (Some(self.name.clone()), self.shape.clone());
        Some(ArrayInfo { name, dtype, shape, open_ended: false })
    }
}

/// The index of the array of that name, or without a name, of the only one of floating-point type.
pub(crate) fn choose(file: &str, entries: &[Entry], name: Option<&str>) -> Result<usize> {
    if entries.is_empty() {
        return Err(Error::request(file, "holds no arrays; name another file"));
    }
    if let Some(name) = name {
        return entries.iter().position(|entry| entry.name == name).ok_or_else(|| {
            Error::request(file, format!("has no array `{name}`; it holds {}", listing(entries)))
        });
    }
    let mut floats = (0..entries.len()).filter(|&i| entries[i].dtype.is_ok());
    match (floats.next(), floats.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Error::request(
            file,
            format!("has no array of type f16, bf16, f32 or f64; it holds {}", listing(entries)),
        )),
        _ => Err(Error::request(
            file,
            format!("holds several arrays: {}; name one, as in `FILE:NAME`", listing(entries)),
        )),
    }
}

fn listing(entries: &[Entry]) -> String {
    let mut text = String::new();
    for (i, entry) in entries.iter().take(LISTED).enumerate() {
        let comma = if i == 0 { "" } else { ", " };
        let dtype = entry.dtype.as_ref().map_or_else(Clone::clone, Dtype::to_string);
        let _ = write!(
            text,
            "{comma}`{}` {dtype} {}",
            shortened(&entry.name),
            shortened(&shape_text(&entry.shape))
        );
    }
    if entries.len() > LISTED {
        let _ = write!(text, " and {} more", entries.len() - LISTED);
    }
    text
}
