//! Columnar tables: Parquet, and Arrow files and streams.
//!
//! The rows are a column of lists of equal length, or all numeric columns together. Both formats store rows
//! in batches, with the values of a column contiguous. The readers here read these values, and the offsets
//! and null maps only as far as needed to check that no value is missing and all rows have the same length.

mod arrow;
mod parquet;
mod reader;

use std::fs::File;
use std::io;

pub(crate) use self::arrow::{FILE_MAGIC, STREAM_MAGIC};
pub(crate) use self::parquet::MAGIC as PARQUET_MAGIC;

use self::reader::ColumnsReader;
use crate::array::Purpose;
use crate::entry::several;
use crate::npy::shortened;
use crate::raw::{Elements, byte_size};
use crate::select::{family, implausible};
use crate::{ArrayInfo, ArrayReader, Columns, Dtype, Error, Result, TableOptions};

/// The most values of a row. Bounds what a damaged file can claim: a few bytes can encode any number.
const LONGEST_ROW: usize = 1 << 24;

const DAMAGED: &str = "the file is damaged; copy or write it again";

/// The hint for rows of different lengths and rows with nulls.
const DENSE: &str = "logits are dense: write a number for every class of every row";

/// An open file.
trait Table {
    fn columns(&self) -> &[Column];

    fn rows(&self) -> usize;

    /// The length of the first row of a column of lists, or 0 if there is none.
    fn first_length(&self, column: usize) -> Result<usize>;

    /// A reader of the rows of columns, each with `length` values per row.
    fn batches(self: Box<Self>, columns: Vec<usize>, length: usize) -> Box<dyn Batches>;
}

/// A column of a table.
struct Column {
    name: String,
    kind: Kind,
}

#[derive(Clone)]
enum Kind {
    Numbers(Dtype),
    Lists(Dtype),
    /// The file's name of an unsupported type.
    Other(String),
}

/// The rows of a file, in batches.
trait Batches: Send {
    /// The next batch. Its first row is row `first` of the file.
    fn next(&mut self, first: usize) -> Result<Option<Batch>>;
}

struct Batch {
    rows: usize,
    columns: Vec<Box<dyn Numbers>>,
}

/// The values of a column in a batch.
trait Numbers: Send {
    /// Fills `bytes` with the next values, little-endian.
    fn read(&mut self, bytes: &mut [u8]) -> Result<()>;
}

pub(crate) fn open_parquet(
    label: &str,
    file: File,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    open(label, Box::new(parquet::Parquet::open(label, file)?), purpose, name, options)
}

pub(crate) fn open_arrow(
    label: &str,
    file: File,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    open(label, Box::new(arrow::Arrow::open(label, file)?), purpose, name, options)
}

pub(crate) fn list_parquet(label: &str, file: File) -> Result<Vec<ArrayInfo>> {
    list(&parquet::Parquet::open(label, file)?)
}

pub(crate) fn list_arrow(label: &str, file: File) -> Result<Vec<ArrayInfo>> {
    list(&arrow::Arrow::open(label, file)?)
}

/// The arrays that can be read: single columns, and several columns together.
fn list(table: &dyn Table) -> Result<Vec<ArrayInfo>> {
    let mut arrays = Vec::new();
    let rows = choose("", table.columns(), Purpose::Numbers, None, &TableOptions::default());
    if let Ok(Choice { name: None, columns, dtype, .. }) = rows {
        let shape = vec![table.rows(), columns.len()];
        arrays.push(ArrayInfo { name: None, dtype, shape, open_ended: false });
    }
    for (i, column) in table.columns().iter().enumerate() {
        let (dtype, shape) = match column.kind {
            Kind::Numbers(dtype) => (dtype, vec![table.rows()]),
            Kind::Lists(dtype) => (dtype, vec![table.rows(), table.first_length(i)?]),
            Kind::Other(_) => continue,
        };
        let name = Some(column.name.clone());
        arrays.push(ArrayInfo { name, dtype, shape, open_ended: false });
    }
    Ok(arrays)
}

