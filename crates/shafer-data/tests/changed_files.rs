//! Files that change while they are read.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use shafer_data::{Location, Values, open, open_mask};

/// A copy of a file with an old modification time, so that any write changes it.
fn old_copy(folder: &Path, from: &Path) -> PathBuf {
    let path = folder.join(from.file_name().unwrap());
    fs::copy(from, &path).unwrap();
    let long_ago = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    File::options().write(true).open(&path).unwrap().set_modified(long_ago).unwrap();
    path
}

/// A file of every format, with the same rows of 0 and 1.
fn files(folder: &Path) -> Vec<PathBuf> {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/tables");
    let mut files = Vec::new();
    for ending in ["npy", "npz", "safetensors", "parquet", "csv"] {
        let path = folder.join(format!("rows.{ending}"));
        let mut writer = shafer_data::create(&path, 2, shafer_data::Dtype::F64).unwrap();
        writer.write_dense([1.0, 1.0, 1.0, 1.0][..].into()).unwrap();
        writer.finish().unwrap();
        files.push(path);
    }
    fs::write(folder.join("rows.csv"), "1,1\n1,1\n").unwrap();
    let arrows = fs::read_dir(fixtures).unwrap().map(|entry| entry.unwrap().path());
    let arrow = arrows.filter(|path| path.extension().is_some_and(|e| e == "arrow")).min();
    files.extend(arrow);
    files
}

/// The only array that is needed.
fn location(path: &Path) -> Location {
    let ending = path.extension().unwrap().to_str().unwrap();
    let name = match ending {
        "npz" => Some("data".to_owned()),
        "safetensors" | "parquet" => Some("values".to_owned()),
        _ => None,
    };
    Location { path: Some(path.to_owned()), name }
}

#[test]
fn a_file_that_changes_is_noticed_in_every_format() {
    let (made, folder) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let changes: [fn(&Path); 3] = [
        // Overwrites the file with the same number of bytes.
        |path| fs::write(path, fs::read(path).unwrap()).unwrap(),
        |path| File::options().write(true).open(path).unwrap().set_len(100).unwrap(),
        |path| {
            let longer = [fs::read(path).unwrap(), b"0,0\n".to_vec()].concat();
            fs::write(path, longer).unwrap();
        },
    ];
    let files = files(made.path());
    assert_eq!(files.len(), 6);
    for from in &files {
        for change in changes {
            let path = old_copy(folder.path(), from);
            let mut reader = open(&location(&path)).unwrap();
            let mut block = Values::default();
            reader.read(1, &mut block).unwrap();
            change(&path);
            let error = reader.read(1, &mut block).unwrap_err().to_string();
            let expected = format!(
                "{}: was modified while it was read; run again when no program writes to it",
                path.display()
            );
            assert_eq!(error, expected);
        }
    }
}

/// The last block is checked, too.
#[test]
fn a_change_is_noticed_at_the_end() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("from.csv");
    fs::write(&from, "1,0\n0,1\n").unwrap();
    let inner = tempfile::tempdir_in(folder.path()).unwrap();
    let path = old_copy(inner.path(), &from);
    let mut reader = open(&location(&path)).unwrap();
    let mut block = Values::default();
    reader.read(4, &mut block).unwrap();
    assert_eq!(block.len(), 4);
    fs::write(&path, "0,0\n0,0\n").unwrap();
    assert!(reader.read(4, &mut block).is_err());
}

#[test]
fn masks_are_watched_too() {
    let folder = tempfile::tempdir().unwrap();
    let from = folder.path().join("mask.csv");
    fs::write(&from, "1,0\n0,1\n").unwrap();
    let inner = tempfile::tempdir_in(folder.path()).unwrap();
    let path = old_copy(inner.path(), &from);
    let mut mask = open_mask(&location(&path)).unwrap();
    fs::write(&path, "1,1\n1,1\n").unwrap();
    let error = mask.read(2, &mut Vec::new()).unwrap_err().to_string();
    assert!(error.contains("was modified while it was read"), "{error}");
}

/// Renaming another file over an open one does not affect it.
#[cfg(unix)]
#[test]
fn a_file_that_is_replaced_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let (path, other) = (folder.path().join("a.csv"), folder.path().join("b.csv"));
    fs::write(&path, "1,2\n3,4\n").unwrap();
    fs::write(&other, "5,6\n").unwrap();
    let mut reader = open(&location(&path)).unwrap();
    let mut block = Values::default();
    reader.read(2, &mut block).unwrap();
    fs::rename(&other, &path).unwrap();
    reader.read(2, &mut block).unwrap();
    assert_eq!(block, Values::F64(vec![3.0, 4.0]));
    reader.read(2, &mut block).unwrap();
    assert!(block.is_empty());
}
