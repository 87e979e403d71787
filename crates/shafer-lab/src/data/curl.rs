//! Files from the web, with the program `curl`: it is everywhere, knows the machine's proxies and
//! certificates, and can resume. A client of our own would add a TLS library to the build for the
//! sake of one command.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail};

use super::program::{Failure, run};
use crate::progress::Progress;

/// As often as this a transfer that broke off is taken up again, if it got any further.
const ATTEMPTS: usize = 5;

/// Exit codes of curl.
const WRITE_FAILED: i32 = 23;
const CANNOT_RESUME: [i32; 3] = [22, 33, 36];
const BROKE_OFF: [i32; 4] = [18, 28, 52, 56];

/// Fetches `url` into `part`; what is there already is taken for the beginning.
///
/// The outer error is ours, such as a disk that is full; the inner one is the address's.
pub(crate) fn download(
    url: &str,
    part: &Path,
    quiet: bool,
) -> Result<std::result::Result<(), String>> {
    let mut attempts = ATTEMPTS;
    loop {
        let before = length(part);
        let Err(failure) = transfer(url, part, quiet)? else { return Ok(Ok(())) };
        // "curl: (6) Could not resolve host: x": only the last is for people.
        let reason = failure.reason();
        let reason = reason.split_once(") ").map_or(reason, |(_, words)| words);
        match failure.code {
            Some(WRITE_FAILED) => {
                bail!("{}: cannot write ({reason}); is the disk full?", part.display())
            }
            // From the beginning, then.
            Some(code) if CANNOT_RESUME.contains(&code) && before > 0 => remove(part)?,
            Some(code) if BROKE_OFF.contains(&code) && length(part) > before && attempts > 0 => {
                attempts -= 1;
            }
            _ => return Ok(Err(reason.to_owned())),
        }
    }
}

fn transfer(url: &str, part: &Path, quiet: bool) -> Result<std::result::Result<String, Failure>> {
    let headers = tempfile::NamedTempFile::new().context("cannot make a temporary file")?;
    let name = url.rsplit('/').next().unwrap_or(url);
    let (mut progress, mut known) = (Progress::file(name, quiet), false);
    let mut command = Command::new("curl");
    command
        .args(["--silent", "--show-error", "--fail", "--location", "--proto", "=http,https"])
        .args(["--connect-timeout", "15", "--speed-limit", "100", "--speed-time", "30"])
        // All that has come is in the file, should we be killed, and in the progress bar.
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

/// How long the whole file is, by the headers of the last answer. An answer that resumes has the
/// length of the rest, and the whole in its range.
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
