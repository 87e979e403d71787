//! From a data set's name to its colour images.

use std::path::{Path, PathBuf};

use super::cache;
use super::cifar::read_cifar;
use super::images::ColourImages;
use super::jpeg::{read_jpegs, sources};
use crate::dataset::catalogue::{ColourSource, Set};
use crate::dataset::find::Form;
use crate::dataset::load::Split;
use crate::{Error, Result};

impl Set {
    /// The colour images of a split, found as [`find`](Self::find) does, in the order of their files.
    ///
    /// Images that have to be unpacked or decoded are stored decoded in the folder `cache`, if there is
    /// one, and read from there the next time. A cache file that is damaged, or older than the files
    /// it was made from, is rebuilt.
    ///
    /// ```
    /// use shafer_data::dataset::{Split, set};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let root = folder.path().to_owned();
    /// let cifar10 = set("cifar10")?;
    /// let error = cifar10.colour_images(Split::Val, &[root.clone()], None).unwrap_err();
    /// assert_eq!(error.to_string(), "cifar10: has no split val; there are train and test");
    /// std::fs::create_dir(root.join("cifar10"))?;
    /// for file in &cifar10.files {
    ///     // One image of each class: a label and 32 x 32 x 3 bytes.
    ///     let images: Vec<u8> = (0..10).flat_map(|class| [vec![class], vec![7; 3072]].concat()).collect();
    ///     std::fs::write(root.join("cifar10").join(&file.name), images)?;
    /// }
    /// let test = cifar10.colour_images(Split::Test, &[root], None)?;
    /// assert_eq!((test.len(), test.rows, test.columns), (10, 32, 32));
    /// assert_eq!(test.classes[usize::from(test.labels[6])], "frog");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn colour_images(
        &self,
        split: Split,
        folders: &[PathBuf],
        cache: Option<&Path>,
    ) -> Result<ColourImages> {
        let Some(set) = &self.colour else {
            return Err(Error::request(&self.name, "is not a set of colour images"));
        };
        let splits = match set.source {
            ColourSource::Cifar(_) => [Split::Train, Split::Test],
            ColourSource::Jpeg(_) => [Split::Train, Split::Val],
        };
        if !splits.contains(&split) {
            let [a, b] = splits;
            let problem = format!("has no split {split}; there are {a} and {b}");
            return Err(Error::request(&self.name, problem));
        }
        let found = self.find(folders)?;
        let read = || match &set.source {
            ColourSource::Cifar(files) => {
                let names = if split == Split::Test { &files.test } else { &files.train };
                read_cifar(&found, set, files, names)
            }
            ColourSource::Jpeg(files) => read_jpegs(&found, set, files, split),
        };
        let sources = match (&set.source, &found.form) {
            (ColourSource::Jpeg(files), _) => sources(&found, files)?,
            (ColourSource::Cifar(_), Form::Archive) => vec![found.place.clone()],
            // The binary files are decoded already.
            (ColourSource::Cifar(_), _) => return read(),
        };
        let Some(cache) = cache else { return read() };
        let path = cache.join(format!("{}-{split}.images", self.name));
        let fingerprint = cache::fingerprint(&sources)?;
        if let Some(images) = cache::read(&path, &fingerprint) {
            return Ok(images);
        }
        let images = read()?;
        cache::write(&path, &images, fingerprint)?;
        Ok(images)
    }
}
