//! Builds Parquet files at the byte level.

use crate::bytes::varint;

/// A file with these pages and this footer.
pub fn parquet(pages: &[u8], footer: &[u8]) -> Vec<u8> {
    let length = (footer.len() as u32).to_le_bytes();
    [b"PAR1", pages, footer, &length, b"PAR1"].concat()
}

/// Writes a struct in Thrift's compact protocol. Field ids must ascend by at most 15.
#[derive(Default)]
pub struct Thrift {
    bytes: Vec<u8>,
    last: u8,
}

impl Thrift {
    fn field(&mut self, id: u8, kind: u8) {
        self.bytes.push((id - self.last) << 4 | kind);
        self.last = id;
    }

    pub fn boolean(&mut self, id: u8, on: bool) {
        self.field(id, if on { 1 } else { 2 });
    }

    pub fn i32(&mut self, id: u8, n: i64) {
        self.field(id, 5);
        self.integer(n);
    }

    pub fn i64(&mut self, id: u8, n: i64) {
        self.field(id, 6);
        self.integer(n);
    }

    fn integer(&mut self, n: i64) {
        self.bytes.extend(varint((n << 1 ^ n >> 63) as u64));
    }

    pub fn binary(&mut self, id: u8, bytes: &[u8]) {
        self.field(id, 8);
        self.bytes.extend(varint(bytes.len() as u64));
        self.bytes.extend(bytes);
    }

    pub fn structure(&mut self, id: u8, structure: Thrift) {
        self.field(id, 12);
        self.bytes.extend(structure.end());
    }

    /// A list of fewer than 15 structs.
    pub fn structures(&mut self, id: u8, structures: Vec<Thrift>) {
        self.field(id, 9);
        self.bytes.push((structures.len() as u8) << 4 | 12);
        self.bytes.extend(structures.into_iter().flat_map(Thrift::end));
    }

    /// A list of one element, of a type that is not a struct.
    pub fn list_of_one(&mut self, id: u8, kind: u8, element: &[u8]) {
        self.field(id, 9);
        self.bytes.push(1 << 4 | kind);
        self.bytes.extend(element);
    }

    /// The bytes of the whole struct.
    pub fn end(mut self) -> Vec<u8> {
        self.bytes.push(0);
        self.bytes
    }
}
