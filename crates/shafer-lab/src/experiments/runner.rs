//! Runs the stages of an experiment: independent jobs side by side, each resumed where an earlier run stopped.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use rayon::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use shafer_nets::Device;

use super::folder::{Folder, config_of, job_file, read, read_if_there};
use super::origin::{self, Origin};
use crate::interrupt::{self, Interrupted};
use crate::progress::Progress;

/// A running job saves its state this often: a run that is killed loses at most this much work.
const SAVE_INTERVAL: Duration = Duration::from_secs(5);

const RECORD: &str = "json";
const STATE: &str = "safetensors";
const PART: &str = "part.json";
const WEIGHTS: &str = "weights.safetensors";

const RESUMES: &str = "the same command resumes from here";

/// One of the independent jobs of a stage.
///
/// The record of a finished job stays in the folder of the run; a resumed run reads it instead of repeating the
/// job. A job that takes longer than a few seconds saves its state now and then ([`Handle::save`]).
pub(crate) trait Job: Sync {
    /// The result of the job. A later stage and the results of the experiment are computed from it.
    type Record: Serialize + DeserializeOwned + Send;

    /// The keys of the configuration that the job's weights depend on; empty if it trains no network.
    const WEIGHTS_DEPEND_ON: &'static [&'static str] = &[];

    /// The name of its files, unique in the run.
    fn name(&self) -> String;

    /// The units of progress of the whole job.
    fn size(&self) -> u64;

    /// Runs the job, or resumes it from [`Handle::saved`].
    fn run(&self, handle: &Handle<'_>) -> Result<Self::Record>;

    /// Whether the record and the weights of the same job in another run can replace the training.
    fn check_weights(&self, _: &mut Self::Record, _weights: Option<&[u8]>) -> Result<()> {
        Ok(())
    }
}

/// A job of a single step, such as a part of an evaluation.
pub(crate) struct Task<F> {
    pub(crate) name: String,
    pub(crate) size: u64,
    pub(crate) run: F,
}

impl<R, F> Job for Task<F>
where
    R: Serialize + DeserializeOwned + Send,
    F: Fn(&Handle<'_>) -> Result<R> + Sync,
{
    type Record = R;

    fn name(&self) -> String {
        self.name.clone()
    }

    fn size(&self) -> u64 {
        self.size
    }

    fn run(&self, handle: &Handle<'_>) -> Result<R> {
        (self.run)(handle)
    }
}

/// What a running job may use: the progress bar, and files of its name in the folder of the run.
pub(crate) struct Handle<'a> {
    folder: &'a Folder,
    name: &'a str,
    device: &'a Device,
    bar: &'a (dyn Fn(u64) + Sync),
    /// The units of progress so far.
    done: AtomicU64,
    start: Instant,
    saved: Mutex<Instant>,
}

impl Handle<'_> {
    /// The wall-clock time of the job in this process.
    pub(crate) fn seconds(&self) -> f64 {
        self.start.elapsed().as_secs_f64()
    }

    /// Where networks are trained.
    pub(crate) fn device(&self) -> &Device {
        self.device
    }

    /// Advances the progress bar.
    pub(crate) fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
        (self.bar)(units);
    }

    /// What an earlier process saved last. The record may be ahead of the state, as it is written first.
    pub(crate) fn saved<R: DeserializeOwned>(&self) -> Result<Option<(R, Vec<u8>)>> {
        let record = self.folder.read(job_file(self.name, PART))?;
        Ok(record.zip(self.folder.read_bytes(job_file(self.name, STATE))?))
    }

    /// Saves the record so far and the state of the job, if the last save is long ago; fails after a save if
    /// the run was interrupted.
    pub(crate) fn save<R: Serialize>(
        &self,
        record: &R,
        state: impl FnOnce() -> Result<Vec<u8>>,
    ) -> Result<()> {
        let stopped = interrupt::check().is_err();
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        if stopped || saved.elapsed() > SAVE_INTERVAL {
            self.folder.write(job_file(self.name, PART), record)?;
            self.folder.write_bytes(job_file(self.name, STATE), &state()?)?;
            *saved = Instant::now();
        }
        if stopped { Err(Interrupted(RESUMES).into()) } else { Ok(()) }
    }

    /// What to do if the saved state cannot be used.
    pub(crate) fn start_again(&self) -> String {
        let state = self.folder.path().join(job_file(self.name, STATE));
        format!("{}: remove it to start this job again", state.display())
    }

    /// Writes the trained weights, for later stages and for users.
    pub(crate) fn write_weights(&self, bytes: &[u8]) -> Result<()> {
        self.folder.write_bytes(job_file(self.name, WEIGHTS), bytes)
    }
}

