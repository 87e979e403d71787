//! Other programs: run to their end, or to Ctrl-C.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result};

use crate::interrupt::{self, Interrupted};

/// Between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_millis(50);

/// More than any of them says.
const MOST_SAID: u64 = 4 << 20;

/// Why a program did not do what it was run for.
#[derive(Debug)]
pub(crate) struct Failure {
    /// Its exit code, if it ran.
    pub(crate) code: Option<i32>,
    /// All that it said; never nothing.
    pub(crate) said: String,
}

impl Failure {
    /// The last line it said: programs that say why say it last.
    pub(crate) fn reason(&self) -> &str {
        self.said.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default()
    }
}

/// Runs a program, and gives what it said, on either output. `watch` is called now and then.
///
/// The outer error is ours: an interruption, or a disk that cannot be written.
pub(crate) fn run(
    command: &mut Command,
    watch: &mut dyn FnMut(),
) -> Result<std::result::Result<String, Failure>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut said = tempfile::tempfile().context("cannot make a temporary file")?;
    let output = || -> Result<File> { said.try_clone().context("cannot make a temporary file") };
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
        interrupt::check().map_err(|_| {
            Interrupted("what has been fetched is kept, and the same command goes on from there")
        })?;
        watch();
        std::thread::sleep(PAUSE);
    };
    let mut text = Vec::new();
    said.seek(SeekFrom::Start(0))?;
    said.take(MOST_SAID).read_to_end(&mut text)?;
    let mut text = String::from_utf8_lossy(&text).into_owned();
    if status.success() {
        return Ok(Ok(text));
    }
    if text.trim().is_empty() {
        text = format!("{name}: {status}");
    }
    Ok(Err(Failure { code: status.code(), said: text }))
}

/// A program that does not go on without us.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Of one that has ended there is nothing to end.
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
