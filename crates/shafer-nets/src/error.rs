//! The one error type of the crate.

use std::fmt;

/// What was wrong, and what to do: one line.
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
    /// A value of a configuration breaks a rule.
    Config {
        /// The key.
        key: &'static str,
        /// The rule, as the end of a sentence, and what was found.
        problem: String,
    },
    /// The examples do not fit each other, or the network.
    Data {
        /// Which part of them.
        what: &'static str,
        /// What does not fit.
        problem: String,
    },
    /// Bytes are not what was saved.
    Format {
        /// What is wrong with them.
        problem: String,
    },
    /// The loss is no number any more.
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

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
