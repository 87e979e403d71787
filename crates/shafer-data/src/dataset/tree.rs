//! Walks the files of a folder or of a tar archive.

use std::borrow::Cow;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::packed;
use crate::npy::cut;
use crate::{Error, Result};

/// The depth limit of the search, which also ends cycles of symbolic links.
const DEEPEST: usize = 8;

/// The longest name read from an extension header of tar.
const LONGEST_NAME: u64 = 64 << 10;

/// The largest file to read into memory: above the largest of any data set.
const LARGEST: u64 = 256 << 20;

/// Calls `visit` with the path and the contents of each file in `place` whose path is `wanted`.
///
/// `place` is a folder, whose files are visited sorted by path, or a tar archive, plain or compressed with gzip
/// or xz, whose files are visited in its order. Paths are relative to `place`.
///
/// ```
/// use shafer_data::dataset::walk;
///
/// # let folder = tempfile::tempdir()?;
/// # let place = folder.path();
/// std::fs::create_dir(place.join("A"))?;
/// std::fs::write(place.join("A/one.txt"), "1")?;
/// std::fs::write(place.join("README"), "")?;
/// let mut found = Vec::new();
/// walk(place, &|path| path.ends_with("one.txt"), &mut |path, contents| {
///     found.push((path.to_owned(), contents));
///     Ok(())
/// })?;
/// assert_eq!(found, [("A/one.txt".into(), b"1".to_vec())]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn walk(
    place: &Path,
    wanted: &dyn Fn(&Path) -> bool,
    visit: &mut dyn FnMut(&Path, Vec<u8>) -> Result<()>,
) -> Result<()> {
    if !place.is_dir() {
        return walk_archive(place, wanted, visit);
    }
    for path in files(place)? {
        let below = path.strip_prefix(place).unwrap_or(&path);
        if wanted(below) {
            let label = path.display().to_string();
            let file = fs::File::open(&path).map_err(|e| Error::io(&label, "open", e))?;
            visit(below, contents(&label, file)?)?;
        }
    }
    Ok(())
}

/// All files below a folder, sorted by path.
pub(crate) fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    collect(folder, DEEPEST, &mut files)?;
    files.sort();
    Ok(files)
}

fn collect(folder: &Path, depth: usize, files: &mut Vec<PathBuf>) -> Result<()> {
    let list = |e| Error::io(&folder.display().to_string(), "list the folder", e);
    for entry in fs::read_dir(folder).map_err(list)? {
        let path = entry.map_err(list)?.path();
        // Follows symbolic links, and skips broken ones.
        let Ok(found) = fs::metadata(&path) else { continue };
        if found.is_file() {
            files.push(path);
        } else if found.is_dir() && depth > 0 {
            collect(&path, depth - 1, files)?;
        }
    }
    Ok(())
}

fn walk_archive(
    place: &Path,
    wanted: &dyn Fn(&Path) -> bool,
    visit: &mut dyn FnMut(&Path, Vec<u8>) -> Result<()>,
) -> Result<()> {
    let label = place.display().to_string();
    let mut archive = tar::Archive::new(packed::open(place)?);
    // Raw entries: otherwise long names are read into memory without a limit.
    let entries = archive.entries().map_err(|e| packed::failed(&label, e))?.raw(true);
    let (mut any, mut long_name) = (false, None);
    for entry in entries {
        let mut entry = entry.map_err(|e| broken(&label, any, e))?;
        any = true;
        let kind = entry.header().entry_type();
        if kind.is_gnu_longname() || kind.is_pax_local_extensions() {
            long_name = read_name(&mut entry).map_err(|e| packed::failed(&label, e))?;
            continue;
        }
        let Some(path) = long_name.take().or_else(|| entry.path().ok().map(Cow::into_owned)) else {
            continue;
        };
        if kind.is_file() && wanted(&path) {
            let (label, size) = (label_of(&label, &path), entry.size());
            let contents = contents(&label, entry)?;
            // A truncated archive is not an error of the reader: it ends the entry.
            if (contents.len() as u64) < size {
                return Err(packed::failed(&label, io::ErrorKind::UnexpectedEof.into()));
            }
            visit(&path, contents)?;
        }
    }
    if any { Ok(()) } else { Err(no_archive(&label)) }
}

/// The label of a file in an archive for error messages. Its name can be any bytes.
pub(crate) fn label_of(place: &str, path: &Path) -> String {
    format!("{place}: {}", cut(&path.display().to_string(), 200))
}

/// The long name of the next entry, from an extension header.
fn read_name(entry: &mut tar::Entry<'_, impl Read>) -> io::Result<Option<PathBuf>> {
    let mut bytes = Vec::new();
    entry.take(LONGEST_NAME).read_to_end(&mut bytes)?;
    let name = if entry.header().entry_type().is_gnu_longname() {
        Some(bytes.strip_suffix(b"\0").unwrap_or(&bytes))
    } else {
        let mut fields = tar::PaxExtensions::new(&bytes).filter_map(std::result::Result::ok);
        fields.find(|field| field.key_bytes() == b"path").map(|field| field.value_bytes())
    };
    Ok(name.map(|name| PathBuf::from(String::from_utf8_lossy(name).into_owned())))
}

fn no_archive(label: &str) -> Error {
    Error::format(label, "is not a tar archive", "copy or fetch it again")
}

/// An invalid header at the start means that the file is not an archive; later, that it is damaged.
fn broken(label: &str, any: bool, error: io::Error) -> Error {
    match packed::failed(label, error) {
        Error::Io { source, .. } if !any && source.raw_os_error().is_none() => no_archive(label),
        Error::Io { source, .. } if source.raw_os_error().is_none() => {
            let problem = format!("is a damaged archive ({})", cut(&source.to_string(), 200));
            Error::format(label, problem, "copy or fetch it again")
        }
        other => other,
    }
}

/// Reads a whole file, up to a limit.
pub(crate) fn contents(label: &str, source: impl Read) -> Result<Vec<u8>> {
    let mut contents = Vec::new();
    let mut source = source.take(LARGEST + 1);
    source.read_to_end(&mut contents).map_err(|e| packed::failed(label, e))?;
    if contents.len() as u64 > LARGEST {
        let problem = format!("is larger than {LARGEST} bytes");
        return Err(Error::format(label, problem, "files of data sets are smaller"));
    }
    Ok(contents)
}