fn open(
    label: &str,
    table: Box<dyn Table>,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    let Choice { columns, name, dtype, lists } =
        choose(label, table.columns(), purpose, name, options)?;
    let label = name.as_ref().map_or_else(|| label.to_owned(), |name| column_label(label, name));
    let length = if lists { table.first_length(columns[0])? } else { 1 };
    if length == 0 && table.rows() > 0 {
        return Err(Error::format(&label, "row 0 is empty", DENSE));
    }
    if length > LONGEST_ROW {
        let problem = format!("has rows of {length} values, more than {LONGEST_ROW}");
        return Err(Error::format(&label, problem, DAMAGED));
    }
    let mut shape = vec![table.rows()];
    // A named numeric column is an array with one axis.
    if lists || name.is_none() {
        shape.push(length * columns.len());
    }
    byte_size(&label, &shape, Elements::Floats { dtype, big_endian: false })?;
    let info = ArrayInfo { name, dtype, shape, open_ended: false };
    let name_of = |i: usize| table.columns()[i].name.clone();
    let taken = Columns {
        taken: columns.iter().map(|&i| name_of(i)).collect(),
        left_out: left_out(table.columns().len(), &columns).map(name_of).collect(),
        lists,
    };
    let batches = table.batches(columns, length);
    Ok(Box::new(ColumnsReader::new(&label, info, taken, batches, length)))
}

/// The selected columns.
struct Choice {
    columns: Vec<usize>,
    /// `None` if the rows consist of several columns.
    name: Option<String>,
    dtype: Dtype,
    lists: bool,
}

/// The positions of the columns that are not selected.
fn left_out(count: usize, taken: &[usize]) -> impl Iterator<Item = usize> {
    let mut left = vec![true; count];
    for &i in taken {
        left[i] = false;
    }
    (0..count).filter(move |&i| left[i])
}

