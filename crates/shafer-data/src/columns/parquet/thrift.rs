//! Thrift's compact protocol, the encoding of all metadata of Parquet.
//!
//! Files can be damaged or hostile: lengths are not trusted, and unknown fields are skipped by their type.

/// A problem, phrased as a predicate of the structure.
pub(super) type Parsed<T> = Result<T, &'static str>;

const CUT: &str = "ends too early";

/// The depth limit, above that of any valid structure.
const DEEPEST: usize = 32;

/// The relevant field types.
pub(super) const TRUE: u8 = 1;
pub(super) const FALSE: u8 = 2;
pub(super) const I32: u8 = 5;
pub(super) const I64: u8 = 6;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// The id and the type of a field.
pub(super) type Field = (i64, u8);

/// A reader of bytes.
pub(super) struct Thrift<'a> {
    pub(super) bytes: &'a [u8],
}

impl<'a> Thrift<'a> {
    /// Calls `take` with each field of a struct. `take` reads the field, or returns `false` to skip it.
    pub(super) fn fields(
        &mut self,
        mut take: impl FnMut(&mut Self, Field) -> Parsed<bool>,
    ) -> Parsed<()> {
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
        if byte == 0 {
            return Ok(None);
        }
        *id = match i64::from(byte >> 4) {
            0 => self.integer()?,
            more => id.wrapping_add(more),
        };
        Ok(Some((*id, byte & 0xf)))
    }

    pub(super) fn integer(&mut self) -> Parsed<i64> {
        let n = self.unsigned()?;
        Ok((n >> 1) as i64 ^ -((n & 1) as i64))
    }

    /// The element type and the length of a list, bounded by the remaining bytes.
    pub(super) fn list(&mut self) -> Parsed<(u8, usize)> {
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

    /// Calls `take` with each struct of a list.
    pub(super) fn structs(
        &mut self,
        mut take: impl FnMut(&mut Self) -> Parsed<()>,
    ) -> Parsed<usize> {
        let (kind, n) = self.list()?;
        // Writers differ in the element type of an empty list.
        if kind != STRUCT && n > 0 {
            return Err("has a list of something else");
        }
        for _ in 0..n {
            take(self)?;
        }
        Ok(n)
    }

    pub(super) fn binary(&mut self) -> Parsed<&'a [u8]> {
        let n = self.unsigned()?;
        self.take(n)
    }

    fn byte(&mut self) -> Parsed<u8> {
        Ok(self.take(1)?[0])
    }

    fn take(&mut self, n: u64) -> Parsed<&'a [u8]> {
        let n = usize::try_from(n).map_err(|_| CUT)?;
        let (taken, rest) = self.bytes.split_at_checked(n).ok_or(CUT)?;
        self.bytes = rest;
        Ok(taken)
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
            7 => _ = self.take(8)?,
            BINARY => _ = self.binary()?,
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
            13 => _ = self.take(16)?,
            _ => return Err("has a field of an unknown type"),
        }
        Ok(())
    }

    /// Outside of structs, a boolean takes a byte.
    fn skip_element(&mut self, kind: u8, depth: usize) -> Parsed<()> {
        self.skip(if kind == TRUE || kind == FALSE { 3 } else { kind }, depth)
    }
}
