//! Sums the measurements of a method over all rows.

use std::time::Duration;

use shafer::{Element, Error, Method};

use super::measure::RowNumbers;
use super::top::Top;
use super::truth::TruthTotals;
use super::{Failure, MethodReport, Output};
use crate::summary::SizeCounts;

/// The sums of one method.
pub(super) struct Totals {
    name: String,
    pub(super) method: Method,
    sizes: SizeCounts,
    rows: u64,
    above_one_percent: u64,
    effective_classes: f64,
    mass: f64,
    dropped: f64,
    pub(super) most_dropped: Top,
    agreeing: u64,
    support_kept: f64,
    support_kept_whole: u64,
    not_vacuous: u64,
    total_variation: f64,
    jensen_shannon: f64,
    truth: TruthTotals,
    time: Duration,
    failed: u64,
    first_failure: Option<Failure>,
}

impl Totals {
    pub(super) fn new(name: String, method: Method, classes: usize) -> Self {
        Self {
            name,
            method,
            sizes: SizeCounts::new(classes),
            rows: 0,
            above_one_percent: 0,
            effective_classes: 0.0,
            mass: 0.0,
            dropped: 0.0,
            most_dropped: Top::default(),
            agreeing: 0,
            support_kept: 0.0,
            support_kept_whole: 0,
            not_vacuous: 0,
            total_variation: 0.0,
            jensen_shannon: 0.0,
            truth: TruthTotals::default(),
            time: Duration::ZERO,
            failed: 0,
            first_failure: None,
        }
    }

    pub(super) fn add<E: Element>(
        &mut self,
        numbers: &[Option<RowNumbers>],
        output: &Output<'_, E>,
        first: usize,
    ) {
        self.time += output.time;
        for (row, numbers) in numbers.iter().enumerate() {
            let Some(n) = numbers else {
                self.failed += 1;
                if let (None, Err(error)) = (&self.first_failure, output.row(row)) {
                    let reason = match error {
                        Error::Row { rule, .. } => (*rule).to_owned(),
                        error => error.to_string(),
                    };
                    self.first_failure = Some(Failure { row: first + row, reason });
                }
                continue;
            };
            self.rows += 1;
            self.sizes.add(&[n.size]);
            self.above_one_percent += u64::from(n.above_one_percent);
            self.effective_classes += n.effective_classes;
            self.mass += n.mass;
            self.dropped += n.dropped;
            self.most_dropped.add(first + row, n.dropped);
            self.agreeing += u64::from(n.agrees);
            if let Some(share) = n.support_kept {
                self.not_vacuous += 1;
                self.support_kept += share;
                self.support_kept_whole += u64::from(share == 1.0);
            }
            if let Some(truth) = n.truth {
                self.truth.add(truth);
            }
            self.total_variation += n.total_variation;
            self.jensen_shannon += n.jensen_shannon;
        }
    }

    pub(super) fn report(self, bins: &[(usize, usize)]) -> MethodReport {
        let mean = |sum: f64, rows: u64| (rows > 0).then(|| sum / rows as f64);
        let tried = self.rows + self.failed;
        MethodReport {
            name: self.name,
            rows: self.rows,
            kept: self.sizes.summary(),
            kept_above_one_percent: mean(self.above_one_percent as f64, self.rows),
            effective_classes: mean(self.effective_classes, self.rows),
            softmax_mass_kept: mean(self.mass, self.rows),
            softmax_mass_dropped: mean(self.dropped, self.rows),
            argmax_agreement: mean(self.agreeing as f64, self.rows),
            evidential_support_kept: mean(self.support_kept, self.not_vacuous),
            evidential_support_kept_whole: mean(self.support_kept_whole as f64, self.not_vacuous),
            total_variation: mean(self.total_variation, self.rows),
            jensen_shannon: mean(self.jensen_shannon, self.rows),
            truth: self.truth.report(),
            microseconds_per_row: mean(self.time.as_secs_f64() * 1e6, tried),
            failed: self.failed,
            first_failure: self.first_failure,
            histogram: self.sizes.histogram(bins),
            most_dropped: self.most_dropped.into_rows(),
        }
    }
}

/// The bins of the histograms: one per size if there are few classes, otherwise ranges of growing width, because
/// methods differ by factors.
pub(super) fn bins(classes: usize) -> Vec<(usize, usize)> {
    const FEW: usize = 32;
    let mut bins = Vec::new();
    let mut from = 1;
    while from <= classes {
        let next = if classes <= FEW { from + 1 } else { from + 1 + from / 4 };
        bins.push((from, (next - 1).min(classes)));
        from = next;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_cover_every_size_once() {
        for classes in [1, 2, 32, 33, 512, 50_000] {
            let bins = bins(classes);
            assert_eq!((bins[0].0, bins[bins.len() - 1].1), (1, classes));
            assert!(bins.windows(2).all(|pair| pair[0].1 + 1 == pair[1].0));
            assert!(bins.len() <= 60, "{}", bins.len());
        }
    }
}
