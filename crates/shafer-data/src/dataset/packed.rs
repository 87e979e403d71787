//! Files that may be compressed with gzip or xz, recognised by their first bytes.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;

use crate::npy::cut;
use crate::raw::fill;
use crate::{Error, Result};

const GZIP: &[u8] = b"\x1f\x8b";
const XZ: &[u8] = b"\xfd7zXZ\x00";

/// The memory that files of `xz -9` need. A hostile file could demand gigabytes.
const XZ_MEMORY_KIB: u32 = 100 << 10;

/// Opens a file, and decompresses it if necessary.
pub(crate) fn open(path: &Path) -> Result<Box<dyn Read>> {
    let label = path.display().to_string();
    if path.is_dir() {
        return Err(Error::request(&label, "is a folder; name a file in it"));
    }
    let file = File::open(path).map_err(|e| Error::io(&label, "open", e))?;
    unpack(BufReader::with_capacity(1 << 16, file)).map_err(|e| Error::io(&label, "read", e))
}

/// Decompresses a stream if necessary.
pub(crate) fn unpack<'a>(mut source: impl Read + 'a) -> io::Result<Box<dyn Read + 'a>> {
    let mut start = [0; XZ.len()];
    let n = fill(&mut source, &mut start)?;
    let whole = Cursor::new(start).take(n as u64).chain(source);
    Ok(if start[..n].starts_with(GZIP) {
        Box::new(MultiGzDecoder::new(whole))
    } else if &start[..n] == XZ {
        Box::new(XzReader::new_mem_limit(whole, true, XZ_MEMORY_KIB))
    } else {
        Box::new(whole)
    })
}

/// The error of a failed read, by the operating system or the decompressor.
pub(crate) fn failed(label: &str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            Error::format(label, "ends early", "it is truncated: copy or fetch it again")
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::OutOfMemory => {
            let problem = format!("cannot be decompressed ({})", cut(&error.to_string(), 200));
            Error::format(label, problem, "it is damaged: copy or fetch it again")
        }
        _ => Error::io(label, "read", error),
    }
}
