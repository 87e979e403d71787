//! Files that are written: never one that is read, and no other that is not ours unless asked for.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::predict::SVG_MARK;

/// What a file is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sparse or dense rows.
    Rows,
    /// A page for a browser.
    Page,
    /// What `shafer predict` writes.
    Prediction,
}

/// An input of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    File(&'a Path),
    StandardInput,
}

/// Refuses an output that is one of the inputs of the command under any name, and without `force`, one that
/// exists and that shafer cannot have made.
pub(crate) fn check(inputs: &[Source<'_>], output: &Path, kind: Kind, force: bool) -> Result<()> {
    let label = output.display();
    let ends_in = |wanted| output.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted));
    if kind == Kind::Page && !ends_in("html") && !ends_in("htm") {
        bail!("{label}: a page is written as .html");
    }
    // What does not exist is nobody's, and what is no file is refused when it is begun.
    let Ok(found) = fs::metadata(output) else { return Ok(()) };
    for input in inputs {
        let (name, same) = match *input {
            Source::File(path) => (path.display().to_string(), is_same_file(path, output, &found)),
            Source::StandardInput => ("standard input".to_owned(), is_standard_input(&found)),
        };
        if same {
            bail!("{label}: is the same file as the input {name}; name another output");
        }
    }
    if force || !found.is_file() || found.len() == 0 {
        return Ok(());
    }
    let ours = match kind {
        Kind::Page => begins_with_mark(output, br#"<meta name="generator" content="shafer "#),
        Kind::Prediction if ends_in("json") => begins_with_mark(output, br#""seconds_per_step""#),
        Kind::Prediction if ends_in("svg") => begins_with_mark(output, SVG_MARK.as_bytes()),
        Kind::Prediction if ends_in("csv") => {
            begins_with_mark(output, b"frame,agent,method,mode,class,step,")
        }
        Kind::Prediction | Kind::Rows => Ok(shafer_data::written_here(output)),
    };
    if !ours.with_context(|| format!("{label}: cannot read"))? {
        bail!("{label}: exists and was not made by shafer; --force replaces it");
    }
    Ok(())
}

/// Whether the beginning of a file contains these bytes.
fn begins_with_mark(path: &Path, mark: &[u8]) -> std::io::Result<bool> {
    const BEGINNING: u64 = 4096;
    let mut start = Vec::new();
    File::open(path)?.take(BEGINNING).read_to_end(&mut start)?;
    Ok(start.windows(mark.len()).any(|bytes| bytes == mark))
}

/// Whether two paths lead to one file, through whatever links.
#[cfg(unix)]
fn is_same_file(input: &Path, _: &Path, output: &Metadata) -> bool {
    fs::metadata(input).is_ok_and(|input| same(&input, output))
}

#[cfg(unix)]
fn is_standard_input(output: &Metadata) -> bool {
    use std::os::fd::AsFd as _;

    let stdin = std::io::stdin().as_fd().try_clone_to_owned().map(File::from);
    stdin.and_then(|stdin| stdin.metadata()).is_ok_and(|input| same(&input, output))
}

#[cfg(unix)]
fn same(a: &Metadata, b: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;

    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Whether two paths lead to one file, through whatever links but hard ones.
#[cfg(not(unix))]
fn is_same_file(input: &Path, output: &Path, _: &Metadata) -> bool {
    let whole = |path| fs::canonicalize(path).ok();
    whole(input).is_some_and(|input| whole(output) == Some(input))
}

#[cfg(not(unix))]
fn is_standard_input(_: &Metadata) -> bool {
    false
}
