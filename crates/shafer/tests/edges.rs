//! Rows at the edge: ties, the smallest difference, the ends of the range, and what many rounds leave.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{ALL, Oracle, SplitMix, rows};
use shafer::{Logits, Method, Threads};

/// More rounds keep a part of what fewer keep.
#[test]
fn rounds_nest() {
    let mut rng = SplitMix(23);
    for classes in [2, 10, 33, 500] {
        let logits: Vec<f32> = rows(&mut rng, 50, classes);
        let batch = Logits::rows(&logits, classes).unwrap();
        let mut before = vec![true; logits.len()];
        for rounds in 1..8 {
            let mut out = vec![0.0; logits.len()];
            let method = Oracle::Evidential { rounds }.method();
            method.dense_into(&batch, Threads::One, &mut out).unwrap();
            let kept: Vec<bool> = out.iter().map(|&p| p > 0.0).collect();
            assert!(kept.iter().zip(&before).all(|(now, before)| !now || *before));
            before = kept;
        }
    }
}

/// Temperature cannot change what the evidence supports.
#[test]
fn temperature_keeps_the_evidential_support() {
    let mut rng = SplitMix(29);
    for classes in [10, 65] {
        let logits: Vec<f32> = rows(&mut rng, 50, classes);
        let batch = Logits::rows(&logits, classes).unwrap();
        let method = Oracle::Evidential { rounds: 1 }.method();
        let one = method.csr(&batch, Threads::One).unwrap();
        for temperature in [1e-3, 0.5, 40.0, 1e9] {
            let other = method.csr(&batch.temperature(temperature).unwrap(), Threads::One).unwrap();
            assert_eq!(one.indices(), other.indices());
        }
    }
}

#[test]
fn vacuous_rows_are_kept_whole_and_counted() {
    for classes in [1, 2, 10, 33, 1000] {
        for value in [0.0, 1.0 / 3.0, -7.1, 1e30, 1e-40] {
            let logits = vec![value as f32; classes];
            let mut out = vec![0.0; classes];
            let method = Oracle::Evidential { rounds: 3 }.method();
            let report =
                method.dense_into(&Logits::row(&logits).unwrap(), Threads::One, &mut out).unwrap();
            assert_eq!(report.vacuous, usize::from(classes > 1));
            assert!(out.iter().all(|&p| (p * classes as f32 - 1.0).abs() < 1e-6), "{out:?}");

            let logits = vec![value; classes];
            let mut sizes = [0];
            let batch = Logits::row(&logits).unwrap();
            let report = method.sizes_into(&batch, Threads::One, &mut sizes).unwrap();
            assert_eq!((sizes[0] as usize, report.vacuous), (classes, usize::from(classes > 1)));
        }
    }
}

/// One class apart by the smallest amount there is: the larger one is kept.
#[test]
fn one_ulp_apart() {
    for classes in [2, 3, 10, 33, 777] {
        for base in [1.0_f64, -3.7, 1e15, 123_456.789, f64::MAX / 2.0] {
            let mut logits = vec![base; classes];
            logits[classes / 2] = base.next_up();
            let p = Oracle::Evidential { rounds: 1 }.method().row(&logits).unwrap();
            assert!(p.iter().enumerate().all(|(k, &p)| (p > 0.0) == (k == classes / 2)), "{base}");
        }
        for base in [1.0_f32, -3.7, 1e15, 123_456.79] {
            let mut logits = vec![base; classes];
            logits[classes / 2] = base.next_up();
            let p = Oracle::Evidential { rounds: 1 }.method().row(&logits).unwrap();
            assert!(p.iter().enumerate().all(|(k, &p)| (p > 0.0) == (k == classes / 2)), "{base}");
        }
    }
}

#[test]
fn the_ends_of_the_range() {
    let extremes = [f64::MAX, -f64::MAX, 0.0, f64::MAX / 2.0, f64::MIN_POSITIVE];
    let floats: Vec<f32> = vec![f32::MAX, -f32::MAX, 0.0, f32::MAX / 2.0, f32::MIN_POSITIVE];
    for oracle in ALL {
        if matches!(oracle, Oracle::SparsegenHg { .. }) {
            continue;
        }
        let p = oracle.method().row(&extremes).unwrap();
        assert_eq!(p[0], 1.0, "{oracle:?}");
        let p = oracle.method().row(&floats).unwrap();
        assert_eq!(p[0], 1.0, "{oracle:?}");
        let long: Vec<f32> = floats.iter().copied().cycle().take(165).collect();
        let p = oracle.method().row(&long).unwrap();
        assert!((p.iter().sum::<f32>() - 1.0).abs() < 1e-5, "{oracle:?}");
    }
}

/// Survivors whose probability underflows stay in the compressed support.
#[test]
fn underflowing_survivors_are_kept() {
    for classes in [4, 40] {
        let mut logits = vec![-3000.0_f32; classes];
        logits[0] = 1000.0;
        logits[1] = 2.0;
        let batch = Logits::row(&logits).unwrap();
        let rows = Oracle::Evidential { rounds: 1 }.method().csr(&batch, Threads::One).unwrap();
        assert_eq!(rows.row(0), Some((&[0, 1][..], &[1.0, 0.0][..])));
    }
}

/// The slope of a projection, `(alpha - 1) g / T`, can overflow and underflow, and so can the
/// difference of two logits.
#[test]
fn projections_at_the_ends_of_the_range() {
    let steep = Method::entmax(f64::MAX).unwrap();
    let cold = |logits| Logits::row(logits).unwrap().temperature(1e-30).unwrap();
    let mut out = [f64::NAN; 3];
    steep.dense_into(&cold(&[0.0, 1.0, 1.0]), Threads::One, &mut out).unwrap();
    assert_eq!(out, [0.0, 0.5, 0.5]);
    let flat = Method::sparsegen_lin(f64::MIN).unwrap();
    let hot = [f64::MAX, f64::MIN];
    let mut out = [f64::NAN; 2];
    flat.dense_into(&Logits::row(&hot).unwrap().temperature(1e30).unwrap(), Threads::One, &mut out)
        .unwrap();
    assert_eq!(out, [0.5, 0.5]);
}

/// The mean of equal numbers is that number even where their sum overflows, and rounds that drop
/// nothing end the search.
#[test]
fn rounds_without_end_over_the_largest_numbers() {
    let endless = Method::evidential(usize::MAX).unwrap();
    for classes in 2..50 {
        let mut rows = vec![f64::MAX; classes];
        let mut out = vec![f64::NAN; classes];
        let report =
            endless.dense_into(&Logits::row(&rows).unwrap(), Threads::One, &mut out).unwrap();
        assert_eq!(report.vacuous, 1);
        rows[0] = f64::MIN;
        endless.dense_into(&Logits::row(&rows).unwrap(), Threads::One, &mut out).unwrap();
        assert!(out[0] == 0.0 && out[1..].iter().all(|&p| p > 0.0), "{out:?}");
    }
}
