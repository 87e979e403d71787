//! One program at a time in a folder.

use std::fs::{File, TryLockError};
use std::path::Path;

use anyhow::{Context as _, Result, bail};

/// Until it is dropped, nobody else gets the lock of the same folder. It goes with the process that holds
/// it, however that ends.
#[derive(Debug)]
pub(crate) struct FolderLock(File);

impl FolderLock {
    /// Takes the lock, or says `taken`.
    pub(crate) fn new(folder: &Path, taken: &str) -> Result<Self> {
        let path = folder.join(".lock");
        let file =
            File::create(&path).with_context(|| format!("{}: cannot write", path.display()))?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => bail!("{}: {taken}", folder.display()),
            // Some network disks have no locks.
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Self(file)),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Closing the file is not enough: a program that another thread is about to start has it open
        // for a moment, too.
        let _ = self.0.unlock();
    }
}
