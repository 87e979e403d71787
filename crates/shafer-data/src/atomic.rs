//! Atomic file writes: temporary file, then rename.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, Metadata, TryLockError};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tempfile::TempPath;

use crate::{Error, Result};

/// Large enough that the cost of system calls is negligible.
const BUFFER: usize = 1 << 20;

/// A temporary file in the target's folder that [`commit`](Self::commit) renames to the target.
///
/// Until then an existing target stays unchanged. Dropping it without a commit removes the temporary file. A
/// file that replaces another keeps its owner and permissions. Temporary files of killed programs are
/// removed when the same target is written again.
///
/// This protects against crashes of the program and full disks, but not against power failures: it does not
/// call `fsync`.
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
    /// The temporary path, removed when dropped. Declared after `file`, so that the file is closed first.
    temporary: TempPath,
}

impl AtomicFile {
    /// Creates the temporary file for the target `path`.
    ///
    /// ```
    /// let error = shafer_data::AtomicFile::create("/".as_ref()).unwrap_err();
    /// assert_eq!(error.to_string(), "/: is a folder; name a file in it");
    /// ```
    pub fn create(path: &Path) -> Result<Self> {
        let label = path.display().to_string();
        // Follows symbolic links: the file that a link points to is replaced.
        let target = followed(path).map_err(|e| Error::io(&label, "follow the link", e))?;
        let replaced = fs::metadata(&target).ok();
        if let Some(found) = &replaced {
            if found.is_dir() {
                return Err(Error::request(&label, "is a folder; name a file in it"));
            }
            // Renaming over a device would replace the device.
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
        remove_abandoned(folder(&target), &prefix);
        let (file, temporary) = begin(folder(&target), &prefix, replaced.as_ref())
            .map_err(|e| Error::io(&label, "create a file in its folder", e))?;
        Ok(Self { label, target, file: BufWriter::with_capacity(BUFFER, file), temporary })
    }

    /// Renames the temporary file to the target.
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
        let file = file.into_inner().map_err(|e| Error::io(&label, "write", e.into_error()))?;
        temporary
            .persist(&target)
            .map_err(|e| Error::io(&label, "rename the temporary file to it", e.error))?;
        // Closed after the rename: without its lock, another writer of the same target would remove it.
        drop(file);
        Ok(())
    }

    /// An anonymous file in the same folder, for data that comes later in this file.
    pub(crate) fn spill(&self) -> Result<Spill> {
        let file = tempfile::tempfile_in(folder(&self.target))
            .map_err(|e| Error::io(&self.label, "create a file in its folder", e))?;
        Ok(Spill { file: BufWriter::with_capacity(BUFFER, file) })
    }

    /// Appends a spill file, by a copy in the kernel where possible.
    pub(crate) fn append(&mut self, spill: &mut Spill) -> io::Result<u64> {
        self.flush()?;
        io::copy(spill.rewind()?, self.file.get_mut())
    }

    /// Overwrites bytes at a position, then seeks to the end.
    pub(crate) fn patch(&mut self, position: u64, bytes: &[u8]) -> io::Result<()> {
        self.seek(SeekFrom::Start(position))?;
        self.write_all(bytes)?;
        self.seek(SeekFrom::End(0))?;
        Ok(())
    }

    pub(crate) fn label(&self) -> &str {
        &self.label
    }

    /// The error of a failed write to this file or a spill file.
    pub(crate) fn failed(&self, source: io::Error) -> Error {
        Error::io(&self.label, "write", source)
    }
}

/// The path after following all symbolic links. Its file need not exist.
fn followed(path: &Path) -> io::Result<PathBuf> {
    /// The limit of Linux.
    const MOST_LINKS: usize = 40;
    let mut path = path.to_owned();
    for _ in 0..MOST_LINKS {
        if !fs::symlink_metadata(&path).is_ok_and(|found| found.is_symlink()) {
            return Ok(path);
        }
        path = folder(&path).join(fs::read_link(&path)?);
    }
    Err(io::Error::other("too many links"))
}

/// The random characters at the end of the name of a temporary file.
const RANDOM: usize = 6;

/// Creates a temporary file and locks it until it is closed. Files without a lock are abandoned.
fn begin(
    folder: &Path,
    prefix: &OsStr,
    replaced: Option<&Metadata>,
) -> io::Result<(File, TempPath)> {
    const ATTEMPTS: usize = 16;
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).rand_bytes(RANDOM);
    // A new file follows the umask. A replacement stays private until its owner is set.
    #[cfg(unix)]
    if replaced.is_none() {
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    }
    for _ in 0..ATTEMPTS {
        let (file, temporary) = builder.tempfile_in(folder)?.into_parts();
        // Another process may have removed it before it was locked. Some network file systems have no
        // locks.
        let taken = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
        if taken || !temporary.exists() {
            continue;
        }
        if let Some(replaced) = replaced {
            keep_access(&file, replaced)?;
        }
        return Ok((file, temporary));
    }
    Err(io::Error::other("other programs remove it"))
}

