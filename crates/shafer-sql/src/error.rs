//! Errors in one line.

use std::fmt;

use datafusion::common::{Column, DataFusionError, SchemaError};

/// A row that a function refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowError {
    pub(crate) message: String,
    pub(crate) column: String,
}

impl fmt::Display for RowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for RowError {}

/// The column that a function refused, if the error is of one.
pub(crate) fn refused(error: &DataFusionError) -> Option<&RowError> {
    match error.find_root() {
        DataFusionError::External(error) => error.downcast_ref(),
        _ => None,
    }
}

/// An error of a library as one line.
pub(crate) fn line(error: &DataFusionError) -> String {
    let text = match error.find_root() {
        DataFusionError::SchemaError(problem, _) => match &**problem {
            SchemaError::FieldNotFound { field, valid_fields } => {
                let known: Vec<&str> = valid_fields.iter().map(Column::name).collect();
                format!("there is no column {}; there are {}", field.name(), known.join(", "))
            }
            other => other.to_string(),
        },
        DataFusionError::External(error) => error.to_string(),
        DataFusionError::SQL(problem, _) => format!("cannot parse the SQL: {problem}"),
        DataFusionError::Plan(text)
        | DataFusionError::Execution(text)
        | DataFusionError::Configuration(text)
        | DataFusionError::NotImplemented(text)
        | DataFusionError::ResourcesExhausted(text) => text.clone(),
        other => other.to_string(),
    };
    // Without the backtrace that some messages end in, and what is said around the types that a function refuses.
    let text = text.split("\n\nbacktrace:").next().unwrap_or(&text);
    let text = match text.split_once("coercion failed with: Error during planning: ") {
        Some((_, ours)) => ours.split(" No function matches").next().unwrap_or(ours),
        None => text,
    };
    let text = text.trim_end_matches('.');
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
