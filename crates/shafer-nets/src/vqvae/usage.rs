//! How evenly the codes of a codebook are used.

use serde::{Deserialize, Serialize};

/// How often each code was used.
///
/// ```
/// use shafer_nets::vqvae::CodeUsage;
///
/// let mut usage = CodeUsage::new(4);
/// usage.count(&[0, 0, 3, 3]);
/// assert_eq!((usage.used(), usage.perplexity()), (2, 2.0));
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CodeUsage(Vec<u64>);

impl CodeUsage {
    /// Of this number of codes, none of which was used.
    pub fn new(codes: usize) -> Self {
        Self(vec![0; codes])
    }

    /// Counts these codes.
    pub fn count(&mut self, codes: &[u16]) {
        for &code in codes {
            self.add(usize::from(code), 1);
        }
    }

    fn add(&mut self, code: usize, count: u64) {
        if code >= self.0.len() {
            self.0.resize(code + 1, 0);
        }
        self.0[code] = self.0[code].saturating_add(count);
    }

    /// Adds the counts of another sample.
    pub fn merge(&mut self, other: &Self) {
        for (code, &count) in other.0.iter().enumerate() {
            self.add(code, count);
        }
    }

    /// The count of every code.
    pub fn counts(&self) -> &[u64] {
        &self.0
    }

    /// The number of codes that were used at all.
    pub fn used(&self) -> usize {
        self.0.iter().filter(|&&count| count > 0).count()
    }

    /// The exponential of the entropy of the codes: the number of codes that, used equally often, are as
    /// hard to predict. 0 if none was used.
    ///
    /// That of few positions is too small: at most their number. Whole epochs are comparable.
    pub fn perplexity(&self) -> f64 {
        let total: f64 = self.0.iter().map(|&count| count as f64).sum();
        if total == 0.0 {
            return 0.0;
        }
        let shares = self.0.iter().filter(|&&count| count > 0).map(|&count| count as f64 / total);
        (-shares.map(|p| p * p.ln()).sum::<f64>()).exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn perplexity_against_numpy() {
        // numpy.exp(-(p * numpy.log(p)).sum()) for p = [1, 2, 3, 4] / 10.
        let mut usage = CodeUsage::new(6);
        usage.count(&[1, 2, 2, 3, 3, 3, 5, 5, 5, 5]);
        assert!((usage.perplexity() - 3.596_115_466_624_322_5).abs() < 1e-12);
        assert_eq!(usage.used(), 4);
        let mut twice = usage.clone();
        twice.merge(&usage);
        assert_eq!(twice.counts(), [0, 2, 4, 6, 0, 8]);
        assert!((twice.perplexity() - usage.perplexity()).abs() < 1e-12);
        assert_eq!(CodeUsage::new(3).perplexity(), 0.0);
    }
}
