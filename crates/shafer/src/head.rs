//! The last linear layer of a network, read as a source of evidence.

use crate::error::check_length;
use crate::numerics::{Centre, Sum};
use crate::{Error, Evidence, Result};

/// A linear layer from `J` features to `K` logits: `l_k = bias_k + sum_j weight_jk phi_j`.
///
/// Softmax of these logits is the plausibility transform of a belief built from evidential
/// weights `w_jk = beta_jk phi_j + alpha_jk` (equation 3). `alpha` is not unique: a
/// [`Construction`] chooses it.
///
/// ```
/// use shafer::{Construction, Head};
///
/// // Two features, three classes.
/// let head = Head::new(2, 3, vec![1.0, 0.0, -1.0, 2.0, 0.0, 1.0], vec![0.5, 0.0, 0.25])?;
/// assert_eq!(head.logits(&[1.0, 0.5])?, [2.5, 0.0, -0.25]);
/// let evidence = head.evidence(&[1.0, 0.5], Construction::Direct)?;
/// assert_eq!(evidence.positive(), [1.75, 0.0, 0.0]);
/// assert_eq!(evidence.negative(), [0.0, 0.75, 1.0]);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Head {
    features: usize,
    classes: usize,
    /// `J x K`, the row of each feature together.
    weights: Vec<f64>,
    bias: Vec<f64>,
}

/// How `alpha` is chosen, which equation 3 leaves open.
///
/// ```
/// use shafer::{Construction, Head};
///
/// let head = Head::new(2, 2, vec![1.0, -1.0, -1.0, 1.0], vec![0.0, 0.0])?;
/// // The features contradict each other. Direct: nothing is left, for or against.
/// let direct = head.evidence(&[1.0, 1.0], Construction::Direct)?;
/// assert!(direct.is_vacuous());
/// // Least commitment: the features count separately.
/// let mean = [0.0, 0.0];
/// let least = head.evidence(&[1.0, 1.0], Construction::LeastCommitment { mean: &mean })?;
/// assert_eq!(least.positive(), [1.0, 1.0]);
/// assert_eq!(least.negative(), [1.0, 1.0]);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Construction<'a> {
    /// The paper's (equations 7 to 9): `w_jk` is the same for every feature, so a class has
    /// evidence for it or against it, never both, and singleton masses are sparse.
    Direct,
    /// Denoeux's, by the principle of least commitment: the mean features of the data set stand
    /// for `phi` in equation 9. Features disagree, so `w+ > 0` for almost every class, and nearly
    /// all classes have support.
    LeastCommitment {
        /// The mean `mu_j` of each feature over the data set.
        mean: &'a [f64],
    },
}

/// The parameters of equation 3, `w_jk = beta_jk phi_j + alpha_jk`, both `J x K` with the row of
/// each feature together.
///
/// ```
/// use shafer::{Construction, Head};
///
/// let head = Head::new(2, 2, vec![3.0, 1.0, 0.0, 2.0], vec![1.0, 0.0])?;
/// let parameters = head.parameters(&[1.0, 2.0], Construction::Direct)?;
/// assert_eq!(parameters.beta, [1.0, -1.0, -1.0, 1.0]);
/// // w_jk = -0.25 and 0.25 for both features.
/// assert_eq!(parameters.alpha, [-1.25, 1.25, 1.75, -1.75]);
/// # Ok::<(), shafer::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct EvidentialParameters {
    /// `alpha_jk` (equation 9).
    pub alpha: Vec<f64>,
    /// `beta_jk` (equation 8).
    pub beta: Vec<f64>,
}

impl Head {
    /// A layer from its weights, `features x classes` with the row of each feature together, and
    /// its bias.
    ///
    /// ```
    /// use shafer::{Error, Head};
    ///
    /// let error = Head::new(2, 3, vec![0.0; 5], vec![0.0; 3]).unwrap_err();
    /// assert_eq!(error, Error::Length { what: "the weights", expected: 6, found: 5 });
    /// ```
    pub fn new(features: usize, classes: usize, weights: Vec<f64>, bias: Vec<f64>) -> Result<Self> {
        if features == 0 {
            return Err(Error::Empty { what: "the set of features" });
        }
        if classes == 0 {
            return Err(Error::Empty { what: "the frame" });
        }
        // A product that saturates is longer than any vector.
        let expected = features.saturating_mul(classes);
        check_length("the weights", expected, weights.len())?;
        check_length("the bias", classes, bias.len())?;
        finite("weight", classes, &weights)?;
        finite("bias", classes, &bias)?;
        Ok(Self { features, classes, weights, bias })
    }

