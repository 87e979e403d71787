//! The metadata in the footer of a Parquet file.
//!
//! The crate `parquet` writes such files here, but does not read them: for a file of sixty bytes that claims two
//! billion row groups it allocates 200 GB, and a deeply nested schema overflows the stack. Both abort the
//! program.

use super::thrift::{BINARY, I32, I64, LIST, Parsed, STRUCT, Thrift};
use crate::Dtype;
use crate::columns::{Column, Kind};

/// The most schema elements. Each can take one byte in the file and much more in memory.
const MOST_ELEMENTS: usize = 1 << 20;

const MISFIT: &str = "has a schema whose parts do not fit together";

/// The needed part of a footer.
#[derive(Default)]
pub(super) struct Footer {
    pub(super) columns: Vec<Column>,
    /// For each column, the storage of its numbers, if it is supported.
    pub(super) leaves: Vec<Option<Leaf>>,
    pub(super) groups: Vec<Group>,
}

/// The storage of a column of numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leaf {
    /// The index among the leaf columns, which is the index in a row group.
    pub(super) chunk: usize,
    pub(super) dtype: Dtype,
    /// The definition level of a present value. Lower levels mean null.
    pub(super) defined: u32,
    /// The definition level of a non-empty list, or 0 without a list.
    pub(super) in_list: u32,
}

/// A row group.
pub(super) struct Group {
    pub(super) rows: i64,
    pub(super) chunks: Vec<Chunk>,
}

/// A column chunk.
#[derive(Clone, Copy, Default)]
pub(super) struct Chunk {
    /// The offset and the length of its pages in bytes.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) codec: u8,
    /// Whether its pages are in another file or encrypted.
    pub(super) elsewhere: bool,
}

