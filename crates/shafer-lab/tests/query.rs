//! `shafer query` becomes `shafer-sql query`.
#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Command, Output};

#[test]
fn query_starts_the_program_beside_it() {
    let folder = tempfile::tempdir().unwrap();
    let shafer = folder.path().join("shafer");
    fs::copy(env!("CARGO_BIN_EXE_shafer"), &shafer).unwrap();
    let query = || -> Output {
        let mut command = Command::new(&shafer);
        command.args(["query", "SELECT 1", "--format", "csv", "--help"]);
        command.env("PATH", "/nonexistent").output().unwrap()
    };
    let missing = query();
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    assert_eq!(
        String::from_utf8_lossy(&missing.stderr),
        "shafer: query is done by shafer-sql, which is not installed; run `cargo install --path crates/shafer-sql`\n"
    );
    let program = folder.path().join("shafer-sql");
    fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\nexit 7\n").unwrap();
    fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    let found = query();
    assert_eq!(found.status.code(), Some(7), "{found:?}");
    assert_eq!(String::from_utf8_lossy(&found.stdout), "query\nSELECT 1\n--format\ncsv\n--help\n");
}
