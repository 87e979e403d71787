//! The one error type of the crate.

use std::fmt;

/// What was wrong with an input, and where.
///
/// Every variant names the broken rule; the ones about data name the row and the column too, so
/// that a message can be acted on without a debugger.
///
/// ```
/// use shafer::{Evidential, TransformExt};
///
/// let error = Evidential::default().row(&[0.5, f64::NAN, 1.0]).unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "row 0, column 1: logit is NaN, but must be finite, or -inf for a masked class",
/// );
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// Something that must hold at least one element holds none.
    Empty {
        /// The argument.
        what: &'static str,
    },
    /// The length of an argument does not fit the others.
    Length {
        /// The argument.
        what: &'static str,
        /// The length that the other arguments ask for.
        expected: usize,
        /// The length that it has.
        found: usize,
    },
    /// One number of an array breaks a rule.
    Value {
        /// What the number is.
        what: &'static str,
        /// Its row, counted from 0.
        row: usize,
        /// Its column, counted from 0.
        column: usize,
        /// The number itself.
        value: f64,
        /// The rule that it breaks, as the end of a sentence.
        rule: &'static str,
    },
    /// A whole row breaks a rule.
    Row {
        /// The row, counted from 0.
        row: usize,
        /// The rule that it breaks, as a sentence.
        rule: &'static str,
    },
    /// A parameter breaks a rule.
    Parameter {
        /// The parameter.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The rule that it breaks, as the end of a sentence.
        rule: &'static str,
    },
    /// An index lies outside its range.
    Index {
        /// What is indexed.
        what: &'static str,
        /// The index.
        index: usize,
        /// The number of things there are.
        len: usize,
    },
    /// Dempster's rule has no result: no focal set of one operand meets one of the other.
    TotalConflict,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty { what } => {
                write!(f, "{what} is empty, but must hold at least one element")
            }
            Self::Length { what, expected, found } => {
                write!(f, "{what} has length {found}, but {expected} is needed")
            }
            Self::Value { what, row, column, value, rule } => {
                write!(f, "row {row}, column {column}: {what} is {value}, but {rule}")
            }
            Self::Row { row, rule } => write!(f, "row {row}: {rule}"),
            Self::Parameter { name, value, rule } => write!(f, "{name} is {value}, but {rule}"),
            Self::Index { what, index, len } => {
                write!(f, "{what} {index} does not exist: there are {len}, counted from 0")
            }
            Self::TotalConflict => {
                f.write_str("the two mass functions are in total conflict: no focal sets intersect")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
