//! Runs other programs, until they exit or the user presses Ctrl-C.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::interrupt::{self, Interrupted};

/// The interval between polls of the exit status.
const PAUSE: Duration = Duration::from_millis(50);

/// The largest output to read.
const MOST_OUTPUT: u64 = 4 << 20;

/// A program that could not be run, or exited with an error.
#[derive(Debug)]
pub(crate) struct Failure {
    /// The exit code, if it ran.
    pub(crate) code: Option<i32>,
    /// Its output; never empty.
    pub(crate) said: String,
}

impl Failure {
    /// The last line of the output, where programs usually print the reason.
    pub(crate) fn reason(&self) -> &str {
        self.said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
    }
}

/// Runs a program and returns its output, standard output and standard error together. Calls `watch`
/// regularly.
///
/// The outer error is a local failure: an interruption, or a disk that cannot be written.
pub(crate) fn run(
    command: &mut Command,
    watch: &mut dyn FnMut(),
) -> Result<std::result::Result<String, Failure>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut said = tempfile::tempfile().context("cannot create a temporary file")?;
    let output = || -> Result<File> { said.try_clone().context("cannot create a temporary file") };
    command.stdin(Stdio::null()).stdout(output()?).stderr(output()?);
    let mut child = match command.spawn() {
        Ok(child) => Running(child),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            let said = format!("the program {name} is not installed");
            return Ok(Err(Failure { code: None, said }));
        }
        Err(e) => return Ok(Err(Failure { code: None, said: format!("{name}: {e}") })),
    };
    let status = loop {
        if let Some(status) = child.0.try_wait().with_context(|| name.clone())? {
            break status;
        }
        interrupt::check()
            .map_err(|_| Interrupted("downloaded data is kept: run the same command to resume"))?;
        watch();
        std::thread::sleep(PAUSE);
    };
    let mut text = Vec::new();
    said.seek(SeekFrom::Start(0))?;
    said.take(MOST_OUTPUT).read_to_end(&mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if status.success() {
        return Ok(Ok(text));
    }
    if text.trim().is_empty() {
        text = format!("{name}: {status}");
    }
    Ok(Err(Failure { code: status.code(), said: text }))
}

/// A running program, killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has exited, which is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(all(test, unix))]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn sh(script: &str) -> std::result::Result<String, Failure> {
        run(Command::new("sh").args(["-c", script]), &mut || {}).unwrap()
    }

    #[test]
    fn what_programs_say() {
        assert_eq!(sh("echo one; echo two >&2").unwrap(), "one\ntwo\n");
        let failure = sh("echo first; echo; echo why >&2; echo; exit 7").unwrap_err();
        assert_eq!((failure.code, failure.reason()), (Some(7), "why"));
        let failure = sh("exit 3").unwrap_err();
        assert_eq!(failure.reason(), "sh: exit status: 3");
        let absent = run(&mut Command::new("shafer-no-such-program"), &mut || {}).unwrap();
        let expected = "the program shafer-no-such-program is not installed";
        assert_eq!(absent.unwrap_err().reason(), expected);
    }
}
