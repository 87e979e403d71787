//! The folder of a run: a job that is done stays done.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::atomic;
use crate::folder_lock::FolderLock;

const RUN: &str = "run.json";
const JOBS: &str = "trainings";

/// A folder that one process at a time works in.
pub(crate) struct Folder {
    path: PathBuf,
    config: Value,
    /// Held for the lifetime of the folder.
    _lock: FolderLock,
    seconds_before: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RunFile {
    config: Value,
    wall_seconds: f64,
}

/// The name of a job's file, relative to the folder of its run.
pub(crate) fn job_file(job: &str, ending: &str) -> PathBuf {
    Path::new(JOBS).join(format!("{job}.{ending}"))
}

/// Reads a file that must exist.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    read_if_there(path)?.with_context(|| format!("{}: does not exist", path.display()))
}

pub(crate) fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{}: cannot read", path.display())),
    }
}

/// The configuration of the run in another folder.
pub(crate) fn config_of(path: &Path) -> Result<Value> {
    let file = path.join(RUN);
    let run = || -> Result<RunFile> { Ok(serde_json::from_slice(&read(&file)?)?) };
    Ok(run().with_context(|| format!("{}: is not the folder of a run", path.display()))?.config)
}

impl Folder {
    /// Opens the folder of a run with this configuration, or creates it.
    pub(crate) fn open(path: &Path, config: Value) -> Result<Self> {
        let jobs = path.join(JOBS);
        fs::create_dir_all(&jobs)
            .with_context(|| format!("{}: cannot create the folder", jobs.display()))?;
        let taken = "another process runs in this folder; wait for it, or name another --out";
        let lock = FolderLock::new(path, taken)?;
        let mut folder = Self { path: path.to_owned(), config, _lock: lock, seconds_before: 0.0 };
        match folder.read::<RunFile>(RUN)? {
            Some(run) if run.config == folder.config => folder.seconds_before = run.wall_seconds,
            Some(_) => bail!(
                "{}: holds a run with another configuration (see {RUN} there); name another --out, or \
                 remove the folder",
                path.display()
            ),
            None => folder.set_seconds(0.0)?,
        }
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The wall-clock time of earlier processes that worked on this run.
    pub(crate) fn seconds_before(&self) -> f64 {
        self.seconds_before
    }

    /// Records the wall-clock time of this process.
    pub(crate) fn set_seconds(&self, seconds: f64) -> Result<()> {
        let wall_seconds = self.seconds_before + seconds;
        self.write(RUN, &RunFile { config: self.config.clone(), wall_seconds })
    }

    /// Reads a JSON file, if it exists.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: impl AsRef<Path>) -> Result<Option<T>> {
        let Some(bytes) = self.read_bytes(&name)? else { return Ok(None) };
        let value = serde_json::from_slice(&bytes).with_context(|| {
            let path = self.path.join(&name);
            format!(
                "{}: is damaged or of another version; remove it to compute it again",
                path.display()
            )
        })?;
        Ok(Some(value))
    }

    /// Reads a file, if it exists.
    pub(crate) fn read_bytes(&self, name: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        read_if_there(&self.path.join(name))
    }

    /// Writes a JSON file atomically.
    pub(crate) fn write(&self, name: impl AsRef<Path>, value: &impl Serialize) -> Result<()> {
        self.write_bytes(name, &serde_json::to_vec(value)?)
    }

    /// Writes a file atomically (temporary file, rename).
    pub(crate) fn write_bytes(&self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
        atomic::write(&self.path.join(name), bytes)
    }

    /// Removes those of these files that exist.
    pub(crate) fn remove(&self, names: &[PathBuf]) -> Result<()> {
        for name in names {
            let path = self.path.join(name);
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(error)
                        .with_context(|| format!("{}: cannot remove", path.display()));
                }
                _ => {}
            }
        }
        Ok(())
    }
}
