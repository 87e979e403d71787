//! How often a method drops the true class.

use std::collections::BTreeMap;

use super::binomial::clopper_pearson;
use super::calibration::Calibration;
use super::labelled::{Labelled, checked_row};
use crate::csr::CsrRows;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::method::Method;
use crate::threads::Threads;

/// How many of some rows lost their true class.
///
/// ```
/// use shafer::calibrate::Misses;
///
/// let misses = Misses { rows: 200, missed: 3 };
/// assert_eq!(misses.share(), Some(0.015));
/// let (low, high) = misses.interval(0.95)?;
/// assert!(low > 0.003 && high < 0.0433);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Misses {
    /// The number of rows.
    pub rows: u64,
    /// Those of them whose true class was dropped.
    pub missed: u64,
}

impl Misses {
    /// The share of rows whose true class was dropped; `None` without rows.
    pub fn share(&self) -> Option<f64> {
        (self.rows > 0).then(|| self.missed as f64 / self.rows as f64)
    }

    /// The exact interval of that share, as [`clopper_pearson`]: it takes rows to be independent.
    pub fn interval(&self, confidence: f64) -> Result<(f64, f64)> {
        clopper_pearson(self.missed, self.rows, confidence)
    }

    fn add(&mut self, missed: bool) {
        self.rows += 1;
        self.missed += u64::from(missed);
    }
}

/// How often the true class is dropped: in all rows, by group and by support size.
///
/// Batches are added one after the other.
///
/// ```
/// use shafer::calibrate::{Audit, Labelled};
/// use shafer::{Logits, Method, Threads};
///
/// let logits = [2.0, 1.0, 0.0, 3.0, 0.0, 0.0];
/// let rows = Labelled::new(Logits::rows(&logits, 3)?, &[1, 0])?.groups(&[4, 9])?;
/// let mut audit = Audit::default();
/// audit.add(Method::EVIDENTIAL, &rows, Threads::One)?;
/// // The mean of the first row is 1, which is not above itself.
/// assert_eq!(audit.all().missed, 1);
/// assert_eq!(audit.by_group()[&9].missed, 0);
/// assert_eq!(audit.by_size()[&1].rows, 2);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Audit {
    all: Misses,
    by_group: BTreeMap<u32, Misses>,
    by_size: BTreeMap<u32, Misses>,
}

impl Audit {
    /// Adds what `method` does to the rows.
    pub fn add<E: Element>(
        &mut self,
        method: Method,
        rows: &Labelled<'_, E>,
        threads: Threads,
    ) -> Result<()> {
        self.count(&method.csr(&rows.logits, threads)?, rows)
    }

    /// Adds what a calibration does to the rows.
    pub fn add_calibrated<E: Element>(
        &mut self,
        calibration: &Calibration,
        rows: &Labelled<'_, E>,
        threads: Threads,
    ) -> Result<()> {
        self.count(&calibration.csr(&rows.logits, rows.groups, threads)?, rows)
    }

    fn count<E: Element>(&mut self, kept: &CsrRows<E>, rows: &Labelled<'_, E>) -> Result<()> {
        let mut buffers = (Vec::new(), Vec::new());
        let mut missed = Vec::with_capacity(rows.len());
        for (row, ((classes, _), &label)) in kept.iter().zip(rows.labels).enumerate() {
            let dropped = classes.binary_search(&label).is_err();
            if dropped
                && checked_row(&rows.logits, row, &mut buffers)?[label as usize]
                    == f64::NEG_INFINITY
            {
                return Err(Error::Label { row, label, rule: super::labelled::MASKED });
            }
            missed.push((dropped, classes.len() as u32));
        }
        for (row, (dropped, size)) in missed.into_iter().enumerate() {
            let group = rows.groups.map(|groups| groups[row]);
            self.record(group, size, dropped);
        }
        Ok(())
    }

    /// Adds one row: its group, the number of classes that were kept, and whether the true class was
    /// dropped.
    pub fn record(&mut self, group: Option<u32>, size: u32, dropped: bool) {
        self.all.add(dropped);
        self.by_size.entry(size).or_default().add(dropped);
        if let Some(group) = group {
            self.by_group.entry(group).or_default().add(dropped);
        }
    }

    /// All rows.
    pub fn all(&self) -> Misses {
        self.all
    }

    /// The rows of each group.
    pub fn by_group(&self) -> &BTreeMap<u32, Misses> {
        &self.by_group
    }

    /// The rows of each support size.
    pub fn by_size(&self) -> &BTreeMap<u32, Misses> {
        &self.by_size
    }

    /// The mean number of kept classes; `None` without rows.
    pub fn mean_size(&self) -> Option<f64> {
        let classes: f64 =
            self.by_size.iter().map(|(&size, misses)| f64::from(size) * misses.rows as f64).sum();
        (self.all.rows > 0).then(|| classes / self.all.rows as f64)
    }
}