/// A run of an experiment, in a folder.
pub(crate) struct Run<'a> {
    path: &'a Path,
    /// Everything that the numbers of the run depend on.
    config: Value,
    /// The folder of another run whose trained networks are used.
    weights: Option<&'a Path>,
    device: &'a Device,
    quiet: bool,
    start: Instant,
    /// Opened by the first stage: a run that cannot start leaves no folder behind.
    folder: OnceLock<Folder>,
}

impl<'a> Run<'a> {
    pub(crate) fn new(
        path: &'a Path,
        config: Value,
        weights: Option<&'a Path>,
        device: &'a Device,
        quiet: bool,
    ) -> Self {
        let (start, folder) = (Instant::now(), OnceLock::new());
        Self { path, config, weights, device, quiet, start, folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.path
    }

    fn folder(&self) -> Result<&Folder> {
        if let Some(folder) = self.folder.get() {
            return Ok(folder);
        }
        let folder = Folder::open(self.path, self.config.clone())?;
        Ok(self.folder.get_or_init(|| folder))
    }

    /// Runs a stage whose jobs use one thread each, as many at once as there are cores. Returns when all are
    /// done; the records have the order of the jobs.
    pub(crate) fn parallel<J: Job>(
        &self,
        name: &str,
        unit: &str,
        jobs: &[J],
    ) -> Result<Vec<J::Record>> {
        self.stage(name, unit, jobs, |run| {
            // A bridge starts jobs in their order: what matters most comes first.
            let records = jobs.iter().enumerate().par_bridge();
            let mut records = records
                .map(|(place, job)| Ok((place, run(job)?)))
                .collect::<Result<Vec<(usize, J::Record)>>>()?;
            records.sort_by_key(|&(place, _)| place);
            Ok(records.into_iter().map(|(_, record)| record).collect())
        })
    }

    /// Runs a stage whose jobs use all cores, one after the other.
    pub(crate) fn sequential<J: Job>(
        &self,
        name: &str,
        unit: &str,
        jobs: &[J],
    ) -> Result<Vec<J::Record>> {
        self.stage(name, unit, jobs, |run| jobs.iter().map(run).collect())
    }

    fn stage<J: Job>(
        &self,
        name: &str,
        unit: &str,
        jobs: &[J],
        schedule: impl FnOnce(&(dyn Fn(&J) -> Result<J::Record> + Sync)) -> Result<Vec<J::Record>>,
    ) -> Result<Vec<J::Record>> {
        let imported = self.weights.map(|from| self.import(from, jobs)).transpose()?;
        let (folder, start, device) = (self.folder()?, self.start, self.device);
        for file in imported.into_iter().flatten() {
            folder.write_bytes(file.name, &file.bytes)?;
        }
        // From here on, Ctrl-C waits until the running jobs have saved their state.
        interrupt::hold();
        let size = jobs.iter().map(Job::size).sum();
        let progress = Mutex::new(Progress::counted(name, unit, size, self.quiet));
        let advance = |units: u64| {
            if let Ok(mut progress) = progress.lock() {
                progress.add(units as usize);
            }
        };
        schedule(&|job| {
            let record = run(job, folder, device, &advance).with_context(|| job.name())?;
            folder.set_seconds(start.elapsed().as_secs_f64())?;
            Ok(record)
        })
    }

    /// The files of finished trainings of another run, for those jobs that this run has not finished itself.
    fn import<J: Job>(&self, from: &Path, jobs: &[J]) -> Result<Vec<Imported>> {
        if J::WEIGHTS_DEPEND_ON.is_empty() {
            return Ok(Vec::new());
        }
        let theirs = config_of(from)?;
        for key in J::WEIGHTS_DEPEND_ON.iter().chain(&[origin::OWN_DATA]) {
            if theirs[key] != self.config[key] {
                bail!(
                    "--weights {}: that run was trained with {key} = {}, but this one has {}; name a run \
                     with the same {key}, or train without --weights",
                    from.display(),
                    theirs[key],
                    self.config[key]
                );
            }
        }
        let mut files = Vec::new();
        for job in jobs {
            let name = job.name();
            if self.path.join(job_file(&name, RECORD)).exists() {
                continue;
            }
            let file = |ending| from.join(job_file(&name, ending));
            let bytes = read(&file(RECORD))?;
            let mut record = serde_json::from_slice(&bytes).with_context(|| {
                format!("{}: is not the record of a job", file(RECORD).display())
            })?;
            let weights = read_if_there(&file(WEIGHTS))?;
            job.check_weights(&mut record, weights.as_deref())
                .with_context(|| file(WEIGHTS).display().to_string())?;
            // The record comes last: with it, the job is done.
            let weights = weights.map(|bytes| Imported { name: job_file(&name, WEIGHTS), bytes });
            files.extend(weights);
            files.push(Imported { name: job_file(&name, RECORD), bytes });
        }
        Ok(files)
    }

    /// The weights that a finished job left. They are read from the file even by the run that trained them:
    /// the file is rounded, and a resumed run must compute with the same numbers.
    pub(crate) fn weights<T, E>(
        &self,
        job: &str,
        parse: impl FnOnce(&[u8]) -> Result<T, E>,
    ) -> Result<T>
    where
        anyhow::Error: From<E>,
    {
        let (folder, file) = (self.folder()?, job_file(job, WEIGHTS));
        let weights = folder.read_bytes(&file).and_then(|bytes| bytes.context("does not exist"));
        weights.and_then(|bytes| Ok(parse(&bytes)?)).with_context(|| {
            let record = folder.path().join(job_file(job, RECORD));
            let path = folder.path().join(&file);
            format!("{}: remove it and {} to train again", path.display(), record.display())
        })
    }

    /// How the results of this run were made.
    pub(crate) fn origin(&self) -> Result<Origin> {
        let wall_seconds = self.folder()?.seconds_before() + self.start.elapsed().as_secs_f64();
        Ok(Origin { config: self.config.clone(), wall_seconds, ..Origin::here() })
    }
}

struct Imported {
    name: PathBuf,
    bytes: Vec<u8>,
}

/// Runs a job, unless an earlier process finished it.
fn run<J: Job>(
    job: &J,
    folder: &Folder,
    device: &Device,
    bar: &(dyn Fn(u64) + Sync),
) -> Result<J::Record> {
    let name = &job.name();
    let file = job_file(name, RECORD);
    if let Some(record) = folder.read(&file)? {
        bar(job.size());
        return Ok(record);
    }
    let handle = &Handle {
        folder,
        name,
        device,
        bar,
        done: AtomicU64::new(0),
        start: Instant::now(),
        saved: Mutex::new(Instant::now()),
    };
    let record = job.run(handle).map_err(|error| {
        // Whatever noticed Ctrl-C, what has been done is kept.
        if error.is::<Interrupted>() { Interrupted(RESUMES).into() } else { error }
    })?;
    folder.write(&file, &record)?;
    folder.remove(&[STATE, PART].map(|ending| job_file(name, ending)))?;
    // A training that diverged has batches left.
    bar(job.size().saturating_sub(handle.done.load(Ordering::Relaxed)));
    Ok(record)
}
