//! A table in parts whose run is stopped in the middle: finished parts stay, and the same command does the others.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

mod common;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow_array::types::Float32Type;
use arrow_array::{ArrayRef, Int64Array, ListArray, RecordBatch};
use arrow_ipc::writer::FileWriter;
use common::json;
use parquet::arrow::ArrowWriter;

/// A generous timeout.
const LONG: Duration = Duration::from_mins(1);

/// Enough that a run is not over when the first of them is finished.
const PARTS: usize = 120;

const RUN: [&str; 4] = ["sparsify", "in", "-o", "out/"];

/// A table in many parts of both formats, and what a run that is not stopped makes of it.
fn table(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let rows = 0..6000_i64;
    let row = |id: i64| (0..8).map(move |k| Some(((5 * id + k) % 37) as f32 / 4.0));
    let logits: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float32Type, _, _>(
        rows.clone().map(|id| Some(row(id))),
    ));
    let ids: ArrayRef = Arc::new(Int64Array::from_iter_values(rows));
    let batch = RecordBatch::try_from_iter([("id", ids), ("logits", logits)]).unwrap();
    fs::create_dir(folder.join("in")).unwrap();
    let at = |name: &str| folder.join("in").join(name);
    let mut writer =
        ArrowWriter::try_new(File::create(at("000.parquet")).unwrap(), batch.schema(), None)
            .unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    let mut writer =
        FileWriter::try_new(File::create(at("001.arrow")).unwrap(), &batch.schema()).unwrap();
    writer.write(&batch).unwrap();
    writer.finish().unwrap();
    for part in 2..PARTS {
        let ending = ["parquet", "arrow"][part % 2];
        fs::copy(at(&format!("00{}.{ending}", part % 2)), at(&format!("{part:03}.{ending}")))
            .unwrap();
    }
    let report = json(folder, &["sparsify", "in", "-o", "whole/", "--json"]);
    assert_eq!(report["parts"], PARTS);
    let whole = files(&folder.join("whole"));
    assert_eq!(whole.len(), PARTS);
    whole
}

/// All files in a folder, if it is there.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let Ok(entries) = fs::read_dir(folder) else { return BTreeMap::new() };
    let entries = entries.map(|entry| entry.unwrap().path());
    // A temporary file may be renamed before it is read.
    let read = |path: std::path::PathBuf| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        Some((name, fs::read(&path).ok()?))
    };
    entries.filter_map(read).collect()
}

/// Starts a run and sends a signal after its first part is finished. Returns the exit code and the message, or `None`
/// if the run ended before the signal came.
fn stopped(folder: &Path, signal: &str) -> Option<(Option<i32>, String)> {
    let mut child = Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(RUN)
        .args(["--threads", "2"])
        .current_dir(folder)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let start = Instant::now();
    let finished = |name: std::io::Result<fs::DirEntry>| {
        !name.unwrap().file_name().as_encoded_bytes().starts_with(b".")
    };
    while !fs::read_dir(folder.join("out")).is_ok_and(|mut out| out.any(finished)) {
        assert!(start.elapsed() < LONG, "no part is finished");
        std::thread::sleep(Duration::from_millis(1));
    }
    let kill = Command::new("kill").args([signal, &child.id().to_string()]).output().unwrap();
    let status = child.wait().unwrap();
    let mut text = String::new();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    (kill.status.success() && !status.success()).then_some((status.code(), text))
}

/// Stops a run in the middle, looks at what it left with `left`, and runs the same command to its end.
fn stop_and_resume(signal: &str, left: impl Fn(Option<i32>, &str, &[&String])) {
    let folder = tempfile::tempdir().unwrap();
    let whole = table(folder.path());
    let out = folder.path().join("out");
    let start = Instant::now();
    let (code, text) = loop {
        // A busy machine may send the signal too late.
        if let Some(stopped) = stopped(folder.path(), signal) {
            break stopped;
        }
        assert!(start.elapsed() < LONG, "every run was over before the signal came");
        fs::remove_dir_all(&out).unwrap();
    };
    let found = files(&out);
    let (temporary, finished): (Vec<_>, Vec<_>) =
        found.keys().partition(|name| name.starts_with('.'));
    left(code, &text, &temporary);
    // Whole, or not there.
    for name in &finished {
        assert_eq!(found[*name], whole[*name], "{name}");
    }
    assert!(!finished.is_empty() && finished.len() < PARTS, "{}", finished.len());
    let report = json(folder.path(), &[&RUN[..], &["--json"]].concat());
    assert_eq!(report["finished_before"], finished.len());
    assert!(files(&out) == whole, "the resumed run has made other files");
}

#[test]
fn ctrl_c() {
    stop_and_resume("-INT", |code, text, temporary| {
        assert_eq!(code, Some(130));
        let expected = "interrupted; finished parts stay, and the same command does the others\n";
        assert_eq!(text, format!("shafer: {expected}"));
        assert!(temporary.is_empty(), "{temporary:?}");
    });
}

#[test]
fn kill_9() {
    stop_and_resume("-KILL", |code, text, temporary| {
        assert_eq!((code, text), (None, ""));
        // Of the parts that were being written. The next run removes them.
        assert!(temporary.len() <= 2, "{temporary:?}");
    });
}

/// A run that is killed in the middle of writing a part, at a certain byte: the shell's limit on the size of files
/// ends it with a signal.
#[test]
fn killed_while_a_part_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let whole = table(folder.path());
    // The limit is in blocks of 512 bytes, in some shells of 1024.
    let shortest = whole.values().map(Vec::len).min().unwrap();
    let script = format!(
        "ulimit -c 0; ulimit -f {}; exec {} {} --threads 1",
        shortest / 2048,
        env!("CARGO_BIN_EXE_shafer"),
        RUN.join(" ")
    );
    let output =
        Command::new("sh").args(["-c", &script]).current_dir(folder.path()).output().unwrap();
    assert_eq!(output.status.code(), None, "{output:?}");
    let out = folder.path().join("out");
    let found = files(&out);
    assert!(found.keys().all(|name| name.starts_with(".000.parquet.tmp")), "{:?}", found.keys());
    assert_eq!(found.len(), 1);
    let report = json(folder.path(), &[&RUN[..], &["--json"]].concat());
    assert_eq!(report["finished_before"], 0);
    assert!(files(&out) == whole, "the resumed run has made other files");
}
