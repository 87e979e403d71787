//! An advisory lock on a folder, for one process at a time.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Holds the lock until it is dropped or the process ends.
#[derive(Debug)]
pub(crate) struct FolderLock(File);

impl FolderLock {
    /// Takes the lock, or fails with the message `taken`.
    pub(crate) fn new(folder: &Path, taken: &str) -> Result<Self> {
        let path = folder.join(".lock");
        let file =
            File::create(&path).with_context(|| format!("{}: cannot write", path.display()))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => bail!("{}: {taken}", folder.display()),
            // Some network file systems have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self(file)),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file is not enough: between fork and exec, a child process that another thread starts
        // holds the file open, too.
        let _ = self.0.unlock();
    }
}
