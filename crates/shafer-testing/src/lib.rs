//! What tests need that not every machine has, for the tests of all crates.
//!
//! A test that cannot run says so on standard error and passes. The variable `SHAFER_REQUIRE` lists what has to be
//! there (`SHAFER_REQUIRE=data,curl`): then it fails instead.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What can be missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Need {
    /// The real data sets.
    Data,
    /// The program `curl`.
    Curl,
    /// `/proc`, which tells how much memory a process has had.
    Linux,
}

impl Need {
    const ALL: [Self; 3] = [Self::Data, Self::Curl, Self::Linux];

    /// Its word in `SHAFER_REQUIRE`.
    fn word(self) -> &'static str {
        match self {
            Self::Data => "data",
            Self::Curl => "curl",
            Self::Linux => "linux",
        }
    }

    /// Passes on what was found. If there is nothing, it says what is skipped and why, or fails.
    fn met<T>(self, found: Option<T>, why: &str) -> Option<T> {
        let required = std::env::var("SHAFER_REQUIRE").unwrap_or_default();
        let required = self.is_in(&required).unwrap_or_else(|problem| panic!("{problem}"));
        if found.is_none() {
            let thread = std::thread::current();
            let test = thread.name().unwrap_or("a test");
            assert!(!required, "{test}: {why}, and SHAFER_REQUIRE lists `{}`", self.word());
            // Not by `eprintln!`, which the harness keeps to itself where a test passes.
            let _ = std::io::stderr().write_all(format!("skipped: {test}: {why}\n").as_bytes());
        }
        found
    }

    /// Whether a list of words has its own. Any other word is a mistake.
    fn is_in(self, list: &str) -> Result<bool, String> {
        let mut found = false;
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if Self::ALL.iter().all(|need| need.word() != word) {
                let words = Self::ALL.map(Self::word).join(", ");
                return Err(format!("SHAFER_REQUIRE: `{word}` is none of {words}"));
            }
            found |= word == self.word();
        }
        Ok(found)
    }
}

/// The folder of the real data sets, if a set or a file of one is in it: what `SHAFER_DATA` names, or `../shared/data`
/// beside the repository.
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
    Need::Curl.met(status.ok(), "the program curl is not there").is_some()
}

/// The most memory that this process has ever had, in bytes.
///
/// # Panics
///
/// On Linux, if it does not tell.
pub fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok();
    let status = Need::Linux.met(status, "there is no /proc to tell how much memory was used")?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kilobytes: Option<u64> =
        peak.and_then(|peak| peak.trim().strip_suffix(" kB")?.trim().parse().ok());
    Some(1024 * kilobytes.unwrap_or_else(|| panic!("no VmHWM in /proc/self/status: {status}")))
}

#[cfg(test)]
mod tests {
    use super::Need;

    #[test]
    fn words_of_the_list() {
        for (list, expected) in
            [("", false), ("data", false), ("data, curl", true), ("curl,", true)]
        {
            assert_eq!(Need::Curl.is_in(list), Ok(expected), "{list:?}");
        }
        let problem = "SHAFER_REQUIRE: `curls` is none of data, curl, linux".to_owned();
        assert_eq!(Need::Data.is_in("data,curls"), Err(problem));
    }
}
