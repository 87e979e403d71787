//! Fetches a data set from the web, or out of a package. A file gets its name after it was verified.

use std::ffi::OsString;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use shafer_data::dataset::{DataFile, ImageSet, Set, read_png_batches, walk};
use shafer_data::{AtomicFile, Error};

use super::{curl, package};
use crate::folder_lock::FolderLock;

#[cfg(test)]
mod tests;

/// The result of fetching a set.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) set: String,
    /// The folder of the set.
    pub(crate) place: PathBuf,
    /// The fetched files. Empty if the set was complete.
    pub(crate) files: Vec<Fetched>,
    /// Problems on the way, such as mirrors that failed.
    pub(crate) notes: Vec<String>,
}

/// A fetched file.
#[derive(Debug, Serialize)]
pub(crate) struct Fetched {
    pub(crate) name: String,
    /// The mirror or the command that it came from.
    pub(crate) from: String,
}

/// Fetches a set into the first of `folders`, unless one of them has a valid copy. If `mirror` is given, no
/// other source is used.
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
        bail!("{} needs a manual download: {manual}", set.name);
    }
    if let Ok(found) = set.find(folders)
        && found.verify().iter().all(|check| check.problem.is_none())
    {
        found.place().clone_into(&mut report.place);
        return Ok(report);
    }
    let Some(root) = folders.first() else {
        bail!("no folder to fetch into; name one with --data-dir");
    };
    let folder = root.join(&set.name);
    fs::create_dir_all(&folder)
        .with_context(|| format!("{}: cannot create the folder", folder.display()))?;
    let _lock = FolderLock::new(
        &folder,
        "another process is fetching into it; wait until it has finished",
    )?;
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

/// The files that are still missing, and the results so far.
struct Job<'a> {
    set: &'a Set,
    folder: &'a Path,
    wanted: Vec<Wanted<'a>>,
    report: Report,
}

/// A file to fetch.
enum Wanted<'a> {
    File(&'a DataFile),
    /// The archive with all images of a set of PNG files.
    Png(&'a ImageSet),
}

/// The files that are missing in a folder, or invalid.
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
    /// The path at a mirror.
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

    /// Whether a file with this name can be the wanted one.
    fn is_called(&self, name: &str) -> bool {
        match self {
            Self::File(file) => name.strip_suffix(".gz").unwrap_or(name) == file.name,
            Self::Png(_) => false,
        }
    }
}

impl Job<'_> {
    /// Fetches files from a mirror until one fails.
    fn ask_mirror(&mut self, mirror: &str, quiet: bool) -> Result<()> {
        while let Some(wanted) = self.wanted.first() {
            let Some(remote) = wanted.remote() else {
                return self.ask_mirror_for_archive(mirror, quiet);
            };
            let url = format!("{mirror}{remote}");
            let name = remote.rsplit('/').next().unwrap_or(remote).to_owned();
            let check = |path: &Path| wanted.check(path);
            if let Err(reason) = download(&check, &url, &self.folder.join(&name), quiet)? {
                self.report.notes.push(format!("{url}: {reason}"));
                return Ok(());
            }
            self.wanted.remove(0);
            self.report.files.push(Fetched { name, from: mirror.to_owned() });
        }
        Ok(())
    }

    /// Fetches the archive of all files, takes the missing ones out of it, and removes it.
    fn ask_mirror_for_archive(&mut self, mirror: &str, quiet: bool) -> Result<()> {
        let Some(archive) = self.set.archives.first() else { return Ok(()) };
        let (url, path) = (format!("{mirror}{archive}"), self.folder.join(archive));
        let check = |path: &Path| self.set.check_archive(path);
        if let Err(reason) = download(&check, &url, &path, quiet)? {
            self.report.notes.push(format!("{url}: {reason}"));
            return Ok(());
        }
        self.take(&path, &url)?;
        curl::remove(&path)
    }

    /// Takes the remaining files out of the package that contains them.
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

    /// Takes the wanted files out of a folder or an archive, checks them, and writes them atomically.
    fn take(&mut self, place: &Path, from: &str) -> Result<()> {
        let Self { set, folder, wanted, report } = self;
        let called = |path: &Path| {
            let name = path.file_name()?.to_str()?;
            wanted.iter().position(|wanted| wanted.is_called(name)).map(|i| (i, name.to_owned()))
        };
        let mut done = vec![false; wanted.len()];
        // An error of the disk. Other errors are those of the source.
        let mut failed = None;
        let mut keep = |path: &Path, contents: Vec<u8>| {
            let Some((index, name)) = called(path) else { return Ok(()) };
            // The same file can lie in several folders.
            let Wanted::File(file) = wanted[index] else { return Ok(()) };
            if done[index] || failed.is_some() {
                return Ok(());
            }
            if let Err(error) = file.check_bytes(&name, &contents) {
                report.notes.push(format!("{from}: {error}"));
                return Ok(());
            }
            if let Err(error) = write(&folder.join(&name), &contents) {
                failed = Some(error);
                return Ok(());
            }
            done[index] = true;
            report.files.push(Fetched { name, from: from.to_owned() });
            Ok(())
        };
        let mut taken = walk(place, &|path| called(path).is_some(), &mut keep);
        if let (Ok(()), Some(colour)) = (&taken, &set.colour) {
            let mut keep = |name: &str, contents| keep(Path::new(name), contents);
            taken = read_png_batches(place, colour, &mut keep);
        }
        if let Err(error) = taken {
            report.notes.push(format!("{from}: {error}"));
        }
        let mut done = done.into_iter();
        wanted.retain(|_| !done.next().unwrap_or(false));
        failed.map_or(Ok(()), Err)
    }

    /// The report of the complete set, or the error with the reasons.
    fn finish(mut self, folders: &[PathBuf]) -> Result<Report> {
        if let Some(wanted) = self.wanted.first() {
            let what = match wanted {
                Wanted::File(file) => &file.name,
                Wanted::Png(_) => &self.set.name,
            };
            bail!("cannot fetch {what}: {}", self.report.notes.join("; "));
        }
        // An invalid file that is found first would hide the valid one.
        while let Some(wrong) = wrong_file(self.set, self.folder)? {
            let aside = with_ending(&wrong, ".wrong");
            fs::rename(&wrong, &aside)
                .with_context(|| format!("{}: cannot rename", wrong.display()))?;
            let note =
                format!("renamed {}, which is invalid, to {}", wrong.display(), aside.display());
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

fn write(path: &Path, contents: &[u8]) -> Result<()> {
    let mut output = AtomicFile::create(path)?;
    output.write_all(contents).with_context(|| format!("{}: cannot write", path.display()))?;
    Ok(output.commit()?)
}

/// Fetches one file. The inner error says what is wrong with the source.
fn download(
    check: &dyn Fn(&Path) -> shafer_data::Result<()>,
    url: &str,
    target: &Path,
    quiet: bool,
) -> Result<std::result::Result<(), String>> {
    let part = with_ending(target, ".part");
    let mut resumes = fs::metadata(&part).is_ok_and(|found| found.len() > 0);
    // Complete, if the program was interrupted just before renaming.
    if !resumes || check(&part).is_err() {
        loop {
            if let Err(reason) = curl::download(url, &part, quiet)? {
                return Ok(Err(reason));
            }
            let Err(error) = check(&part) else { break };
            curl::remove(&part)?;
            // The partial file can be of another mirror, which compresses differently.
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
        .with_context(|| format!("{}: cannot rename the download to it", target.display()))?;
    Ok(Ok(()))
}

fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = OsString::from(path);
    name.push(ending);
    PathBuf::from(name)
}
