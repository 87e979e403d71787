//! `NumPy`'s `.npz`: a zip archive of `.npy` files.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};

use flate2::bufread::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use crate::array::Purpose;
use crate::entry::{Entry, choose};
use crate::npy::{self, BFLOAT16, Header};
use crate::raw::Elements;
use crate::{ArrayInfo, ArrayReader, Error, Result};

pub(crate) const MAGIC: &[u8] = b"PK\x03\x04";

const DAMAGED: &str = "the file is damaged or not an archive of arrays; write it again with \
                       numpy.savez";

/// An open archive. The crate `zip` reads the directory only: its readers of members borrow the archive,
/// and an array's reader has to own its source.
pub(crate) struct Archive {
    label: String,
    file: File,
    members: Vec<Member>,
}

/// A file in the archive.
struct Member {
    /// The name without `.npy`.
    name: String,
    start: u64,
    compressed: u64,
    size: u64,
    crc: u32,
    method: CompressionMethod,
    encrypted: bool,
}

impl Archive {
    pub(crate) fn open(label: &str, file: File) -> Result<Self> {
        let damaged = |e: zip::result::ZipError| {
            Error::format(label, format!("the directory of the archive is invalid ({e})"), DAMAGED)
        };
        let io = |e| Error::io(label, "read", e);
        let length = file.metadata().map_err(io)?.len();
        let reader = BufReader::new(file.try_clone().map_err(io)?);
        let mut archive = ZipArchive::new(reader).map_err(damaged)?;
        let mut members = Vec::new();
        for i in 0..archive.len() {
            let member = archive.by_index_raw(i).map_err(damaged)?;
            let name = String::from_utf8_lossy(member.name_raw());
            let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
            let start = member.data_start().unwrap_or(u64::MAX);
            if start.checked_add(member.compressed_size()).is_none_or(|end| end > length) {
                let problem = format!(
                    "the member `{}` should have {} bytes but the archive ends before",
                    npy::shortened(&name),
                    member.compressed_size()
                );
                return Err(Error::format(label, problem, "copy or write the file again"));
            }
            members.push(Member {
                name,
                start,
                compressed: member.compressed_size(),
                size: member.size(),
                crc: member.crc32(),
                method: member.compression(),
                encrypted: member.encrypted(),
            });
        }
        Ok(Self { label: label.to_owned(), file, members })
    }

    /// The arrays of floating-point type.
    pub(crate) fn list(&self) -> Result<Vec<ArrayInfo>> {
        Ok(self.entries(false)?.iter().filter_map(Entry::info).collect())
    }

    /// Whether the members are exactly these files, uncompressed, in any order.
    pub(crate) fn stores_exactly(&self, files: &[&str]) -> bool {
        let is = |member: &Member, file: &str| file.strip_suffix(".npy") == Some(&member.name);
        self.members.len() == files.len()
            && files.iter().all(|file| self.members.iter().any(|member| is(member, file)))
            && self.members.iter().all(|member| member.method == CompressionMethod::Stored)
    }

