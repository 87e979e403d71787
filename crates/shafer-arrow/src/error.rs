//! The error type of the crate.

use std::fmt;

/// What is wrong with an array, and in which row.
///
/// ```
/// use arrow_array::{ListArray, types::Float32Type};
/// use shafer_arrow::LogitLists;
///
/// let rows = [Some(vec![Some(1.0), None])];
/// let column = ListArray::from_iter_primitive::<Float32Type, _, _>(rows);
/// let error = LogitLists::new(&column).unwrap_err();
/// assert_eq!(error.to_string(), "row 0, column 1 is null; write -inf for a masked class");
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Error {
    /// An array has another type than it must have.
    Type {
        /// The argument.
        what: &'static str,
        /// The types that it can have.
        expected: &'static str,
        /// The type that it has.
        found: String,
    },
    /// An argument has another length than there are rows.
    Length {
        /// The argument.
        what: &'static str,
        /// The number of rows.
        rows: usize,
        /// The length of the argument.
        found: usize,
    },
    /// A row has no classes.
    Empty {
        /// The row, counted from 0.
        row: usize,
    },
    /// A value of a row is null.
    Null {
        /// The row, counted from 0.
        row: usize,
        /// The column, counted from 0.
        column: usize,
    },
    /// A set has a class that its row does not have.
    Class {
        /// The row, counted from 0.
        row: usize,
        /// The class of the set.
        class: i64,
        /// The number of classes of the row.
        classes: usize,
    },
    /// The lists of the result have more entries than offsets of 32 bits can count.
    TooLong,
    /// A logit, a row or a parameter breaks a rule of the transforms.
    Logits(shafer::Error),
}

impl Error {
    /// The error of an array that begins at row `first` of a table.
    ///
    /// ```
    /// use shafer_arrow::Error;
    ///
    /// let error = Error::Empty { row: 3 }.after(1000);
    /// assert_eq!(error.to_string(), "row 1003 is empty; a row has at least one class");
    /// ```
    #[must_use]
    pub fn after(mut self, first: usize) -> Self {
        match &mut self {
            Self::Empty { row } | Self::Null { row, .. } | Self::Class { row, .. } => *row += first,
            Self::Logits(shafer::Error::Value { row, .. } | shafer::Error::Row { row, .. }) => {
                *row += first;
            }
            _ => {}
        }
        self
    }

    /// The error of a batch of rows that begins at row `first` of the array.
    pub(crate) fn at(first: usize, mut error: shafer::Error) -> Self {
        if let shafer::Error::Value { row, .. } | shafer::Error::Row { row, .. } = &mut error {
            *row += first;
        }
        Self::Logits(error)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type { what, expected, found } => {
                write!(f, "the {what} are {found}, but must be {expected}")
            }
            Self::Length { what, rows, found } => {
                write!(f, "there are {found} {what} for {rows} rows")
            }
            Self::Empty { row } => write!(f, "row {row} is empty; a row has at least one class"),
            Self::Null { row, column } => {
                write!(f, "row {row}, column {column} is null; write -inf for a masked class")
            }
            Self::Class { row, class, classes } => {
                write!(f, "row {row} has {classes} classes, and no class {class}")
            }
            Self::TooLong => f.write_str(
                "the lists have more than 2147483647 entries together; pass fewer rows at a time, or large \
                 lists",
            ),
            Self::Logits(error) => error.fmt(f),
        }
    }
}

// No `source`: the message includes it, and reporters would print it twice.
impl std::error::Error for Error {}

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;