/// The column with this name. Without a name, of the columns that the options select, the only column of
/// lists, or all numeric columns.
fn choose(
    label: &str,
    columns: &[Column],
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Choice> {
    let only = |i: usize, dtype, lists| Choice {
        columns: vec![i],
        name: Some(columns[i].name.clone()),
        dtype,
        lists,
    };
    let unreadable = |name: &str, kind: &str| {
        let problem = format!(
            "is a column of {}; those of f16, f32 and f64 can be read, and of lists of these",
            shortened(kind)
        );
        Error::request(&column_label(label, name), problem)
    };
    if let Some(name) = name {
        if options.choose() {
            let problem =
                format!("`:{name}` names a column; leave it out, or --columns and --exclude");
            return Err(Error::request(label, problem));
        }
        // Of several columns with this name, a supported one.
        let named = || (0..columns.len()).filter(|&i| columns[i].name == name);
        let readable = |&i: &usize| !matches!(columns[i].kind, Kind::Other(_));
        let Some(found) = named().find(readable).or_else(|| named().next()) else {
            let problem = format!("has no column `{name}`; it holds {}", listing(columns));
            return Err(Error::request(label, problem));
        };
        return match &columns[found].kind {
            Kind::Numbers(dtype) => Ok(only(found, *dtype, false)),
            Kind::Lists(dtype) => Ok(only(found, *dtype, true)),
            Kind::Other(kind) => Err(unreadable(name, kind)),
        };
    }
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    let asked = !options.columns.is_empty();
    let left = if options.choose() {
        options.positions(label, &names)?
    } else {
        (0..columns.len()).collect()
    };
    let (mut lists, mut numbers) = (Vec::new(), Vec::new());
    for i in left.iter().copied() {
        match &columns[i].kind {
            Kind::Lists(dtype) => lists.push((i, *dtype)),
            Kind::Numbers(dtype) => numbers.push((i, *dtype)),
            Kind::Other(kind) if asked => return Err(unreadable(names[i], kind)),
            Kind::Other(_) => {}
        }
    }
    if asked && !lists.is_empty() && !numbers.is_empty() {
        let problem =
            "columns of lists and of numbers cannot be taken together; choose with --columns";
        return Err(Error::request(label, problem));
    }
    if !asked && purpose == Purpose::Numbers {
        let numbers: Vec<usize> = numbers.iter().map(|&(i, _)| i).collect();
        if let Some(problem) = doubtful(columns, &left, &numbers, !lists.is_empty()) {
            return Err(Error::request(label, problem));
        }
    }
    match (&lists[..], &numbers[..]) {
        (&[(i, dtype)], _) => Ok(only(i, dtype, true)),
        ([], &[(_, dtype), ..]) if numbers.iter().all(|&(_, other)| other == dtype) => {
            let columns = numbers.iter().map(|&(i, _)| i).collect();
            Ok(Choice { columns, name: None, dtype, lists: false })
        }
        ([], []) => {
            let problem = format!(
                "has no column of f16, f32 or f64, nor of lists of these; it holds {}",
                listing(columns)
            );
            Err(Error::request(label, problem))
        }
        ([], _) => Err(Error::request(
            label,
            format!(
                "has columns of several types: {}; choose those of one type with --columns, or \
                 write all as one type",
                listing(columns)
            ),
        )),
        _ => Err(Error::request(
            label,
            format!(
                "holds several columns of lists: {}; name one, as in `FILE:NAME`",
                listing(columns)
            ),
        )),
    }
}

/// The reason why the logits are ambiguous, if they are.
fn doubtful(columns: &[Column], left: &[usize], numbers: &[usize], lists: bool) -> Option<String> {
    let names: Vec<&str> = numbers.iter().map(|&i| columns[i].name.as_str()).collect();
    let found = family(&names);
    if lists {
        return found.map(|(_, members)| {
            format!(
                "has a column of lists beside numbered ones, such as `{}`; name the one of lists, as in \
                 `FILE:NAME`, or the others with --columns",
                shortened(names[members[0]])
            )
        });
    }
    if let Some(problem) = implausible(&names) {
        return Some(problem);
    }
    // Otherwise a class with another type would be missing.
    let (stem, _) = found?;
    left.iter().find_map(|&i| {
        let Column { name, kind: Kind::Other(kind) } = &columns[i] else { return None };
        let number = name.strip_prefix(stem)?;
        let numbered = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
        numbered.then(|| {
            format!(
                "has a column `{}` of {} beside those of floating point; write all as one type, or \
                 choose with --columns",
                shortened(name),
                shortened(kind)
            )
        })
    })
}

fn listing(columns: &[Column]) -> String {
    if columns.is_empty() {
        return "no columns".to_owned();
    }
    several(columns, |column| {
        let kind = match &column.kind {
            Kind::Numbers(dtype) => dtype.to_string(),
            Kind::Lists(dtype) => format!("list of {dtype}"),
            Kind::Other(kind) => shortened(kind),
        };
        format!("`{}` {kind}", shortened(&column.name))
    })
}

fn column_label(label: &str, name: &str) -> String {
    format!("{label}:{}", shortened(name))
}

/// The column and batch, for error messages about rows.
#[derive(Clone)]
struct Place {
    label: String,
    /// The first row of the batch.
    first: usize,
    /// The values per row.
    length: usize,
}

impl Place {
    /// The error of a null value, at an index in the batch.
    fn null(&self, value: usize) -> Error {
        let row = self.first + value / self.length;
        let problem = match self.length {
            1 => format!("row {row} is null"),
            length => format!("row {row}, column {} is null", value % length),
        };
        Error::format(&self.label, problem, DENSE)
    }

    /// The error of a null row of the batch.
    fn null_row(&self, row: usize) -> Error {
        Error::format(&self.label, format!("row {} is null", self.first + row), DENSE)
    }

    /// The error of a row of the batch with another length.
    fn ragged(&self, row: usize, found: usize) -> Error {
        let s = if found == 1 { "" } else { "s" };
        let (row, length) = (self.first + row, self.length);
        let problem = format!("row {row} has {found} value{s}, the first has {length}");
        Error::format(&self.label, problem, DENSE)
    }

    /// The error of a row of the batch that is too long.
    fn overlong(&self, row: usize) -> Error {
        let (row, length) = (self.first + row, self.length);
        let problem = format!("row {row} has more values than the first, which has {length}");
        Error::format(&self.label, problem, DENSE)
    }

    /// The error of a failed read, by the operating system or the decompressor.
    fn unreadable(&self, error: io::Error) -> Error {
        match error.raw_os_error() {
            Some(_) => Error::io(&self.label, "read", error),
            None => self.damaged(format!("cannot be decompressed ({error})")),
        }
    }

    fn damaged(&self, problem: impl Into<String>) -> Error {
        Error::format(&self.label, problem, DAMAGED)
    }
}
