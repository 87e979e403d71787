//! Entmax.

use super::project::Projection;
use super::{Rule, Transform, parameter};
use crate::error::Result;

/// Entmax (Peters, Niculae and Martins, 2019): `p_k = max(0, (alpha - 1) l_k / T - tau)` to the
/// power `1 / (alpha - 1)`, with `tau` such that the sum is 1.
///
/// `alpha` of 1 is softmax, 2 is sparsemax, 1.5 the usual choice between them.
///
/// ```
/// use shafer::{Entmax, TransformExt};
///
/// // (1 - tau)^2 + (0.5 - tau)^2 = 1 for half the logits 2 and 1: tau = (1.5 - sqrt(1.75)) / 2.
/// let p = Entmax::new(1.5)?.row(&[2.0, 1.0, -4.0])?;
/// let tau = (1.5 - 1.75_f64.sqrt()) / 2.0;
/// assert!((p[0] - (1.0 - tau).powi(2)).abs() < 1e-15);
/// assert_eq!(p[2], 0.0);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Entmax {
    alpha: f64,
}

impl Entmax {
    /// With this `alpha`.
    ///
    /// # Errors
    /// `alpha` is less than 1, or closer to 1 than 1e-6 without being 1: use softmax there.
    ///
    /// ```
    /// assert!(shafer::Entmax::new(1.5).is_ok());
    /// assert!(shafer::Entmax::new(0.5).is_err());
    /// ```
    pub fn new(alpha: f64) -> Result<Self> {
        let rule = "must be 1, or finite and at least 1.000001";
        let alpha = parameter("alpha", alpha, rule, |a| a == 1.0 || a >= 1.000_001)?;
        Ok(Self { alpha })
    }
}

impl Transform for Entmax {
    fn name(&self) -> &'static str {
        "entmax"
    }

    #[allow(private_interfaces, reason = "see Transform::rule")]
    fn rule(&self) -> Rule {
        if self.alpha == 1.0 {
            Rule::Softmax
        } else {
            Rule::Project(Projection::tsallis(self.alpha))
        }
    }
}
