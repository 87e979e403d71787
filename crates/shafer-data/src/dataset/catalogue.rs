//! The known data sets, as `catalogue.toml` describes them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::LazyLock;

use serde::Deserialize;

use super::groups::Groups;
use crate::{Error, Result};

/// A data set: its description, its files with their checksums, and its sources.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Set {
    /// The name, which is also the name of its folder.
    pub name: String,
    /// A one-line description.
    pub about: String,
    /// The licence.
    pub licence: String,
    /// Instructions for a manual download, if it cannot be fetched automatically.
    pub manual: Option<String>,
    /// Folders that system packages install it to.
    #[serde(default)]
    pub system: Vec<PathBuf>,
    /// Names of tar archives that contain its files.
    #[serde(default)]
    pub archives: Vec<String>,
    /// Base URLs to fetch from, in order of preference.
    #[serde(default)]
    pub mirrors: Vec<String>,
    /// A package that contains it.
    pub package: Option<Package>,
    /// The files.
    #[serde(default)]
    pub files: Vec<DataFile>,
    /// The grey images, if it is a set of them.
    pub images: Option<ImageSet>,
    /// The colour images, if it is a set of them.
    pub colour: Option<ColourSet>,
    /// The scenes, if it is a set of pedestrians.
    pub pedestrians: Option<Pedestrians>,
}

/// A file of a data set, plain or compressed with gzip.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataFile {
    /// The name, without `.gz`.
    pub name: String,
    /// The path relative to a mirror's base URL.
    pub remote: Option<String>,
    /// The length in bytes, uncompressed.
    pub bytes: u64,
    /// The SHA-256 of its contents, uncompressed.
    pub sha256: String,
}

/// A package of a registry (npm, Debian, `PyPI`) that contains a data set.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Package {
    /// The program that downloads it.
    pub client: Client,
    /// The name of the package.
    pub name: String,
    /// The version. Without one, the version that the system offers.
    pub version: Option<String>,
}

/// A program that downloads packages by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Client {
    /// Node's `npm`.
    Npm,
    /// Debian's `apt-get`.
    Apt,
    /// Python's `pip`. The files are in the source archive.
    Pip,
}

/// A set of grey images: its classes and the files that hold the images.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageSet {
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The two groups of classes that the paper conditions on.
    pub groups: Groups,
    /// The training images.
    pub train: ImageFiles,
    /// The test images, if there are any.
    pub test: Option<ImageFiles>,
    /// The same set as a folder of PNG files, if there is one.
    pub png: Option<PngSet>,
}

/// The names of two IDX files.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ImageFiles {
    /// The file with the images.
    pub images: String,
    /// The file with their labels.
    pub labels: String,
}

/// A folder of PNG files, with one subfolder per class.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PngSet {
    /// The name of the folder.
    pub folder: String,
    /// The name of a tar archive of the folder.
    pub archive: String,
    /// The number of images that can be decoded.
    pub images: usize,
    /// The SHA-256 of all labels and pixels, sorted by label and pixels.
    pub sha256: String,
}

/// A set of colour images: their size and the files that hold them.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColourSet {
    /// The height of every image.
    pub rows: usize,
    /// The width of every image.
    pub columns: usize,
    /// The format of the files.
    pub source: ColourSource,
}

/// The format of the files of a set of colour images.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColourSource {
    /// CIFAR's binary files.
    Cifar(CifarFiles),
    /// JPEG files, listed with their labels in CSV files.
    Jpeg(JpegFiles),
}

/// CIFAR's binary files: one record an image, of a label and the planes red, green and blue.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CifarFiles {
    /// The names of the classes.
    pub classes: Vec<String>,
    /// The files with the training images, in order.
    pub train: Vec<String>,
    /// The files with the test images, in order.
    pub test: Vec<String>,
    /// The same files as PNG.
    pub png: Vec<PngBatch>,
}

/// A binary file of CIFAR stored as a PNG with one image a row, and a JSON array of labels.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PngBatch {
    /// The binary file.
    pub file: String,
    /// The PNG file with its images.
    pub png: String,
    /// The JSON file with its labels.
    pub labels: String,
    /// The position of its first label in the JSON array.
    pub first: usize,
}

/// JPEG files, loose or in tar archives, and the CSV files that list them.
///
/// A CSV file has the columns `filename` and `label`. Images are found by file name, in any folder.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JpegFiles {
    /// Lists all images. Used if `train` or `val` is missing.
    pub all: String,
    /// Every `held_out`-th image of `all`, from the first on, is a validation image.
    pub held_out: usize,
    /// Lists the training images.
    pub train: String,
    /// Lists the validation images.
    pub val: String,
    /// Tar archives that together hold all images.
    pub archives: Vec<String>,
}

/// The scenes of a set of pedestrians, and the leave-one-out folds.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pedestrians {
    /// All scenes.
    pub scenes: Vec<String>,
    /// The test scenes of each fold. The other scenes are for training.
    pub folds: BTreeMap<String, Vec<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Catalogue {
    set: Vec<Set>,
}

static CATALOGUE: LazyLock<Catalogue> = LazyLock::new(|| {
    toml::from_str(include_str!("catalogue.toml"))
        .expect("the embedded catalogue is valid: a test parses it")
});

/// All known data sets.
///
/// ```
/// let names: Vec<_> = shafer_data::dataset::sets().iter().map(|set| &set.name[..]).collect();
/// assert_eq!(names, ["mnist", "fashion", "notmnist", "ethucy", "cifar10", "miniimagenet"]);
/// ```
pub fn sets() -> &'static [Set] {
    &CATALOGUE.set
}

/// The data set with this name.
///
/// ```
/// assert_eq!(shafer_data::dataset::set("mnist")?.files.len(), 4);
/// let error = shafer_data::dataset::set("emnist").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "emnist: is not a known data set; known are mnist, fashion, notmnist, ethucy, cifar10, \
///      miniimagenet"
/// );
/// # Ok::<(), shafer_data::Error>(())
/// ```
pub fn set(name: &str) -> Result<&'static Set> {
    sets().iter().find(|set| set.name == name).ok_or_else(|| {
        let names: Vec<_> = sets().iter().map(|set| &set.name[..]).collect();
        let problem = format!("is not a known data set; known are {}", names.join(", "));
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
            let kinds = [set.images.is_some(), set.colour.is_some(), set.pedestrians.is_some()];
            assert_eq!(kinds.iter().filter(|&&kind| kind).count(), 1, "{name}");
            assert!(!set.files.is_empty(), "{name}");
            assert_eq!(set.mirrors.is_empty(), set.manual.is_some(), "{name}");
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
            match set.colour.as_ref().map(|colour| &colour.source) {
                Some(ColourSource::Cifar(CifarFiles { train, test, png, .. })) => {
                    assert!(train.iter().chain(test).all(|file| has(file)), "{name}");
                    assert!(png.iter().all(|batch| has(&batch.file)), "{name}");
                    assert_eq!(png.len(), set.files.len(), "{name}");
                }
                Some(ColourSource::Jpeg(JpegFiles { all, train, val, archives, .. })) => {
                    assert!([all, train, val].iter().all(|file| has(file)), "{name}");
                    assert!(archives.iter().all(|file| has(file)), "{name}");
                }
                None => {}
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

    /// The groups of the paper.
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
