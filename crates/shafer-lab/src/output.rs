//! Protects existing files: an output is never an input, and only files written by shafer are replaced
//! without `--force`.

use std::fs::{self, File, Metadata};
use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};

use crate::predict::SVG_MARK;

/// The kind of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Sparse or dense rows.
    Rows,
    /// A page for a browser.
    Page,
    /// What `shafer predict` writes.
    Prediction,
    /// What `shafer calibrate` writes.
    Calibration,
    /// A drawing.
    Drawing,
}

/// An input of a command.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Source<'a> {
    File(&'a Path),
    StandardInput,
}

/// Refuses an output that is one of the inputs, through any links, and without `force`, an existing one that
/// shafer cannot have written.
pub(crate) fn check(inputs: &[Source<'_>], output: &Path, kind: Kind, force: bool) -> Result<()> {
    let label = output.display();
    let ends_in = |wanted| output.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted));
    if kind == Kind::Page && !ends_in("html") && !ends_in("htm") {
        bail!("{label}: is not an .html name; end the name of the page in .html");
    }
    if kind == Kind::Calibration && !ends_in("json") {
        bail!("{label}: is not a .json name; end the name of the calibration in .json");
    }
    if kind == Kind::Drawing && !ends_in("svg") {
        bail!("{label}: is not an .svg name; end the name of the drawing in .svg");
    }
    // A path that does not exist harms nothing. Folders and devices are refused on creation.
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
        Kind::Calibration => begins_with_mark(output, br#""measured_on""#),
        Kind::Drawing => begins_with_mark(output, b"<svg "),
        Kind::Prediction if ends_in("json") => begins_with_mark(output, br#""seconds_per_step""#),
        Kind::Prediction if ends_in("svg") => begins_with_mark(output, SVG_MARK.as_bytes()),
        Kind::Prediction if ends_in("csv") => {
            begins_with_mark(output, b"frame,agent,method,mode,class,step,")
        }
        Kind::Prediction | Kind::Rows => Ok(shafer_data::written_here(output)),
    };
    if !ours.with_context(|| format!("{label}: cannot read"))? {
        bail!("{label}: exists and was not written by shafer; --force replaces it");
    }
    Ok(())
}

/// Whether the first 4 KiB of a file contain these bytes.
fn begins_with_mark(path: &Path, mark: &[u8]) -> std::io::Result<bool> {
    const BEGINNING: u64 = 4096;
    let mut start = Vec::new();
    File::open(path)?.take(BEGINNING).read_to_end(&mut start)?;
    Ok(start.windows(mark.len()).any(|bytes| bytes == mark))
}

/// Whether two paths lead to the same file, through symbolic or hard links.
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

/// Whether two paths lead to the same file, through symbolic links.
#[cfg(not(unix))]
fn is_same_file(input: &Path, output: &Path, _: &Metadata) -> bool {
    let whole = |path| fs::canonicalize(path).ok();
    whole(input).is_some_and(|input| whole(output) == Some(input))
}

#[cfg(not(unix))]
fn is_standard_input(_: &Metadata) -> bool {
    false
}
