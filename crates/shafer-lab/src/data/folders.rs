//! The folders that data sets are searched in.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The folders in search order: the given one, that of the variable `SHAFER_DATA`, and the user's cache.
/// Sets are fetched into the first.
pub(crate) fn folders(data_dir: Option<&Path>) -> Vec<PathBuf> {
    ordered(data_dir, |name| std::env::var_os(name), std::env::home_dir())
}

fn ordered(
    data_dir: Option<&Path>,
    variable: impl Fn(&str) -> Option<OsString>,
    home: Option<PathBuf>,
) -> Vec<PathBuf> {
    let data = variable("SHAFER_DATA").map(PathBuf::from).filter(|path| path != Path::new(""));
    let cache = cache(variable, home);
    data_dir.map(Path::to_owned).into_iter().chain(data).chain(cache).collect()
}

/// The folder for decoded images, which are derived data: always in the user's cache.
pub(crate) fn decoded_images() -> Option<PathBuf> {
    let cache = cache(|name| std::env::var_os(name), std::env::home_dir());
    cache.map(|cache| cache.join("decoded"))
}

/// The program's folder in the user's cache, by the XDG rules: an empty or relative variable is ignored.
fn cache(variable: impl Fn(&str) -> Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    let cache = variable("XDG_CACHE_HOME").map(PathBuf::from).filter(|cache| cache.is_absolute());
    cache.or_else(|| home.map(|home| home.join(".cache"))).map(|cache| cache.join("shafer"))
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
