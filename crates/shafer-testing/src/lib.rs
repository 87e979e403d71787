//! Optional requirements of tests: data sets, programs, operating system.
//!
//! If a requirement is missing, the test prints `skipped: TEST: REASON` to standard error and passes. The environment
//! variable `SHAFER_REQUIRE` lists mandatory requirements (`SHAFER_REQUIRE=data,curl`); without them tests fail.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A requirement that a machine may not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The real data sets.
    Data,
    /// The program `curl`.
    Curl,
    /// `/proc`, for the peak memory of a process.
    Linux,
    /// Python 3.10 or later, for the step `python` of the gate, and packages from the index.
    Python,
    /// The package `torch`, for tests of the Python package.
    Torch,
}

impl Need {
    const ALL: [Self; 5] = [Self::Data, Self::Curl, Self::Linux, Self::Python, Self::Torch];

    /// The name in `SHAFER_REQUIRE`.
    fn word(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Curl => "curl",
            Self::Linux => "linux",
            Self::Python => "python",
            Self::Torch => "torch",
        }
    }

    /// Returns `found`. If it is `None`, prints that the test is skipped, or panics if the need is mandatory.
    fn met<T>(self, found: Option<T>, why: &str) -> Option<T> {
        let required = std::env::var("SHAFER_REQUIRE").unwrap_or_default();
        let required = self.is_in(&required).unwrap_or_else(|problem| panic!("{problem}"));
        if found.is_none() {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("a test");
            assert!(!required, "{test}: {why}, and SHAFER_REQUIRE lists `{}`", self.word());
            // Not `eprintln!`, which the test harness captures.
            let _ = std::io::stderr().write_all(format!("skipped: {test}: {why}\n").as_bytes());
        }
        found
    }

    /// Whether a comma-separated list contains the name. Unknown names are an error.
    fn is_in(self, list: &str) -> Result<bool, String> {
        let mut found = false;
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if Self::ALL.iter().all(|need| need.word() != word) {
                let words = Self::ALL.map(Self::word).join(", ");
                return Err(format!("SHAFER_REQUIRE: unknown name `{word}`; use {words}"));
            }
            found |= word == self.word();
        }
        Ok(found)
    }
}

/// The folder of the real data sets, if it contains the set or file `name`: the value of `SHAFER_DATA`, or
/// `../shared/data` beside the repository.
pub fn data(name: &str) -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let root = std::env::var_os("SHAFER_DATA").map_or(beside, PathBuf::from);
    let why = format!("no {name} in {}", root.display());
    Need::Data.met(root.join(name).exists().then_some(root), &why)
}

/// Whether the program `curl` can be run.
pub fn curl() -> bool {
    let mut command = Command::new("curl");
    let status = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
    Need::Curl.met(status.ok(), "curl is not installed").is_some()
}

/// The peak resident memory of this process in bytes.
///
/// # Panics
///
/// If `/proc/self/status` has no `VmHWM`.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let status = Need::Linux.met(status, "peak memory needs /proc")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: Option<u64> =
        peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.trim().parse().ok());
    Some(1024 * kilobytes.unwrap_or_else(|| panic!("no VmHWM in /proc/self/status: {status}")))
}

#[cfg(test)]
mod tests {
    use super::Need;

    #[test]
    fn names_in_the_list() {
        for (list, expected) in
            [("", false), ("data", false), ("data, curl", true), ("curl,", true)]
        {
            assert_eq!(Need::Curl.is_in(list), Ok(expected), "{list:?}");
        }
        let problem =
            "SHAFER_REQUIRE: unknown name `curls`; use data, curl, linux, python, torch".to_owned();
        assert_eq!(Need::Data.is_in("data,curls"), Err(problem));
    }
}
