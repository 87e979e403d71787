//! Statistics of support sizes over all rows of a file.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::joint::{JointSizes, JointSummary};

/// A histogram of support sizes. Memory grows with the number of classes, not of rows.
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
        let quantile = |share: f64| quantile(&self.counts, rows, share);
        let reduction = |size: f64| 100.0 * (1.0 - size / classes as f64);
        Some(SizeSummary {
            mean,
            smallest: quantile(0.0),
            median: quantile(0.5),
            p90: quantile(0.9),
            p99: quantile(0.99),
            largest: quantile(1.0),
            reduction_percent: reduction(mean),
            reduction_percent_by_largest: reduction(quantile(1.0) as f64),
        })
    }

    /// The number of rows with a size in each of these inclusive ranges.
    pub(crate) fn histogram(&self, ranges: &[(usize, usize)]) -> Vec<u64> {
        ranges.iter().map(|&(from, to)| self.counts[from..=to].iter().sum()).collect()
    }
}

/// A quantile of a histogram: the smallest size that at least this share of the rows does not exceed.
pub(crate) fn quantile(counts: &[u64], rows: u64, share: f64) -> usize {
    let wanted = ((share * rows as f64).ceil() as u64).max(1);
    let mut seen = 0;
    let found = counts.iter().position(|&n| {
        seen += n;
        seen >= wanted
    });
    found.unwrap_or(counts.len() - 1)
}

/// Statistics of the number of kept classes per row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SizeSummary {
    pub(crate) mean: f64,
    pub(crate) smallest: usize,
    pub(crate) median: usize,
    pub(crate) p90: usize,
    pub(crate) p99: usize,
    pub(crate) largest: usize,
    /// By the mean.
    pub(crate) reduction_percent: f64,
    /// By the largest, which determines a buffer of fixed size.
    pub(crate) reduction_percent_by_largest: f64,
}

/// Support sizes by group, by row and of the joint space.
#[derive(Debug)]
pub(crate) struct Tally {
    /// The sizes of the current block: by group, then by row.
    sizes: Vec<Vec<u32>>,
    /// All groups together.
    rows: SizeCounts,
    /// Empty for a single group, which equals `rows`.
    groups: Vec<SizeCounts>,
    joint: Option<JointSizes>,
}

impl Tally {
    pub(crate) fn new(groups: &[Range<usize>]) -> Self {
        let several = groups.len() > 1;
        let lengths = || groups.iter().map(ExactSizeIterator::len);
        Self {
            sizes: vec![Vec::new(); groups.len()],
            rows: SizeCounts::new(lengths().sum()),
            groups: lengths().filter(|_| several).map(SizeCounts::new).collect(),
            joint: several.then(|| JointSizes::new(lengths())),
        }
    }

    /// The buffer for the sizes of a group, one per row.
    pub(crate) fn sizes(&mut self, group: usize, rows: usize) -> &mut [u32] {
        self.sizes[group].resize(rows, 0);
        &mut self.sizes[group]
    }

    /// Adds the current block to the counts.
    pub(crate) fn count(&mut self) {
        let Some(joint) = &mut self.joint else {
            return self.sizes.iter().for_each(|sizes| self.rows.add(sizes));
        };
        for (counts, sizes) in self.groups.iter_mut().zip(&self.sizes) {
            counts.add(sizes);
        }
        for row in 0..self.sizes[0].len() {
            let sizes = || self.sizes.iter().map(|sizes| sizes[row]);
            self.rows.add(&[sizes().sum()]);
            joint.add(sizes().map(f64::from).product());
        }
    }

    pub(crate) fn summary(&self) -> Option<SizeSummary> {
        self.rows.summary()
    }

    /// By group; empty for a single group.
    pub(crate) fn groups(&self) -> Vec<GroupSummary> {
        let summary = |counts: &SizeCounts| GroupSummary {
            classes: counts.counts.len() - 1,
            kept: counts.summary(),
        };
        self.groups.iter().map(summary).collect()
    }

    /// The joint space; `None` for a single group.
    pub(crate) fn joint(&self) -> Option<JointSummary> {
        self.joint.as_ref().map(JointSizes::summary)
    }
}

/// Statistics of the number of kept classes of a group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct GroupSummary {
    pub(crate) classes: usize,
    pub(crate) kept: Option<SizeSummary>,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
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

    #[test]
    fn groups_are_counted_by_themselves_and_together() {
        let mut tally = Tally::new(&[0..4, 4..6]);
        for (first, second) in [([1, 4], [2, 2]), ([2, 3], [1, 1])] {
            tally.sizes(0, 2).copy_from_slice(&first);
            tally.sizes(1, 2).copy_from_slice(&second);
            tally.count();
        }
        // Rows keep 3, 6, 3 and 4 classes, and 2, 8, 2 and 3 joint ones.
        assert_eq!(tally.summary().unwrap().mean, 4.0);
        let means: Vec<f64> = tally.groups().into_iter().map(|g| g.kept.unwrap().mean).collect();
        assert_eq!(means, [2.5, 1.5]);
        let joint = tally.joint().unwrap();
        assert_eq!(joint.classes, 8.0);
        let kept = joint.kept.unwrap();
        assert_eq!((kept.mean, kept.median, kept.p90), (3.75, 2.0, 8.0));
        assert_eq!(kept.reduction_percent_by_largest, 0.0);

        let mut tally = Tally::new(std::slice::from_ref(&(0..4)));
        tally.sizes(0, 2).copy_from_slice(&[1, 3]);
        tally.count();
        assert_eq!(tally.summary().unwrap().mean, 2.0);
        assert!(tally.groups().is_empty() && tally.joint().is_none());
    }
}
