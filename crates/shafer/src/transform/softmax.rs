//! Softmax.

use super::{Rule, Transform};

/// Softmax: `p_k = exp(l_k / T) / sum_i exp(l_i / T)`, every class kept.
///
/// In evidential terms it is the plausibility transformation (equation 2 of the paper) of the mass
/// function that the last linear layer amounts to: each class gets what does not contradict it,
/// supported or not.
///
/// ```
/// use shafer::{Softmax, TransformExt};
///
/// let p = Softmax.row(&[2.0_f64.ln(), 0.0, 0.0])?;
/// assert!((p[0] - 0.5).abs() < 1e-15 && (p[1] - 0.25).abs() < 1e-15);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Softmax;

impl Transform for Softmax {
    fn name(&self) -> &'static str {
        "softmax"
    }

    #[allow(private_interfaces, reason = "see Transform::rule")]
    fn rule(&self) -> Rule {
        Rule::Softmax
    }
}
