//! Calls of the libraries that decode tables: whatever they do with a damaged file is an error of one line.

use std::any::Any;
use std::cell::Cell;
use std::fmt;
use std::io;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use arrow_schema::ArrowError;
use parquet::errors::ParquetError;

use super::DAMAGED;
use crate::npy::cut;
use crate::{Error, Result};

thread_local! {
    /// Whether this thread is in a call whose panics are caught here.
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Calls a library. An error and a panic become an error that says that the file is damaged; errors of our own
/// and of the operating system stay what they are.
pub(super) fn caught<T, E: Into<Failure>>(
    label: &str,
    call: impl FnOnce() -> std::result::Result<T, E>,
) -> Result<T> {
    static HOOK: Once = Once::new();
    // The hook is that of the whole process. It is set once, and silent only on a thread that is in such a call:
    // panics of all other code are printed as before.
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !GUARDED.get() {
                before(panic);
            }
        }));
    });
    let outer = GUARDED.replace(true);
    // What the call has changed is dropped with the reader, which is not used after an error.
    let done = catch_unwind(AssertUnwindSafe(call));
    GUARDED.set(outer);
    let failure = match done {
        Ok(Ok(value)) => return Ok(value),
        Ok(Err(error)) => error.into(),
        Err(panic) => Failure::Problem(text(&*panic)),
    };
    Err(match failure {
        Failure::Ours(error) => error,
        Failure::Io(error) => Error::io(label, "read", error),
        Failure::Problem(problem) => damaged(label, problem),
    })
}

/// The error of a file that a library cannot decode.
fn damaged(label: &str, problem: impl fmt::Display) -> Error {
    let problem = cut(&problem.to_string(), 200);
    Error::format(label, format!("cannot be decoded ({problem})"), DAMAGED)
}

fn text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("its parts do not fit together").to_owned()
}

/// Why a call failed.
pub(super) enum Failure {
    /// An error of our own, which has passed through the library.
    Ours(Error),
    Io(io::Error),
    /// The library's reason.
    Problem(String),
}

impl Failure {
    fn of(error: Box<dyn std::error::Error + Send + Sync>) -> Self {
        match error.downcast::<Error>() {
            Ok(ours) => Self::Ours(*ours),
            Err(error) => match error.downcast::<io::Error>() {
                Ok(error) if error.raw_os_error().is_some() => Self::Io(*error),
                Ok(error) => Self::Problem(error.to_string()),
                Err(error) => match error.source() {
                    Some(cause) => Self::Problem(format!("{error}: {cause}")),
                    None => Self::Problem(error.to_string()),
                },
            },
        }
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::External(error) => Self::of(error),
            ParquetError::General(problem)
            | ParquetError::NYI(problem)
            | ParquetError::EOF(problem)
            | ParquetError::ArrowError(problem) => Self::Problem(problem),
            other => Self::Problem(other.to_string()),
        }
    }
}

impl From<ArrowError> for Failure {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::ExternalError(error) => Self::of(error),
            ArrowError::IoError(_, error) => Self::of(Box::new(error)),
            ArrowError::ParquetError(problem)
            | ArrowError::IpcError(problem)
            | ArrowError::SchemaError(problem)
            | ArrowError::ParseError(problem)
            | ArrowError::InvalidArgumentError(problem)
            | ArrowError::NotYetImplemented(problem) => Self::Problem(problem),
            other => Self::Problem(other.to_string()),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Ours(error)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn errors_and_panics_are_one_line() {
        let lines = |call: fn() -> std::result::Result<(), ParquetError>| {
            caught("a", call).unwrap_err().to_string()
        };
        assert_eq!(
            lines(|| panic!("slice\nof {}", 3)),
            format!("a: cannot be decoded (slice\\nof 3); {DAMAGED}")
        );
        assert_eq!(
            lines(|| Err(ParquetError::General("no".to_owned()))),
            format!("a: cannot be decoded (no); {DAMAGED}")
        );
        let full = || ParquetError::External(Box::new(io::Error::from_raw_os_error(5)));
        assert!(caught::<(), _>("a", || Err(full())).unwrap_err().to_string().contains("read: "));
        let ours = || ParquetError::External(Box::new(Error::request("b", "is a folder")));
        assert_eq!(caught::<(), _>("a", || Err(ours())).unwrap_err().to_string(), "b: is a folder");
        assert_eq!(caught("a", || Ok::<_, ParquetError>(3)).unwrap(), 3);
        assert!(!GUARDED.get());
    }
}
