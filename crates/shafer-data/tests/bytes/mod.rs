//! Builders of valid and invalid files, for the tests and the fuzz targets (`fuzz/` at the root of the
//! repository).
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, reason = "each user has its part")]

use std::io::Write;

use flate2::Compression;
use flate2::write::DeflateEncoder;

/// A `NumPy` array, of version 1 of its format.
pub fn npy(header: impl AsRef<[u8]>, data: &[u8]) -> Vec<u8> {
    let header = header.as_ref();
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header);
    bytes.extend(data);
    bytes
}

/// A member of an archive: name, stored contents, compression method, length and checksum.
pub struct Member<'a> {
    pub name: &'a str,
    pub packed: Vec<u8>,
    pub method: u16,
    pub size: u64,
    pub crc: u32,
    pub flags: u16,
}

impl<'a> Member<'a> {
    pub fn stored(name: &'a str, contents: &[u8]) -> Self {
        let crc = crc32fast::hash(contents);
        let size = contents.len() as u64;
        Self { name, packed: contents.to_vec(), method: 0, size, crc, flags: 0 }
    }

    pub fn deflated(name: &'a str, contents: &[u8]) -> Self {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(contents).unwrap();
        Self { packed: encoder.finish().unwrap(), method: 8, ..Self::stored(name, contents) }
    }
}

/// An archive of these members, with lengths of 64 bits.
pub fn zip(members: &[Member<'_>]) -> Vec<u8> {
    let (mut bytes, mut directory) = (Vec::new(), Vec::new());
    for member in members {
        let start = bytes.len() as u32;
        let mut common = Vec::new();
        common.extend(45_u16.to_le_bytes());
        common.extend(member.flags.to_le_bytes());
        common.extend(member.method.to_le_bytes());
        common.extend([0, 0, 0x21, 0]);
        common.extend(member.crc.to_le_bytes());
        common.extend([0xff; 8]);
        common.extend((member.name.len() as u16).to_le_bytes());
        common.extend(20_u16.to_le_bytes());
        let mut extra = vec![1, 0, 16, 0];
        extra.extend(member.size.to_le_bytes());
        extra.extend((member.packed.len() as u64).to_le_bytes());
        bytes.extend(b"PK\x03\x04");
        bytes.extend(&common);
        bytes.extend(member.name.as_bytes());
        bytes.extend(&extra);
        bytes.extend(&member.packed);
        directory.extend(b"PK\x01\x02\x2d\x03");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(start.to_le_bytes());
        directory.extend(member.name.as_bytes());
        directory.extend(&extra);
    }
    let start = bytes.len() as u32;
    bytes.extend(&directory);
    bytes.extend(b"PK\x05\x06\0\0\0\0");
    bytes.extend((members.len() as u16).to_le_bytes());
    bytes.extend((members.len() as u16).to_le_bytes());
    bytes.extend((directory.len() as u32).to_le_bytes());
    bytes.extend(start.to_le_bytes());
    bytes.extend([0; 2]);
    bytes
}

/// Tensors with this number of zero bytes.
pub fn safetensors(header: impl AsRef<[u8]>, data: usize) -> Vec<u8> {
    let header = header.as_ref();
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    bytes.resize(bytes.len() + data, 0);
    bytes
}

/// A varint: groups of seven bits, the lowest first.
pub fn varint(mut n: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while n >= 0x80 {
        bytes.push(n as u8 | 0x80);
        n >>= 7;
    }
    bytes.push(n as u8);
    bytes
}

/// A length-delimited field of protocol buffers: text, bytes or a message.
pub fn field(tag: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(tag << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// A varint field of protocol buffers.
pub fn number(tag: u64, n: i64) -> Vec<u8> {
    [varint(tag << 3), varint(n as u64)].concat()
}
