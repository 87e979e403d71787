//! What the transforms and their arguments refuse, and how the error names it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::ALL;
use shafer::{Error, Logits, Method, Threads};

#[test]
fn errors_name_row_and_column() {
    for classes in [5, 10, 40, 600] {
        for (bad, threads) in
            [(f32::NAN, Threads::One), (f32::INFINITY, Threads::One), (f32::NAN, Threads::All)]
        {
            let mut logits = vec![0.5; classes * 300];
            logits[classes * 211 + 3] = bad;
            logits[classes * 250 + 1] = bad;
            let batch = Logits::rows(&logits, classes).unwrap();
            for oracle in ALL {
                let method = oracle.method();
                let mut out = vec![0.0; logits.len()];
                let mut sizes = vec![0; 300];
                for error in [
                    method.dense_into(&batch, threads, &mut out).unwrap_err(),
                    method.csr(&batch, threads).unwrap_err(),
                    method.sizes_into(&batch, threads, &mut sizes).unwrap_err(),
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
            let error = oracle.method().csr(&Logits::rows(&logits, classes).unwrap(), Threads::One);
            assert!(matches!(error, Err(Error::Row { row: 7, .. })), "{oracle:?}");
        }
    }
}

#[test]
fn bad_arguments_are_refused() {
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
    assert!(matches!(
        Method::SOFTMAX.dense_into(&row, Threads::One, &mut [0.0; 3]),
        Err(Error::Length { .. })
    ));
    assert!(matches!(
        Method::SOFTMAX.sizes_into(&row, Threads::One, &mut [0; 2]),
        Err(Error::Length { .. })
    ));
    assert!(matches!(
        Method::SOFTMAX.vjp(&row, Threads::One, &[0.5; 2], &[0.0; 3], &mut [0.0; 2]),
        Err(Error::Length { .. })
    ));
    assert!(Method::evidential(0).is_err());
    assert!(Method::top_k(0).is_err());
    assert!(matches!(Method::top_k(3).unwrap().row(&[1.0, 2.0]), Err(Error::Parameter { .. })));
    for bad in [0.0, -0.1, 1.1, f64::NAN, f64::INFINITY] {
        assert!(Method::top_p(bad).is_err() && Method::min_p(bad).is_err());
    }
    for bad in [1.0, 2.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert!(Method::sparsegen_lin(bad).is_err());
    }
    for bad in [-1.0, f64::NAN, f64::INFINITY] {
        assert!(Method::sparsegen_hg(bad).is_err());
    }
    for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Method::top_n_sigma(bad).is_err());
    }
    let kept = Method::SOFTMAX.csr(&row, Threads::One).unwrap();
    for upstream in [&[0.0; 1][..], &[0.0; 3]] {
        let refused = Method::SOFTMAX.csr_vjp(&row, Threads::One, &kept, upstream, &mut [0.0; 2]);
        assert!(matches!(refused, Err(Error::Length { what: "upstream", .. })));
    }
    let other = Method::SOFTMAX.csr(&Logits::row(&[1.0_f32; 3]).unwrap(), Threads::One).unwrap();
    let refused = Method::SOFTMAX.csr_vjp(&row, Threads::One, &other, &[0.0; 3], &mut [0.0; 2]);
    assert!(matches!(refused, Err(Error::Length { .. })));
    for bad in [0.9, 1.0 + 1e-9, f64::NAN, f64::INFINITY] {
        assert!(Method::entmax(bad).is_err());
    }
    // Without an offset, logits that sum to 0 have no scale.
    assert!(matches!(Method::sparsegen_hg(0.0).unwrap().row(&[1.0, -1.0]), Err(Error::Row { .. })));
}

#[test]
fn no_rows_are_no_error() {
    let none: [f32; 0] = [];
    let batch = Logits::rows(&none, 7).unwrap();
    for oracle in ALL {
        for threads in [Threads::One, Threads::All, Threads::AtMost(0)] {
            assert_eq!(oracle.method().dense_into(&batch, threads, &mut []).unwrap().rows, 0);
            assert_eq!(oracle.method().csr(&batch, threads).unwrap().rows(), 0);
        }
    }
    let batch = Logits::strided(&none, &[0, 4], &[4, 1], 0, 1).unwrap();
    assert_eq!(Method::SOFTMAX.csr(&batch, Threads::One).unwrap().indptr(), [0]);
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
            Method::SOFTMAX.dense_into(&logits, Threads::One, &mut []).unwrap();
            Method::SOFTMAX.vjp(&logits, Threads::One, &[], &[], &mut []).unwrap();
            Method::SOFTMAX.sizes_into(&logits, Threads::One, &mut []).unwrap();
            assert_eq!(Method::SOFTMAX.csr(&logits, Threads::One).unwrap().rows(), 0);
        }
    }
    for stride in [isize::MIN, isize::MAX] {
        let (shape, strides) = ([2, huge, huge, huge], [stride; 4]);
        let logits = Logits::strided(&[0.0_f32], &shape, &strides, 0, 0);
        assert!(matches!(logits, Err(Error::Index { .. })));
    }
}
