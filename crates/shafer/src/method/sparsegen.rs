//! Sparsemax, and the two sparsegen transforms, which generalise it.

use super::{Method, Rule};
use crate::error::{Result, check_parameter};

impl Method {
    /// Sparsemax: the Euclidean projection of the logits onto the probability simplex,
    /// `p_k = max(0, l_k / T - tau)` with `tau` such that the sum is 1 (Martins and Astudillo, 2016).
    ///
    /// The paper's point of comparison. Nothing is sorted.
    ///
    /// ```
    /// use shafer::Method;
    ///
    /// assert_eq!(Method::SPARSEMAX.row(&[0.75, 0.25, -1.0])?, [0.75, 0.25, 0.0]);
    /// assert_eq!(Method::SPARSEMAX.row(&[3.0, 1.0, -1.0])?, [1.0, 0.0, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub const SPARSEMAX: Self = Self(Rule::Sparsemax);

    /// Sparsegen-lin (Laha et al., 2018): sparsemax with a regularisation `lambda < 1` that sets how
    /// sparse it is, `argmin_p |p - l / T|^2 - lambda |p|^2`, which is sparsemax of
    /// `l / (T (1 - lambda))`.
    ///
    /// 0 is sparsemax; towards 1 it keeps one class, towards minus infinity all.
    ///
    /// # Errors
    /// `lambda` is not less than 1.
    ///
    /// ```
    /// let p = shafer::Method::sparsegen_lin(0.5)?.row(&[0.5, 0.25, -1.0])?;
    /// assert_eq!(p, [0.75, 0.25, 0.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn sparsegen_lin(lambda: f64) -> Result<Self> {
        let holds = lambda.is_finite() && lambda < 1.0;
        check_parameter("lambda", lambda, holds, "must be finite and less than 1")?;
        Ok(Self(Rule::SparsegenLin { lambda }))
    }

    /// Sparsegen-hg, or sparsehourglass (Laha et al., 2018): sparsemax of `a z` with `z = l / T` and
    /// `a = (1 + K q) / (|sum_i z_i| + K q)`.
    ///
    /// `q` trades invariance to scaling (0) for invariance to translation (large: sparsemax).
    ///
    /// # Errors
    /// `q` is negative. With 0, a row whose logits sum to 0 is an error too: it has no scale.
    ///
    /// ```
    /// // K = 2 and q = 1: a = 3 / (1 + 2) = 1.
    /// assert_eq!(shafer::Method::sparsegen_hg(1.0)?.row(&[0.75, 0.25])?, [0.75, 0.25]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn sparsegen_hg(q: f64) -> Result<Self> {
        let holds = q.is_finite() && q >= 0.0;
        check_parameter("q", q, holds, "must be finite and not negative")?;
        Ok(Self(Rule::SparsegenHg { q }))
    }
}