/// Removes abandoned temporary files of this target. Ignores files that cannot be removed.
fn remove_abandoned(folder: &Path, prefix: &OsStr) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let ours = |name: &OsStr| {
        let random = name.as_encoded_bytes().strip_prefix(prefix.as_encoded_bytes());
        random.is_some_and(|r| r.len() == RANDOM && r.iter().all(u8::is_ascii_alphanumeric))
    };
    for entry in entries.flatten().filter(|entry| ours(&entry.file_name())) {
        // Opening a named pipe would block.
        if entry.file_type().is_ok_and(|kind| kind.is_file())
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Copies the owner, the group and the permissions of the replaced file. If the owner or the group cannot be
/// set, permissions are reduced so that nobody gains access.
#[cfg(unix)]
fn keep_access(file: &File, replaced: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

    let created = file.metadata()?;
    if (created.uid(), created.gid()) != (replaced.uid(), replaced.gid())
        && fchown(file, Some(replaced.uid()), Some(replaced.gid())).is_err()
    {
        // Members of a group may set it without being root.
        let _ = fchown(file, None, Some(replaced.gid()));
    }
    let mut mode = replaced.mode() & 0o777;
    if file.metadata()?.gid() != replaced.gid() {
        // The members of the new group had the access of others, and those of the old group have it now.
        let shared = (mode >> 3) & mode & 0o7;
        mode = mode & 0o700 | shared << 3 | shared;
    }
    file.set_permissions(fs::Permissions::from_mode(mode))
}

#[cfg(not(unix))]
#[allow(clippy::unnecessary_wraps, reason = "as on Unix")]
fn keep_access(_: &File, _: &Metadata) -> io::Result<()> {
    Ok(())
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

/// An anonymous temporary file.
#[derive(Debug)]
pub(crate) struct Spill {
    file: BufWriter<File>,
}

impl Spill {
    /// The file, positioned at its start.
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
    fn several_threads_replace_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.json");
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let path = &path;
                scope.spawn(move || {
                    for _ in 0..100 {
                        let mut file = AtomicFile::create(path).unwrap();
                        file.write_all(&[thread; 100]).unwrap();
                        file.commit().unwrap();
                    }
                });
            }
        });
        let bytes = fs::read(&path).unwrap();
        assert_eq!(bytes, [bytes[0]; 100]);
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
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
        // The permissions of a new file follow the umask.
        let plain = folder.path().join("c");
        fs::write(&plain, "").unwrap();
        let mode = |path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&path), mode(&plain));

        // The target of a dangling link is created; links in a circle are refused.
        symlink("absent", folder.path().join("d")).unwrap();
        AtomicFile::create(&folder.path().join("d")).unwrap().commit().unwrap();
        assert!(fs::symlink_metadata(folder.path().join("d")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(folder.path().join("absent")).unwrap().is_file());
        symlink("circle", folder.path().join("circle")).unwrap();
        let error = AtomicFile::create(&folder.path().join("circle")).unwrap_err();
        assert!(error.to_string().ends_with("cannot follow the link: too many links"), "{error}");

        let error = AtomicFile::create(Path::new("/dev/null")).unwrap_err();
        assert_eq!(error.to_string(), "/dev/null: is not a file; name a file");
    }

    #[cfg(unix)]
    #[test]
    fn who_may_read_a_file_stays_the_same() {
        use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};

        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        for mode in [0o600, 0o640, 0o644, 0o666, 0o444] {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            // Only the superuser can give files away.
            let given = chown(&path, Some(1234), Some(5678)).is_ok();
            let before = fs::metadata(&path).unwrap();
            assert_eq!(given, (before.uid(), before.gid()) == (1234, 5678));
            let mut file = AtomicFile::create(&path).unwrap();
            file.write_all(b"new").unwrap();
            file.commit().unwrap();
            let after = fs::metadata(&path).unwrap();
            assert_eq!(after.mode() & 0o777, mode);
            assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
            assert_eq!(fs::read(&path).unwrap(), b"new");
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn abandoned_files_are_removed_and_others_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let others = [".a.npy.tmpAb3", ".a.npy.tmpAb3xY-", ".b.npy.tmpAb3xYz", "a.npy.tmpAb3xYz"];
        for name in others.iter().chain(&[".a.npy.tmpAb3xYz"]) {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let held = AtomicFile::create(&path).unwrap();
        let second = AtomicFile::create(&path).unwrap();
        assert!(held.temporary.exists() && second.temporary.exists());
        drop((held, second));
        let (mut left, mut expected) = (names(folder.path()), others.map(str::to_owned));
        left.sort();
        expected.sort();
        assert_eq!(left, expected);
    }
}
