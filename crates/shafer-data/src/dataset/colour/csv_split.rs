//! CSV files that list images and their labels: columns `filename` and `label`.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use super::images::ColourImages;
use crate::dataset::catalogue::JpegFiles;
use crate::dataset::load::Split;
use crate::dataset::packed;
use crate::dataset::tree::contents;
use crate::npy::cut;
use crate::{Error, Result};

const HINT: &str = "each line must be FILENAME,LABEL";

/// A line of a CSV file: the name of an image, without folders, and its label.
struct Listed {
    name: String,
    label: String,
    line: usize,
}

/// The images of one split, in the order of its CSV file.
pub(crate) struct Listing {
    /// The CSV file, for error messages.
    pub(crate) file: String,
    /// For each image its name, its class and its line in the CSV file.
    pub(crate) images: Vec<(String, u16, usize)>,
    /// The names of all classes, sorted.
    pub(crate) classes: Vec<String>,
}

impl Listing {
    /// Reads a split. `path` gives the path of a file of the catalogue, if it is present.
    ///
    /// The classes are those of all images, so that they are the same for every split.
    pub(crate) fn read<'a>(
        files: &JpegFiles,
        split: Split,
        path: &dyn Fn(&str) -> Option<&'a Path>,
    ) -> Result<Self> {
        let (file, train, val) = match (path(&files.train), path(&files.val), path(&files.all)) {
            (Some(train), Some(val), _) => {
                let file = if split == Split::Val { val } else { train };
                (file.display().to_string(), read(train)?, read(val)?)
            }
            (_, _, Some(all)) => {
                let held_out =
                    |(index, _): &(usize, Listed)| index.is_multiple_of(files.held_out.max(1));
                let (val, train): (Vec<_>, Vec<_>) =
                    read(all)?.into_iter().enumerate().partition(held_out);
                let listed =
                    |part: Vec<(usize, Listed)>| part.into_iter().map(|(_, row)| row).collect();
                (all.display().to_string(), listed(train), listed(val))
            }
            _ => {
                let problem = format!("{} is missing", files.all);
                return Err(Error::request("the list of images", problem));
            }
        };
        let numbers: BTreeMap<&str, usize> =
            train.iter().chain(&val).map(|row| (&row.label[..], 0)).collect();
        let numbers: BTreeMap<&str, usize> = numbers.keys().copied().zip(0..).collect();
        if numbers.len() > usize::from(u16::MAX) {
            let problem = format!("has {} different labels", numbers.len());
            return Err(Error::format(&file, problem, "there can be at most 65535"));
        }
        let rows = if split == Split::Val { &val } else { &train };
        let image = |row: &Listed| (row.name.clone(), numbers[&row.label[..]] as u16, row.line);
        Ok(Self {
            file,
            images: rows.iter().map(image).collect(),
            classes: numbers.keys().map(|&label| label.to_owned()).collect(),
        })
    }

    /// The position of each image, by name. A name listed twice is an error.
    pub(crate) fn positions(&self) -> Result<HashMap<&str, usize>> {
        let mut positions = HashMap::with_capacity(self.images.len());
        for (index, (name, _, line)) in self.images.iter().enumerate() {
            if positions.insert(&name[..], index).is_some() {
                let problem = format!("line {line}: {name} is listed twice");
                return Err(Error::format(&self.file, problem, "remove one of the lines"));
            }
        }
        Ok(positions)
    }

    /// Images of these pixels.
    pub(crate) fn labelled(
        self,
        pixels: Vec<u8>,
        rows: usize,
        columns: usize,
    ) -> Result<ColourImages> {
        let labels = self.images.iter().map(|&(_, class, _)| class).collect();
        let images = ColourImages { pixels, rows, columns, labels, classes: self.classes };
        images.check_classes(&self.file, "list at least one image of each class")?;
        Ok(images)
    }
}

fn read(path: &Path) -> Result<Vec<Listed>> {
    let file = path.display().to_string();
    let bytes = contents(&file, packed::open(path)?)?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(Error::format(&file, "is not UTF-8 text", HINT));
    };
    let mut lines = text.lines().zip(1..).map(|(line, number)| (line.trim(), number));
    if lines.next().map(|(line, _)| line) != Some("filename,label") {
        return Err(Error::format(&file, "does not begin with the line filename,label", HINT));
    }
    let mut rows = Vec::new();
    for (text, line) in lines.filter(|(line, _)| !line.is_empty()) {
        let name = |path: &str| Some(Path::new(path).file_name()?.to_str()?.to_owned());
        let row = match text.split(',').map(str::trim).collect::<Vec<_>>()[..] {
            [path, label] if !label.is_empty() => {
                name(path).map(|name| Listed { name, label: label.to_owned(), line })
            }
            _ => None,
        };
        let Some(row) = row else {
            let problem = format!("line {line}: `{}` is no filename and label", cut(text, 100));
            return Err(Error::format(&file, problem, HINT));
        };
        rows.push(row);
    }
    if rows.is_empty() {
        return Err(Error::format(&file, "lists no image", HINT));
    }
    Ok(rows)
}
