//! Locations of arrays: a file, and a name in it.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

/// A file, or standard input (`-`), and the name of an array in it: `file.npz:logits`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Location {
    /// `None` for standard input.
    pub path: Option<PathBuf>,
    /// The name of the array, tensor or column.
    pub name: Option<String>,
}

impl Location {
    /// Parses `path`, `path:name`, `-` or `-:name`.
    ///
    /// File names can contain colons, so the path is the longest prefix that is an existing file. If there
    /// is none, the name starts after the last colon, unless that follows a drive letter or precedes
    /// something that looks like a path.
    ///
    /// ```
    /// use std::path::Path;
    /// use shafer_data::Location;
    ///
    /// let location = Location::parse("scores.npz:logits");
    /// assert_eq!(location.path.as_deref(), Some(Path::new("scores.npz")));
    /// assert_eq!(location.name.as_deref(), Some("logits"));
    /// assert_eq!(Location::parse("-").path, None);
    /// assert_eq!(Location::parse(r"C:\scores.npy").name, None);
    /// ```
    pub fn parse(text: impl AsRef<OsStr>) -> Self {
        let text = text.as_ref();
        let bytes = text.as_encoded_bytes();
        if bytes == b"-" {
            return Self { path: None, name: None };
        }
        if let Some((_, name)) = split(text, 1).filter(|_| bytes.starts_with(b"-:")) {
            return Self { path: None, name: Some(name) };
        }
        let whole = || Self { path: Some(PathBuf::from(text)), name: None };
        if Path::new(text).exists() {
            return whole();
        }
        let colons = (1..bytes.len()).rev().filter(|&place| bytes[place] == b':');
        let mut splits = colons.filter_map(|colon| Some((colon, split(text, colon)?)));
        let named = |(path, name)| Self { path: Some(path), name: Some(name) };
        if let Some((_, found)) = splits.clone().find(|(_, (path, _))| path.is_file()) {
            return named(found);
        }
        match splits.next() {
            Some((colon, parts)) if !is_drive(bytes, colon) && !parts.1.contains(['/', '\\']) => {
                named(parts)
            }
            _ => whole(),
        }
    }

    /// The label of the file in error messages.
    pub(crate) fn label(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "standard input".to_owned(),
        }
    }
}

fn is_drive(text: &[u8], colon: usize) -> bool {
    colon == 1 && text[0].is_ascii_alphabetic()
}

/// Splits at a colon. `None` if the rest cannot be a name.
#[cfg(unix)]
fn split(text: &OsStr, colon: usize) -> Option<(PathBuf, String)> {
    use std::os::unix::ffi::OsStrExt as _;

    let (path, name) = text.as_bytes().split_at_checked(colon)?;
    let name = std::str::from_utf8(name.get(1..)?).ok()?;
    Some((PathBuf::from(OsStr::from_bytes(path)), name.to_owned()))
}

/// Splits at a colon. `None` if the rest cannot be a name.
#[cfg(not(unix))]
fn split(text: &OsStr, colon: usize) -> Option<(PathBuf, String)> {
    let (path, name) = text.to_str()?.split_at_checked(colon)?;
    Some((PathBuf::from(path), name.get(1..)?.to_owned()))
}

impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.path {
            Some(path) => write!(f, "{}", path.display())?,
            None => f.write_str("-")?,
        }
        self.name.as_ref().map_or(Ok(()), |name| write!(f, ":{name}"))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn parts(text: &str) -> (Option<String>, Option<String>) {
        let location = Location::parse(text);
        (location.path.map(|path| path.display().to_string()), location.name)
    }

    fn some(path: &str, name: Option<&str>) -> (Option<String>, Option<String>) {
        (Some(path.to_owned()), name.map(str::to_owned))
    }

    #[test]
    fn without_such_a_file() {
        assert_eq!(parts("a.npy"), some("a.npy", None));
        assert_eq!(parts("a.npz:x"), some("a.npz", Some("x")));
        assert_eq!(parts("C:/a.npz"), some("C:/a.npz", None));
        assert_eq!(parts("C:a.npz"), some("C:a.npz", None));
        assert_eq!(parts(r"C:\a.npz:x"), some(r"C:\a.npz", Some("x")));
        assert_eq!(parts("-:x"), (None, Some("x".to_owned())));
        assert_eq!(parts(":x"), some(":x", None));
        assert_eq!(parts("é:x"), some("é", Some("x")));
    }

    #[cfg(unix)]
    #[test]
    fn paths_need_not_be_utf_8() {
        use std::os::unix::ffi::OsStrExt as _;

        let location = Location::parse(OsStr::from_bytes(b"a\xff.npz:x"));
        assert_eq!(location.path.unwrap().as_os_str().as_bytes(), b"a\xff.npz");
        assert_eq!(location.name.as_deref(), Some("x"));
        // Names are UTF-8, so this is a path.
        let location = Location::parse(OsStr::from_bytes(b"a.npz:\xff"));
        assert_eq!(location.path.unwrap().as_os_str().as_bytes(), b"a.npz:\xff");
        assert_eq!(location.name, None);
    }

    #[test]
    fn a_file_of_that_name_wins() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().join("a.npz");
        let base = base.to_str().unwrap();
        std::fs::write(base, "").unwrap();
        assert_eq!(parts(&format!("{base}:x:y/z")), some(base, Some("x:y/z")));
        if cfg!(unix) {
            let odd = format!("{base}:x");
            std::fs::write(&odd, "").unwrap();
            assert_eq!(parts(&odd), some(&odd, None));
            assert_eq!(parts(&format!("{odd}:y/z")), some(&odd, Some("y/z")));
        }
    }
}
