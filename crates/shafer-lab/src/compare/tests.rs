//! Compares the results with a plain loop over dense rows.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use shafer::{Belief, Evidence, Method, jensen_shannon, total_variation};

use super::*;
use crate::method::Choice;

/// Pseudo-random rows that every method accepts.
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
    let bins = bins(classes);
    let found = found(logits, None, classes, chunk, temperature);
    found.methods.into_iter().map(|method| method.report(&bins)).collect()
}

fn found(
    logits: &[f64],
    labels: Option<&[u32]>,
    classes: usize,
    chunk: usize,
    temperature: f64,
) -> Found {
    let mut pass = Pass::<f64>::new(classes, all(classes), temperature, true).unwrap();
    for (number, logits) in logits.chunks(chunk * classes).enumerate() {
        let rows = number * chunk..number * chunk + logits.len() / classes;
        pass.add(logits, labels.map(|labels| &labels[rows])).unwrap();
    }
    assert_eq!(pass.found.rows, logits.len() / classes);
    pass.found
}

fn all(classes: usize) -> Vec<Named> {
    Choice::all().iter().map(|choice| choice.method(classes).unwrap()).collect()
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
        let mut sums = [0.0; 9];
        let mut most_dropped = Vec::new();
        for (number, row) in scaled.chunks(classes).enumerate() {
            let softmax = Method::SOFTMAX.row(row).unwrap();
            let found = transform.row(row).unwrap();
            let supported = Evidence::from_logits(row).unwrap().support();
            let kept: Vec<usize> = (0..classes).filter(|&k| found[k] > 0.0).collect();
            let best = |p: &[f64]| (0..classes).max_by(|&a, &b| p[a].total_cmp(&p[b]));
            sums[0] += kept.len() as f64;
            sums[1] += kept.iter().map(|&k| softmax[k]).sum::<f64>();
            sums[2] += f64::from(best(&softmax) == best(&found));
            sums[3] += supported.iter().filter(|k| kept.contains(k)).count() as f64
                / supported.len() as f64;
            sums[4] += total_variation(&softmax, &found).unwrap();
            sums[5] += jensen_shannon(&softmax, &found).unwrap();
            sums[6] += found.iter().filter(|p| **p > 0.01).count() as f64;
            sums[7] += kept.iter().map(|&k| found[k].powf(-found[k])).product::<f64>();
            let dropped =
                (0..classes).filter(|k| !kept.contains(k)).map(|k| softmax[k]).sum::<f64>();
            sums[8] += dropped;
            most_dropped.push((number, dropped));
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
        close(report.kept_above_one_percent, means[6]);
        close(report.effective_classes, means[7]);
        close(report.softmax_mass_dropped, means[8]);
        assert_eq!(report.truth, None);
        most_dropped.sort_by(|a, b| b.1.total_cmp(&a.1));
        for (scored, &(_, dropped)) in report.most_dropped.iter().zip(&most_dropped) {
            close(Some(scored.score), dropped);
        }
        let listed: Vec<usize> = report.most_dropped.iter().map(|scored| scored.row).collect();
        let best: Vec<usize> = most_dropped.iter().take(listed.len()).map(|row| row.0).collect();
        assert_eq!(listed.len(), if name == "softmax" { 0 } else { 5 }, "{name}");
        assert_eq!(listed, best, "{name}");
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
fn vacuous_rows_have_no_support() {
    let masked = f64::NEG_INFINITY;
    let logits = [1.0, 1.0, 1.0, 2.0, masked, 2.0, 0.0, 3.0, -3.0];
    let mut found = found(&logits, None, 3, 3, 1.0);
    assert_eq!(found.vacuous, 2);
    // 3 and 2 classes that are equally probable, and one of 3.
    let last = Method::SOFTMAX.row(&[0.0_f64, 3.0, -3.0]).unwrap();
    let last: f64 = last.iter().map(|p| p.powf(-p)).product();
    close(Some(found.effective_classes), 5.0 + last);
    let report = found.methods.remove(0).report(&bins(3));
    assert_eq!((report.rows, report.evidential_support_kept), (3, Some(1.0)));
}

/// Against the theory's own function, and against all pairs of methods.
#[test]
fn the_rows_of_most_conflict_and_most_disagreement() {
    let (rows, classes, temperature) = (40, 6, 1.3);
    let logits = logits(rows, classes);
    let found = found(&logits, None, classes, 7, temperature);
    let methods = all(classes);
    let (mut conflicts, mut disagreements) = (Vec::new(), Vec::new());
    for (number, row) in logits.chunks(classes).enumerate() {
        let row: Vec<f64> = row.iter().map(|logit| logit / temperature).collect();
        let evidence = Evidence::from_logits(&row).unwrap();
        conflicts.push((number, -(1.0 - Belief::new(&evidence).internal_conflict()).ln()));
        let softmax = Method::SOFTMAX.row(&row).unwrap();
        let kept: Vec<Vec<bool>> = methods
            .iter()
            .map(|(_, method)| method.row(&row).unwrap().iter().map(|p| *p > 0.0).collect())
            .collect();
        let (mut sum, mut pairs) = (0.0, 0.0);
        for (place, a) in kept.iter().enumerate() {
            for b in &kept[..place] {
                pairs += 1.0;
                sum += (0..classes).filter(|&k| a[k] != b[k]).map(|k| softmax[k]).sum::<f64>();
            }
        }
        disagreements.push((number, sum / pairs));
    }
    for (mut expected, found) in
        [(conflicts, found.conflict.into_rows()), (disagreements, found.disagreement.into_rows())]
    {
        expected.sort_by(|a, b| b.1.total_cmp(&a.1));
        assert_eq!(found.len(), 5);
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.row, expected.0);
            close(Some(found.score), expected.1);
        }
    }
    // The page has them.
    assert_eq!(found.sample.rows().len(), rows);
}

