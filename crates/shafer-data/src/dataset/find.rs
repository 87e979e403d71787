//! Finds the files of a data set.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::catalogue::{DataFile, Set};
use super::colour::find_jpegs;
use super::packed;
use super::tree::{contents, files, walk};
use crate::{Error, Result};

/// A data set whose files were found. [`verify`](Self::verify) checks their contents.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    pub(crate) set: Set,
    /// The folder or the archive with the files.
    pub(crate) place: PathBuf,
    pub(crate) form: Form,
}

/// How a data set is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// As files, in the order of the catalogue.
    Files(Vec<PathBuf>),
    /// As a tar archive of its files.
    Archive,
    /// As a folder of PNG files, or a tar archive of one.
    Png,
    /// As JPEG files or archives of them in a folder, and CSV files that list them.
    Jpeg,
}

impl Set {
    /// Searches the subfolder with the set's name in each of `folders`, and then the folders of system
    /// packages. The files can be in nested folders and compressed.
    ///
    /// ```
    /// let error = shafer_data::dataset::set("mnist")?.find(&["none".into()]).unwrap_err();
    /// assert_eq!(
    ///     error.to_string(),
    ///     "mnist: not found in none/mnist; run `shafer data fetch mnist`"
    /// );
    /// # Ok::<(), shafer_data::Error>(())
    /// ```
    pub fn find(&self, folders: &[PathBuf]) -> Result<Found> {
        let places: Vec<PathBuf> = folders
            .iter()
            .map(|folder| folder.join(&self.name))
            .chain(self.system.iter().cloned())
            .collect();
        let mut lacking = None;
        for place in &places {
            if !place.is_dir() {
                continue;
            }
            match self.find_in(place)? {
                Ok(found) => return Ok(found),
                Err(missing) => lacking = lacking.or(missing.map(|missing| (place, missing))),
            }
        }
        let remedy = match &self.manual {
            None => format!("run `shafer data fetch {}`", self.name),
            Some(manual) => format!("it needs a manual download: {manual}"),
        };
        let problem = if let Some((place, missing)) = lacking {
            format!("is incomplete: {missing} is not in {}; {remedy}", place.display())
        } else {
            let places: Vec<_> = places.iter().map(|place| place.display().to_string()).collect();
            format!("not found in {}; {remedy}", places.join(" or "))
        };
        Err(Error::request(&self.name, problem))
    }

    /// Searches one folder. If only some files are present, the error is the name of the first missing one.
    fn find_in(&self, place: &Path) -> Result<std::result::Result<Found, Option<String>>> {
        let found = |place: PathBuf, form| Ok(Ok(Found { set: self.clone(), place, form }));
        let paths = self.paths(place)?;
        if find_jpegs(self, place, &paths)? {
            return found(place.to_owned(), Form::Jpeg);
        }
        let complete: Option<Vec<PathBuf>> = paths.iter().cloned().collect();
        if let Some(paths) = complete {
            return found(place.to_owned(), Form::Files(paths));
        }
        for archive in self.archives.iter().map(|name| place.join(name)) {
            if archive.is_file() {
                return found(archive, Form::Archive);
            }
        }
        if let Some(png) = self.images.as_ref().and_then(|images| images.png.as_ref()) {
            for place in [place.join(&png.archive), place.join(&png.folder)] {
                if place.exists() {
                    return found(place, Form::Png);
                }
            }
        }
        let some = paths.iter().any(Option::is_some);
        let missing = self.files.iter().zip(paths).find(|(_, path)| path.is_none());
        Ok(Err(missing.filter(|_| some).map(|(file, _)| file.name.clone())))
    }

    /// The path of each of the set's files in a folder and its subfolders, or `None` if it is missing.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let place = folder.path();
    /// std::fs::write(place.join("train-labels-idx1-ubyte.gz"), "")?;
    /// let paths = shafer_data::dataset::set("mnist")?.paths(place)?;
    /// assert_eq!(paths, [None, Some(place.join("train-labels-idx1-ubyte.gz")), None, None]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn paths(&self, place: &Path) -> Result<Vec<Option<PathBuf>>> {
        let mut by_name = HashMap::new();
        for path in files(place)? {
            if let Some(name) = path.file_name().and_then(|name| name.to_str()) {
                by_name.entry(name.to_owned()).or_insert(path);
            }
        }
        let path = |file: &DataFile| {
            let compressed = format!("{}.gz", file.name);
            by_name.get(&file.name).or_else(|| by_name.get(&compressed)).cloned()
        };
        Ok(self.files.iter().map(path).collect())
    }
}

impl Found {
    /// The folder or the archive with the files.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// # let root = folder.path().to_owned();
    /// std::fs::create_dir(root.join("ethucy"))?;
    /// std::fs::write(root.join("ethucy/ethucy_raw.tar.xz"), "")?;
    /// let found = shafer_data::dataset::set("ethucy")?.find(&[root.clone()])?;
    /// assert_eq!(found.place(), root.join("ethucy/ethucy_raw.tar.xz"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn place(&self) -> &Path {
        &self.place
    }

    /// The path of a file of the catalogue.
    pub(crate) fn path(&self, name: &str) -> Option<&Path> {
        let Form::Files(paths) = &self.form else { return None };
        let index = self.set.files.iter().position(|file| file.name == name)?;
        paths.get(index).map(PathBuf::as_path)
    }

    /// The uncompressed contents of files, each with its label for error messages.
    pub(crate) fn read(&self, names: &[String]) -> Result<Vec<(String, Vec<u8>)>> {
        let mut members =
            if self.form == Form::Archive { self.members(names)? } else { HashMap::new() };
        let read = |name: &String| {
            if let Some(path) = self.path(name) {
                let label = path.display().to_string();
                return contents(&label, packed::open(path)?).map(|contents| (label, contents));
            }
            let contents = members.remove(name).ok_or_else(|| self.lacks(name))?;
            Ok((format!("{}: {name}", self.place.display()), contents))
        };
        names.iter().map(read).collect()
    }

    pub(crate) fn lacks(&self, name: &str) -> Error {
        let place = self.place.display().to_string();
        Error::format(&place, format!("has no file {name}"), "fetch it again")
    }

    /// The contents of files in the archive, by name. If several have the same name, the first is read.
    pub(crate) fn members(&self, names: &[String]) -> Result<HashMap<String, Vec<u8>>> {
        let name = |path: &Path| -> Option<String> {
            let name = path.file_name()?.to_str()?;
            names.iter().find(|wanted| *wanted == name).cloned()
        };
        let mut members = HashMap::new();
        walk(&self.place, &|path| name(path).is_some(), &mut |path, contents| {
            if let Some(name) = name(path) {
                members.entry(name).or_insert(contents);
            }
            Ok(())
        })?;
        Ok(members)
    }
}
