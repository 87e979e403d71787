//! `shafer sparsify` of tables: part to part, in parallel, with all other columns.

mod find;
mod part;

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use rayon::iter::{
    IndexedParallelIterator as _, IntoParallelRefIterator as _, ParallelIterator as _,
};
use serde::Serialize;
use shafer::{Method, Threads};
use shafer_data::{Location, Table};

pub(crate) use self::find::{Part, is_folder, parts};
use self::part::{Counts, Failure, Plan};
use crate::interrupt::{self, Interrupted};
use crate::progress::Progress;
use crate::words::counted;

/// What to do with each part.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) temperature: f64,
    /// The column of lists of logits; `None` for the only one.
    pub(crate) column: Option<String>,
    /// The other columns to keep; `None` for all.
    pub(crate) keep: Option<Vec<String>>,
    /// With zeros, in lists of the type of the logits.
    pub(crate) dense: bool,
    /// Replace outputs that were not written by this command with the same settings.
    pub(crate) force: bool,
}

/// The summary of all parts.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    method: &'static str,
    column: String,
    parts: usize,
    /// Parts that an earlier run had finished. Their rows are not counted.
    finished_before: usize,
    #[serde(flatten)]
    counts: Counts,
    /// `None` without rows.
    kept_mean: Option<f64>,
    reduction_percent: Option<f64>,
    seconds: f64,
}

/// How the work on a part ended.
enum Outcome {
    Done(Counts),
    /// Its output was there.
    Before,
    Failed(anyhow::Error),
    /// Another part had failed in a way that concerns all.
    NotBegun,
}

/// Transforms all parts. A part that cannot be read does not keep the others from being done.
pub(crate) fn sparsify(parts: &[Part], request: &Request, quiet: bool) -> Result<Report> {
    let start = Instant::now();
    let Look { plan, rows, finished } = look(parts, request)?;
    let progress = Mutex::new(Progress::new(Some(rows), quiet));
    interrupt::hold();
    let stop = AtomicBool::new(false);
    // Several parts have a thread each; a single one has all.
    let threads =
        if parts.len() < rayon::current_num_threads() { Threads::All } else { Threads::One };
    let work = |(part, &finished): (&Part, &bool)| {
        if finished {
            return Outcome::Before;
        }
        if stop.load(Relaxed) {
            return Outcome::NotBegun;
        }
        let advance = |rows| -> Result<()> {
            if let Ok(mut progress) = progress.lock() {
                progress.add(rows);
            }
            Ok(interrupt::check()?)
        };
        match plan.run(part, threads, &advance) {
            Ok(counts) => Outcome::Done(counts),
            Err(Failure::Input(error)) => Outcome::Failed(error),
            Err(Failure::All(error)) => {
                stop.store(true, Relaxed);
                Outcome::Failed(error)
            }
        }
    };
    // Each part is taken when a thread is free.
    let outcomes: Vec<Outcome> =
        parts.par_iter().zip(&finished).with_max_len(1).map(work).collect();
    drop(progress);
    let mut report = Report {
        method: request.method.name(),
        column: plan.column.clone(),
        parts: parts.len(),
        finished_before: 0,
        counts: Counts::default(),
        kept_mean: None,
        reduction_percent: None,
        seconds: start.elapsed().as_secs_f64(),
    };
    let (mut failed, mut missing) = (Vec::new(), 0);
    for outcome in outcomes {
        match outcome {
            Outcome::Done(counts) => report.counts.add(&counts),
            Outcome::Before => report.finished_before += 1,
            Outcome::Failed(error) => {
                missing += 1;
                failed.push(error);
            }
            Outcome::NotBegun => missing += 1,
        }
    }
    let done = parts.len() - missing;
    if failed.iter().any(anyhow::Error::is::<Interrupted>) {
        let state = "finished parts stay, and the same command does the others";
        return Err(Interrupted(state).into());
    }
    if !failed.is_empty() {
        return Err(unfinished(failed, done, parts.len()));
    }
    let Counts { rows, null_rows, classes, kept, .. } = report.counts;
    if rows > null_rows {
        report.kept_mean = Some(kept as f64 / (rows - null_rows) as f64);
        report.reduction_percent = Some(100.0 * (1.0 - kept as f64 / classes as f64));
    }
    Ok(report)
}