    /// The same from weights stored `classes x features`, as `PyTorch` keeps a linear layer.
    ///
    /// ```
    /// use shafer::Head;
    ///
    /// let by_class = Head::from_output_major(2, 3, &[1., 2., 3., 4., 5., 6.], vec![0.0; 3])?;
    /// let by_feature = Head::new(2, 3, vec![1., 3., 5., 2., 4., 6.], vec![0.0; 3])?;
    /// assert_eq!(by_class, by_feature);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn from_output_major(
        features: usize,
        classes: usize,
        weights: &[f64],
        bias: Vec<f64>,
    ) -> Result<Self> {
        let expected = features.saturating_mul(classes);
        check_length("the weights", expected, weights.len())?;
        let mut transposed = Vec::with_capacity(weights.len());
        for feature in 0..features {
            transposed.extend(weights.iter().skip(feature).step_by(features));
        }
        Self::new(features, classes, transposed, bias)
    }

    /// The number of features, `J`.
    ///
    /// ```
    /// assert_eq!(shafer::Head::new(1, 2, vec![0.0; 2], vec![0.0; 2])?.features(), 1);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn features(&self) -> usize {
        self.features
    }

    /// The number of classes, `K`.
    ///
    /// ```
    /// assert_eq!(shafer::Head::new(1, 2, vec![0.0; 2], vec![0.0; 2])?.classes(), 2);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn classes(&self) -> usize {
        self.classes
    }

    /// The logits, `l_k = bias_k + sum_j weight_jk phi_j`.
    ///
    /// ```
    /// let head = shafer::Head::new(1, 2, vec![2.0, -1.0], vec![0.5, 0.0])?;
    /// assert_eq!(head.logits(&[3.0])?, [6.5, -3.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn logits(&self, features: &[f64]) -> Result<Vec<f64>> {
        self.check("feature", "the features", features)?;
        let logits = affine(&self.bias, &self.weights, features);
        // Overflow to -inf would silently mask a class.
        finite("logit", self.classes, &logits)?;
        Ok(logits)
    }

    /// The evidence of these features: `w+_k = sum_j max(0, w_jk)`, `w-_k = sum_j max(0, -w_jk)`
    /// with `w_jk` of equation 3.
    ///
    /// [`Construction::Direct`] is [`Evidence::from_logits`] of the [`logits`](Self::logits):
    /// centring the parameters (equation 8) and centring the logits are the same thing.
    ///
    /// ```
    /// use shafer::{Construction, Head};
    ///
    /// let head = Head::new(2, 2, vec![1.0, -1.0, 0.5, -0.5], vec![0.0, 0.0])?;
    /// let mean = [1.0, 1.0];
    /// let evidence = head.evidence(&[2.0, 0.0], Construction::LeastCommitment { mean: &mean })?;
    /// // w_j0 = 1 (2 - 1) + 0.75 and 0.5 (0 - 1) + 0.75.
    /// assert_eq!(evidence.positive(), [2.0, 0.0]);
    /// assert_eq!(evidence.negative(), [0.0, 2.0]);
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn evidence(&self, features: &[f64], construction: Construction<'_>) -> Result<Evidence> {
        let Construction::LeastCommitment { mean } = construction else {
            return Evidence::from_logits(&self.logits(features)?);
        };
        self.check("feature", "the features", features)?;
        self.check("mean feature", "the mean features", mean)?;
        let beta = self.centred_weights();
        let share = self.shares(&beta, mean);
        let mut positive = vec![Sum::default(); self.classes];
        let mut negative = positive.clone();
        let rows = beta.chunks_exact(self.classes);
        for (feature, ((row, &phi), &mu)) in rows.zip(features).zip(mean).enumerate() {
            for (class, (&beta, &share)) in row.iter().zip(&share).enumerate() {
                // Taken together, so that features at their mean leave no rounding error.
                let weight = beta.mul_add(phi - mu, share);
                if !weight.is_finite() {
                    return Err(not_finite("evidential weight", feature, class, weight));
                }
                positive[class].add(weight.max(0.0));
                negative[class].add((-weight).max(0.0));
            }
        }
        let positive: Vec<f64> = positive.into_iter().map(Sum::value).collect();
        let negative: Vec<f64> = negative.into_iter().map(Sum::value).collect();
        // Overflow to +inf would silently mask a class.
        finite("negative weight", self.classes, &negative)?;
        Evidence::new(positive, negative)
    }

    /// The parameters of equation 3: `beta` by equation 8, `alpha` by equation 9 with these
    /// features, or their means, for `phi`.
    ///
    /// Either way `sum_j alpha_jk` is the bias of the class up to a constant (appendix B), which
    /// is what makes the plausibility transform equal to softmax.
    ///
    /// ```
    /// use shafer::{Construction, Head};
    ///
    /// let head = Head::new(1, 2, vec![3.0, 1.0], vec![1.0, 0.0])?;
    /// let mean = Construction::LeastCommitment { mean: &[4.0] };
    /// let parameters = head.parameters(&[1.0], mean)?;
    /// assert_eq!(parameters.beta, [1.0, -1.0]);
    /// assert_eq!(parameters.alpha, [0.5, -0.5]); // the centred bias, as there is one feature
    /// # Ok::<(), shafer::Error>(())
    /// ```
    pub fn parameters(
        &self,
        features: &[f64],
        construction: Construction<'_>,
    ) -> Result<EvidentialParameters> {
        self.check("feature", "the features", features)?;
        let reference = match construction {
            Construction::Direct => features,
            Construction::LeastCommitment { mean } => {
                self.check("mean feature", "the mean features", mean)?;
                mean
            }
        };
        let beta = self.centred_weights();
        let share = self.shares(&beta, reference);
        let alpha: Vec<f64> = beta
            .chunks_exact(self.classes)
            .zip(reference)
            .flat_map(|(row, &phi)| {
                row.iter().zip(&share).map(move |(&beta, &share)| (-beta).mul_add(phi, share))
            })
            .collect();
        finite("alpha", self.classes, &alpha)?;
        Ok(EvidentialParameters { alpha, beta })
    }

    /// Equation 8: each feature's weights minus their mean over the classes.
    fn centred_weights(&self) -> Vec<f64> {
        self.weights.chunks_exact(self.classes).flat_map(centred).collect()
    }

    /// The part of equation 9 that every feature gets: `(beta_0k + sum_j beta_jk phi_j) / J`.
    fn shares(&self, beta: &[f64], features: &[f64]) -> Vec<f64> {
        let bias: Vec<f64> = centred(&self.bias).collect();
        let mut shares = affine(&bias, beta, features);
        for share in &mut shares {
            *share /= self.features as f64;
        }
        shares
    }

    fn check(&self, what: &'static str, whole: &'static str, values: &[f64]) -> Result<()> {
        check_length(whole, self.features, values.len())?;
        finite(what, self.features, values)
    }
}

