//! What a Parquet file says about itself, at its end.
//!
//! The crate `parquet` writes such files, but is not asked to read them: a list that claims two
//! thousand million row groups, in a file of sixty bytes, has it ask for 200 GB at once, and a schema
//! that is nested deeply has it recurse as deeply. Both end the program and not just the call.

use super::thrift::{BINARY, I32, I64, LIST, Parsed, STRUCT, Thrift};
use crate::Dtype;
use crate::columns::{Column, Kind};

/// An element of a schema takes much more memory than the byte that it may take in a file.
const MOST_ELEMENTS: usize = 1 << 20;

const MISFIT: &str = "has a schema whose parts do not fit together";

/// What is read of a footer.
#[derive(Default)]
pub(super) struct Footer {
    pub(super) columns: Vec<Column>,
    /// For each column, how its numbers are stored, if they are read.
    pub(super) leaves: Vec<Option<Leaf>>,
    pub(super) groups: Vec<Group>,
}

/// The numbers of a column.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Leaf {
    /// Their place among all such, which is their place in a group.
    pub(super) chunk: usize,
    pub(super) dtype: Dtype,
    /// The level at which a number is there. At lower ones something is missing.
    pub(super) defined: u32,
    /// The level at which its list is not empty; 0 if there is no list.
    pub(super) in_list: u32,
}

/// Some rows of all columns.
pub(super) struct Group {
    pub(super) rows: i64,
    pub(super) chunks: Vec<Chunk>,
}

/// A column's part of a group.
#[derive(Clone, Copy, Default)]
pub(super) struct Chunk {
    /// Where its pages begin, and their length in bytes.
    pub(super) start: u64,
    pub(super) length: u64,
    pub(super) codec: u8,
    /// Whether its pages are in another file, or encrypted.
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
        // Otherwise a damaged list of groups could lose some of them unseen.
        let counted = footer.groups.iter().try_fold(0, |n: i64, group| n.checked_add(group.rows));
        if rows.is_some_and(|rows| counted != Some(rows)) {
            return Err("has groups with more or fewer rows than it says");
        }
        if footer.groups.iter().any(|group| group.chunks.len() != chunks) {
            return Err("has a group of rows with other columns");
        }
        Ok(footer)
    }

    /// Makes columns of the tree of elements, which lie in the order of their beginnings, and
    /// returns how many of them hold something.
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
                // What has several parts is a struct or a map.
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

/// An element of the schema whose children follow it.
#[derive(Clone, Copy)]
struct Level {
    /// Children that are still to come.
    children: i64,
    defined: u32,
    in_list: u32,
    /// How many of the elements above are repeated.
    lists: u32,
}

const REQUIRED: i64 = 0;
const REPEATED: i64 = 2;

#[derive(Default)]
struct Element {
    name: String,
    children: i64,
    repetition: i64,
    /// The number of its type, unless it has children.
    kind: Option<i64>,
    /// The bytes of a value, if the type does not say it.
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
                // What the value stands for: of all that can be, half precision matters.
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
                // The path of a file, and how it is encrypted.
                (1 | 8 | 9, _) => {
                    elsewhere = true;
                    return Ok(false);
                }
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        // The dictionary comes first; some writers say 0 where there is none.
        if (1..start).contains(&dictionary) {
            start = dictionary;
        }
        match (u64::try_from(start), u64::try_from(length), u8::try_from(codec)) {
            (Ok(start), Ok(length), Ok(codec)) => Ok(Self { start, length, codec, elsewhere }),
            // What is encrypted does not say where it is.
            _ if elsewhere => Ok(Self { elsewhere, ..Self::default() }),
            _ => Err("has a column that does not say where it is"),
        }
    }
}
