//! Reads the images or the scenes of a data set.

use std::fmt;
use std::path::PathBuf;

use super::catalogue::{ImageSet, Set};
use super::find::Form;
use super::idx::read_idx;
use super::images::Images;
use super::png_folders::read_png_folders;
use super::scene::Scene;
use crate::{Error, Result};

/// The part of a data set: for training, validation or testing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// For training.
    Train,
    /// For validation during training.
    Val,
    /// For testing.
    Test,
}

impl fmt::Display for Split {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Train => "train",
            Self::Val => "val",
            Self::Test => "test",
        })
    }
}

impl Set {
    /// The images of a split, found as [`find`](Self::find) does, in the order of their file. Sets that
    /// also come as PNG files have no canonical order: their images are sorted by label and pixels.
    ///
    /// ```
    /// use shafer_data::dataset::{Split, set};
    ///
    /// # let folder = tempfile::tempdir()?;
    /// # let root = folder.path().to_owned();
    /// let error = set("mnist")?.images(Split::Val, &[root.clone()]).unwrap_err();
    /// assert_eq!(error.to_string(), "mnist: has no split val; there are train and test");
    /// std::fs::create_dir(root.join("mnist"))?;
    /// for (name, contents) in [
    ///     ("train-images-idx3-ubyte", &b"\0\0\x08\x03\0\0\0\x02\0\0\0\x01\0\0\0\x02abcd"[..]),
    ///     ("train-labels-idx1-ubyte", b"\0\0\x08\x01\0\0\0\x02\x07\x04"),
    ///     ("t10k-images-idx3-ubyte", b""),
    ///     ("t10k-labels-idx1-ubyte", b""),
    /// ] {
    ///     std::fs::write(root.join("mnist").join(name), contents)?;
    /// }
    /// let images = set("mnist")?.images(Split::Train, &[root])?;
    /// assert_eq!(images.labels, [7, 4]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn images(&self, split: Split, folders: &[PathBuf]) -> Result<Images> {
        let Some(set) = &self.images else {
            return Err(Error::request(&self.name, "is not a set of images"));
        };
        let pair = match split {
            Split::Train => Some(&set.train),
            Split::Val => None,
            Split::Test => set.test.as_ref(),
        };
        let Some(pair) = pair else {
            let there =
                if set.test.is_some() { "there are train and test" } else { "there is train" };
            let problem = format!("has no split {split}; {there}");
            return Err(Error::request(&self.name, problem));
        };
        let found = self.find(folders)?;
        let images = match (found.path(&pair.images), found.path(&pair.labels), &found.form) {
            (Some(images), Some(labels), Form::Files(_)) => read_idx(images, labels)?,
            _ => read_png_folders(&found.place, &set.classes)?,
        };
        check_labels(&found.place.display().to_string(), set, &images)?;
        Ok(if set.png.is_some() { images.sorted() } else { images })
    }

    /// The scenes of a split of a fold, found as [`find`](Self::find) does. Test scenes are whole scenes.
    /// Training scenes are the beginnings of all others, and validation scenes their ends.
    ///
    /// ```
    /// use shafer_data::dataset::{Split, set};
    ///
    /// let error = set("ethucy")?.scenes("oxford", Split::Test, &[]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "ethucy: has no fold oxford; there are eth, hotel, univ, zara1, zara2"
    /// );
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn scenes(&self, fold: &str, split: Split, folders: &[PathBuf]) -> Result<Vec<Scene>> {
        let Some(set) = &self.pedestrians else {
            return Err(Error::request(&self.name, "is not a set of pedestrians"));
        };
        let Some(tested) = set.folds.get(fold) else {
            let folds: Vec<&str> = set.folds.keys().map(String::as_str).collect();
            let problem = format!("has no fold {fold}; there are {}", folds.join(", "));
            return Err(Error::request(&self.name, problem));
        };
        let (test, ending) = match split {
            Split::Train => (false, "_train.txt"),
            Split::Val => (false, "_val.txt"),
            Split::Test => (true, ".txt"),
        };
        let scenes = set.scenes.iter().filter(|scene| tested.contains(scene) == test);
        let names: Vec<String> = scenes.map(|scene| format!("{scene}{ending}")).collect();
        self.read_scenes(&names, folders)
    }

    /// The scene with this name, such as `biwi_eth_val`, the last fifth of `biwi_eth`.
    ///
    /// ```
    /// let error = shafer_data::dataset::set("ethucy")?.scene("biwi_oxford", &[]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "ethucy: has no scene biwi_oxford; there are biwi_eth, biwi_hotel, crowds_zara01, \
    ///      crowds_zara02, crowds_zara03, students001, students003, uni_examples, each also with \
    ///      the suffix _train or _val"
    /// );
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn scene(&self, name: &str, folders: &[PathBuf]) -> Result<Scene> {
        let Some(set) = &self.pedestrians else {
            return Err(Error::request(&self.name, "is not a set of pedestrians"));
        };
        let whole = ["_train", "_val"].iter().find_map(|ending| name.strip_suffix(ending));
        if !set.scenes.iter().any(|scene| scene == whole.unwrap_or(name)) {
            let problem = format!(
                "has no scene {name}; there are {}, each also with the suffix _train or _val",
                set.scenes.join(", ")
            );
            return Err(Error::request(&self.name, problem));
        }
        let mut scenes = self.read_scenes(&[format!("{name}.txt")], folders)?;
        Ok(scenes.remove(0))
    }

    fn read_scenes(&self, names: &[String], folders: &[PathBuf]) -> Result<Vec<Scene>> {
        let texts = self.find(folders)?.read(names)?;
        let scene = |(name, (label, text)): (&String, (String, Vec<u8>))| {
            // Errors name the file, and the scene has the name of the catalogue.
            let scene = Scene::parse(&label, &text)?;
            Ok(Scene { name: name.trim_end_matches(".txt").to_owned(), ..scene })
        };
        names.iter().zip(texts).map(scene).collect()
    }
}

/// Fails if a label is no class. Labels are used as indices.
fn check_labels(label: &str, set: &ImageSet, images: &Images) -> Result<()> {
    let classes = set.classes.len();
    match images.labels.iter().position(|&class| usize::from(class) >= classes) {
        None => Ok(()),
        Some(index) => {
            let problem = format!(
                "the label of image {index} is {}, but there are {classes} classes",
                images.labels[index]
            );
            Err(Error::format(label, problem, "fetch the labels again"))
        }
    }
}
