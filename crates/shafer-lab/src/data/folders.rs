//! Where data sets are looked for.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders, in this order: the one that is asked for, the one that `SHAFER_DATA` names, and the
/// user's cache. The first is the one to fetch into.
pub(crate) fn folders(data_dir: Option<&Path>) -> Vec<PathBuf> {
    ordered(data_dir, |name| std::env::var_os(name), std::env::home_dir())
}

/// The folder for decoded images, so that archives and JPEG files are decoded once; none without a cache folder.
pub(crate) fn decoded_folder() -> Option<PathBuf> {
    let last = ordered(
        None,
        |name| (name == "XDG_CACHE_HOME").then(|| std::env::var_os(name))?,
        std::env::home_dir(),
    );
    last.into_iter().last().map(|cache| cache.join("decoded"))
}

fn ordered(
    data_dir: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Vec<PathBuf> {
    // A variable that is empty counts as none, and a relative cache as none: the XDG rules.
    let folder = |name| variable(name).map(PathBuf::from).filter(|path| path != Path::new(""));
    let cache = folder("XDG_CACHE_HOME")
        .filter(|cache| cache.is_absolute())
        .or_else(|| home.map(|home| home.join(".cache")));
    data_dir
        .map(Path::to_owned)
        .into_iter()
        .chain(folder("SHAFER_DATA"))
        .chain(cache.map(|cache| cache.join("shafer")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_the_documented_one() {
        let variable = |name: &str| match name {
            "SHAFER_DATA" => Some(OsString::from("/data")),
            "XDG_CACHE_HOME" => Some(OsString::from("/cache")),
            _ => None,
        };
        let all = ordered(Some(Path::new("here")), variable, Some("/home/me".into()));
        assert_eq!(all, ["here", "/data", "/cache/shafer"].map(PathBuf::from));
        let fewest = ordered(None, |_| Some(OsString::new()), Some("/home/me".into()));
        assert_eq!(fewest, ["/home/me/.cache/shafer"].map(PathBuf::from));
        assert!(ordered(None, |_| None, None).is_empty());
    }
}
