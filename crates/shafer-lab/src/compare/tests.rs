//! The numbers against a plain loop over dense rows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use shafer::{Evidence, jensen_shannon, total_variation};

use super::*;
use crate::method::Choice;

/// Rows that no method is at a loss with, unless they are told to be.
fn logits(rows: usize, classes: usize) -> Vec<f64> {
    let mut state = 1_u64;
    let mut next = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as f64 / f64::from(1_u32 << 31)
    };
    (0..rows * classes).map(|_| 6.0 * next() - 3.0).collect()
}

fn reports(logits: &[f64], classes: usize, chunk: usize, temperature: f64) -> Vec<MethodReport> {
    let mut pass = Pass::<f64>::new(classes, all(classes), temperature);
    for logits in logits.chunks(chunk * classes) {
        pass.add(logits).unwrap();
    }
    assert_eq!(pass.found.rows, logits.len() / classes);
    let bins = bins(classes);
    pass.found.methods.into_iter().map(|method| method.report(&bins)).collect()
}

fn all(classes: usize) -> Vec<Named> {
    Choice::all().iter().map(|choice| choice.transform(classes).unwrap()).collect()
}

fn close(a: Option<f64>, b: f64) {
    assert!((a.unwrap() - b).abs() < 1e-12, "{a:?} and {b}");
}

#[test]
fn numbers_are_those_of_a_plain_loop() {
    let (rows, classes, temperature) = (37, 11, 0.8);
    let logits = logits(rows, classes);
    let reports = reports(&logits, classes, 10, temperature);
    let scaled: Vec<f64> = logits.iter().map(|logit| logit / temperature).collect();
    for ((name, transform), report) in all(classes).into_iter().zip(reports) {
        assert_eq!(report.name, name);
        assert_eq!((report.rows, report.failed), (rows as u64, 0));
        let mut sums = [0.0; 6];
        for row in scaled.chunks(classes) {
            let softmax = Softmax.row(row).unwrap();
            let found = transform.row(row).unwrap();
            let modes = Evidence::from_logits(row).unwrap().support();
            let kept: Vec<usize> = (0..classes).filter(|&k| found[k] > 0.0).collect();
            let best = |p: &[f64]| (0..classes).max_by(|&a, &b| p[a].total_cmp(&p[b]));
            sums[0] += kept.len() as f64;
            sums[1] += kept.iter().map(|&k| softmax[k]).sum::<f64>();
            sums[2] += f64::from(best(&softmax) == best(&found));
            sums[3] +=
                modes.iter().filter(|k| kept.contains(k)).count() as f64 / modes.len() as f64;
            sums[4] += total_variation(&softmax, &found).unwrap();
            sums[5] += jensen_shannon(&softmax, &found).unwrap();
        }
        let means = sums.map(|sum| sum / rows as f64);
        let kept = report.kept.unwrap();
        close(Some(kept.mean), means[0]);
        close(Some(kept.reduction_percent), 100.0 * (1.0 - means[0] / classes as f64));
        close(report.softmax_mass_kept, means[1]);
        close(report.argmax_agreement, means[2]);
        close(report.evidential_support_kept, means[3]);
        close(report.total_variation, means[4]);
        close(report.jensen_shannon, means[5]);
        assert_eq!(report.histogram.iter().sum::<u64>(), rows as u64);
    }
}

#[test]
fn numbers_do_not_depend_on_the_chunks() {
    let logits = logits(50, 7);
    let without_time = |chunk| -> Vec<MethodReport> {
        let reports = reports(&logits, 7, chunk, 1.0);
        reports.into_iter().map(|r| MethodReport { microseconds_per_row: None, ..r }).collect()
    };
    assert_eq!(without_time(50), without_time(3));
}

#[test]
fn a_method_without_an_answer_is_counted_and_others_go_on() {
    // 1 + Kq over |sum| + Kq is infinite for no row with q of 1; a sum beyond all numbers has none.
    let mut rows = logits(5, 4);
    rows[8..12].copy_from_slice(&[f64::MAX, f64::MAX, 0.0, 0.0]);
    let reports = reports(&rows, 4, 5, 1.0);
    let failed: Vec<_> = reports.iter().filter(|report| report.failed > 0).collect();
    for report in &failed {
        assert_eq!((report.failed, report.rows), (1, 4), "{report:?}");
        assert_eq!(report.first_failure.as_ref().unwrap().row, 2);
    }
    assert!(failed.iter().any(|report| report.name.starts_with("sparsegen-hg")));
    assert_eq!(reports[1].failed, 0);
}

#[test]
fn vacuous_rows_have_no_modes() {
    let mut pass = Pass::<f64>::new(3, all(3), 1.0);
    let masked = f64::NEG_INFINITY;
    pass.add(&[1.0, 1.0, 1.0, 2.0, masked, 2.0, 0.0, 3.0, -3.0]).unwrap();
    assert_eq!(pass.found.vacuous, 2);
    let report = pass.found.methods.remove(0).report(&bins(3));
    assert_eq!((report.rows, report.evidential_support_kept), (3, Some(1.0)));
}

#[test]
fn rows_along_another_axis_are_gathered() {
    let mut packed = Vec::new();
    let shape = Shape { classes: 3, inner: 2 };
    let values: Vec<f64> = (0..12).map(f64::from).collect();
    let found = gathered(&values, shape, None, &mut packed);
    assert_eq!(found, [0., 2., 4., 1., 3., 5., 6., 8., 10., 7., 9., 11.]);
    let shape = Shape { classes: 3, inner: 1 };
    let found = gathered(&values[..6], shape, Some(&[true, false, true]), &mut packed);
    assert_eq!(found, [0., f64::NEG_INFINITY, 2., 3., f64::NEG_INFINITY, 5.]);
    // A mask for each logit, which lie as the logits do.
    let shape = Shape { classes: 3, inner: 2 };
    let mask: Vec<bool> = (0..12).map(|place| place != 4 && place != 7).collect();
    let found = gathered(&values, shape, Some(&mask), &mut packed);
    let masked = f64::NEG_INFINITY;
    assert_eq!(found, [0., 2., masked, 1., 3., 5., 6., 8., 10., masked, 9., 11.]);
}
