//! The parts of a table: the files of a folder or a pattern, and where each goes.

use std::collections::HashSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Result, bail};
use shafer_data::{has_wildcard, is_pattern};

/// A part of a table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub(crate) input: PathBuf,
    /// `None` without an output folder.
    pub(crate) output: Option<PathBuf>,
}

/// Whether an output is meant to be a folder.
pub(crate) fn is_folder(output: &Path) -> bool {
    let bytes = output.as_os_str().as_encoded_bytes();
    output.is_dir()
        || bytes.ends_with(b"/")
        || bytes.ends_with(std::path::MAIN_SEPARATOR_STR.as_bytes())
}

/// The files that an input means, in the order of their names, and their places in the output folder: the same
/// below it as below the input folder, or as below the part of a pattern before its first wildcard.
pub(crate) fn parts(input: &Path, output: Option<&Path>) -> Result<Vec<Part>> {
    let files = shafer_data::table_files(input)?;
    let root = if input.is_dir() {
        input.to_owned()
    } else if is_pattern(input) {
        literal(input)
    } else {
        input.parent().map(Path::to_owned).unwrap_or_default()
    };
    let Some(folder) = output else {
        return Ok(files.into_iter().map(|input| Part { input, output: None }).collect());
    };
    let recursive = input.is_dir() || input.components().any(|c| c.as_os_str() == "**");
    if recursive
        && let (Some(inner), Ok(outer)) = (absolute(folder), fs::canonicalize(&root))
        && inner.starts_with(&outer)
    {
        bail!(
            "{}: the output folder is inside the input folder {}; name one outside of it",
            folder.display(),
            outer.display()
        );
    }
    let mut parts = Vec::with_capacity(files.len());
    for input in files {
        let below = input.strip_prefix(&root).unwrap_or(&input);
        if below.components().any(|c| !matches!(c, Component::Normal(_))) {
            bail!("{}: leads out of {}; name the folder itself", input.display(), root.display());
        }
        let output = Some(folder.join(below));
        parts.push(Part { input, output });
    }
    let inputs: HashSet<PathBuf> =
        parts.iter().filter_map(|part| fs::canonicalize(&part.input).ok()).collect();
    let written = parts.iter().filter_map(|part| part.output.as_ref());
    for output in written {
        if fs::canonicalize(output).is_ok_and(|output| inputs.contains(&output)) {
            bail!("{}: is one of the inputs; name another output folder", output.display());
        }
    }
    Ok(parts)
}

/// The absolute path of a folder that need not exist, through all links of what exists.
fn absolute(folder: &Path) -> Option<PathBuf> {
    let folder = std::path::absolute(folder).ok()?;
    folder.ancestors().find_map(|existing| {
        let rest = folder.strip_prefix(existing).ok()?;
        Some(fs::canonicalize(existing).ok()?.join(rest))
    })
}

/// The path before the first component with a wildcard.
fn literal(pattern: &Path) -> PathBuf {
    let fixed = pattern.components().take_while(|c| !has_wildcard(c.as_os_str()));
    fixed.collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn folder(names: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in names {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        folder
    }

    fn outputs(input: &Path, output: &Path) -> Vec<PathBuf> {
        parts(input, Some(output)).unwrap().into_iter().filter_map(|part| part.output).collect()
    }

    #[test]
    fn folders_keep_their_shape() {
        let names =
            ["day=2/b.parquet", "day=1/a.arrow", "c.PARQUET", "_SUCCESS", ".x.parquet", "n.csv"];
        let folder = folder(&names);
        let expected = ["/out/c.PARQUET", "/out/day=1/a.arrow", "/out/day=2/b.parquet"];
        assert_eq!(outputs(folder.path(), Path::new("/out")), expected.map(PathBuf::from));
        assert!(parts(folder.path(), None).unwrap().iter().all(|part| part.output.is_none()));
    }

    #[test]
    fn patterns_and_single_files() {
        let folder = folder(&["in/a.parquet", "in/b.parquet", "in/c.txt", "d.parquet"]);
        let at = |name: &str| folder.path().join(name);
        let expected = ["/out/a.parquet", "/out/b.parquet"].map(PathBuf::from);
        assert_eq!(outputs(&at("in/*.parquet"), Path::new("/out")), expected);
        let expected = ["/out/in/a.parquet", "/out/in/b.parquet"].map(PathBuf::from);
        assert_eq!(outputs(&at("*/[ab].parquet"), Path::new("/out")), expected);
        assert_eq!(outputs(&at("d.parquet"), Path::new("/out")), [PathBuf::from("/out/d.parquet")]);
        let error = parts(&at("in/*.arrow"), None).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "matches no file that ends in .parquet, .arrow, .arrows, .feather, .ipc"
            )
        );
        assert!(
            parts(&at("in/[.parquet"), None).unwrap_err().to_string().contains("Pattern syntax")
        );
        // A file with such a name is a file.
        fs::write(at("in/[x].parquet"), "").unwrap();
        assert!(
            !shafer_data::means_several(&at("in/[x].parquet"))
                && shafer_data::means_several(&at("in/*"))
        );
    }

    #[test]
    fn outputs_that_are_inputs() {
        let folder = folder(&["a.parquet", "b.parquet"]);
        let inside = |output: &str| {
            parts(folder.path(), Some(&folder.path().join(output))).unwrap_err().to_string()
        };
        assert!(inside("sparse").contains("the output folder is inside the input folder"));
        assert!(inside(".").contains("the output folder is inside the input folder"));
        let all = folder.path().join("*.parquet");
        let error = parts(&all, Some(folder.path())).unwrap_err().to_string();
        assert!(error.contains("is one of the inputs; name another output folder"), "{error}");
        assert_eq!(parts(&all, Some(&folder.path().join("sparse"))).unwrap().len(), 2);
    }
}
