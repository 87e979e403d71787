//! Files that appear when they are complete.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::{Error, Result};

/// Large enough that a system call costs nothing beside what it writes.
const BUFFER: usize = 1 << 20;

/// A file that is written aside, in the same folder, and takes its name on [`commit`](Self::commit).
/// Until then what was there stays as it is; dropped before, it leaves nothing.
///
/// It protects from failures of the program and from full disks, not of the power: it does not wait
/// until the disk has everything.
///
/// ```
/// use std::io::Write;
/// use shafer_data::AtomicFile;
///
/// # let folder = tempfile::tempdir()?;
/// let path = folder.path().join("result.txt");
/// let mut file = AtomicFile::create(&path)?;
/// file.write_all(b"complete")?;
/// assert!(!path.exists());
/// file.commit()?;
/// assert_eq!(std::fs::read(&path)?, b"complete");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct AtomicFile {
    label: String,
    target: PathBuf,
    file: BufWriter<File>,
    /// What it is called until then; removed when dropped, after the file is closed.
    temporary: TempPath,
}

impl AtomicFile {
    /// Begins a file that will be called `path`.
    ///
    /// ```
    /// let error = shafer_data::AtomicFile::create("/".as_ref()).unwrap_err();
    /// assert_eq!(error.to_string(), "/: is a folder; name a file in it");
    /// ```
    pub fn create(path: &Path) -> Result<Self> {
        let label = path.display().to_string();
        // A link stays a link: what it points to is replaced.
        let target = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        if let Ok(found) = fs::metadata(&target) {
            if found.is_dir() {
                return Err(Error::request(&label, "is a folder; name a file in it"));
            }
            // Renaming over a device would take the device away.
            if !found.is_file() {
                return Err(Error::request(&label, "is not a file; name a file"));
            }
        }
        let Some(name) = target.file_name() else {
            return Err(Error::request(&label, "does not name a file; add a name"));
        };
        let mut prefix = OsString::from(".");
        prefix.push(name);
        prefix.push(".tmp");
        let mut builder = tempfile::Builder::new();
        builder.prefix(&prefix);
        // Temporary files are private; this one is going to be a file like others.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let file = builder
            .tempfile_in(folder(&target))
            .map_err(|e| Error::io(&label, "create a file in its folder", e))?;
        let (file, temporary) = file.into_parts();
        Ok(Self { label, target, file: BufWriter::with_capacity(BUFFER, file), temporary })
    }

    /// Gives the file its name.
    ///
    /// ```
    /// # let folder = tempfile::tempdir()?;
    /// let path = folder.path().join("empty");
    /// shafer_data::AtomicFile::create(&path)?.commit()?;
    /// assert!(path.exists());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn commit(self) -> Result<()> {
        let Self { label, target, file, temporary } = self;
        drop(file.into_inner().map_err(|e| Error::io(&label, "write", e.into_error()))?);
        temporary
            .persist(&target)
            .map_err(|e| Error::io(&label, "give the file its name", e.error))?;
        Ok(())
    }

    /// An unnamed file on the same disk, for what has to come later in this one.
    pub(crate) fn spill(&self) -> Result<Spill> {
        let file = tempfile::tempfile_in(folder(&self.target))
            .map_err(|e| Error::io(&self.label, "create a file in its folder", e))?;
        Ok(Spill { file: BufWriter::with_capacity(BUFFER, file) })
    }

    /// Everything that was spilled. The kernel copies it, where it can.
    pub(crate) fn append(&mut self, spill: &mut Spill) -> io::Result<u64> {
        self.flush()?;
        io::copy(spill.rewind()?, self.file.get_mut())
    }

    /// Writes at the beginning of the file or elsewhere before its end, and returns to the end.
    pub(crate) fn patch(&mut self, position: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(position))?;
        self.write_all(bytes)?;
        self.seek(SeekFrom::End(0))?;
        Ok(())
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The error of a failed write to this file or to what was spilled.
    pub(crate) fn failed(&self, source: io::Error) -> Error {
        Error::io(&self.label, "write", source)
    }
}

fn folder(target: &Path) -> &Path {
    match target.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

impl Write for AtomicFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for AtomicFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.file.seek(position)
    }
}

/// Bytes that wait on the disk.
#[derive(Debug)]
pub(crate) struct Spill {
    file: BufWriter<File>,
}

impl Spill {
    /// The file, from its beginning.
    pub(crate) fn rewind(&mut self) -> io::Result<&mut File> {
        self.file.flush()?;
        let file = self.file.get_mut();
        file.seek(SeekFrom::Start(0))?;
        Ok(file)
    }
}

impl Write for Spill {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    #[test]
    fn dropped_before_it_is_complete() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        fs::write(&path, "old").unwrap();
        let mut file = AtomicFile::create(&path).unwrap();
        file.write_all(&vec![0; 3 << 20]).unwrap();
        assert!(names(folder.path()).iter().any(|name| name.starts_with(".a.npy.tmp")));
        drop(file);
        assert_eq!(names(folder.path()), ["a.npy"]);
        assert_eq!(fs::read(&path).unwrap(), b"old");
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_devices_are_refused() {
        use std::os::unix::fs::{PermissionsExt, symlink};

        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("a"), folder.path().join("b"));
        fs::write(&path, "old").unwrap();
        symlink(&path, &link).unwrap();
        let mut file = AtomicFile::create(&link).unwrap();
        file.write_all(b"new").unwrap();
        file.commit().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read(&path).unwrap(), b"new");
        // Readable as every new file is.
        let plain = folder.path().join("c");
        fs::write(&plain, "").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));

        let error = AtomicFile::create(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "/dev/null: is not a file; name a file");
    }
}
