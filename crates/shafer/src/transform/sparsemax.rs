//! Sparsemax.

use super::project::Projection;
use super::{Rule, Transform};

/// Sparsemax: the Euclidean projection of the logits onto the probability simplex,
/// `p_k = max(0, l_k / T - tau)` with `tau` such that the sum is 1 (Martins and Astudillo, 2016).
///
/// The paper's point of comparison. `tau` is found without sorting.
///
/// ```
/// use shafer::{Sparsemax, TransformExt};
///
/// assert_eq!(Sparsemax.row(&[0.75, 0.25, -1.0])?, [0.75, 0.25, 0.0]);
/// assert_eq!(Sparsemax.row(&[3.0, 1.0, -1.0])?, [1.0, 0.0, 0.0]);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sparsemax;

impl Transform for Sparsemax {
    fn name(&self) -> &'static str {
        "sparsemax"
    }

    #[allow(private_interfaces, reason = "see Transform::rule")]
    fn rule(&self) -> Rule {
        Rule::Project(Projection::euclidean(1.0))
    }
}
