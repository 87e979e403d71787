//! The error type of the crate.

use std::fmt;

/// An error whose message is one line: what is wrong, where, and what to do.
///
/// ```
/// use shafer_data::{Location, open};
///
/// let error = open(&Location::parse("absent.npy")).unwrap_err();
/// assert!(error.to_string().starts_with("absent.npy: cannot open: "));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// An operation of the operating system failed.
    Io {
        /// The file.
        file: String,
        /// The operation.
        action: &'static str,
        /// The reason.
        source: std::io::Error,
    },
    /// The contents of a file are invalid.
    Format {
        /// The file.
        file: String,
        /// The problem.
        problem: String,
        /// What to do about it.
        hint: &'static str,
    },
    /// The request does not fit the file.
    Request {
        /// The file.
        file: String,
        /// The mismatch.
        problem: String,
    },
}

impl Error {
    pub(crate) fn io(file: &str, action: &'static str, source: std::io::Error) -> Self {
        Self::Io { file: file.to_owned(), action, source }
    }

    /// The error for a block of rows that does not fit into memory.
    ///
    /// ```
    /// let error = shafer_data::Error::memory("logits.npy");
    /// assert_eq!(error.to_string(), "logits.npy: cannot hold a block of rows: out of memory");
    /// ```
    pub fn memory(file: &str) -> Self {
        Self::io(file, "hold a block of rows", std::io::ErrorKind::OutOfMemory.into())
    }

    pub(crate) fn format(file: &str, problem: impl Into<String>, hint: &'static str) -> Self {
        Self::Format { file: file.to_owned(), problem: problem.into(), hint }
    }

    pub(crate) fn request(file: &str, problem: impl Into<String>) -> Self {
        Self::Request { file: file.to_owned(), problem: problem.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { file, action, source } => write!(f, "{file}: cannot {action}: {source}"),
            Self::Format { file, problem, hint } => write!(f, "{file}: {problem}; {hint}"),
            Self::Request { file, problem } => write!(f, "{file}: {problem}"),
        }
    }
}

// No `source`: the message includes it, and reporters would print it twice.
impl std::error::Error for Error {}

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