fn centred(row: &[f64]) -> impl Iterator<Item = f64> {
    let centre = Centre::new(row.iter().copied());
    row.iter().map(move |&value| centre.map_or(0.0, |centre| centre.deviation(value)))
}

/// `bias_k + sum_j weights_jk features_j`, weights by feature.
fn affine(bias: &[f64], weights: &[f64], features: &[f64]) -> Vec<f64> {
    let mut sums: Vec<Sum> = bias.iter().map(|&bias| Sum::from_iter([bias])).collect();
    for (row, &phi) in weights.chunks_exact(bias.len()).zip(features) {
        for (sum, &weight) in sums.iter_mut().zip(row) {
            sum.add(weight * phi);
        }
    }
    sums.into_iter().map(Sum::value).collect()
}

fn finite(what: &'static str, columns: usize, values: &[f64]) -> Result<()> {
    match values.iter().position(|value| !value.is_finite()) {
        Some(at) => Err(not_finite(what, at / columns, at % columns, values[at])),
        None => Ok(()),
    }
}

fn not_finite(what: &'static str, row: usize, column: usize, value: f64) -> Error {
    Error::Value { what, row, column, value, rule: "must be finite" }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn names_what_is_wrong() {
        assert!(matches!(Head::new(0, 2, vec![], vec![0.0; 2]), Err(Error::Empty { .. })));
        assert!(matches!(Head::new(2, 0, vec![], vec![]), Err(Error::Empty { .. })));
        assert!(Head::from_output_major(0, 0, &[], vec![]).is_err());
        assert!(Head::new(usize::MAX, 2, vec![0.0; 2], vec![0.0; 2]).is_err());
        let nan = Head::new(2, 2, vec![0.0, 0.0, f64::NAN, 0.0], vec![0.0; 2]);
        assert!(matches!(nan, Err(Error::Value { what: "weight", row: 1, column: 0, .. })));
        let head = Head::new(1, 2, vec![1.0, -1.0], vec![0.0; 2]).unwrap();
        assert!(matches!(head.logits(&[]), Err(Error::Length { expected: 1, found: 0, .. })));
        assert!(matches!(head.logits(&[f64::NAN]), Err(Error::Value { what: "feature", .. })));
        let mean = Construction::LeastCommitment { mean: &[] };
        assert!(matches!(head.evidence(&[0.0], mean), Err(Error::Length { .. })));
        assert!(matches!(head.parameters(&[0.0], mean), Err(Error::Length { .. })));
    }

    #[test]
    fn overflow_is_an_error_and_not_a_mask() {
        let head = Head::new(1, 2, vec![1.0, -1e300], vec![0.0; 2]).unwrap();
        let error = head.evidence(&[1e300], Construction::Direct);
        assert!(matches!(error, Err(Error::Value { what: "logit", column: 1, .. })));
        let mean = Construction::LeastCommitment { mean: &[0.0] };
        assert!(head.evidence(&[1e300], mean).is_err());
    }
}