/// The errors of some parts in one line, with what they mean for the others.
fn unfinished(mut failed: Vec<anyhow::Error>, done: usize, parts: usize) -> anyhow::Error {
    const LISTED: usize = 3;
    if parts == 1 {
        return failed.swap_remove(0);
    }
    let listed: Vec<String> =
        failed.iter().take(LISTED).map(|error| format!("{error:#}")).collect();
    let more = match failed.len().saturating_sub(LISTED) {
        0 => String::new(),
        n => format!(" | and {n} more"),
    };
    let parts = counted(parts, "part");
    anyhow::anyhow!(
        "{}{more} | {done} of {parts} are done, and the same command does the others",
        listed.join(" | ")
    )
}

/// The state of the output before the run.
struct Look {
    plan: Plan,
    /// The rows that are to be done.
    rows: usize,
    /// Whether each part is done.
    finished: Vec<bool>,
}

/// Opens all parts. Those that can be read must have the same columns.
fn look(parts: &[Part], request: &Request) -> Result<Look> {
    let (mut plan, mut unreadable) = (None::<Plan>, None);
    let (mut rows, mut finished) = (0_usize, vec![false; parts.len()]);
    for (part, finished) in parts.iter().zip(&mut finished) {
        interrupt::check()?;
        let table = match Table::open(&part.input) {
            Ok(table) => table,
            // Named again when it is its turn.
            Err(error) => {
                unreadable.get_or_insert(error);
                continue;
            }
        };
        let plan = match &plan {
            Some(plan) => {
                plan.positions(&part.input, &table)?;
                plan
            }
            None => plan.insert(Plan::new(&part.input, &table, request)?),
        };
        *finished = plan.is_finished(part, &table)?;
        if !*finished {
            rows = rows.saturating_add(table.rows());
        }
    }
    match (plan, unreadable) {
        (Some(plan), _) => Ok(Look { plan, rows, finished }),
        (None, Some(error)) => Err(error.into()),
        (None, None) => bail!("there are no parts"),
    }
}

/// The path and the column of an input: `table.parquet:logits`, or the column of its own option.
pub(crate) fn location(text: &OsStr, column: Option<&str>) -> Result<(PathBuf, Option<String>)> {
    let location = Location::parse(text);
    let path = location.path.context("a table cannot be read from standard input; name a file")?;
    match (location.name, column) {
        (Some(_), Some(_)) => bail!(
            "{}: names a column, and --column does, too; leave one out",
            Path::new(text).display()
        ),
        (name, column) => Ok((path, name.or_else(|| column.map(str::to_owned)))),
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { rows, null_rows, vacuous, .. } = self.counts;
        let parts = counted(self.parts, "part");
        writeln!(
            f,
            "{} in {parts}, column {}, {}",
            counted(rows, "row"),
            self.column,
            self.method
        )?;
        if self.finished_before > 0 {
            let before = counted(self.finished_before, "part");
            writeln!(f, "finished before {before}, not counted here")?;
        }
        if let (Some(mean), Some(reduction)) = (self.kept_mean, self.reduction_percent) {
            writeln!(f, "kept per row    mean {mean:.2}, reduction {reduction:.1}%")?;
        }
        if null_rows > 0 {
            writeln!(f, "null            {}, which stay null", counted(null_rows, "row"))?;
        }
        if vacuous > 0 {
            let vacuous = counted(vacuous, "row");
            writeln!(
                f,
                "vacuous         {vacuous} (all logits are equal, and nothing is dropped)"
            )?;
        }
        let rate = counted((rows as f64 / self.seconds.max(1e-9)).round() as usize, "row");
        writeln!(f, "time            {:.2} s, {rate} per second", self.seconds)
    }
}
