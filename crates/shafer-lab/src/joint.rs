//! Support sizes of joint spaces: products over groups, too large to count in an array indexed by size.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::summary::quantile;

/// A histogram of joint support sizes with logarithmic buckets. Sizes up to 2048 have a bucket each; larger ones
/// share a bucket if they agree in the first eleven binary digits, which makes quantiles too small by less
/// than 0.1%. Memory grows with the logarithm of the number of joint classes.
#[derive(Clone, Debug)]
pub(crate) struct JointSizes {
    classes: f64,
    rows: u64,
    mean: f64,
    smallest: f64,
    largest: f64,
    counts: Vec<u64>,
}

/// Mantissa bits that select the bucket.
const DIGITS: u32 = 10;

impl JointSizes {
    /// For groups of these sizes.
    pub(crate) fn new(groups: impl Iterator<Item = usize>) -> Self {
        let classes: f64 = groups.map(|size| size as f64).product();
        let buckets = if classes.is_finite() { bucket(classes) + 1 } else { 0 };
        Self {
            classes,
            rows: 0,
            mean: 0.0,
            smallest: f64::INFINITY,
            largest: 0.0,
            counts: vec![0; buckets],
        }
    }

    pub(crate) fn add(&mut self, size: f64) {
        // No buckets if the number of joint classes overflows f64.
        let Some(count) = self.counts.get_mut(bucket(size)) else { return };
        *count += 1;
        self.rows += 1;
        self.mean += (size - self.mean) / self.rows as f64;
        self.smallest = self.smallest.min(size);
        self.largest = self.largest.max(size);
    }

    pub(crate) fn summary(&self) -> JointSummary {
        let reduction = |size: f64| 100.0 * (1.0 - size / self.classes);
        let kept = (self.rows > 0).then(|| JointKept {
            mean: self.mean,
            smallest: self.smallest,
            median: self.quantile(0.5),
            p90: self.quantile(0.9),
            p99: self.quantile(0.99),
            largest: self.largest,
            reduction_percent: reduction(self.mean),
            reduction_percent_by_largest: reduction(self.largest),
        });
        JointSummary { classes: self.classes, kept }
    }

    fn quantile(&self, share: f64) -> f64 {
        size(quantile(&self.counts, self.rows, share)).clamp(self.smallest, self.largest)
    }
}

/// The bucket of a size: exponent and leading mantissa bits.
fn bucket(size: f64) -> usize {
    ((size.to_bits() - 1.0_f64.to_bits()) >> (f64::MANTISSA_DIGITS - 1 - DIGITS)) as usize
}

/// The smallest size in a bucket.
fn size(bucket: usize) -> f64 {
    f64::from_bits(1.0_f64.to_bits() + ((bucket as u64) << (f64::MANTISSA_DIGITS - 1 - DIGITS)))
}

/// The summary of a joint space.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct JointSummary {
    /// `null` in JSON above 1e308.
    #[serde(serialize_with = "count")]
    pub(crate) classes: f64,
    /// `None` without rows, or above 1e308 classes.
    pub(crate) kept: Option<JointKept>,
}

/// The number of kept joint classes per row.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct JointKept {
    pub(crate) mean: f64,
    #[serde(serialize_with = "count")]
    pub(crate) smallest: f64,
    #[serde(serialize_with = "count")]
    pub(crate) median: f64,
    #[serde(serialize_with = "count")]
    pub(crate) p90: f64,
    #[serde(serialize_with = "count")]
    pub(crate) p99: f64,
    #[serde(serialize_with = "count")]
    pub(crate) largest: f64,
    /// By the mean.
    pub(crate) reduction_percent: f64,
    /// By the largest.
    pub(crate) reduction_percent_by_largest: f64,
}

/// 2^53: up to here, every integer is exact in f64.
const WHOLE: f64 = 9_007_199_254_740_992.0;

/// Serialises a count as an integer as long as it is exact.
#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
pub(crate) fn count<S: Serializer>(size: &f64, serializer: S) -> Result<S::Ok, S::Error> {
    if *size <= WHOLE {
        serializer.serialize_u64(*size as u64)
    } else {
        serializer.serialize_f64(*size)
    }
}

