//! What the transforms and their arguments refuse, and how the error names it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::ALL;
use shafer::{Error, Logits, TransformExt};

#[test]
fn errors_name_row_and_column() {
    for classes in [5, 10, 40, 600] {
        for (bad, parallel) in [(f32::NAN, false), (f32::INFINITY, false), (f32::NAN, true)] {
            let mut logits = vec![0.5; classes * 300];
            logits[classes * 211 + 3] = bad;
            logits[classes * 250 + 1] = bad;
            let batch = Logits::rows(&logits, classes).unwrap().parallel(parallel);
            for oracle in ALL {
                let transform = oracle.transform();
                let mut out = vec![0.0; logits.len()];
                let mut sizes = vec![0; 300];
                for error in [
                    transform.dense(&batch, &mut out).unwrap_err(),
                    transform.compressed(&batch).unwrap_err(),
                    transform.support_sizes(&batch, &mut sizes).unwrap_err(),
                ] {
                    let Error::Value { row, column, value, .. } = error else { panic!("{error}") };
                    assert_eq!((row, column), (211, 3));
                    assert!(value.is_nan() == bad.is_nan());
                }
            }
        }
        let mut logits = vec![0.5; classes * 20];
        logits[classes * 7..classes * 8].fill(f32::NEG_INFINITY);
        for oracle in ALL {
            let error = oracle.transform().compressed(&Logits::rows(&logits, classes).unwrap());
            assert!(matches!(error, Err(Error::Row { row: 7, .. })), "{oracle:?}");
        }
    }
}

#[test]
fn bad_arguments_are_refused() {
    use shafer::{Entmax, Evidential, MinP, Softmax, SparsegenHg, SparsegenLin, TopK, TopP};
    let empty: [f32; 0] = [];
    assert!(matches!(Logits::row(&empty), Err(Error::Empty { .. })));
    assert!(matches!(Logits::rows(&empty, 0), Err(Error::Empty { .. })));
    assert!(matches!(Logits::rows(&[1.0_f32; 5], 2), Err(Error::Length { .. })));
    assert!(Logits::rows(&empty, 3).is_ok_and(|rows| rows.is_empty()));
    assert!(matches!(
        Logits::strided(&[1.0_f32; 6], &[2, 3], &[3], 0, 1),
        Err(Error::Length { .. })
    ));
    assert!(matches!(
        Logits::strided(&[1.0_f32; 6], &[2, 3], &[3, 1], 0, 2),
        Err(Error::Index { .. })
    ));
    assert!(matches!(
        Logits::strided(&[1.0_f32; 6], &[2, 3], &[3, 1], 1, 1),
        Err(Error::Index { .. })
    ));
    assert!(matches!(
        Logits::strided(&[1.0_f32; 6], &[2, 3], &[-3, 1], 0, 1),
        Err(Error::Index { .. })
    ));
    assert!(Logits::strided(&[1.0_f32; 6], &[2, 3], &[-3, 1], 3, 1).is_ok());
    assert!(Logits::strided(&[1.0_f32], &[usize::MAX, 2], &[0, 0], 0, 1).is_err());
    let row = Logits::row(&[1.0_f32, 2.0]).unwrap();
    for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-31] {
        assert!(matches!(row.temperature(temperature), Err(Error::Parameter { .. })));
    }
    assert!(matches!(row.mask(&[true; 3]), Err(Error::Length { .. })));
    assert!(matches!(Softmax.dense(&row, &mut [0.0; 3]), Err(Error::Length { .. })));
    assert!(matches!(Softmax.support_sizes(&row, &mut [0; 2]), Err(Error::Length { .. })));
    assert!(matches!(
        Softmax.vjp(&row, &[0.5; 2], &[0.0; 3], &mut [0.0; 2]),
        Err(Error::Length { .. })
    ));
    assert!(Evidential::with_rounds(0).is_err());
    assert!(TopK::new(0).is_err());
    assert!(matches!(TopK::new(3).unwrap().row(&[1.0, 2.0]), Err(Error::Parameter { .. })));
    for bad in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(TopP::new(bad).is_err() && MinP::new(bad).is_err());
    }
    for bad in [1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(SparsegenLin::new(bad).is_err());
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(SparsegenHg::new(bad).is_err());
    }
    for bad in [0.9, 1.0 + 1e-9, f64::NAN, f64::INFINITY] {
        assert!(Entmax::new(bad).is_err());
    }
    // Without an offset, logits that sum to 0 have no scale.
    assert!(matches!(SparsegenHg::new(0.0).unwrap().row(&[1.0, -1.0]), Err(Error::Row { .. })));
}

#[test]
fn no_rows_are_no_error() {
    let none: [f32; 0] = [];
    let batch = Logits::rows(&none, 7).unwrap();
    for oracle in ALL {
        for batch in [batch, batch.parallel(true)] {
            assert_eq!(oracle.transform().dense(&batch, &mut []).unwrap().rows, 0);
            assert_eq!(oracle.transform().compressed(&batch).unwrap().row_count(), 0);
        }
    }
    let batch = Logits::strided(&none, &[0, 4], &[4, 1], 0, 1).unwrap();
    assert_eq!(shafer::Softmax.compressed(&batch).unwrap().indptr(), [0]);
}

/// An array without elements has axes of any size, and strides may lead anywhere.
#[test]
fn sizes_and_strides_that_overflow() {
    let huge = usize::MAX;
    for shape in [[huge, huge, 0, 2], [huge, 0, huge, 2], [0, huge, huge, 2]] {
        let mut by_axis = shape;
        by_axis.swap(0, 3);
        for (shape, axis) in [(shape, 3), (by_axis, 0)] {
            let logits = Logits::<f32>::strided(&[], &shape, &[1; 4], 0, axis).unwrap();
            assert_eq!((logits.row_count(), logits.len()), (0, 0));
            shafer::Softmax.dense(&logits, &mut []).unwrap();
            shafer::Softmax.vjp(&logits, &[], &[], &mut []).unwrap();
            shafer::Softmax.support_sizes(&logits, &mut []).unwrap();
            assert_eq!(shafer::Softmax.compressed(&logits).unwrap().row_count(), 0);
        }
    }
    for stride in [isize::MIN, isize::MAX] {
        let (shape, strides) = ([2, huge, huge, huge], [stride; 4]);
        let logits = Logits::strided(&[0.0_f32], &shape, &strides, 0, 0);
        assert!(matches!(logits, Err(Error::Index { .. })));
    }
}
