//! Batches on pools of several sizes, from inside and from outside of them.
#![cfg(feature = "parallel")]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{ALL, SplitMix, rows};
use rayon::prelude::*;
use shafer::{CompressedRows, Error, Logits, Transform, TransformExt};

/// Some threads more than there are processors, too: then some wait for one that does not run.
const POOLS: [usize; 4] = [1, 2, 3, 7];

/// Rows that are tiles, that are counted before they are written, and that are a block of their own.
const SHAPES: [(usize, usize); 4] = [(40_000, 10), (3_000, 100), (500, 700), (9, 70_000)];

fn dense(transform: &dyn Transform, batch: &Logits<'_, f32>) -> Vec<f32> {
    let mut out = vec![0.0; batch.len()];
    transform.dense(batch, &mut out).unwrap();
    out
}

#[test]
fn every_pool_has_the_same_results() {
    for (count, classes) in SHAPES {
        let logits: Vec<f32> = rows(&mut SplitMix(classes as u64), count, classes);
        let batch = Logits::rows(&logits, classes).unwrap();
        let shared = batch.parallel(true);
        for oracle in ALL {
            let transform = oracle.transform();
            let expected = (dense(&*transform, &batch), transform.compressed(&batch).unwrap());
            let same = || {
                dense(&*transform, &shared) == expected.0
                    && transform.compressed(&shared).unwrap() == expected.1
            };
            assert!(same(), "{oracle:?} {classes}: from outside");
            for threads in POOLS {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                assert!(pool.install(same), "{oracle:?} {classes}: {threads} threads");
            }
        }
    }
}

/// Every thread of a pool has a batch of its own, and they share out all of them.
#[test]
fn batches_within_batches() {
    let (count, classes) = (600, 300);
    let logits: Vec<f32> = rows(&mut SplitMix(3), count, classes);
    let batch = Logits::rows(&logits, classes).unwrap();
    let transform = shafer::Evidential::default();
    let expected = transform.compressed(&batch).unwrap();
    let found: Vec<CompressedRows<f32>> = (0..64)
        .into_par_iter()
        .map(|_| transform.compressed(&batch.parallel(true)).unwrap())
        .collect();
    assert!(found.iter().all(|found| *found == expected));
}

/// What was written before a row at fault is there, whole.
#[test]
fn rows_before_an_error_are_written() {
    for (count, classes) in SHAPES {
        let mut logits: Vec<f32> = rows(&mut SplitMix(5), count, classes);
        let transform = shafer::Evidential::default();
        let expected = transform.compressed(&Logits::rows(&logits, classes).unwrap()).unwrap();
        let bad = 2 * count / 3;
        logits[bad * classes] = f32::NAN;
        let batch = Logits::rows(&logits, classes).unwrap().parallel(true);
        for threads in POOLS {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            let mut found = CompressedRows::new();
            pool.install(|| transform.compressed_into(&batch, &mut found).unwrap_err());
            // Only the rows of its own block are missing, and a block has at most 2^16 logits.
            let missing = bad.checked_sub(found.row_count());
            let block = ((1 << 16) / classes).max(1);
            assert!(
                missing.is_some_and(|n| n < block),
                "{classes}, {threads} threads: {missing:?}"
            );
            assert!(found.iter().zip(expected.iter()).all(|(found, row)| found == row));
        }
    }
}

/// Whichever thread comes across one first.
#[test]
fn of_several_errors_the_first_row_counts() {
    for (count, classes) in SHAPES {
        let mut logits: Vec<f32> = rows(&mut SplitMix(5), count, classes);
        for first in [0, 1, count / 3, count - 2] {
            // All that come after it are at fault, too.
            for row in logits.chunks_mut(classes).skip(first) {
                row[classes - 1] = f32::NAN;
            }
            let batch = Logits::rows(&logits, classes).unwrap().parallel(true);
            let mut out = vec![0.0; logits.len()];
            let mut sizes = vec![0; count];
            for threads in POOLS {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                let transform = shafer::Evidential::default();
                for error in pool.install(|| {
                    [
                        transform.dense(&batch, &mut out).unwrap_err(),
                        transform.compressed(&batch).unwrap_err(),
                        transform.support_sizes(&batch, &mut sizes).unwrap_err(),
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
