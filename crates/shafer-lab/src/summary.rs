//! What a whole file of rows comes to.

use serde::Serialize;

/// Support sizes, counted by size: memory grows with the number of classes, not of rows.
#[derive(Clone, Debug)]
pub(crate) struct SizeCounts {
    counts: Vec<u64>,
}

impl SizeCounts {
    pub(crate) fn new(classes: usize) -> Self {
        Self { counts: vec![0; classes + 1] }
    }

    pub(crate) fn add(&mut self, sizes: &[u32]) {
        for &size in sizes {
            self.counts[size as usize] += 1;
        }
    }

    /// `None` without rows.
    pub(crate) fn summary(&self) -> Option<SizeSummary> {
        let rows: u64 = self.counts.iter().sum();
        if rows == 0 {
            return None;
        }
        let stored: u64 = self.counts.iter().enumerate().map(|(size, n)| size as u64 * n).sum();
        let classes = self.counts.len() - 1;
        let mean = stored as f64 / rows as f64;
        Some(SizeSummary {
            mean,
            smallest: self.quantile(rows, 0.0),
            median: self.quantile(rows, 0.5),
            p90: self.quantile(rows, 0.9),
            p99: self.quantile(rows, 0.99),
            largest: self.quantile(rows, 1.0),
            reduction_percent: 100.0 * (1.0 - mean / classes as f64),
            reduction_percent_by_largest: 100.0
                * (1.0 - self.quantile(rows, 1.0) as f64 / classes as f64),
        })
    }

    /// How many rows have a size within each of these ranges, both ends included.
    pub(crate) fn histogram(&self, ranges: &[(usize, usize)]) -> Vec<u64> {
        ranges.iter().map(|&(from, to)| self.counts[from..=to].iter().sum()).collect()
    }

    /// The smallest size that at least this share of the rows does not exceed.
    fn quantile(&self, rows: u64, share: f64) -> usize {
        let wanted = ((share * rows as f64).ceil() as u64).max(1);
        let mut seen = 0;
        for (size, &n) in self.counts.iter().enumerate() {
            seen += n;
            if seen >= wanted {
                return size;
            }
        }
        self.counts.len() - 1
    }
}

/// How many classes rows keep.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct SizeSummary {
    pub(crate) mean: f64,
    pub(crate) smallest: usize,
    pub(crate) median: usize,
    pub(crate) p90: usize,
    pub(crate) p99: usize,
    pub(crate) largest: usize,
    /// By the mean.
    pub(crate) reduction_percent: f64,
    /// By the largest, which is what a buffer of fixed size needs.
    pub(crate) reduction_percent_by_largest: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_sorted_sizes() {
        let mut counts = SizeCounts::new(10);
        assert_eq!(counts.summary(), None);
        counts.add(&[3, 1, 2, 2]);
        counts.add(&[7]);
        let summary = counts.summary();
        assert!(summary.as_ref().is_some_and(|s| s.mean == 3.0 && s.median == 2));
        assert!(summary.as_ref().is_some_and(|s| s.smallest == 1 && s.largest == 7 && s.p90 == 7));
        assert!(summary.is_some_and(|s| (s.reduction_percent - 70.0).abs() < 1e-12));
    }
}
