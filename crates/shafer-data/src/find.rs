//! The files of a table: one file, or all of a folder or a pattern.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result, Table};

/// Whether a path is a folder or a pattern, which can mean several files.
///
/// ```
/// assert!(shafer_data::means_several("parts/*.parquet".as_ref()));
/// assert!(!shafer_data::means_several("part.parquet".as_ref()));
/// ```
pub fn means_several(path: &Path) -> bool {
    path.is_dir() || is_pattern(path)
}

/// Whether a path is a pattern. A file whose name has such a character is a file.
///
/// ```
/// assert!(shafer_data::is_pattern("parts/[ab].parquet".as_ref()));
/// ```
pub fn is_pattern(path: &Path) -> bool {
    has_wildcard(path.as_os_str()) && !path.exists()
}

/// Whether a name has a wildcard.
///
/// ```
/// assert!(shafer_data::has_wildcard("*.parquet".as_ref()));
/// ```
pub fn has_wildcard(name: &OsStr) -> bool {
    name.as_encoded_bytes().iter().any(|byte| b"*?[".contains(byte))
}

/// Whether a name is that of a table.
///
/// ```
/// assert!(shafer_data::is_table("a.PARQUET".as_ref()) && !shafer_data::is_table("a.npy".as_ref()));
/// ```
pub fn is_table(path: &Path) -> bool {
    let ends_in = |wanted: &&str| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted));
    Table::EXTENSIONS.iter().any(ends_in)
}

/// The files that a folder, a pattern or the path of a file means, in the order of their names. There is one at least.
///
/// In a folder and the folders below it these are the files with the extension of a table; as for all engines, what
/// begins with a dot or an underscore is no part of the table. What a pattern names is taken whatever its name is.
///
/// ```
/// # let folder = tempfile::tempdir()?;
/// for name in ["b.parquet", "a.parquet", "_SUCCESS"] {
///     std::fs::write(folder.path().join(name), "")?;
/// }
/// let files = shafer_data::table_files(folder.path())?;
/// assert_eq!(files, ["a.parquet", "b.parquet"].map(|name| folder.path().join(name)));
/// assert_eq!(shafer_data::table_files(&folder.path().join("b*"))?, files[1..]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn table_files(input: &Path) -> Result<Vec<PathBuf>> {
    let folder = input.is_dir();
    let files = if folder {
        let mut files = Vec::new();
        walk(input, &mut files)?;
        files
    } else if is_pattern(input) {
        matches(input)?
    } else {
        vec![input.to_owned()]
    };
    if files.is_empty() {
        let kinds = Table::EXTENSIONS.map(|ending| format!(".{ending}")).join(", ");
        let what = if folder { "no file in this folder" } else { "matches no file that" };
        return Err(Error::request(&label(input), format!("{what} ends in {kinds}")));
    }
    Ok(files)
}

fn label(path: &Path) -> String {
    path.display().to_string()
}

fn matches(pattern: &Path) -> Result<Vec<PathBuf>> {
    let wrong = |problem: String| Error::request(&label(pattern), problem);
    let text = pattern.to_str().ok_or_else(|| wrong("is not text in UTF-8".to_owned()))?;
    let found = glob::glob(text).map_err(|e| wrong(format!("is no pattern: {e}")))?;
    let mut files = Vec::new();
    for path in found {
        let path = path.map_err(|e| {
            let place = label(e.path());
            Error::io(&place, "read", e.into())
        })?;
        if path.is_file() {
            files.push(path);
        }
    }
    Ok(files)
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) -> Result<()> {
    let cannot = |e| Error::io(&label(folder), "read the folder", e);
    let mut entries = fs::read_dir(folder)
        .map_err(cannot)?
        .collect::<std::result::Result<Vec<_>, _>>()
        .map_err(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_name().as_encoded_bytes().first().is_some_and(|first| b"._".contains(first)) {
            continue;
        }
        // A link to a folder could lead in a circle.
        if entry.file_type().map_err(cannot)?.is_dir() {
            walk(&path, files)?;
        } else if path.is_file() && is_table(&path) {
            files.push(path);
        }
    }
    Ok(())
}
