//! The parts of a table as one array.

use std::collections::VecDeque;
use std::path::PathBuf;

use crate::array::Purpose;
use crate::open::open_for;
use crate::{ArrayInfo, ArrayReader, Columns, Error, Location, Result, TableOptions, Values};

/// Opens files that hold the rows of one array, one after the other. `name` and `options` are as for
/// [`open_with`](crate::open_with), for each file. All must have rows of one type and length.
///
/// ```
/// use shafer_data::{Column, TableOptions, Values, open_parts, write_table};
///
/// # let folder = tempfile::tempdir()?;
/// let paths = ["a", "b"].map(|name| folder.path().join(name).with_extension("parquet"));
/// for (i, path) in paths.iter().enumerate() {
///     let first = i as f64;
///     write_table(path, &[("x", Column::Numbers(vec![first])), ("y", Column::Numbers(vec![0.5]))])?;
/// }
/// let mut reader = open_parts(&paths, None, &TableOptions::default())?;
/// assert_eq!(reader.info().shape, [2, 2]);
/// let mut block = Values::default();
/// reader.read(100, &mut block)?;
/// assert_eq!(block, Values::F64(vec![0.0, 0.5, 1.0, 0.5]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_parts(
    paths: &[PathBuf],
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    open_all(Purpose::Numbers, paths, name, options)
}

/// Opens files with a column of class indices in each, like [`open_labels`](crate::open_labels).
///
/// ```
/// use shafer_data::{Column, Values, open_label_parts, write_table};
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("a.parquet");
/// write_table(&path, &[("x", Column::Numbers(vec![0.5])), ("y", Column::Integers(vec![3]))])?;
/// let mut block = Values::default();
/// open_label_parts(&[path], "y")?.read(100, &mut block)?;
/// assert_eq!(block, Values::F64(vec![3.0]));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn open_label_parts(paths: &[PathBuf], name: &str) -> Result<Box<dyn ArrayReader>> {
    open_all(Purpose::Labels, paths, Some(name), &TableOptions::default())
}

fn open_all(
    purpose: Purpose,
    paths: &[PathBuf],
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    let mut whole: Option<(String, ArrayInfo, Option<Columns>)> = None;
    let (name, options) = (name.map(str::to_owned), options.clone());
    let at = |path: &PathBuf| Location { path: Some(path.clone()), name: name.clone() };
    for path in paths {
        let reader = open_for(purpose, &at(path), &options)?;
        let (info, label) = (reader.info(), path.display().to_string());
        if info.open_ended || info.shape.is_empty() {
            return Err(Error::request(&label, "is not one of several parts; give it alone"));
        }
        let Some((first, all, columns)) = &mut whole else {
            whole = Some((label, info.clone(), reader.columns().cloned()));
            continue;
        };
        // A part without rows does not know how long they are.
        if all.shape[0] == 0 {
            let rows = info.shape[0];
            *all = ArrayInfo { shape: [&[rows], &info.shape[1..]].concat(), ..info.clone() };
            continue;
        }
        if info.shape[0] > 0 && (info.dtype, &info.shape[1..]) != (all.dtype, &all.shape[1..]) {
            let problem = format!("holds {info}, but {first} {all}; all parts must have one form");
            return Err(Error::request(&label, problem));
        }
        if reader.columns().map(|c| &c.taken) != columns.as_ref().map(|c| &c.taken) {
            let problem =
                format!("has other columns of logits than {first}; choose with --columns");
            return Err(Error::request(&label, problem));
        }
        all.shape[0] = all.shape[0].saturating_add(info.shape[0]);
    }
    let Some((_, info, columns)) = whole else {
        return Err(Error::request("the input", "has no parts"));
    };
    let left = paths.iter().map(at).collect();
    let (open, more) = (None, Values::default());
    Ok(Box::new(Parts { info, columns, purpose, options, left, open, more }))
}

/// Reads one part after the other. Each is opened when it is its turn.
struct Parts {
    info: ArrayInfo,
    columns: Option<Columns>,
    purpose: Purpose,
    options: TableOptions,
    left: VecDeque<Location>,
    open: Option<Box<dyn ArrayReader>>,
    /// The rest of a block that several parts fill.
    more: Values,
}

impl ArrayReader for Parts {
    fn info(&self) -> &ArrayInfo {
        &self.info
    }

    fn columns(&self) -> Option<&Columns> {
        self.columns.as_ref()
    }

    fn read(&mut self, elements: usize, block: &mut Values) -> Result<()> {
        *block = Values::new(self.info.dtype);
        while block.len() < elements {
            let reader = match &mut self.open {
                Some(reader) => reader,
                None => match self.left.pop_front() {
                    Some(next) => self.open.insert(open_for(self.purpose, &next, &self.options)?),
                    None => break,
                },
            };
            if block.is_empty() {
                reader.read(elements, block)?;
                if block.is_empty() {
                    self.open = None;
                }
                continue;
            }
            reader.read(elements - block.len(), &mut self.more)?;
            if self.more.is_empty() {
                self.open = None;
            }
            append(block, &self.more);
        }
        Ok(())
    }
}

/// Adds numbers of the same type.
fn append(block: &mut Values, more: &Values) {
    match (block, more) {
        (Values::F16(block), Values::F16(more)) => block.extend_from_slice(more),
        (Values::Bf16(block), Values::Bf16(more)) => block.extend_from_slice(more),
        (Values::F32(block), Values::F32(more)) => block.extend_from_slice(more),
        (Values::F64(block), Values::F64(more)) => block.extend_from_slice(more),
        // Parts of one array have one type, and a part that ends has no numbers.
        _ => {}
    }
}