/// With many classes the conflict rounds to 1 for every row; its score does not.
#[test]
fn conflict_is_told_apart_where_it_is_1() {
    let (rows, classes) = (10, 5000);
    let mut logits = logits(rows, classes);
    logits[3 * classes..4 * classes].iter_mut().for_each(|logit| *logit *= 2.0);
    let found = found(&logits, None, classes, 4, 1.0);
    let top = found.conflict.into_rows();
    assert!(top[0].row == 3 && top[0].score > 1.5 * top[1].score, "{top:?}");
    let row: Vec<f64> = logits[3 * classes..4 * classes].to_vec();
    let evidence = Evidence::from_logits(&row).unwrap();
    let positive = evidence.positive();
    // ln of the product of e^-w (1 + sum(e^w - 1)).
    let expected = positive.iter().sum::<f64>()
        - (1.0 + positive.iter().map(|w| w.exp_m1()).sum::<f64>()).ln();
    assert!((top[0].score - expected).abs() < 1e-9 * expected, "{} {expected}", top[0].score);
}

#[test]
fn rows_of_interest_are_in_the_sample_wherever_they_are() {
    let (rows, classes) = (1000, 5);
    let mut logits = vec![0.0; rows * classes];
    for (row, logits) in logits.chunks_mut(classes).enumerate() {
        logits[row % classes] = 1.0;
    }
    // Nothing else is like it, and it lies at no multiple of a power of two.
    logits[777 * classes..778 * classes].copy_from_slice(&[9.0, 9.0, 9.0, 0.0, 0.0]);
    let found = found(&logits, None, classes, 100, 1.0);
    let shown = found.sample.rows().iter().find(|shown| shown.row == 777).unwrap();
    assert_eq!(found.conflict.into_rows()[0].row, 777);
    let evidential = shown.methods[0].as_ref().unwrap();
    assert_eq!((evidential.kept, shown.methods.len()), (3, 11));
    assert_eq!(shown.classes[..3], [0, 1, 2]);
}

/// Each point against the transform itself, row by row.
#[test]
fn curves_are_means_over_all_rows() {
    let (rows, classes, temperature) = (23, 50, 0.7);
    let logits = logits(rows, classes);
    let curves = found(&logits, None, classes, 10, temperature).curves.unwrap().report();
    let names: Vec<_> = curves.iter().map(|curve| (curve.method, curve.parameter)).collect();
    assert_eq!(names, [("evidential", "rounds"), ("min-p", "p"), ("entmax", "alpha")]);
    for curve in curves {
        for point in curve.points {
            let choice = format!("{}:{}={}", curve.method, curve.parameter, point.value);
            let (_, transform) = choice.parse::<Choice>().unwrap().method(classes).unwrap();
            let (mut kept, mut dropped) = (0.0, 0.0);
            for row in logits.chunks(classes) {
                let row: Vec<f64> = row.iter().map(|logit| logit / temperature).collect();
                let (softmax, found) =
                    (Method::SOFTMAX.row(&row).unwrap(), transform.row(&row).unwrap());
                for class in 0..classes {
                    if found[class] > 0.0 { kept += 1.0 } else { dropped += softmax[class] }
                }
            }
            close(Some(point.kept), kept / rows as f64);
            close(Some(point.softmax_mass_dropped), dropped / rows as f64);
        }
    }
}

#[test]
fn methods_are_judged_by_the_true_classes() {
    let (rows, classes) = (60, 8);
    let logits = logits(rows, classes);
    let labels: Vec<u32> = (0..rows as u32).map(|row| row * 5 % classes as u32).collect();
    let found = found(&logits, Some(&labels), classes, 9, 1.0);
    for ((name, transform), totals) in all(classes).into_iter().zip(found.methods) {
        let (mut right, mut dropped, mut loss) = (0, 0, 0.0);
        for (row, &label) in logits.chunks(classes).zip(&labels) {
            let p = transform.row(row).unwrap();
            let best = (0..classes).rev().max_by(|&a, &b| p[a].total_cmp(&p[b])).unwrap();
            right += usize::from(best == label as usize);
            match p[label as usize] {
                0.0 => dropped += 1,
                p => loss -= p.ln(),
            }
        }
        let truth = totals.report(&bins(classes)).truth.unwrap();
        close(Some(truth.accuracy), f64::from(right as u32) / rows as f64);
        assert_eq!(truth.dropped, dropped, "{name}");
        close(Some(truth.dropped_share), dropped as f64 / rows as f64);
        let [low, high] = truth.dropped_interval;
        assert!(low <= truth.dropped_share && truth.dropped_share <= high && low < high);
        close(truth.log_loss_of_kept, loss / (rows as u64 - dropped) as f64);
    }
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
