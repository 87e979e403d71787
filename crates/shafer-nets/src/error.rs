//! The one error type of the crate.

use std::fmt;

/// An error; its message is one line: what is wrong, where, and what to do.
///
/// ```
/// use shafer_nets::Examples;
///
/// let error = Examples::new(&[0; 100], &[0, 1], 49).unwrap_err();
/// assert_eq!(error.to_string(), "pixels: 98 are expected (2 labels x 49 pixels), but there are 100");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// A configuration value is invalid.
    Config {
        /// The key.
        key: &'static str,
        /// The rule that it breaks, as the end of a sentence that starts with the key.
        problem: String,
    },
    /// Data is invalid, or does not fit the network.
    Data {
        /// Which part of the data.
        what: &'static str,
        /// The problem.
        problem: String,
    },
    /// A file of weights or of a training cannot be used.
    Format {
        /// The problem.
        problem: String,
    },
    /// The loss is not finite.
    Diverged {
        /// The epoch, counted from 0.
        epoch: usize,
        /// The batch within the epoch, counted from 0.
        batch: usize,
        /// The loss.
        loss: f64,
    },
}

impl Error {
    pub(crate) fn config(key: &'static str, problem: impl Into<String>) -> Self {
        Self::Config { key, problem: problem.into() }
    }

    pub(crate) fn data(what: &'static str, problem: impl Into<String>) -> Self {
        Self::Data { what, problem: problem.into() }
    }

    pub(crate) fn format(problem: impl Into<String>) -> Self {
        Self::Format { problem: problem.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { key, problem } => write!(f, "{key} {problem}"),
            Self::Data { what, problem } => write!(f, "{what}: {problem}"),
            Self::Format { problem } => f.write_str(problem),
            Self::Diverged { epoch, batch, loss } => write!(
                f,
                "the loss is {loss} at batch {batch} of epoch {epoch}: the training diverged; a smaller \
                 learning rate may help",
            ),
        }
    }
}

impl std::error::Error for Error {}

/// A result with this crate's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
