//! Limits of Parquet's metadata, checked before a library trusts it.
//!
//! The crate `parquet` decodes footers and page headers. Its code recurses into a schema as deep as the file says,
//! which overflows the stack and aborts the program, and allocates the lengths that page headers claim. What is
//! here walks over the same bytes, Thrift's compact protocol, and reads these few numbers.

/// A problem, phrased as a predicate of the structure.
pub(super) type Parsed<T> = Result<T, &'static str>;

const CUT: &str = "ends too early";

/// The depth limit of structures, above that of any valid one.
const DEEPEST: usize = 32;

/// The depth limit of schemas. Others stop at 100 or fewer.
const DEEPEST_SCHEMA: usize = 100;

/// The most schema elements. Each can take one byte in the file and much more in memory.
const MOST_ELEMENTS: usize = 1 << 20;

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const I64: u8 = 6;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const STRUCT: u8 = 12;

/// Checks that the lists of a footer have room in it, and that its schema is not nested too deeply.
pub(super) fn check_footer(bytes: &[u8]) -> Parsed<()> {
    let mut schema = Vec::new();
    Thrift { bytes }.fields(|thrift, field| {
        if field != (2, LIST) {
            return Ok(false);
        }
        let (kind, n) = thrift.list()?;
        if kind != STRUCT && n > 0 {
            return Err("has a schema of something else");
        }
        if n > MOST_ELEMENTS {
            return Err("has more columns than are read");
        }
        for _ in 0..n {
            let mut children = 0;
            thrift.fields(|thrift, field| {
                let found = field == (5, I32);
                if found {
                    children = thrift.integer()?;
                }
                Ok(found)
            })?;
            schema.push(children);
        }
        Ok(true)
    })?;
    if schema.is_empty() {
        return Err("has no schema");
    }
    // The library allocates the claimed numbers.
    let claimed = schema.iter().try_fold(0_usize, |sum, &children: &i64| {
        sum.checked_add(usize::try_from(children.max(0)).ok()?)
    });
    if claimed.is_none_or(|claimed| claimed >= schema.len()) {
        return Err("has a schema that lacks columns");
    }
    // The numbers of elements that are missing in each of the groups around the next one.
    let mut around = Vec::new();
    for children in schema {
        while around.last() == Some(&0) {
            around.pop();
        }
        if let Some(left) = around.last_mut() {
            *left -= 1;
        }
        if children > 0 {
            around.push(children);
        }
        if around.len() > DEEPEST_SCHEMA {
            return Err("has a schema that is nested too deeply");
        }
    }
    Ok(())
}

/// What a page header says of the size of its page.
#[derive(Debug, Default)]
pub(super) struct PageSize {
    /// The length of the header.
    pub(super) header: usize,
    pub(super) packed: usize,
    pub(super) unpacked: usize,
    /// The number of values, of levels in a list. `None` for pages of other kinds than data and dictionaries.
    pub(super) values: Option<usize>,
    pub(super) is_dictionary: bool,
    /// The bytes of levels, which are not compressed, in a page of version 2.
    pub(super) levels: usize,
}

