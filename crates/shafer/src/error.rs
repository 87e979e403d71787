//! The one error type of the crate.

use std::fmt;

/// What was wrong with an input, and where.
///
/// Every variant names the broken rule; the ones about data name the row and the column too, so
/// that a message can be acted on without a debugger.
///
/// ```
/// let error = shafer::Method::EVIDENTIAL.row(&[0.5, f64::NAN, 1.0]).unwrap_err();
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
    /// An argument has the wrong length.
    Length {
        /// The argument.
        what: &'static str,
        /// The length that it must have.
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
        /// The number of items.
        len: usize,
    },
    /// The label of a row cannot be its true class.
    Label {
        /// The row, counted from 0.
        row: usize,
        /// The label.
        label: u32,
        /// The rule that it breaks, as the end of a sentence.
        rule: &'static str,
    },
    /// The group of a row was not seen in calibration.
    Group {
        /// The row, counted from 0.
        row: usize,
        /// The group.
        group: u32,
    },
    /// An array view is not contiguous in memory.
    Layout,
    /// A text does not name a method.
    Method {
        /// The text.
        text: String,
        /// What is wrong with it.
        problem: String,
    },
    /// Dempster's rule has no result: no focal set of one operand meets one of the other.
    TotalConflict,
}

impl Error {
    /// The same error about another row: kernels see one row at a time, as row 0.
    pub(crate) fn at_row(mut self, number: usize) -> Self {
        if let Self::Value { row, .. } | Self::Row { row, .. } = &mut self {
            *row = number;
        }
        self
    }
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
            Self::Label { row, label, rule } => write!(f, "row {row}: label {label} {rule}"),
            Self::Group { row, group } => write!(
                f,
                "row {row}: group {group} has no threshold, because it did not occur in calibration"
            ),
            Self::Layout => f.write_str(
                "the array view leaves out elements of its array; make it contiguous first",
            ),
            Self::Method { text, problem } => write!(f, "method `{text}`: {problem}"),
            Self::TotalConflict => {
                f.write_str("the two mass functions are in total conflict: no focal sets intersect")
            }
        }
    }
}

impl std::error::Error for Error {}

/// A result whose error is [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

pub(crate) fn check_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

pub(crate) fn check_index(what: &'static str, index: usize, len: usize) -> Result<()> {
    if index < len { Ok(()) } else { Err(Error::Index { what, index, len }) }
}

/// `value`, if it `holds` the rule.
pub(crate) fn check_parameter(
    name: &'static str,
    value: f64,
    holds: bool,
    rule: &'static str,
) -> Result<f64> {
    if holds { Ok(value) } else { Err(Error::Parameter { name, value, rule }) }
}
