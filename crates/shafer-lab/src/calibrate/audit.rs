//! `shafer audit`: how often a method drops the true class.

use std::fmt;
use std::path::Path;

use anyhow::{Result, bail};
use serde::Serialize;
use shafer::calibrate::{Audit, Calibration, Labelled, Strata};
use shafer::{Element, Logits, Method, Threads};

use super::pass::{LabelledRows, Visitor};
use super::plot;
use super::retained::{Found, Retained};
use super::strata;
use crate::atomic;
use crate::cli::By;
use crate::drawing::Background;
use crate::labels::Labels;
use crate::progress::Progress;
use crate::stream::Rows;
use crate::words::counted;

/// What to audit.
pub(crate) struct AuditRequest {
    pub(crate) methods: Vec<(String, Method)>,
    pub(crate) calibration: Option<Calibration>,
    pub(crate) labels: Labels,
    pub(crate) by: Option<By>,
    pub(crate) groups: Option<Labels>,
    pub(crate) temperature: f64,
    /// Of the intervals.
    pub(crate) confidence: f64,
    /// Whether to keep rows for the plot.
    pub(crate) plot: bool,
}

/// The result.
#[derive(Debug, Serialize)]
pub(crate) struct AuditReport {
    pub(crate) rows: usize,
    pub(crate) classes: usize,
    pub(crate) confidence: f64,
    pub(crate) methods: Vec<MethodAudit>,
    #[serde(skip)]
    retained: Option<Retained>,
}

/// A method.
#[derive(Debug, Serialize)]
pub(crate) struct MethodAudit {
    pub(crate) name: String,
    pub(crate) all: Found,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) by_group: Vec<Part>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) by_class: Vec<Part>,
    pub(crate) by_size: Vec<Part>,
}

/// The rows of a group, of a true class, or of a support size.
#[derive(Debug, Serialize)]
pub(crate) struct Part {
    /// The group, the class, or the number of classes.
    pub(crate) value: u32,
    pub(crate) rows: u64,
    pub(crate) missed: u64,
    pub(crate) missed_share: f64,
    pub(crate) interval: [f64; 2],
}

struct Count {
    methods: Vec<(String, Method, Audit)>,
    calibration: Option<(Calibration, Audit)>,
    /// Count by true class.
    by_class: bool,
    temperature: f64,
    retained: Option<Retained>,
}

impl Visitor for Count {
    fn visit<E: Element>(&mut self, rows: &Labelled<'_, E>, logits: &[E]) -> shafer::Result<()> {
        // A class is a group of rows, and no calibration here is by other groups.
        let rows = if self.by_class { &rows.groups(rows.labels())? } else { rows };
        // Calibrations are for the logits as they are.
        if let Some((calibration, audit)) = &mut self.calibration {
            audit.add_calibrated(calibration, rows, Threads::All)?;
        }
        let warm = rows.at_temperature(self.temperature)?;
        for (_, method, audit) in &mut self.methods {
            audit.add(*method, &warm, Threads::All)?;
        }
        if let Some(retained) = &mut self.retained {
            retained.add(logits, rows.labels());
        }
        Ok(())
    }
}

