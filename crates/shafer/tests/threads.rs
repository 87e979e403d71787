//! Batches on pools of several sizes, from inside and from outside of them.
#![cfg(feature = "parallel")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{ALL, SplitMix, rows};
use rayon::prelude::*;
use shafer::{CsrRows, Error, Logits, Method, Threads};

/// Some threads more than there are processors, too: then some wait for one that does not run.
const POOLS: [usize; 4] = [1, 2, 3, 7];

/// Tiles, rows of which a block has many, and rows that are a block each.
const SHAPES: [(usize, usize); 4] = [(40_000, 10), (3_000, 100), (500, 700), (9, 70_000)];

fn both(method: Method, batch: &Logits<'_, f32>, threads: Threads) -> (Vec<f32>, CsrRows<f32>) {
    (method.dense(batch, threads).unwrap(), method.csr(batch, threads).unwrap())
}

#[test]
fn every_pool_has_the_same_results() {
    for (count, classes) in SHAPES {
        let logits: Vec<f32> = rows(&mut SplitMix(classes as u64), count, classes);
        let batch = Logits::rows(&logits, classes).unwrap();
        for oracle in ALL {
            let method = oracle.method();
            let expected =
                [Threads::One, Threads::AtMost(2)].map(|threads| both(method, &batch, threads));
            assert!(expected[0] == expected[1], "{oracle:?} {classes}: two threads");
            let same = || both(method, &batch, Threads::All) == expected[0];
            assert!(same(), "{oracle:?} {classes}: from outside");
            for threads in POOLS {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                assert!(pool.install(same), "{oracle:?} {classes}: {threads} threads");
            }
        }
    }
}

/// Every thread of a pool has a batch, and shares its blocks.
#[test]
fn batches_within_batches() {
    let (count, classes) = (600, 300);
    let logits: Vec<f32> = rows(&mut SplitMix(3), count, classes);
    let batch = Logits::rows(&logits, classes).unwrap();
    let method = Method::EVIDENTIAL;
    let expected = method.csr(&batch, Threads::One).unwrap();
    let found: Vec<CsrRows<f32>> =
        (0..64).into_par_iter().map(|_| method.csr(&batch, Threads::All).unwrap()).collect();
    assert!(found.iter().all(|found| *found == expected));
}

/// The rows before an invalid one are complete.
#[test]
fn rows_before_an_error_are_written() {
    for (count, classes) in SHAPES {
        let mut logits: Vec<f32> = rows(&mut SplitMix(5), count, classes);
        let method = Method::EVIDENTIAL;
        let expected = method.csr(&Logits::rows(&logits, classes).unwrap(), Threads::One).unwrap();
        let bad = 2 * count / 3;
        logits[bad * classes] = f32::NAN;
        let batch = Logits::rows(&logits, classes).unwrap();
        for threads in POOLS {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut found = CsrRows::new();
            pool.install(|| method.csr_into(&batch, Threads::All, &mut found).unwrap_err());
            // Only rows of its block are missing; a block has about 2^15 logits.
            let missing = bad.checked_sub(found.rows());
            let block = ((1 << 16) / classes).max(1);
            assert!(
                missing.is_some_and(|n| n < block),
                "{classes}, {threads} threads: {missing:?}"
            );
            assert!(found.iter().zip(expected.iter()).all(|(found, row)| found == row));
        }
    }
}

/// Whichever thread finds one first.
#[test]
fn of_several_errors_the_first_row_counts() {
    for (count, classes) in SHAPES {
        let mut logits: Vec<f32> = rows(&mut SplitMix(5), count, classes);
        for first in [0, 1, count / 3, count - 2] {
            // All rows after it are invalid too.
            for row in logits.chunks_mut(classes).skip(first) {
                row[classes - 1] = f32::NAN;
            }
            let batch = Logits::rows(&logits, classes).unwrap();
            let mut out = vec![0.0; logits.len()];
            let mut sizes = vec![0; count];
            for threads in POOLS {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let method = Method::EVIDENTIAL;
                for error in pool.install(|| {
                    [
                        method.dense_into(&batch, Threads::All, &mut out).unwrap_err(),
                        method.csr(&batch, Threads::All).unwrap_err(),
                        method.sizes_into(&batch, Threads::All, &mut sizes).unwrap_err(),
                    ]
                }) {
                    let Error::Value { row, column, .. } = error else { panic!("{error}") };
                    assert_eq!((row, column), (first, classes - 1), "{threads} threads");
                }
            }
            logits = rows(&mut SplitMix(5), count, classes);
        }
    }
}
