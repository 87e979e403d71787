//! Uncompressed zip archives of `.npy` members, as `numpy.savez` writes them.
//!
//! The length, the checksum and the shape of a member are known at its end only: both of its headers are
//! written then, into reserved space.

use std::io::{self, Write};

use crc32fast::Hasher;

use crate::AtomicFile;

/// The space reserved for the `.npy` header: enough for arrays with one axis.
pub(super) const ARRAY_HEADER: usize = 128;

/// The fixed part of a local file header, and the zip64 extra field.
const LOCAL: usize = 30;
const LOCAL_EXTRA: usize = 20;

/// The version needed to extract: zip64.
const VERSION: u16 = 45;
/// The date 1980-01-01, as in `NumPy`: output is reproducible.
const DATE: u16 = 0x21;

#[derive(Debug)]
pub(super) struct ZipWriter {
    pub(super) file: AtomicFile,
    /// The length of the file so far.
    at: u64,
    /// The checksum of the current member's array.
    hasher: Hasher,
    members: Vec<Member>,
}

#[derive(Debug)]
struct Member {
    name: &'static str,
    start: u64,
    size: u64,
    crc: u32,
}

impl ZipWriter {
    pub(super) fn new(file: AtomicFile) -> Self {
        Self { file, at: 0, hasher: Hasher::new(), members: Vec::new() }
    }

    /// Starts a member. Elements of its array are written next.
    pub(super) fn begin(&mut self, name: &'static str) -> io::Result<()> {
        self.members.push(Member { name, start: self.at, size: 0, crc: 0 });
        self.hasher = Hasher::new();
        let room = LOCAL + name.len() + LOCAL_EXTRA + ARRAY_HEADER;
        self.at += room as u64;
        self.file.write_all(&vec![0; room])
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_hashed(bytes, &hashed(bytes))
    }

    /// Writes bytes with a known hash.
    pub(super) fn write_hashed(&mut self, bytes: &[u8], hash: &Hasher) -> io::Result<()> {
        self.hasher.combine(hash);
        self.at += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    /// Completes the member with this `.npy` header.
    pub(super) fn end(&mut self, array_header: &[u8]) -> io::Result<()> {
        debug_assert_eq!(array_header.len(), ARRAY_HEADER);
        let Some(member) = self.members.last_mut() else { return Ok(()) };
        let before = LOCAL + member.name.len() + LOCAL_EXTRA;
        member.size = self.at - member.start - before as u64;
        let mut whole = Hasher::new();
        whole.update(array_header);
        whole.combine(&self.hasher);
        member.crc = whole.finalize();

        let mut header = Vec::with_capacity(before + ARRAY_HEADER);
        header.extend(0x0403_4b50_u32.to_le_bytes());
        header.extend(VERSION.to_le_bytes());
        // No flags, stored, midnight.
        header.extend([0; 6]);
        header.extend(DATE.to_le_bytes());
        header.extend(member.crc.to_le_bytes());
        // Both lengths are in the zip64 extra field.
        header.extend([0xff; 8]);
        header.extend((member.name.len() as u16).to_le_bytes());
        header.extend((LOCAL_EXTRA as u16).to_le_bytes());
        header.extend(member.name.as_bytes());
        header.extend([1, 0, 16, 0]);
        header.extend(member.size.to_le_bytes());
        header.extend(member.size.to_le_bytes());
        header.extend(array_header);
        self.file.patch(member.start, &header)
    }

    /// Writes the central directory with the members in this order, and returns the file.
    pub(super) fn finish(mut self, order: &[&str]) -> io::Result<AtomicFile> {
        self.members.sort_by_key(|member| order.iter().position(|name| *name == member.name));
        let mut bytes = Vec::new();
        for member in &self.members {
            member.directory_entry(&mut bytes);
        }
        let (start, length, count) = (self.at, bytes.len() as u64, self.members.len() as u16);
        if start + length > u64::from(u32::MAX) {
            let end = start + length;
            bytes.extend(0x0606_4b50_u32.to_le_bytes());
            bytes.extend(44_u64.to_le_bytes());
            bytes.extend(VERSION.to_le_bytes());
            bytes.extend(VERSION.to_le_bytes());
            bytes.extend([0; 8]);
            bytes.extend(u64::from(count).to_le_bytes());
            bytes.extend(u64::from(count).to_le_bytes());
            bytes.extend(length.to_le_bytes());
            bytes.extend(start.to_le_bytes());
            bytes.extend(0x0706_4b50_u32.to_le_bytes());
            bytes.extend(0_u32.to_le_bytes());
            bytes.extend(end.to_le_bytes());
            bytes.extend(1_u32.to_le_bytes());
        }
        bytes.extend(0x0605_4b50_u32.to_le_bytes());
        bytes.extend([0; 4]);
        bytes.extend(count.to_le_bytes());
        bytes.extend(count.to_le_bytes());
        bytes.extend((length as u32).to_le_bytes());
        bytes.extend(saturated(start).to_le_bytes());
        bytes.extend([0; 2]);
        self.file.write_all(&bytes)?;
        Ok(self.file)
    }
}

/// The hash for [`ZipWriter::write_hashed`].
pub(super) fn hashed(bytes: &[u8]) -> Hasher {
    let mut hasher = Hasher::new();
    hasher.update(bytes);
    hasher
}

impl Member {
    fn directory_entry(&self, bytes: &mut Vec<u8>) {
        let mut extra = Vec::new();
        if saturated(self.size) == u32::MAX {
            extra.extend(self.size.to_le_bytes());
            extra.extend(self.size.to_le_bytes());
        }
        if saturated(self.start) == u32::MAX {
            extra.extend(self.start.to_le_bytes());
        }
        bytes.extend(0x0201_4b50_u32.to_le_bytes());
        // Made by Unix, so that the permissions below apply.
        bytes.extend((3 << 8 | VERSION).to_le_bytes());
        bytes.extend(VERSION.to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend(DATE.to_le_bytes());
        bytes.extend(self.crc.to_le_bytes());
        bytes.extend(saturated(self.size).to_le_bytes());
        bytes.extend(saturated(self.size).to_le_bytes());
        bytes.extend((self.name.len() as u16).to_le_bytes());
        let extra_length = if extra.is_empty() { 0 } else { extra.len() + 4 };
        bytes.extend((extra_length as u16).to_le_bytes());
        bytes.extend([0; 6]);
        bytes.extend((0o600_u32 << 16).to_le_bytes());
        bytes.extend(saturated(self.start).to_le_bytes());
        bytes.extend(self.name.as_bytes());
        if !extra.is_empty() {
            bytes.extend(1_u16.to_le_bytes());
            bytes.extend((extra.len() as u16).to_le_bytes());
            bytes.extend(extra);
        }
    }
}

/// The number if it fits 32 bits, else the marker for the zip64 field.
fn saturated(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
