//! Columnar tables: Parquet, and Arrow files and streams.
//!
//! The crates `parquet` and `arrow-ipc` decode them. A table is read in batches of bounded size, with the columns
//! that are needed. As an array, the rows are a column of lists of equal length, or all numeric columns together.

mod arrow;
mod caught;
mod lists;
mod offsets;
mod parquet;
mod reader;
mod table;

use std::fs::File;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};

pub(crate) use self::arrow::{FILE_MAGIC, STREAM_MAGIC};
pub(crate) use self::parquet::MAGIC as PARQUET_MAGIC;
pub use self::table::{Table, TableBatches, TableForm};

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
#[derive(Debug)]
enum Source {
    Parquet(parquet::Parquet),
    Arrow(arrow::Arrow),
}

impl Source {
    fn schema(&self) -> &SchemaRef {
        match self {
            Self::Parquet(table) => &table.schema,
            Self::Arrow(table) => &table.schema,
        }
    }

    fn rows(&self) -> usize {
        match self {
            Self::Parquet(table) => table.rows,
            Self::Arrow(table) => table.rows,
        }
    }

    /// Reads some columns, in ascending order, in batches of at most `most` rows.
    fn batches(&self, columns: &[usize], most: usize) -> Result<Box<dyn Batches>> {
        Ok(match self {
            Self::Parquet(table) => Box::new(table.batches(columns, most)?),
            Self::Arrow(table) => Box::new(table.batches(columns, most)?),
        })
    }
}

/// The rows of a file, in batches.
trait Batches: Send {
    /// The next batch, which has rows.
    fn next(&mut self) -> Result<Option<RecordBatch>>;
}

/// A column of a table.
struct Column {
    name: String,
    kind: Kind,
}

enum Kind {
    Numbers(Dtype),
    Lists(Dtype),
    /// The name of an unsupported type.
    Other(String),
}

impl Kind {
    fn new(kind: &DataType, purpose: Purpose) -> Self {
        match kind {
            // Converted when they are read.
            kind if purpose == Purpose::Labels && kind.is_integer() => Self::Numbers(Dtype::F64),
            DataType::List(field)
            | DataType::LargeList(field)
            | DataType::FixedSizeList(field, _) => match dtype(field.data_type()) {
                Some(dtype) => Self::Lists(dtype),
                None => Self::Other(format!("list of {}", type_name(field.data_type()))),
            },
            other => match dtype(other) {
                Some(dtype) => Self::Numbers(dtype),
                None => Self::Other(type_name(other)),
            },
        }
    }
}

fn dtype(kind: &DataType) -> Option<Dtype> {
    match kind {
        DataType::Float16 => Some(Dtype::F16),
        DataType::Float32 => Some(Dtype::F32),
        DataType::Float64 => Some(Dtype::F64),
        _ => None,
    }
}

fn type_name(kind: &DataType) -> String {
    match kind {
        DataType::Struct(_) => "struct".to_owned(),
        DataType::Dictionary(_, values) => format!("dictionary of {}", type_name(values)),
        other if other.is_nested() => "nested values".to_owned(),
        other => other.to_string().to_lowercase(),
    }
}

fn columns(schema: &SchemaRef, purpose: Purpose) -> Vec<Column> {
    let column = |field: &arrow_schema::FieldRef| Column {
        name: field.name().clone(),
        kind: Kind::new(field.data_type(), purpose),
    };
    schema.fields().iter().map(column).collect()
}

pub(crate) fn open_parquet(
    label: &str,
    file: File,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    open(label, &Source::Parquet(parquet::Parquet::open(label, file)?), purpose, name, options)
}

pub(crate) fn open_arrow(
    label: &str,
    file: File,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    open(label, &Source::Arrow(arrow::Arrow::open(label, file)?), purpose, name, options)
}

pub(crate) fn list_parquet(label: &str, file: File) -> Result<Vec<ArrayInfo>> {
    list(label, &Source::Parquet(parquet::Parquet::open(label, file)?))
}

pub(crate) fn list_arrow(label: &str, file: File) -> Result<Vec<ArrayInfo>> {
    list(label, &Source::Arrow(arrow::Arrow::open(label, file)?))
}

/// The arrays that can be read: single columns, and several columns together.
fn list(label: &str, table: &Source) -> Result<Vec<ArrayInfo>> {
    let mut arrays = Vec::new();
    let columns = columns(table.schema(), Purpose::Numbers);
    let rows = choose("", &columns, Purpose::Numbers, None, &TableOptions::default());
    if let Ok(Choice { name: None, columns, dtype, .. }) = rows {
        let shape = vec![table.rows(), columns.len()];
        arrays.push(ArrayInfo { name: None, dtype, shape, open_ended: false });
    }
    for (i, column) in columns.iter().enumerate() {
        let (dtype, shape) = match column.kind {
            Kind::Numbers(dtype) => (dtype, vec![table.rows()]),
            Kind::Lists(dtype) => {
                let place = Place::start(column_label(label, &column.name));
                let first = match table.schema().field(i).data_type() {
                    DataType::FixedSizeList(_, length) => *length as usize,
                    _ => match table.batches(&[i], 1)?.next()? {
                        Some(batch) => lists::first_length(&place, batch.column(0))?,
                        None => 0,
                    },
                };
                (dtype, vec![table.rows(), first])
            }
            Kind::Other(_) => continue,
        };
        let name = Some(column.name.clone());
        arrays.push(ArrayInfo { name, dtype, shape, open_ended: false });
    }
    Ok(arrays)
}

fn open(
    label: &str,
    table: &Source,
    purpose: Purpose,
    name: Option<&str>,
    options: &TableOptions,
) -> Result<Box<dyn ArrayReader>> {
    let all = columns(table.schema(), purpose);
    let Choice { columns, name, dtype, lists } = choose(label, &all, purpose, name, options)?;
    // The places of the columns in a batch, and their labels.
    let mut ascending = columns.clone();
    ascending.sort_unstable();
    let places = columns
        .iter()
        .map(|&i| (column_label(label, &all[i].name), ascending.binary_search(&i).unwrap_or(0)))
        .collect();
    let label = name.as_ref().map_or_else(|| label.to_owned(), |name| column_label(label, name));
    let mut batches = table.batches(&ascending, usize::MAX)?;
    let mut first = None;
    let length = match table.schema().field(columns[0]).data_type() {
        _ if !lists => 1,
        DataType::FixedSizeList(_, length) => *length as usize,
        _ => {
            first = batches.next()?;
            match &first {
                Some(batch) => lists::first_length(&Place::start(label.clone()), batch.column(0))?,
                None => 0,
            }
        }
    };
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
    let name_of = |i: usize| all[i].name.clone();
    let taken = Columns {
        taken: columns.iter().map(|&i| name_of(i)).collect(),
        left_out: left_out(all.len(), &columns).map(name_of).collect(),
        lists,
    };
    Ok(Box::new(ColumnsReader::new(&label, info, taken, batches, first, places, length)))
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
    /// The first row of a column.
    fn start(label: String) -> Self {
        Self { label, first: 0, length: 1 }
    }
}