/// A number of joint classes for display.
pub(crate) fn count_text(size: f64) -> String {
    if size < 1e6 { format!("{size}") } else { format!("{size:.2e}") }
}

/// A mean number of joint classes for display.
fn mean_text(mean: f64) -> String {
    if mean < 1e6 { format!("{mean:.2}") } else { format!("{mean:.2e}") }
}

/// With enough digits to differ from 100%.
fn percent_text(percent: f64) -> String {
    let left = 100.0 - percent;
    let decimals = if left > 0.0 { (1.0 - left.log10().floor()).clamp(1.0, 12.0) } else { 1.0 };
    format!("{percent:.*}%", decimals as usize)
}

impl fmt::Display for JointSummary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.classes.is_infinite() {
            return writeln!(f, "joint space     more than 1e308 classes: too many to count");
        }
        writeln!(f, "joint space     {} classes", count_text(self.classes))?;
        let Some(kept) = &self.kept else { return Ok(()) };
        writeln!(
            f,
            "joint kept      mean {}, median {}, 90% {}, 99% {}, smallest {}, largest {}",
            mean_text(kept.mean),
            count_text(kept.median),
            count_text(kept.p90),
            count_text(kept.p99),
            count_text(kept.smallest),
            count_text(kept.largest)
        )?;
        writeln!(
            f,
            "joint reduction {} by the mean, {} by the largest",
            percent_text(kept.reduction_percent),
            percent_text(kept.reduction_percent_by_largest)
        )
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    /// Against the sorted list.
    #[test]
    fn quantiles_are_those_of_the_sorted_sizes() {
        for (groups, exact) in [(vec![5, 5], true), (vec![32; 8], false), (vec![512; 32], false)] {
            let mut state = 1_u64;
            let mut next = |n: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (state >> 33) as usize % n + 1
            };
            let mut sizes = JointSizes::new(groups.iter().copied());
            let mut all: Vec<f64> =
                (0..1001).map(|_| groups.iter().map(|&size| next(size) as f64).product()).collect();
            for &size in &all {
                sizes.add(size);
            }
            all.sort_by(f64::total_cmp);
            let summary = sizes.summary();
            let kept = summary.kept.unwrap();
            assert_eq!((kept.smallest, kept.largest), (all[0], all[1000]));
            for (found, place) in [(kept.median, 500), (kept.p90, 900), (kept.p99, 990)] {
                let wanted = all[place];
                assert!(found <= wanted && found >= wanted * 0.999, "{found} for {wanted}");
                assert!(!exact || found == wanted);
            }
            let mean = all.iter().sum::<f64>() / 1001.0;
            assert!((kept.mean / mean - 1.0).abs() < 1e-12);
            let reduction = 100.0 * (1.0 - mean / summary.classes);
            assert!((kept.reduction_percent - reduction).abs() < 1e-9);
            // 32 variables of 512 classes: 2^288, in a few megabytes.
            assert!(sizes.counts.len() <= 288 * 1024 + 1);
        }
    }

    #[test]
    fn small_sizes_are_counted_each_by_itself() {
        for n in 1..=2048 {
            assert_eq!(size(bucket(f64::from(n))), f64::from(n));
        }
        assert_eq!(size(bucket(2049.0)), 2048.0);
    }

    #[test]
    fn more_classes_than_a_number_can_be() {
        let mut sizes = JointSizes::new(std::iter::repeat_n(2, 1024));
        sizes.add(4.0);
        let summary = sizes.summary();
        assert_eq!(summary.kept, None);
        assert!(summary.to_string().contains("more than 1e308"));
        assert_eq!(serde_json::to_value(summary).unwrap()["classes"], serde_json::Value::Null);
    }

    #[test]
    fn numbers_as_people_read_them() {
        assert_eq!(percent_text(84.0), "84.0%");
        assert_eq!(percent_text(99.999_912), "99.999912%");
        assert_eq!(percent_text(100.0), "100.0%");
        assert_eq!(percent_text(0.0), "0.0%");
        assert_eq!(count_text(25.0), "25");
        assert_eq!(count_text(1_099_511_627_776.0), "1.10e12");
        let summary = JointSizes::new([5, 5].into_iter()).summary();
        assert_eq!(serde_json::to_string(&summary).unwrap(), r#"{"classes":25,"kept":null}"#);
    }
}
