//! The two sparsegen transforms.

use super::project::Projection;
use super::{Rule, Transform, parameter};
use crate::error::Result;

/// Sparsegen-lin (Laha et al., 2018): sparsemax with a regularisation `lambda < 1` that sets how
/// sparse it is, `argmin_p |p - l / T|^2 - lambda |p|^2`, which is sparsemax of
/// `l / (T (1 - lambda))`.
///
/// 0 is sparsemax; towards 1 it keeps one class, towards minus infinity all.
///
/// ```
/// use shafer::{SparsegenLin, TransformExt};
///
/// let p = SparsegenLin::new(0.5)?.row(&[0.5, 0.25, -1.0])?;
/// assert_eq!(p, [0.75, 0.25, 0.0]);
/// assert!(SparsegenLin::new(1.0).is_err());
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparsegenLin {
    lambda: f64,
}

impl SparsegenLin {
    /// With this regularisation.
    ///
    /// # Errors
    /// `lambda` is not less than 1.
    ///
    /// ```
    /// assert!(shafer::SparsegenLin::new(-2.0).is_ok());
    /// assert!(shafer::SparsegenLin::new(1.0).is_err());
    /// ```
    pub fn new(lambda: f64) -> Result<Self> {
        let lambda = parameter("lambda", lambda, "must be finite and less than 1", |l| l < 1.0)?;
        Ok(Self { lambda })
    }
}

impl Transform for SparsegenLin {
    fn name(&self) -> &'static str {
        "sparsegen-lin"
    }

    #[allow(private_interfaces, reason = "see Transform::rule")]
    fn rule(&self) -> Rule {
        Rule::Project(Projection::euclidean(1.0 / (1.0 - self.lambda)))
    }
}

/// Sparsegen-hg, or sparsehourglass (Laha et al., 2018): sparsemax of `a z` with `z = l / T` and
/// `a = (1 + K q) / (|sum_i z_i| + K q)`.
///
/// `q` trades invariance to scaling (0) for invariance to translation (large: sparsemax).
///
/// ```
/// use shafer::{SparsegenHg, TransformExt};
///
/// // K = 2 and q = 1: a = 3 / (1 + 2) = 1.
/// assert_eq!(SparsegenHg::new(1.0)?.row(&[0.75, 0.25])?, [0.75, 0.25]);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SparsegenHg {
    q: f64,
}

impl SparsegenHg {
    /// With this trade-off.
    ///
    /// # Errors
    /// `q` is negative. With 0, a row whose logits sum to 0 is an error too: it has no scale.
    ///
    /// ```
    /// assert!(shafer::SparsegenHg::new(0.5).is_ok());
    /// assert!(shafer::SparsegenHg::new(-0.5).is_err());
    /// ```
    pub fn new(q: f64) -> Result<Self> {
        Ok(Self { q: parameter("q", q, "must be finite and not negative", |q| q >= 0.0)? })
    }
}

impl Transform for SparsegenHg {
    fn name(&self) -> &'static str {
        "sparsegen-hg"
    }

    #[allow(private_interfaces, reason = "see Transform::rule")]
    fn rule(&self) -> Rule {
        Rule::Project(Projection::hourglass(self.q))
    }
}
