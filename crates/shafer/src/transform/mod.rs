//! Transforms: logits in, distributions out.

mod entmax;
mod evidential;
mod min_p;
mod project;
mod rule;
mod softmax;
mod sparsegen;
mod sparsemax;
mod top_k;
mod top_p;

pub use entmax::Entmax;
pub use evidential::Evidential;
pub use min_p::MinP;
pub use softmax::Softmax;
pub use sparsegen::{SparsegenHg, SparsegenLin};
pub use sparsemax::Sparsemax;
pub use top_k::TopK;
pub use top_p::TopP;

pub(crate) use rule::{Kept, Rule, Scratch, Selection};

use std::fmt;

use crate::compressed::CompressedRows;
use crate::element::Element;
use crate::engine;
use crate::error::{Error, Result};
use crate::logits::Logits;

/// A map from a row of logits to a distribution over its classes.
///
/// The trait is object-safe, so that a program can choose at run time; what can be done with a
/// transform is in [`TransformExt`]. The transforms of this crate are all there are: the trait
/// cannot be implemented elsewhere.
///
/// ```
/// use shafer::{Evidential, Softmax, Sparsemax, Transform, TransformExt};
///
/// let transforms: [&dyn Transform; 3] = [&Softmax, &Sparsemax, &Evidential::default()];
/// let kept = transforms.map(|t| t.row(&[2.0, 1.2, -0.5, -3.0]).unwrap());
/// assert_eq!(kept[0].iter().filter(|&&p| p > 0.0).count(), 4);
/// assert_eq!(kept[1].iter().filter(|&&p| p > 0.0).count(), 2);
/// assert_eq!(kept[2].iter().filter(|&&p| p > 0.0).count(), 2);
/// ```
pub trait Transform: fmt::Debug + Send + Sync {
    /// The name, as on a command line: `evidential`, `top-k`.
    fn name(&self) -> &'static str;

    /// What it does to a row.
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "nobody else can make one, which seals the trait")]
    fn rule(&self) -> Rule;
}

/// What a transform found out about a batch besides its distributions.
///
/// ```
/// use shafer::{Evidential, Logits, TransformExt};
///
/// let report = Evidential::default().dense(&Logits::rows(&[1.0, 1.0, 0.0, 2.0], 2)?, &mut [0.0; 4])?;
/// assert_eq!((report.rows, report.vacuous), (2, 1));
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// The number of rows.
    pub rows: usize,
    /// The rows in which [`Evidential`] had nothing to choose by: two or more classes, all with
    /// the same logit. The mass function is then vacuous, and all of them are kept.
    pub vacuous: usize,
}

/// What every [`Transform`] can do.
///
/// After an error, the contents of the output are not specified.
pub trait TransformExt: Transform {
    /// The distribution of one row.
    ///
    /// ```
    /// use shafer::{Evidential, TransformExt};
    ///
    /// let p = Evidential::default().row(&[1.0, 1.0, 0.0])?;
    /// assert_eq!(p, [0.5, 0.5, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    fn row<E: Element>(&self, logits: &[E]) -> Result<Vec<E>> {
        let mut out = vec![E::default(); logits.len()];
        self.dense(&Logits::row(logits)?, &mut out)?;
        Ok(out)
    }

    /// The distributions of all rows into `out`, an array of the input's shape in C order.
    ///
    /// ```
    /// use shafer::{Logits, Sparsemax, TransformExt};
    ///
    /// let mut out = [0.0; 4];
    /// Sparsemax.dense(&Logits::rows(&[0.5, 0.0, 3.0, 0.0], 2)?, &mut out)?;
    /// assert_eq!(out, [0.75, 0.25, 1.0, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    fn dense<E: Element>(&self, logits: &Logits<'_, E>, out: &mut [E]) -> Result<Report> {
        E::dense(&self.rule(), logits, out)
    }

    /// The distributions of all rows in compressed form.
    ///
    /// ```
    /// use shafer::{Logits, Sparsemax, TransformExt};
    ///
    /// let rows = Sparsemax.compressed(&Logits::rows(&[0.5, 0.0, 3.0, 0.0], 2)?)?;
    /// assert_eq!(rows.indices(), [0, 1, 0]);
    /// assert_eq!(rows.values(), [0.75, 0.25, 1.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    fn compressed<E: Element>(&self, logits: &Logits<'_, E>) -> Result<CompressedRows<E>> {
        let mut rows = CompressedRows::new();
        self.compressed_into(logits, &mut rows)?;
        Ok(rows)
    }

    /// As [`compressed`](Self::compressed), in place of what `rows` held, with its memory.
    ///
    /// ```
    /// use shafer::{CompressedRows, Logits, Sparsemax, TransformExt};
    ///
    /// let mut rows = CompressedRows::new();
    /// for logits in [[0.5, 0.0], [3.0, 0.0]] {
    ///     Sparsemax.compressed_into(&Logits::row(&logits)?, &mut rows)?;
    /// }
    /// assert_eq!((rows.indices(), rows.values()), (&[0][..], &[1.0][..]));
    /// # Ok::<(), shafer::Error>(())
    /// ```
    fn compressed_into<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        rows: &mut CompressedRows<E>,
    ) -> Result<Report> {
        E::compressed(&self.rule(), logits, rows)
    }

    /// The number of classes that each row keeps: one number a row, and no exponential for the
    /// transforms that choose by a threshold.
    ///
    /// ```
    /// use shafer::{Evidential, Logits, TransformExt};
    ///
    /// let mut sizes = [0; 2];
    /// let logits = [5.0, 4.0, 0.0, 1.0, 1.0, 1.0];
    /// let report = Evidential::default().support_sizes(&Logits::rows(&logits, 3)?, &mut sizes)?;
    /// assert_eq!(sizes, [2, 3]);
    /// assert_eq!(report.vacuous, 1);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    fn support_sizes<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        sizes: &mut [u32],
    ) -> Result<Report> {
        E::support_sizes(&self.rule(), logits, sizes)
    }

    /// The vector-Jacobian product: the gradient, with respect to the logits, of the inner product
    /// of `upstream` with the probabilities that [`dense`](Self::dense) gave for the same logits.
    /// All arrays have the logits' shape, in C order.
    ///
    /// Where a transform chooses classes, the choice is held fixed: that is the derivative almost
    /// everywhere.
    ///
    /// ```
    /// use shafer::{Logits, Softmax, TransformExt};
    ///
    /// let logits = Logits::row(&[0.0, 0.0])?;
    /// let mut gradient = [0.0; 2];
    /// Softmax.vjp(&logits, &[0.5, 0.5], &[1.0, 0.0], &mut gradient)?;
    /// assert_eq!(gradient, [0.25, -0.25]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    fn vjp<E: Element>(
        &self,
        logits: &Logits<'_, E>,
        probabilities: &[E],
        upstream: &[E],
        gradient: &mut [E],
    ) -> Result<()> {
        engine::vjp(&self.rule(), logits, probabilities, upstream, gradient)
    }
}

impl<T: Transform + ?Sized> TransformExt for T {}

/// `value` if it is a number that `holds` accepts.
fn parameter(
    name: &'static str,
    value: f64,
    rule: &'static str,
    holds: impl Fn(f64) -> bool,
) -> Result<f64> {
    if value.is_finite() && holds(value) {
        Ok(value)
    } else {
        Err(Error::Parameter { name, value, rule })
    }
}
