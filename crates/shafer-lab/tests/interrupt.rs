//! Ctrl-C: exit code 130, no temporary files.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(unix)]

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A generous timeout.
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

/// Interrupts a program that has created its output.
fn interrupt(mut child: Child, folder: &Path) {
    wait_until("no output was begun", || files(folder) > 0);
    assert_eq!(stop(&mut child), "shafer: standard input: interrupted; nothing was written\n");
    assert_eq!(files(folder), 0);
}

/// Interrupts a program and returns its messages.
fn stop(child: &mut Child) -> String {
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(kill.success());
    wait_until("did not stop", || child.try_wait().unwrap().is_some());
    assert_eq!(child.wait().unwrap().code(), Some(130));
    let (mut output, mut text) = (String::new(), String::new());
    child.stdout.take().unwrap().read_to_string(&mut output).unwrap();
    child.stderr.take().unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(output, "");
    text
}

const JOBS: [[&str; 4]; 2] =
    [["sparsify", "-", "-o", "out.npz"], ["compare", "-", "--html", "out.html"]];

#[test]
fn while_rows_keep_coming() {
    for arguments in JOBS {
        let folder = tempfile::tempdir().unwrap();
        let mut child = start(folder.path(), &arguments);
        let mut stdin = child.stdin.take().unwrap();
        // Until the reader closes the pipe.
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
        // Enough lines to recognise the separator by.
        stdin.write_all("0.5,1.5,-2\n1,2,3\n".repeat(40).as_bytes()).unwrap();
        interrupt(child, folder.path());
    }
}

/// The partial download is kept, and curl does not outlive the tool.
#[test]
fn while_a_mirror_is_slow() {
    if !shafer_testing::curl() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mirror = format!("http://{}", listener.local_addr().unwrap());
    let server = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let _ = stream.read(&mut [0; 1000]);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 9000\r\n\r\nbeginning").unwrap();
        // Until the client disconnects.
        let _ = stream.read_to_end(&mut Vec::new());
    });
    let arguments = ["data", "fetch", "mnist", "--data-dir", ".", "--mirror", &mirror];
    let mut child = start(folder.path(), &arguments);
    let part = folder.path().join("mnist/train-images-idx3-ubyte.gz.part");
    wait_until("nothing came", || std::fs::read(&part).is_ok_and(|part| part == b"beginning"));
    let expected = "shafer: interrupted; downloaded data is kept: run the same command to resume\n";
    assert_eq!(stop(&mut child), expected);
    server.join().unwrap();
    assert!(part.exists());
}
