//! Verifies the files of a data set against the catalogue.

use std::io::Read;
use std::path::Path;

use super::catalogue::{DataFile, ImageSet, PngSet, Set};
use super::find::{Form, Found};
use super::png_folders::read_png_folders;
use super::tree::{label_of, walk};
use super::{checksum, packed};
use crate::{Error, Result};

const HINT: &str = "it is damaged, or a different file with this name: fetch it again";

/// The result of checking a part of a data set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// The name of a file, or of the set if all images were checked together.
    pub name: String,
    /// The problem, in one line, if there is one.
    pub problem: Option<String>,
}

impl DataFile {
    /// Checks the length and the checksum of a file, which can be compressed.
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
    /// assert!(file.check(&path).unwrap_err().to_string().contains(": has the SHA-256 a52d159f"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn check(&self, path: &Path) -> Result<()> {
        self.check_contents(&path.display().to_string(), packed::open(path)?)
    }

    /// Checks the length and the checksum of bytes, which can be compressed. `label` names them in errors.
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
            format!("has the SHA-256 {sha256}, not {}", self.sha256)
        } else {
            return Ok(());
        };
        Err(Error::format(label, problem, HINT))
    }
}

impl Set {
    /// Checks the length and the checksum of all files in a tar archive.
    ///
    /// ```
    /// let cifar10 = shafer_data::dataset::set("cifar10")?;
    /// assert!(cifar10.check_archive("none.tar.gz".as_ref()).is_err());
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn check_archive(&self, archive: &Path) -> Result<()> {
        let label = archive.display().to_string();
        let file_of = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            self.files.iter().position(|file| file.name == name)
        };
        let mut seen = vec![false; self.files.len()];
        walk(archive, &|path| file_of(path).is_some(), &mut |path, contents| {
            if let Some(index) = file_of(path).filter(|&index| !seen[index]) {
                self.files[index].check_bytes(&label_of(&label, path), &contents)?;
                seen[index] = true;
            }
            Ok(())
        })?;
        match self.files.iter().zip(seen).find(|(_, seen)| !seen) {
            None => Ok(()),
            Some((file, _)) => {
                Err(Error::format(&label, format!("has no file {}", file.name), HINT))
            }
        }
    }
}

impl PngSet {
    /// Checks the number and the checksum of the images in a folder or a tar archive, in any order.
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
            format!("has images with the SHA-256 {sha256}, not {}", self.sha256)
        } else {
            return Ok(());
        };
        Err(Error::format(&place.display().to_string(), problem, HINT))
    }
}

impl Found {
    /// Reads all files and compares them with the checksums of the catalogue.
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
            // The images of other distributors are encoded differently: only known files are checked.
            Form::Jpeg => match self.set.paths(&self.place) {
                Ok(paths) => {
                    let pairs = files.iter().zip(&paths);
                    let present = pairs.filter_map(|(file, path)| Some((file, path.as_ref()?)));
                    present.map(|(file, path)| check(&file.name, file.check(path))).collect()
                }
                Err(error) => vec![check(&self.set.name, Err(error))],
            },
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
