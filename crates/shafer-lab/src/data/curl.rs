//! Downloads with the program `curl`. It is installed almost everywhere, uses the machine's proxies and
//! certificates, and can resume. An HTTP client in the program would add a TLS library to the build for
//! one command.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::program::{Failure, run};
use crate::progress::Progress;

/// The number of times to resume an interrupted transfer that made progress.
const ATTEMPTS: usize = 5;

// Exit codes of curl.
const WRITE_FAILED: i32 = 23;
const CANNOT_RESUME: [i32; 3] = [22, 33, 36];
const BROKE_OFF: [i32; 4] = [18, 28, 52, 56];

/// Downloads `url` to `part`. Resumes if `part` exists.
///
/// The outer error is a local failure, such as a full disk. The inner error is one of the source.
pub(crate) fn download(
    url: &str,
    part: &Path,
    quiet: bool,
) -> Result<std::result::Result<(), String>> {
    let mut attempts = ATTEMPTS;
    loop {
        let before = length(part);
        let Err(failure) = transfer(url, part, quiet)? else { return Ok(Ok(())) };
        // Drops the prefix of a message such as "curl: (6) Could not resolve host: x".
        let reason = failure.reason();
        let reason = reason.split_once(") ").map_or(reason, |(_, words)| words);
        match failure.code {
            Some(WRITE_FAILED) => {
                bail!("{}: cannot write ({reason}); free some space and run again", part.display())
            }
            // Starts again from the beginning.
            Some(code) if CANNOT_RESUME.contains(&code) && before > 0 => remove(part)?,
            Some(code) if BROKE_OFF.contains(&code) && length(part) > before && attempts > 0 => {
                attempts -= 1;
            }
            _ => return Ok(Err(reason.to_owned())),
        }
    }
}

fn transfer(url: &str, part: &Path, quiet: bool) -> Result<std::result::Result<String, Failure>> {
    let headers = tempfile::NamedTempFile::new().context("cannot create a temporary file")?;
    let name = url.rsplit('/').next().unwrap_or(url);
    let (mut progress, mut known) = (Progress::file(name, quiet), false);
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--fail", "--location", "--proto", "=http,https"])
        .args(["--connect-timeout", "15", "--speed-limit", "100", "--speed-time", "30"])
        // Writes received data at once: for the progress bar, and to resume after a kill.
        .args(["--continue-at", "-", "--no-buffer"])
        .arg("--dump-header")
        .arg(headers.path())
        .arg("--output")
        .arg(part)
        .args(["--", url]);
    run(&mut command, &mut || {
        if !known && let Some(total) = total(&fs::read_to_string(&headers).unwrap_or_default()) {
            progress.set_length(total);
            known = true;
        }
        progress.reach(length(part));
    })
}

/// The length of the whole file, from the headers of the last response. A partial response has it in
/// `Content-Range`.
fn total(headers: &str) -> Option<u64> {
    let field = |name: &str| {
        let mut values = headers.lines().filter_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.trim().eq_ignore_ascii_case(name).then_some(value.trim())
        });
        values.next_back()
    };
    let text = match field("content-range") {
        Some(range) => range.rsplit('/').next()?,
        None => field("content-length")?,
    };
    text.parse().ok()
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

pub(crate) fn remove(path: &Path) -> Result<()> {
    fs::remove_file(path).with_context(|| format!("{}: cannot remove", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_in_headers() {
        assert_eq!(total(""), None);
        assert_eq!(total("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"), Some(12));
        let moved =
            "HTTP/1.1 302 Found\r\nContent-Length: 5\r\n\r\nHTTP/2 200\r\ncontent-length: 7";
        assert_eq!(total(moved), Some(7));
        let resumed = "HTTP/1.1 206\r\nContent-Length: 5\r\nContent-Range: bytes 5-9/10\r\n\r\n";
        assert_eq!(total(resumed), Some(10));
        assert_eq!(total("Content-Range: bytes 5-9/*\r\n"), None);
    }
}