    /// Opens an array. `NAME:bfloat16` gives the type of untyped two-byte elements.
    pub(crate) fn array(
        self,
        purpose: Purpose,
        name: Option<&str>,
    ) -> Result<Box<dyn ArrayReader>> {
        let has = |name: &str| self.members.iter().any(|member| member.name == name);
        let (name, bfloat16) = match name {
            Some(BFLOAT16) if !has(BFLOAT16) => (None, true),
            Some(name) if !has(name) => match name.strip_suffix(BFLOAT16) {
                Some(rest) if rest.ends_with(':') => (Some(&rest[..rest.len() - 1]), true),
                _ => (Some(name), false),
            },
            name => (name, false),
        };
        if name.is_none() && ["data", "indices", "indptr", "format"].into_iter().all(has) {
            return Err(Error::request(
                &self.label,
                "is a sparse matrix of SciPy; logits are dense, as in numpy.savez(path, logits=...)",
            ));
        }
        let place = |name: &str| self.members.iter().position(|member| member.name == name);
        // A named member is opened even if others are invalid.
        let found = name.and_then(|name| place(name).or_else(|| place(name.strip_suffix(".npy")?)));
        let chosen = match found {
            Some(found) => found,
            None => choose(&self.label, &self.entries(bfloat16)?, purpose, name)?,
        };
        let member = &self.members[chosen];
        let label = self.member_label(member);
        // Uncompressed members are seekable, so they need not be copied to a temporary file.
        let again = match member.method {
            CompressionMethod::Stored => {
                // Random access cannot check the checksum, which needs a sequential read.
                if Header::read(&label, &mut *self.source(member)?)?.fortran {
                    io::copy(&mut self.source(member)?, &mut io::sink())
                        .map_err(|e| Error::io(&label, "read", e))?;
                }
                let file = self.file.try_clone().map_err(|e| Error::io(&label, "read", e))?;
                Some((file, member.start))
            }
            _ => None,
        };
        // Created last: all readers share the position of one file.
        let source = self.source(member)?;
        let name = Some(member.name.clone());
        let length = Some(member.size);
        Ok(Box::new(npy::open(&label, name, purpose, bfloat16, source, length, again)?))
    }

    /// The arrays and their types. Invalid members are listed as such, so that the others stay usable.
    fn entries(&self, bfloat16: bool) -> Result<Vec<Entry>> {
        let mut entries = Vec::with_capacity(self.members.len());
        for member in &self.members {
            let label = self.member_label(member);
            let header = self.source(member).and_then(|mut s| Header::read(&label, &mut *s));
            let (dtype, shape) = match header {
                Ok(header) => {
                    let elements = header.elements(&self.label, Purpose::Numbers, bfloat16);
                    let descr = npy::shortened(&header.descr);
                    (elements.map(Elements::dtype).map_err(|_| descr), header.shape)
                }
                Err(e @ Error::Io { .. }) => return Err(e),
                Err(_) => (Err("(no array)".to_owned()), Vec::new()),
            };
            entries.push(Entry { name: member.name.clone(), dtype, shape });
        }
        Ok(entries)
    }

    fn member_label(&self, member: &Member) -> String {
        format!("{}:{}", self.label, npy::shortened(&member.name))
    }

    /// A reader of a member from its start, bounded by the length in the directory.
    fn source(&self, member: &Member) -> Result<Box<dyn Read + Send>> {
        let label = self.member_label(member);
        if member.encrypted {
            return Err(Error::format(&label, "is encrypted", "write it without a password"));
        }
        let io = |e| Error::io(&label, "read", e);
        let mut file = self.file.try_clone().map_err(io)?;
        file.seek(SeekFrom::Start(member.start)).map_err(io)?;
        let packed = file.take(member.compressed);
        let (left, crc) = (member.size, member.crc);
        let hasher = crc32fast::Hasher::new();
        match member.method {
            CompressionMethod::Stored => Ok(Box::new(Checked { inner: packed, left, crc, hasher })),
            CompressionMethod::DEFLATE => {
                let inner = DeflateDecoder::new(BufReader::with_capacity(64 << 10, packed));
                Ok(Box::new(Checked { inner, left, crc, hasher }))
            }
            other => Err(Error::format(
                &label,
                format!("uses an unsupported compression method ({other:?})"),
                "write it with numpy.savez or numpy.savez_compressed",
            )),
        }
    }
}

/// Reads a member up to the length in the directory, and verifies its checksum at the end.
struct Checked<R> {
    inner: R,
    left: u64,
    crc: u32,
    hasher: crc32fast::Hasher,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let wanted = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let n = self.inner.read(&mut buffer[..wanted])?;
        self.hasher.update(&buffer[..n]);
        self.left -= n as u64;
        if n > 0 && self.left == 0 && self.hasher.clone().finalize() != self.crc {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "the checksum of the archive does not match; copy or write the file again",
            ));
        }
        Ok(n)
    }
}
