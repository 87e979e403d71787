//! The folder of a run: what is done stays done.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use shafer_data::AtomicFile;

use crate::folder_lock::FolderLock;

const RUN: &str = "run.json";
const TRAININGS: &str = "trainings";

/// The state of a training is written when the last one is so old: a killed run loses no more than that.
pub(crate) const SECONDS_BETWEEN_STATES: f64 = 5.0;

/// A folder that one program at a time works in.
pub(crate) struct Folder {
    path: PathBuf,
    /// What the run's numbers depend on.
    config: Value,
    /// Locked for as long as this lives.
    _lock: FolderLock,
    /// Spent by runs that were interrupted.
    pub(crate) seconds_before: f64,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    config: Value,
    wall_seconds: f64,
}

/// The name, in its folder, of what belongs to a training.
pub(crate) fn training_file(training: &str, ending: &str) -> PathBuf {
    Path::new(TRAININGS).join(format!("{training}.{ending}"))
}

/// A file that must be there.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    read_if_there(path)?.with_context(|| format!("{}: is not there", path.display()))
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("{}: cannot read", path.display())),
    }
}

impl Folder {
    /// Opens the folder of a run, or begins one.
    pub(crate) fn open(path: &Path, config: &impl Serialize) -> Result<Self> {
        let trainings = path.join(TRAININGS);
        fs::create_dir_all(&trainings)
            .with_context(|| format!("{}: cannot make the folder", trainings.display()))?;
        let taken = "another run is at work here; wait for it, or name another --out";
        let lock = FolderLock::new(path, taken)?;
        let config = serde_json::to_value(config)?;
        let mut folder = Self { path: path.to_owned(), config, _lock: lock, seconds_before: 0.0 };
        match folder.read::<Run>(RUN)? {
            Some(run) if run.config == folder.config => folder.seconds_before = run.wall_seconds,
            Some(_) => bail!(
                "{}: holds a run with another configuration (see {RUN} there); name another --out, or \
                 remove the folder",
                path.display()
            ),
            None => folder.spent(0.0)?,
        }
        Ok(folder)
    }

    /// What the numbers of a run in another folder depend on.
    pub(crate) fn config_of(path: &Path) -> Result<Value> {
        let file = path.join(RUN);
        let run = || -> Result<Run> { Ok(serde_json::from_slice(&read(&file)?)?) };
        Ok(run().with_context(|| format!("{}: is not the folder of a run", path.display()))?.config)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Notes how long the run has taken since it was begun or taken up again.
    pub(crate) fn spent(&self, seconds: f64) -> Result<()> {
        let wall_seconds = self.seconds_before + seconds;
        self.write(RUN, &Run { config: self.config.clone(), wall_seconds })
    }

    /// A JSON file, if it is there.
    pub(crate) fn read<T: DeserializeOwned>(&self, name: impl AsRef<Path>) -> Result<Option<T>> {
        let Some(bytes) = self.read_bytes(&name)? else { return Ok(None) };
        let value = serde_json::from_slice(&bytes).with_context(|| {
            let path = self.path.join(&name);
            format!("{}: is not what a run writes; remove it to have it made again", path.display())
        })?;
        Ok(Some(value))
    }

    /// A file, if it is there.
    pub(crate) fn read_bytes(&self, name: impl AsRef<Path>) -> Result<Option<Vec<u8>>> {
        read_if_there(&self.path.join(name))
    }

    /// Writes a JSON file, aside first.
    pub(crate) fn write(&self, name: impl AsRef<Path>, value: &impl Serialize) -> Result<()> {
        self.write_bytes(name, &serde_json::to_vec(value)?)
    }

    /// Writes a file, aside first.
    pub(crate) fn write_bytes(&self, name: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
        let path = self.path.join(name);
        let mut file = AtomicFile::create(&path)?;
        file.write_all(bytes).with_context(|| format!("{}: cannot write", path.display()))?;
        Ok(file.commit()?)
    }

    /// Removes files that are of no more use, if they are there.
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
