//! Whether a data set is what it should be.

use std::io::Read;
use std::path::Path;

use super::catalogue::{DataFile, ImageSet, PngSet};
use super::find::{Form, Found};
use super::png_folders::read_png_folders;
use super::{checksum, packed};
use crate::{Error, Result};

const HINT: &str = "it is damaged, or another file of that name: fetch it again";

/// What was found out about a part of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The part: a file, or the folder of all images.
    pub name: String,
    /// What is wrong with it, in one line.
    pub problem: Option<String>,
}

impl DataFile {
    /// Compares a file, which may be compressed, with what the catalogue says.
    ///
    /// ```
    /// use shafer_data::dataset::DataFile;
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("abc");
    /// let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into();
    /// let file = DataFile { name: "abc".into(), remote: None, bytes: 3, sha256 };
    /// std::fs::write(&path, "abc")?;
    /// file.check(&path)?;
    /// std::fs::write(&path, "abd")?;
    /// assert!(file.check(&path).unwrap_err().to_string().contains(": its SHA-256 is a52d159f"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, path: &Path) -> Result<()> {
        self.check_contents(&path.display().to_string(), packed::open(path)?)
    }

    /// Compares bytes in memory, which may be compressed; `label` is how an error calls them.
    ///
    /// ```
    /// use shafer_data::dataset::DataFile;
    ///
    /// let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad".into();
    /// let file = DataFile { name: "abc".into(), remote: None, bytes: 3, sha256 };
    /// file.check_bytes("abc", b"abc")?;
    /// assert!(file.check_bytes("abc", b"ab").is_err());
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn check_bytes(&self, label: &str, bytes: &[u8]) -> Result<()> {
        let contents = packed::unpack(bytes).map_err(|e| packed::failed(label, e))?;
        self.check_contents(label, contents)
    }

    fn check_contents(&self, label: &str, contents: impl Read) -> Result<()> {
        let (bytes, sha256) =
            checksum::of(contents, self.bytes).map_err(|e| packed::failed(label, e))?;
        let problem = if bytes > self.bytes {
            format!("has more than {} bytes", self.bytes)
        } else if bytes < self.bytes {
            format!("has {bytes} bytes, not {}", self.bytes)
        } else if sha256 != self.sha256 {
            format!("its SHA-256 is {sha256}, not {}", self.sha256)
        } else {
            return Ok(());
        };
        Err(Error::format(label, problem, HINT))
    }
}

impl PngSet {
    /// Compares the images of a folder or of a tar archive with what the catalogue says, in whichever
    /// order they are.
    ///
    /// ```
    /// let notmnist = shafer_data::dataset::set("notmnist")?.images.as_ref().unwrap();
    /// let png = notmnist.png.as_ref().unwrap();
    /// assert!(png.check("none".as_ref(), &notmnist.classes).is_err());
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn check(&self, place: &Path, classes: &[impl AsRef<str>]) -> Result<()> {
        let images = read_png_folders(place, classes)?.sorted();
        let sha256 = images.sha256();
        let problem = if images.len() != self.images {
            format!("has {} images, not {}", images.len(), self.images)
        } else if sha256 != self.sha256 {
            format!("the SHA-256 of its images is {sha256}, not {}", self.sha256)
        } else {
            return Ok(());
        };
        Err(Error::format(&place.display().to_string(), problem, HINT))
    }
}

impl Found {
    /// Reads everything, and compares it with the checksums of the catalogue.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let root = folder.path().to_owned();
    /// std::fs::create_dir(root.join("ethucy"))?;
    /// std::fs::write(root.join("ethucy/ethucy_raw.tar.xz"), "no archive")?;
    /// let checks = shafer_data::dataset::set("ethucy")?.find(&[root])?.verify();
    /// assert!(checks[0].problem.as_ref().unwrap().contains("is not a tar archive"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self) -> Vec<Check> {
        let check = |name: &str, result: Result<()>| {
            let problem = result.err().map(|error| error.to_string());
            Check { name: name.to_owned(), problem }
        };
        let files = &self.set.files;
        match &self.form {
            Form::Files(paths) => {
                let pairs = files.iter().zip(paths);
                pairs.map(|(file, path)| check(&file.name, file.check(path))).collect()
            }
            Form::Archive => {
                let names: Vec<_> = files.iter().map(|file| file.name.clone()).collect();
                match self.members(&names) {
                    Ok(members) => files
                        .iter()
                        .map(|file| {
                            let label = format!("{}: {}", self.place.display(), file.name);
                            let result = match members.get(&file.name) {
                                Some(bytes) => file.check_bytes(&label, bytes),
                                None => Err(self.lacks(&file.name)),
                            };
                            check(&file.name, result)
                        })
                        .collect(),
                    Err(error) => vec![check(&self.set.name, Err(error))],
                }
            }
            Form::Png => {
                let images = self.set.images.as_ref();
                let result = match images {
                    Some(ImageSet { png: Some(png), classes, .. }) => {
                        png.check(&self.place, classes)
                    }
                    _ => Ok(()),
                };
                vec![check(&self.set.name, result)]
            }
        }
    }
}
