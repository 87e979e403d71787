//! `shafer calibrate` and `shafer audit`: guarantees for what is dropped.

mod audit;
mod file;
mod pass;
mod plot;
mod retained;

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;
use shafer::Element;
use shafer::calibrate::{Calibration, Calibrator, Labelled, Score, Strata, rows_needed};

pub(crate) use self::audit::{AuditRequest, audit};
pub(crate) use self::file::read;
use self::pass::{LabelledRows, Visitor};
pub(crate) use self::retained::{EqualGuarantee, Retained};
use crate::cli::By;
use crate::labels::Labels;
use crate::progress::Progress;
use crate::stream::Rows;
use crate::words::counted;

/// What to calibrate.
pub(crate) struct Request<'a> {
    pub(crate) score: Score,
    /// The allowed miss rate.
    pub(crate) miss: f64,
    /// Hold with this probability over the calibration rows.
    pub(crate) confidence: Option<f64>,
    pub(crate) labels: Labels,
    pub(crate) by: Option<By>,
    pub(crate) groups: Option<Labels>,
    /// Accept thresholds that keep everything.
    pub(crate) keep_all: bool,
    /// The name of the input.
    pub(crate) name: &'a str,
}

/// The result.
#[derive(Debug, Serialize)]
pub(crate) struct Calibrated {
    pub(crate) calibration: Calibration,
    pub(crate) rows: usize,
    /// Groups or classes with too few rows: these groups keep all classes, and these classes are always kept.
    pub(crate) keep_all: Vec<u32>,
}

struct Collect(Calibrator);

impl Visitor for Collect {
    fn visit<E: Element>(&mut self, rows: &Labelled<'_, E>, _: &[E]) -> shafer::Result<()> {
        self.0.add(rows)
    }
}

/// Calibrates on all rows.
pub(crate) fn calibrate(
    rows: Rows,
    request: Request<'_>,
    progress: Progress,
) -> Result<Calibrated> {
    let Request { score, miss, confidence, labels, by, groups, keep_all, name } = request;
    if score.method(1.0)?.is_none() {
        bail!("{score} gives sets of classes only; choose a score that belongs to a method");
    }
    for (option, value) in [("--miss", Some(miss)), ("--confidence", confidence)] {
        if let Some(value) = value.filter(|value| !(*value > 0.0 && *value < 1.0)) {
            bail!("{option} is {value}, but must be between 0 and 1, both excluded");
        }
    }
    let delta = confidence.map(|confidence| 1.0 - confidence);
    let needed = rows_needed(miss, delta)?;
    let by = strata(by, groups.is_some())?;
    if by == Strata::Class && matches!(score, Score::Sparsemax | Score::Entmax { .. }) {
        bail!(
            "--by class: the threshold of {score} is the temperature of a row, so a class cannot have its own; \
             choose another --score"
        );
    }
    let mut collect = Collect(Calibrator::new(score, by));
    let count = LabelledRows { rows, labels, groups }.visit(&mut collect, progress)?;
    let Collect(calibrator) = collect;
    let calibration = match delta {
        None => calibrator.calibration(miss)?,
        Some(delta) => calibrator.confident_calibration(miss, delta)?,
    };
    let thresholds = calibration.thresholds();
    let all = |threshold: &shafer::calibrate::Threshold| threshold.value == f64::INFINITY;
    let unlimited: Vec<u32> =
        thresholds.iter().filter(|(_, t)| all(t)).map(|(&group, _)| group).collect();
    if unlimited.len() == thresholds.len() && !keep_all {
        let groups = match by {
            Strata::All => "",
            Strata::Group => " in a group",
            Strata::Class => " of a class",
        };
        bail!(
            "{} cannot give a miss rate of {miss}: at least {needed}{groups} are needed; \
             --keep-all accepts a threshold that keeps every class",
            counted(count, "row")
        );
    }
    let calibration = calibration.measured_on(name);
    Ok(Calibrated { calibration, rows: count, keep_all: unlimited })
}

/// What has a threshold or a count of its own.
pub(super) fn strata(by: Option<By>, groups: bool) -> Result<Strata> {
    match (by, groups) {
        (None, false) => Ok(Strata::All),
        (None | Some(By::Group), true) => Ok(Strata::Group),
        (Some(By::Class), false) => Ok(Strata::Class),
        (Some(By::Group), false) => {
            bail!("--by group: give the group of each row with --row-groups or --row-group")
        }
        (Some(By::Class), true) => {
            bail!("--by class has no groups of rows; leave out --row-groups and --row-group")
        }
    }
}

/// Writes a calibration.
pub(crate) fn write(path: &Path, calibrated: &Calibrated) -> Result<()> {
    file::write(path, &calibrated.calibration)
}

impl fmt::Display for Calibrated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Groups in the terminal.
        const LISTED: usize = 20;
        let Self { calibration, rows, keep_all } = self;
        let (count, classes) = (counted(*rows, "row"), counted(calibration.classes(), "class"));
        writeln!(f, "{count} of {classes}, {}", calibration.score())?;
        write!(f, "miss rate       at most {}", calibration.alpha())?;
        match calibration.delta() {
            Some(delta) => writeln!(f, ", with a confidence of {}", 1.0 - delta)?,
            None => writeln!(f, " on average over calibration sets")?,
        }
        let what = match calibration.strata() {
            Strata::All => None,
            Strata::Group => Some("group"),
            Strata::Class => Some("class"),
        };
        for (stratum, threshold) in calibration.thresholds().iter().take(LISTED) {
            match what {
                Some(what) => {
                    write!(f, "{what} {stratum:<9} {}, ", counted(threshold.rows, "row"))?;
                }
                None => write!(f, "threshold       ")?,
            }
            match calibration.score().method(threshold.value) {
                Ok(Some((_, _))) if threshold.value == f64::INFINITY => {
                    let kept =
                        if what == Some("class") { "always kept" } else { "keeps all classes" };
                    writeln!(f, "{kept}: too few rows")?;
                }
                Ok(Some((method, 1.0))) => writeln!(f, "{method}")?,
                Ok(Some((method, temperature))) => {
                    writeln!(f, "{method} at temperature {temperature}")?;
                }
                _ => writeln!(f, "{}", threshold.value)?,
            }
        }
        let more = calibration.thresholds().len().saturating_sub(LISTED);
        if let Some(what) = what.filter(|_| more > 0) {
            writeln!(f, "                and {}", counted(more, &format!("more {what}")))?;
        }
        match calibration.strata() {
            Strata::Group if !keep_all.is_empty() => {
                let groups = counted(keep_all.len(), "group");
                writeln!(f, "warning         {groups} had too few rows, and keep all classes")?;
            }
            Strata::Class if !keep_all.is_empty() => {
                let classes = counted(keep_all.len(), "class");
                writeln!(f, "warning         {classes} had too few rows, and are always kept")?;
            }
            _ => {}
        }
        writeln!(
            f,
            "assumes         rows to come are exchangeable with these: same network, same source"
        )
    }
}