/// Counts over all rows.
pub(crate) fn audit(rows: Rows, request: AuditRequest, progress: Progress) -> Result<AuditReport> {
    let AuditRequest { methods, calibration, labels, by, groups, temperature, confidence, plot } =
        request;
    let by_class = strata(by, groups.is_some())? == Strata::Class;
    if let Some(calibration) = &calibration
        && calibration.strata() == Strata::Group
        && groups.is_none()
    {
        bail!(
            "the calibration is by group; give the group of each row with --row-groups or --row-group"
        );
    }
    // Refuses a confidence out of range before the file is read.
    shafer::calibrate::clopper_pearson(0, 1, confidence)?;
    Logits::row(&[0.0])?.temperature(temperature)?;
    let classes = rows.shape().classes;
    let mut count = Count {
        methods: methods
            .into_iter()
            .map(|(name, method)| (name, method, Audit::default()))
            .collect(),
        calibration: calibration.map(|calibration| (calibration, Audit::default())),
        by_class,
        temperature,
        retained: plot.then(|| Retained::new(classes, temperature)),
    };
    let rows = LabelledRows { rows, labels, groups }.visit(&mut count, progress)?;
    let Count { methods, calibration, retained, .. } = count;
    let calibrated = calibration.map(|(calibration, audit)| {
        (format!("{} calibrated for {}", calibration.score(), calibration.alpha()), audit)
    });
    let methods = methods
        .into_iter()
        .map(|(name, _, audit)| (name, audit))
        .chain(calibrated)
        .filter_map(|(name, audit)| MethodAudit::new(name, &audit, by_class, confidence))
        .collect();
    Ok(AuditReport { rows, classes, confidence, methods, retained })
}

impl MethodAudit {
    /// `None` without rows.
    fn new(name: String, audit: &Audit, by_class: bool, confidence: f64) -> Option<Self> {
        let part = |(&value, misses): (&u32, &shafer::calibrate::Misses)| {
            Some(Part {
                value,
                rows: misses.rows,
                missed: misses.missed,
                missed_share: misses.share()?,
                interval: misses.interval(confidence).ok()?.into(),
            })
        };
        let parts = audit.by_group().iter().filter_map(part).collect();
        let (by_group, by_class) = if by_class { (Vec::new(), parts) } else { (parts, Vec::new()) };
        Some(Self {
            name,
            all: Found::new(audit.all(), audit.mean_size(), confidence)?,
            by_group,
            by_class,
            by_size: audit.by_size().iter().filter_map(part).collect(),
        })
    }
}

impl AuditReport {
    /// Draws support size against miss rate for all methods. Returns whether rows were left out.
    pub(crate) fn draw(&self, name: &str, path: &Path) -> Result<bool> {
        let Some(retained) = &self.retained else { return Ok(false) };
        if let Some((curves, paper)) = retained.curves()? {
            let figure = plot::figure(name, &curves, &paper);
            let svg = figure.drawing().svg(&figure.title, Background::White)? + "\n";
            atomic::write(path, svg.as_bytes())?;
        }
        Ok(retained.cut)
    }
}

impl fmt::Display for AuditReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        /// Lines of a list in the terminal.
        const LISTED: usize = 12;
        let (rows, classes) = (counted(self.rows, "row"), counted(self.classes, "class"));
        let percent = 100.0 * self.confidence;
        writeln!(f, "{rows} of {classes}; intervals are exact, at {percent}%")?;
        for method in &self.methods {
            let Found { missed, missed_share, interval, kept_mean, .. } = &method.all;
            writeln!(
                f,
                "\n{}: the true class is dropped in {} ({:.3}%, {:.3}% to {:.3}%); kept per row \
                 {kept_mean:.2}",
                method.name,
                counted(*missed as usize, "row"),
                100.0 * missed_share,
                100.0 * interval[0],
                100.0 * interval[1]
            )?;
            let parts = [
                ("group", &method.by_group),
                ("class", &method.by_class),
                ("kept", &method.by_size),
            ];
            for (what, parts) in parts {
                for part in parts.iter().take(LISTED) {
                    writeln!(
                        f,
                        "  {what} {:<6} {:>9} dropped in {:>7} {:>8.3}%  {:.3}% to {:.3}%",
                        part.value,
                        counted(part.rows as usize, "row"),
                        part.missed,
                        100.0 * part.missed_share,
                        100.0 * part.interval[0],
                        100.0 * part.interval[1]
                    )?;
                }
                if parts.len() > LISTED {
                    writeln!(f, "  and {} more; --json has all", parts.len() - LISTED)?;
                }
            }
        }
        Ok(())
    }
}
