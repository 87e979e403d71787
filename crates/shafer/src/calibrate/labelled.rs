//! Rows whose true classes are known.

use crate::element::Element;
use crate::error::{Error, Result, check_length};
use crate::logits::Logits;
use crate::method::check_row;

/// The rule of a label of a masked class.
pub(super) const MASKED: &str = "is a masked class, which no method can keep";

/// Logits with the true class of every row, and optionally its group.
///
/// ```
/// use shafer::Logits;
/// use shafer::calibrate::Labelled;
///
/// let logits = [2.0, 1.0, 0.0, 3.0];
/// let rows = Labelled::new(Logits::rows(&logits, 2)?, &[0, 1])?.groups(&[7, 7])?;
/// assert_eq!(rows.len(), 2);
/// assert!(Labelled::new(Logits::rows(&logits, 2)?, &[0, 2]).is_err());
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Labelled<'a, E> {
    pub(super) logits: Logits<'a, E>,
    pub(super) labels: &'a [u32],
    pub(super) groups: Option<&'a [u32]>,
}

impl<'a, E: Element> Labelled<'a, E> {
    /// A label for each row.
    ///
    /// # Errors
    /// The numbers of rows and labels differ, or a label is not a class.
    pub fn new(logits: Logits<'a, E>, labels: &'a [u32]) -> Result<Self> {
        let (rows, classes) = (logits.row_count(), logits.classes());
        check_length("labels", rows, labels.len())?;
        if let Some(row) = labels.iter().position(|&label| label as usize >= classes) {
            let rule = "is not a class: labels count the classes from 0";
            return Err(Error::Label { row, label: labels[row], rule });
        }
        Ok(Self { logits, labels, groups: None })
    }

    /// The same rows with the group of each: results are then given for each group too. Group numbers
    /// need not be consecutive.
    ///
    /// # Errors
    /// The numbers of rows and groups differ.
    pub fn groups(self, groups: &'a [u32]) -> Result<Self> {
        check_length("groups", self.labels.len(), groups.len())?;
        Ok(Self { groups: Some(groups), ..self })
    }

    /// The same rows at another temperature.
    pub fn at_temperature(self, temperature: f64) -> Result<Self> {
        Ok(Self { logits: self.logits.temperature(temperature)?, ..self })
    }

    /// The logits.
    pub fn logits(&self) -> &Logits<'a, E> {
        &self.logits
    }

    /// The labels.
    pub fn labels(&self) -> &'a [u32] {
        self.labels
    }

    /// The number of rows.
    pub fn len(&self) -> usize {
        self.labels.len()
    }

    /// Whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.labels.is_empty()
    }

    /// Calls `visit` with the number, the logits over the temperature and the label of each row, after
    /// checking them. Masked classes are `-inf`.
    pub(super) fn visit(&self, mut visit: impl FnMut(usize, &[f64], usize)) -> Result<()> {
        let mut buffers = (Vec::new(), Vec::new());
        for (row, &label) in self.labels.iter().enumerate() {
            let logits = checked_row(&self.logits, row, &mut buffers)?;
            if logits[label as usize] == f64::NEG_INFINITY {
                return Err(Error::Label { row, label, rule: MASKED });
            }
            visit(row, logits, label as usize);
        }
        Ok(())
    }
}

/// A row over its temperature in double precision, after the checks that every method makes.
pub(super) fn checked_row<'b, E: Element>(
    logits: &Logits<'_, E>,
    row: usize,
    (compute, wide): &'b mut (Vec<E::Compute>, Vec<f64>),
) -> Result<&'b [f64]> {
    let values = logits.block(row, 1, compute);
    check_row(values, row)?;
    let rate = logits.rate().exact();
    wide.clear();
    wide.extend(values.iter().map(|x| match x.to_f64() {
        f64::NEG_INFINITY => f64::NEG_INFINITY,
        x => (x * rate).clamp(f64::MIN, f64::MAX),
    }));
    Ok(wide)
}