impl PageSize {
    /// Reads the header at the start of these bytes.
    pub(super) fn parse(bytes: &[u8]) -> Parsed<Self> {
        let (mut kind, mut packed, mut unpacked) = (-1, -1, -1);
        // The fields 1 to 7 of each kind of page.
        let [mut first, mut dictionary, mut second] = [[-1; 8]; 3];
        let mut thrift = Thrift { bytes };
        thrift.fields(|thrift, field| {
            match field {
                (1, I32) => kind = thrift.integer()?,
                (2, I32) => unpacked = thrift.integer()?,
                (3, I32) => packed = thrift.integer()?,
                (5, STRUCT) => integers(thrift, &mut first)?,
                (7, STRUCT) => integers(thrift, &mut dictionary)?,
                (8, STRUCT) => integers(thrift, &mut second)?,
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        let header = bytes.len() - thrift.bytes.len();
        let size = |n: i64| usize::try_from(n).map_err(|_| "lacks a length");
        let (values, levels) = match kind {
            0 => (Some(size(first[1])?), 0),
            2 => (Some(size(dictionary[1])?), 0),
            3 => (Some(size(second[1])?), size(second[5])?.saturating_add(size(second[6])?)),
            _ => (None, 0),
        };
        let (packed, unpacked) = (size(packed)?, size(unpacked)?);
        Ok(Self { header, packed, unpacked, values, is_dictionary: kind == 2, levels })
    }
}

/// The integers of a struct, by field id.
fn integers(thrift: &mut Thrift<'_>, into: &mut [i64; 8]) -> Parsed<()> {
    thrift.fields(|thrift, (id, kind)| {
        let place = usize::try_from(id).ok().and_then(|id| into.get_mut(id));
        match place {
            Some(place) if kind == I32 => *place = thrift.integer()?,
            _ => return Ok(false),
        }
        Ok(true)
    })
}

/// The id and the type of a field.
type Field = (i64, u8);

/// A reader of bytes. Lengths are not trusted, and unknown fields are skipped by their type.
pub(super) struct Thrift<'a> {
    pub(super) bytes: &'a [u8],
}

impl Thrift<'_> {
    /// Calls `take` with each field of a struct. `take` reads the field, or returns `false` to skip it.
    fn fields(&mut self, mut take: impl FnMut(&mut Self, Field) -> Parsed<bool>) -> Parsed<()> {
        let mut id = 0;
        while let Some(field) = self.field(&mut id)? {
            if !take(self, field)? {
                self.skip(field.1, DEEPEST)?;
            }
        }
        Ok(())
    }

    /// The next field of a struct, after the one with this `id`.
    fn field(&mut self, id: &mut i64) -> Parsed<Option<Field>> {
        let byte = self.byte()?;
        let kind = byte & 0xf;
        if kind == 0 {
            return Ok(None);
        }
        *id = match i64::from(byte >> 4) {
            0 => self.integer()?,
            more => id.wrapping_add(more),
        };
        Ok(Some((*id, kind)))
    }

    pub(super) fn integer(&mut self) -> Parsed<i64> {
        let n = self.unsigned()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// The element type and the length of a list, bounded by the remaining bytes.
    fn list(&mut self) -> Parsed<(u8, usize)> {
        let byte = self.byte()?;
        let n = match byte >> 4 {
            15 => self.unsigned()?,
            n => u64::from(n),
        };
        match usize::try_from(n) {
            Ok(n) if n <= self.bytes.len() => Ok((byte & 0xf, n)),
            _ => Err("has a list that is longer than all that follows"),
        }
    }

    fn byte(&mut self) -> Parsed<u8> {
        let (&byte, rest) = self.bytes.split_first().ok_or(CUT)?;
        self.bytes = rest;
        Ok(byte)
    }

    fn skip_bytes(&mut self, n: u64) -> Parsed<()> {
        let n = usize::try_from(n).map_err(|_| CUT)?;
        self.bytes = self.bytes.get(n..).ok_or(CUT)?;
        Ok(())
    }

    /// A varint: groups of seven bits, the lowest first.
    pub(super) fn unsigned(&mut self) -> Parsed<u64> {
        let mut n = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            n |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(n);
            }
        }
        Err("has a number that is too long")
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Parsed<()> {
        let Some(depth) = depth.checked_sub(1) else { return Err("is nested too deeply") };
        match kind {
            TRUE | FALSE => {}
            // A single byte; integers of 16, 32 and 64 bits; a double.
            3 => _ = self.byte()?,
            4 | I32 | I64 => _ = self.unsigned()?,
            7 => self.skip_bytes(8)?,
            BINARY => {
                let n = self.unsigned()?;
                self.skip_bytes(n)?;
            }
            // Sets are as lists are.
            LIST | 10 => {
                let (kind, n) = self.list()?;
                for _ in 0..n {
                    self.skip_element(kind, depth)?;
                }
            }
            // A map.
            11 => {
                let n = self.unsigned()?;
                let kinds = if n > 0 { self.byte()? } else { 0 };
                for _ in 0..n {
                    self.skip_element(kinds >> 4, depth)?;
                    self.skip_element(kinds & 0xf, depth)?;
                }
            }
            STRUCT => {
                let mut id = 0;
                while let Some((_, kind)) = self.field(&mut id)? {
                    self.skip(kind, depth)?;
                }
            }
            // A UUID.
            13 => self.skip_bytes(16)?,
            _ => return Err("has a field of an unknown type"),
        }
        Ok(())
    }

    /// Outside of structs, a boolean takes a byte.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Parsed<()> {
        self.skip(if kind == TRUE || kind == FALSE { 3 } else { kind }, depth)
    }
}
