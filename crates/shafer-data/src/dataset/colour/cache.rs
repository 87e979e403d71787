//! Decoded images on disk, so that a set is unpacked and decoded once.
//!
//! A cache file is a header, the names of the classes, the labels and the pixels. It is rebuilt if it
//! is damaged, or if a file it was made from has another size or modification time than then.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crc32fast::Hasher;
use sha2::{Digest as _, Sha256};

use super::images::{ColourImages, zeroed};
use crate::{AtomicFile, Error, Result};

const MAGIC: &[u8; 8] = b"SHFRIMGS";

/// Increases whenever the layout changes, or the same files are decoded to other pixels.
const VERSION: u32 = 1;

/// The longest list of classes.
const MOST_CLASSES: u64 = 4 << 20;

/// Identifies the files that images are made from.
pub(crate) type Fingerprint = [u8; 32];

/// The SHA-256 of the paths, sizes and modification times of files.
///
/// The contents are not read: a set of loose files has tens of thousands.
pub(crate) fn fingerprint(files: &[PathBuf]) -> Result<Fingerprint> {
    let mut hash = Sha256::new();
    for path in files {
        let failed = |e| Error::io(&path.display().to_string(), "read", e);
        let metadata = fs::metadata(path).map_err(failed)?;
        let modified = metadata.modified().map_err(failed)?;
        let nanoseconds = modified.duration_since(UNIX_EPOCH).map_or(0, |time| time.as_nanos());
        let path = path.as_os_str().as_encoded_bytes();
        hash.update((path.len() as u64).to_le_bytes());
        hash.update(path);
        hash.update(metadata.len().to_le_bytes());
        hash.update(nanoseconds.to_le_bytes());
    }
    Ok(hash.finalize().into())
}

/// The header after the magic bytes and the version.
struct Header {
    rows: u32,
    columns: u32,
    images: u64,
    class_bytes: u64,
    fingerprint: Fingerprint,
    /// Of everything after the header.
    crc32: u32,
}

const HEADER_BYTES: usize = 4 + 4 + 8 + 8 + 32 + 4;

impl Header {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEADER_BYTES);
        bytes.extend(self.rows.to_le_bytes());
        bytes.extend(self.columns.to_le_bytes());
        bytes.extend(self.images.to_le_bytes());
        bytes.extend(self.class_bytes.to_le_bytes());
        bytes.extend(self.fingerprint);
        bytes.extend(self.crc32.to_le_bytes());
        bytes
    }

    fn read(source: &mut impl Read) -> io::Result<Self> {
        Ok(Self {
            rows: u32::from_le_bytes(array(source)?),
            columns: u32::from_le_bytes(array(source)?),
            images: u64::from_le_bytes(array(source)?),
            class_bytes: u64::from_le_bytes(array(source)?),
            fingerprint: array(source)?,
            crc32: u32::from_le_bytes(array(source)?),
        })
    }

    /// The length of a file with this header.
    fn file_bytes(&self) -> Option<u64> {
        let image = u64::from(self.rows).checked_mul(u64::from(self.columns))?.checked_mul(3)?;
        let images = self.images.checked_mul(image.checked_add(2)?)?;
        let header = (MAGIC.len() + size_of_val(&VERSION) + HEADER_BYTES) as u64;
        header.checked_add(self.class_bytes)?.checked_add(images)
    }
}

fn array<const N: usize>(source: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// The images of a cache file. Nothing if it is missing, damaged, or made from other files.
pub(crate) fn read(path: &Path, expected: &Fingerprint) -> Option<ColourImages> {
    let file = File::open(path).ok()?;
    let length = file.metadata().ok()?.len();
    let mut source = BufReader::with_capacity(1 << 16, file);
    if &array::<8>(&mut source).ok()? != MAGIC
        || u32::from_le_bytes(array(&mut source).ok()?) != VERSION
    {
        return None;
    }
    let header = Header::read(&mut source).ok()?;
    // Before any memory is reserved: a damaged header can claim any size.
    if header.fingerprint != *expected
        || header.class_bytes > MOST_CLASSES
        || header.file_bytes() != Some(length)
    {
        return None;
    }
    let label = path.display().to_string();
    let (rows, columns) = (header.rows as usize, header.columns as usize);
    let count = usize::try_from(header.images).ok()?;
    let mut pixels = zeroed(&label, count, rows, columns).ok()?;
    let mut classes = vec![0; header.class_bytes as usize];
    let mut labels = vec![0; 2 * count];
    let mut crc32 = Hasher::new();
    for part in [&mut classes, &mut labels, &mut pixels] {
        source.read_exact(part).ok()?;
        crc32.update(part);
    }
    if crc32.finalize() != header.crc32 {
        return None;
    }
    let classes = String::from_utf8(classes).ok()?.lines().map(str::to_owned).collect();
    let labels =
        labels.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
    Some(ColourImages { pixels, rows, columns, labels, classes })
}

/// Writes a cache file atomically, and the folder it is in.
pub(crate) fn write(path: &Path, images: &ColourImages, fingerprint: Fingerprint) -> Result<()> {
    if let Some(folder) = path.parent() {
        let label = folder.display().to_string();
        fs::create_dir_all(folder).map_err(|e| Error::io(&label, "create the folder", e))?;
    }
    let mut file = AtomicFile::create(path)?;
    let classes: String = images.classes.iter().flat_map(|class| [class, "\n"]).collect();
    let labels: Vec<u8> = images.labels.iter().flat_map(|label| label.to_le_bytes()).collect();
    let parts = [classes.as_bytes(), &labels, &images.pixels];
    let mut crc32 = Hasher::new();
    for part in parts {
        crc32.update(part);
    }
    let header = Header {
        rows: images.rows as u32,
        columns: images.columns as u32,
        images: images.len() as u64,
        class_bytes: classes.len() as u64,
        fingerprint,
        crc32: crc32.finalize(),
    };
    let start = [&MAGIC[..], &VERSION.to_le_bytes(), &header.to_bytes()].concat();
    for part in [&start[..]].into_iter().chain(parts) {
        file.write_all(part).map_err(|e| file.failed(e))?;
    }
    file.commit()
}
