//! Selects an array in files with several.

use std::fmt::Write;

use crate::array::{Purpose, shape_text};
use crate::npy::shortened;
use crate::raw::Elements;
use crate::{ArrayInfo, Dtype, Error, Result};

/// The number of arrays that an error lists. Models have thousands.
const LISTED: usize = 20;

/// An array in a file with several. `dtype` is the file's name of an unsupported type.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) dtype: std::result::Result<Dtype, String>,
    pub(crate) shape: Vec<usize>,
}

impl Entry {
    /// `None` for an array of another type.
    pub(crate) fn info(&self) -> Option<ArrayInfo> {
        Some(self.info_as(*self.dtype.as_ref().ok()?))
    }

    /// The array, if its type is supported.
    pub(crate) fn info_as(&self, dtype: Dtype) -> ArrayInfo {
        let (name, shape) = (Some(self.name.clone()), self.shape.clone());
        ArrayInfo { name, dtype, shape, open_ended: false }
    }

    /// How its elements are read, if they are little-endian; `None` if they are of another type than
    /// the purpose allows.
    pub(crate) fn elements(&self, purpose: Purpose) -> Option<Elements> {
        match &self.dtype {
            Ok(dtype) => Some(Elements::Floats { dtype: *dtype, big_endian: false }),
            Err(word) => Elements::integers(purpose, word),
        }
    }
}

/// The types that a purpose allows, for messages.
pub(crate) fn types(purpose: Purpose) -> &'static str {
    match purpose {
        Purpose::Numbers => "f16, bf16, f32 or f64",
        Purpose::Mask => "bool, u8, i8, f16, bf16, f32 or f64",
        Purpose::Labels => "integers, f16, bf16, f32 or f64",
    }
}

/// The index of the array with this name. Without a name, the only array of an allowed type.
pub(crate) fn choose(
    file: &str,
    entries: &[Entry],
    purpose: Purpose,
    name: Option<&str>,
) -> Result<usize> {
    if entries.is_empty() {
        return Err(Error::request(file, "holds no arrays; name another file"));
    }
    if let Some(name) = name {
        return entries.iter().position(|entry| entry.name == name).ok_or_else(|| {
            Error::request(file, format!("has no array `{name}`; it holds {}", listing(entries)))
        });
    }
    let mut fitting = (0..entries.len()).filter(|&i| entries[i].elements(purpose).is_some());
    match (fitting.next(), fitting.next()) {
        (Some(only), None) => Ok(only),
        (None, _) => Err(Error::request(
            file,
            format!("has no array of type {}; it holds {}", types(purpose), listing(entries)),
        )),
        _ => Err(Error::request(
            file,
            format!("holds several arrays: {}; name one, as in `FILE:NAME`", listing(entries)),
        )),
    }
}

fn listing(entries: &[Entry]) -> String {
    several(entries, |entry| {
        let dtype = entry.dtype.as_ref().map_or_else(Clone::clone, Dtype::to_string);
        let shape = shape_text(&entry.shape);
        format!("`{}` {dtype} {}", shortened(&entry.name), shortened(&shape))
    })
}

/// A list for error messages, shortened if it is long.
pub(crate) fn several<T>(things: &[T], text: impl Fn(&T) -> String) -> String {
    let listed: Vec<String> = things.iter().take(LISTED).map(text).collect();
    let mut listed = listed.join(", ");
    if things.len() > LISTED {
        let _ = write!(listed, " and {} more", things.len() - LISTED);
    }
    listed
}
