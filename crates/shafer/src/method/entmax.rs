//! Entmax.

use super::{Method, Rule};
use crate::error::{Result, check_parameter};

impl Method {
    /// Entmax (Peters, Niculae and Martins, 2019): `p_k = max(0, (alpha - 1) l_k / T - tau)` to the
    /// power `1 / (alpha - 1)`, with `tau` such that the sum is 1.
    ///
    /// `alpha` of 1 is softmax, 2 is sparsemax, 1.5 the usual choice between them.
    ///
    /// # Errors
    /// `alpha` is less than 1, or closer to 1 than 1e-6 without being 1: use softmax there.
    ///
    /// ```
    /// // (1 - tau)^2 + (0.5 - tau)^2 = 1 for half the logits 2 and 1: tau = (1.5 - sqrt(1.75)) / 2.
    /// let p = shafer::Method::entmax(1.5)?.row(&[2.0, 1.0, -4.0])?;
    /// let tau = (1.5 - 1.75_f64.sqrt()) / 2.0;
    /// assert!((p[0] - (1.0 - tau).powi(2)).abs() < 1e-15);
    /// assert_eq!(p[2], 0.0);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn entmax(alpha: f64) -> Result<Self> {
        let rule = "must be 1, or finite and at least 1.000001";
        let holds = alpha == 1.0 || (alpha.is_finite() && alpha >= 1.000_001);
        check_parameter("alpha", alpha, holds, rule)?;
        Ok(Self(Rule::Entmax { alpha }))
    }
}
