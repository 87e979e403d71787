//! Posterior collapse.

use serde::{Deserialize, Serialize};

/// How the posterior `q(z|x,y)` uses the latent classes over a set of examples.
///
/// A collapsed posterior ignores the image: `q(z|x,y)` is the same for every `x`, KL(q || p) goes to 0, and
/// often a single class is left. Such a training has nothing to sparsify and is counted separately.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Diagnosis {
    /// The mean of KL(q || p), in nats.
    pub kl: f64,
    /// The mutual information of latent class and image given the condition, `I(z; x | y)`, in nats. It is
    /// at most `kl`, and 0 exactly if the posterior ignores the image.
    pub information: f64,
    /// For each class, the share of the examples whose most probable class it is.
    pub shares: Vec<f64>,
}

impl Diagnosis {
    /// A posterior whose information, in nats, is below this has collapsed. For comparison: a class that
    /// one image in a hundred has is worth 0.056 nats.
    pub const COLLAPSE: f64 = 0.05;

    /// Classes with a smaller share count as unused.
    pub const UNUSED: f64 = 0.001;

    /// Whether the information is below [`COLLAPSE`](Self::COLLAPSE).
    pub fn collapsed(&self) -> bool {
        self.information < Self::COLLAPSE
    }

    /// The number of classes in use.
    pub fn classes_used(&self) -> usize {
        self.shares.iter().filter(|&&share| share >= Self::UNUSED).count()
    }
}

/// Accumulates a [`Diagnosis`].
#[derive(Debug)]
pub(crate) struct Tally {
    classes: usize,
    /// For each condition, the number of its examples and the sums of `q`.
    conditions: Vec<(f64, Vec<f64>)>,
    kl: f64,
    entropy: f64,
    most_probable: Vec<f64>,
}

impl Tally {
    pub(crate) fn new(conditions: usize, classes: usize) -> Self {
        Self {
            classes,
            conditions: vec![(0.0, vec![0.0; classes]); conditions],
            kl: 0.0,
            entropy: 0.0,
            most_probable: vec![0.0; classes],
        }
    }

    /// Adds an example: its condition, `ln q`, and `ln p` of the condition.
    pub(crate) fn add(&mut self, condition: usize, log_q: &[f64], log_p: &[f64]) {
        let (count, sums) = &mut self.conditions[condition];
        *count += 1.0;
        let mut best = 0;
        for (class, (&log_q_k, &log_p_k)) in log_q.iter().zip(log_p).enumerate() {
            let q = log_q_k.exp();
            sums[class] += q;
            self.kl += q * (log_q_k - log_p_k);
            self.entropy -= q * log_q_k;
            if log_q_k > log_q[best] {
                best = class;
            }
        }
        self.most_probable[best] += 1.0;
    }

    pub(crate) fn diagnosis(&self) -> Diagnosis {
        let examples: f64 = self.conditions.iter().map(|(count, _)| count).sum();
        // The entropy of the mean, less the mean of the entropies.
        let of_mean: f64 = self
            .conditions
            .iter()
            .flat_map(|(count, sums)| sums.iter().map(move |&sum| (sum, sum / count)))
            .filter(|&(sum, _)| sum > 0.0)
            .map(|(sum, mean)| -sum * mean.ln())
            .sum();
        debug_assert_eq!(self.most_probable.len(), self.classes);
        Diagnosis {
            kl: self.kl / examples,
            information: ((of_mean - self.entropy) / examples).max(0.0),
            shares: self.most_probable.iter().map(|count| count / examples).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(examples: &[(usize, [f64; 2])], p: [f64; 2]) -> Diagnosis {
        let mut tally = Tally::new(2, 2);
        for &(condition, q) in examples {
            tally.add(condition, &q.map(f64::ln), &p.map(f64::ln));
        }
        tally.diagnosis()
    }

    #[test]
    fn a_posterior_that_ignores_the_image_has_collapsed() {
        // The same q for all images of a condition, although both classes are used.
        let diagnosis = tally(&[(0, [0.9, 0.1]), (0, [0.9, 0.1]), (1, [0.2, 0.8])], [0.5, 0.5]);
        assert!(diagnosis.collapsed());
        assert!(diagnosis.information < 1e-12);
        assert!(diagnosis.kl > 0.1);
        assert_eq!(diagnosis.classes_used(), 2);
    }

    #[test]
    fn one_certain_bit_is_worth_ln_2() {
        let e = 1e-12;
        let diagnosis = tally(&[(0, [1.0 - e, e]), (0, [e, 1.0 - e])], [0.5, 0.5]);
        assert!((diagnosis.information - 2_f64.ln()).abs() < 1e-9);
        assert!((diagnosis.kl - 2_f64.ln()).abs() < 1e-9);
        assert_eq!(diagnosis.shares, [0.5, 0.5]);
        assert!(!diagnosis.collapsed());
    }

    /// KL(q || p) averaged is the information plus KL(mean q || p).
    #[test]
    fn information_and_kl_add_up() {
        let p: [f64; 2] = [0.3, 0.7];
        let diagnosis = tally(&[(1, [0.9, 0.1]), (1, [0.4, 0.6]), (1, [0.2, 0.8])], p);
        let mean = [0.5, 0.5_f64];
        let gap: f64 = mean.iter().zip(p).map(|(m, p)| m * (m / p).ln()).sum();
        assert!((diagnosis.kl - diagnosis.information - gap).abs() < 1e-12);
    }
}
