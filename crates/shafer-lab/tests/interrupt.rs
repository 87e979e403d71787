//! Ctrl-C: one exit code, and nothing left behind.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::io::Write as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Far more than anything here takes.
const LONG: Duration = Duration::from_mins(1);

fn start(folder: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_shafer"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn files(folder: &Path) -> usize {
    std::fs::read_dir(folder).unwrap().count()
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < LONG, "{what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Interrupts a program whose output has been begun.
fn interrupt(mut child: Child, folder: &Path) {
    wait_until("no output was begun", || files(folder) > 0);
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    wait_until("did not stop", || child.try_wait().unwrap().is_some());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert!(output.stdout.is_empty());
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text, "shafer: -: interrupted; nothing was written\n");
    assert_eq!(files(folder), 0);
}

const JOBS: [[&str; 4]; 2] =
    [["sparsify", "-", "-o", "out.npz"], ["compare", "-", "--html", "out.html"]];

#[test]
fn while_rows_keep_coming() {
    for arguments in JOBS {
        let folder = tempfile::tempdir().unwrap();
        let mut child = start(folder.path(), &arguments);
        let mut stdin = child.stdin.take().unwrap();
        // Until nobody reads any more.
        let feeder = std::thread::spawn(move || {
            let rows = "0.5,1.5,-2,0.25,3,0.125,-1,0\n".repeat(10_000);
            while stdin.write_all(rows.as_bytes()).is_ok() {}
        });
        interrupt(child, folder.path());
        feeder.join().unwrap();
    }
}

#[test]
fn while_the_next_row_does_not_come() {
    for arguments in JOBS {
        let folder = tempfile::tempdir().unwrap();
        let mut child = start(folder.path(), &arguments);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"0.5,1.5,-2\n1,2,3\n").unwrap();
        interrupt(child, folder.path());
    }
}
