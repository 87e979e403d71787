//! Checks of damaged and hostile files.

use std::fs;
use std::path::Path;

use shafer_data::{Location, Result, Values, list, open};

/// Reads an array to the end, and returns the number of elements.
pub(crate) fn read_all(path: &Path, name: Option<&str>) -> Result<usize> {
    let location = Location { path: Some(path.to_owned()), name: name.map(str::to_owned) };
    let mut reader = open(&location)?;
    let (mut block, mut total) = (Values::default(), 0);
    loop {
        reader.read(1000, &mut block)?;
        if block.is_empty() {
            return Ok(total);
        }
        total += block.len();
    }
}

/// The error message for a file with these contents, with FILE for its path.
pub(crate) fn message(ending: &str, bytes: &[u8], name: Option<&str>) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("x.{ending}"));
    fs::write(&path, bytes).unwrap();
    // Listing reads less of a file. It must not panic.
    let _ = list(&path);
    let error = read_all(&path, name).expect_err("this file should be refused").to_string();
    assert!(!error.contains('\n'), "more than a line: {error}");
    error.replace(path.to_str().unwrap(), "FILE")
}

#[track_caller]
pub(crate) fn refused(ending: &str, bytes: &[u8], name: Option<&str>, expected: &str) {
    let found = message(ending, bytes, name);
    assert!(found.starts_with(expected), "found:    {found}\nexpected: {expected}");
    assert!(found.len() < 500, "too long to be read: {found}");
}

/// Changing any byte, or truncating anywhere, does not panic.
pub(crate) fn damage_everywhere(ending: &str, good: &[u8], name: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(format!("x.{ending}"));
    let read = |bytes: &[u8]| {
        // Some file systems flush a file to disk when it is overwritten.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        let _ = (list(&path), read_all(&path, name));
    };
    for at in 0..good.len() {
        read(&good[..at]);
        for change in [0x01, 0x10, 0x80, 0xff] {
            let mut bytes = good.to_vec();
            bytes[at] ^= change;
            read(&bytes);
        }
    }
}