impl Footer {
    pub(super) fn parse(bytes: &[u8]) -> Parsed<Self> {
        let (mut elements, mut rows) = (Vec::new(), None);
        let mut footer = Self::default();
        let mut thrift = Thrift { bytes };
        thrift.fields(|thrift, field| {
            match field {
                (2, LIST) => {
                    thrift.structs(|thrift| {
                        if elements.len() == MOST_ELEMENTS {
                            return Err("has more columns than are read");
                        }
                        elements.push(Element::parse(thrift)?);
                        Ok(())
                    })?;
                }
                (3, I64) => rows = Some(thrift.integer()?),
                (4, LIST) => {
                    thrift.structs(|thrift| {
                        footer.groups.push(Group::parse(thrift)?);
                        Ok(())
                    })?;
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let chunks = footer.schema(&elements)?;
        // Otherwise a damaged list of row groups could silently lose rows.
        let counted = footer.groups.iter().try_fold(0, |n: i64, group| n.checked_add(group.rows));
        if rows.is_some_and(|rows| counted != Some(rows)) {
            return Err("has groups with more or fewer rows than it says");
        }
        if footer.groups.iter().any(|group| group.chunks.len() != chunks) {
            return Err("has a group of rows with other columns");
        }
        Ok(footer)
    }

    /// Converts the schema elements, a tree in depth-first order, to columns. Returns the number of leaves.
    fn schema(&mut self, elements: &[Element]) -> Parsed<usize> {
        let [root, elements @ ..] = elements else { return Err("has no schema") };
        let mut levels = vec![Level { children: root.children, defined: 0, in_list: 0, lists: 0 }];
        let (mut chunk, mut in_column) = (0, 0);
        for element in elements {
            while levels.last().is_some_and(|level| level.children == 0) {
                levels.pop();
            }
            let (top, Some(parent)) = (levels.len() == 1, levels.last_mut()) else {
                return Err(MISFIT);
            };
            parent.children -= 1;
            let mut level = Level { children: element.children, ..*parent };
            if element.repetition != REQUIRED {
                level.defined += 1;
            }
            if element.repetition == REPEATED {
                level.lists += 1;
                level.in_list = level.defined;
            }
            if top {
                let kind = Kind::Other(element.type_name());
                self.columns.push(Column { name: element.name.clone(), kind });
                self.leaves.push(None);
                in_column = 0;
            }
            if element.children > 0 {
                levels.push(level);
                continue;
            }
            // A struct of nothing.
            if element.kind.is_none() {
                continue;
            }
            in_column += 1;
            if let (Some(column), Some(leaf)) = (self.columns.last_mut(), self.leaves.last_mut()) {
                *leaf = None;
                // Several children: a struct or a map.
                column.kind = match (in_column, level.lists, element.dtype()) {
                    (1, 0, Some(dtype)) if top => Kind::Numbers(dtype),
                    (1, 1, Some(dtype)) => Kind::Lists(dtype),
                    (1, 1, None) => Kind::Other(format!("list of {}", element.type_name())),
                    (1, 0, _) if top => Kind::Other(element.type_name()),
                    _ => Kind::Other("nested values".to_owned()),
                };
                if let Kind::Numbers(dtype) | Kind::Lists(dtype) = column.kind {
                    let Level { defined, in_list, .. } = level;
                    *leaf = Some(Leaf { chunk, dtype, defined, in_list });
                }
            }
            chunk += 1;
        }
        if levels.iter().any(|level| level.children > 0) { Err(MISFIT) } else { Ok(chunk) }
    }
}

/// A schema element with remaining children.
#[derive(Clone, Copy)]
struct Level {
    /// The remaining children.
    children: i64,
    defined: u32,
    in_list: u32,
    /// The number of repeated ancestors.
    lists: u32,
}

const REQUIRED: i64 = 0;
const REPEATED: i64 = 2;

#[derive(Default)]
struct Element {
    name: String,
    children: i64,
    repetition: i64,
    /// The physical type, unless it has children.
    kind: Option<i64>,
    /// The length of values of a fixed-length type.
    size: i64,
    half: bool,
}

impl Element {
    fn parse(thrift: &mut Thrift<'_>) -> Parsed<Self> {
        let mut element = Self::default();
        thrift.fields(|thrift, field| {
            match field {
                (1, I32) => element.kind = Some(thrift.integer()?),
                (2, I32) => element.size = thrift.integer()?,
                (3, I32) => element.repetition = thrift.integer()?,
                (4, BINARY) => {
                    element.name = String::from_utf8_lossy(thrift.binary()?).into_owned();
                }
                (5, I32) => element.children = thrift.integer()?,
                // The logical type, of which only half precision matters.
                (10, STRUCT) => thrift.fields(|_, field| {
                    element.half |= field == (15, STRUCT);
                    Ok(false)
                })?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if element.children < 0 {
            return Err(MISFIT);
        }
        Ok(element)
    }

    fn dtype(&self) -> Option<Dtype> {
        match self.kind {
            Some(4) => Some(Dtype::F32),
            Some(5) => Some(Dtype::F64),
            Some(7) if self.half && self.size == 2 => Some(Dtype::F16),
            _ => None,
        }
    }

    fn type_name(&self) -> String {
        const NAMES: [&str; 8] = [
            "boolean",
            "int32",
            "int64",
            "int96",
            "f32",
            "f64",
            "bytes",
            "bytes of a fixed length",
        ];
        let name = self.kind.and_then(|kind| NAMES.get(usize::try_from(kind).ok()?));
        (*name.unwrap_or(&"nested values")).to_owned()
    }
}

impl Group {
    fn parse(thrift: &mut Thrift<'_>) -> Parsed<Self> {
        let mut group = Self { rows: -1, chunks: Vec::new() };
        thrift.fields(|thrift, field| {
            match field {
                (1, LIST) => {
                    thrift.structs(|thrift| {
                        group.chunks.push(Chunk::parse(thrift)?);
                        Ok(())
                    })?;
                }
                (3, I64) => group.rows = thrift.integer()?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        if group.rows < 0 {
            return Err("has a group that does not say how many rows it has");
        }
        Ok(group)
    }
}

impl Chunk {
    fn parse(thrift: &mut Thrift<'_>) -> Parsed<Self> {
        let (mut codec, mut length, mut start, mut dictionary) = (-1, -1, -1, -1);
        let mut elsewhere = false;
        thrift.fields(|thrift, field| {
            match field {
                (3, STRUCT) => thrift.fields(|thrift, field| {
                    match field {
                        (4, I32) => codec = thrift.integer()?,
                        (7, I64) => length = thrift.integer()?,
                        (9, I64) => start = thrift.integer()?,
                        (11, I64) => dictionary = thrift.integer()?,
                        _ => return Ok(false),
                    }
                    Ok(true)
                })?,
                // The path of an external file, and the encryption.
                (1 | 8 | 9, _) => {
                    elsewhere = true;
                    return Ok(false);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        // The dictionary comes first. Some writers set its offset to 0 if there is none.
        if (1..start).contains(&dictionary) {
            start = dictionary;
        }
        match (u64::try_from(start), u64::try_from(length), u8::try_from(codec)) {
            (Ok(start), Ok(length), Ok(codec)) => Ok(Self { start, length, codec, elsewhere }),
            // Encrypted chunks have no offsets.
            _ if elsewhere => Ok(Self { elsewhere, ..Self::default() }),
            _ => Err("has a column that does not say where it is"),
        }
    }
}
