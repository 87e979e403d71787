//! Distances and targets against the values of `fixtures/distances.json`, made at 60 digits.

#![allow(clippy::unwrap_used)]

use serde::Deserialize;
use shafer::{
    Element, bhattacharyya, jensen_shannon, target_distribution, total_variation, wasserstein_1,
    wasserstein_1_unit,
};

#[derive(Deserialize)]
struct Fixture {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    p: Vec<f64>,
    q: Vec<f64>,
    f32: bool,
    bhattacharyya: Option<f64>,
    wasserstein_1: f64,
    total_variation: f64,
    jensen_shannon: f64,
    target: Vec<f64>,
}

/// Within 1e-12 of the larger of 1 and the value; infinities only equal themselves.
#[track_caller]
fn assert_close(found: f64, expected: f64) {
    let close = (found - expected).abs() <= 1e-12 * expected.abs().max(1.0);
    assert!(found == expected || close, "{found} instead of {expected}");
}

fn check<P: Element, Q: Element>(p: &[P], q: &[Q], case: &Case) {
    let expected = case.bhattacharyya.unwrap_or(f64::INFINITY);
    assert_close(bhattacharyya(p, q).unwrap(), expected);
    let last = (p.len() - 1).max(1) as f64;
    let positions: Vec<f64> = (0..p.len()).map(|k| k as f64 / last).collect();
    assert_close(wasserstein_1(p, q, &positions).unwrap(), case.wasserstein_1);
    assert_close(wasserstein_1_unit(p, q).unwrap(), case.wasserstein_1);
    assert_close(total_variation(p, q).unwrap(), case.total_variation);
    assert_close(jensen_shannon(p, q).unwrap(), case.jensen_shannon);
    let found = target_distribution(p, q).unwrap();
    assert_eq!(found.len(), case.target.len());
    for (&found, &expected) in found.iter().zip(&case.target) {
        assert!((found - expected).abs() <= 1e-12 * expected, "{found} instead of {expected}");
    }
}

#[test]
fn every_case_in_both_widths() {
    let fixture: Fixture = serde_json::from_str(include_str!("fixtures/distances.json")).unwrap();
    assert!(!fixture.cases.is_empty());
    for case in &fixture.cases {
        check(&case.p, &case.q, case);
        if case.f32 {
            let narrow = |row: &[f64]| row.iter().map(|&x| x as f32).collect::<Vec<f32>>();
            check(&narrow(&case.p), &case.q, case);
            check(&narrow(&case.p), &narrow(&case.q), case);
        }
    }
}
