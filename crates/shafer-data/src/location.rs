//! Where an array is.

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
    /// Reads `path`, `path:name`, `-` or `-:name`.
    ///
    /// Colons occur in the names of files too, so the longest beginning that is a file is the path.
    /// Where there is no such file, the name begins at the last colon, unless that is the one after
    /// a drive's letter or what follows it looks like a path.
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
    pub fn parse(text: &str) -> Self {
        if text == "-" {
            return Self { path: None, name: None };
        }
        if let Some(name) = text.strip_prefix("-:") {
            return Self { path: None, name: Some(name.to_owned()) };
        }
        let whole = || Self { path: Some(PathBuf::from(text)), name: None };
        if Path::new(text).exists() {
            return whole();
        }
        let split = |colon: usize| Self {
            path: Some(PathBuf::from(&text[..colon])),
            name: Some(text[colon + 1..].to_owned()),
        };
        let mut colons = text.rmatch_indices(':').map(|(colon, _)| colon).filter(|&c| c > 0);
        if let Some(colon) = colons.clone().find(|&colon| Path::new(&text[..colon]).is_file()) {
            return split(colon);
        }
        match colons.next() {
            Some(colon) if !is_drive(text, colon) && !text[colon..].contains(['/', '\\']) => {
                split(colon)
            }
            _ => whole(),
        }
    }

    /// The file as errors name it.
    pub(crate) fn label(&self) -> String {
        match &self.path {
            Some(path) => path.display().to_string(),
            None => "standard input".to_owned(),
        }
    }
}

fn is_drive(text: &str, colon: usize) -> bool {
    colon == 1 && text.as_bytes()[0].is_ascii_alphabetic()
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
