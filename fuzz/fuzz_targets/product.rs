//! Products of rows, dense and compressed, and the enumeration of their joint classes.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer::Product;
use shafer_fuzz::{Count, Number, distribution, doubles};

#[derive(Arbitrary, Debug)]
struct Input {
    rows: Vec<(Vec<Number>, Vec<u32>, bool)>,
    len: Count,
    classes: Vec<Count>,
    k: Count,
}

/// The largest number of joint classes to check.
const MANY: usize = 500;

fn check(product: &Product, input: &Input, supports: &[usize]) {
    let size = supports.iter().fold(1_u128, |size, &n| size.saturating_mul(n as u128));
    assert_eq!(product.variables(), supports.len());
    assert_eq!(product.support_size(), size);
    let best: Vec<_> = product.iter_best().take(MANY).collect();
    assert_eq!(best.len() as u128, size.min(MANY as u128), "{best:?}");
    let mut seen: Vec<&[usize]> = best.iter().map(|joint| joint.classes.as_slice()).collect();
    seen.sort_unstable();
    assert!(seen.windows(2).all(|pair| pair[0] != pair[1]), "twice: {best:?}");
    assert!(best.is_sorted_by(|a, b| a.probability >= b.probability), "{best:?}");
    for joint in &best {
        assert!((0.0..=1.0 + 1e-9).contains(&joint.probability), "{joint:?}");
        assert_eq!(product.contains(&joint.classes), Ok(true));
        assert_eq!(product.probability(&joint.classes), Ok(joint.probability));
        let ln = product.ln_probability(&joint.classes).unwrap();
        // Subnormal results have low precision.
        let close = (ln - joint.probability.ln()).abs() <= 1e-9 * (1.0 + ln.abs());
        assert!(close || joint.probability < 1e-300, "{ln} of {joint:?}");
    }
    if best.len() < MANY {
        let sum: f64 = best.iter().map(|joint| joint.probability).sum();
        assert!((sum - 1.0).abs() <= 1e-9, "{sum}");
    }
    let k = input.k.0.min(MANY);
    assert_eq!(product.best(k)[..], best[..k.min(best.len())]);
    let classes: Vec<usize> = input.classes.iter().map(|class| class.0).collect();
    let contains = product.contains(&classes);
    assert_eq!(contains.is_ok(), product.probability(&classes).is_ok());
    assert_eq!(contains.is_ok(), product.ln_probability(&classes).is_ok());
    if contains == Ok(false) {
        assert_eq!(product.probability(&classes), Ok(0.0));
    }
}

fuzz_target!(|input: Input| {
    let rows: Vec<Vec<f64>> = input
        .rows
        .iter()
        .map(|(row, _, clean)| if *clean { distribution(row) } else { doubles(row) })
        .collect();
    let valid = |row: &Vec<f64>| {
        let sum: f64 = row.iter().sum();
        row.iter().all(|p| p.is_finite() && *p >= 0.0) && (sum - 1.0).abs() <= 0.01
    };
    let all_valid = !rows.is_empty() && rows.iter().all(valid);
    let dense = Product::dense(&rows);
    assert_eq!(dense.is_ok(), all_valid, "{dense:?}");
    if let Ok(product) = dense {
        let positive = |row: &Vec<f64>| row.iter().filter(|p| **p > 0.0).count();
        check(&product, &input, &rows.iter().map(positive).collect::<Vec<_>>());
    }
    // In the order of enumeration, then sorted.
    for sorted in [false, true] {
        let indices = |(row, (_, indices, _)): (&Vec<f64>, &(_, Vec<u32>, _))| {
            let mut indices = indices.clone();
            if sorted {
                indices.sort_unstable();
                indices.dedup();
                let next = indices.last().map_or(0, |last| last.saturating_add(1));
                indices.truncate(row.len());
                let missing = (row.len() - indices.len()) as u32;
                indices.extend(next..next.saturating_add(missing));
            }
            indices
        };
        let indices: Vec<Vec<u32>> = rows.iter().zip(&input.rows).map(indices).collect();
        let len = if sorted { 1 << 32 } else { input.len.0 };
        let parts: Vec<(usize, &[u32], &[f64])> =
            rows.iter().zip(&indices).map(|(row, indices)| (len, &indices[..], &row[..])).collect();
        let fit = parts.iter().all(|(len, indices, row)| {
            indices.len() == row.len()
                && indices.windows(2).all(|pair| pair[0] < pair[1])
                && indices.iter().all(|&index| (index as usize) < *len)
        });
        let compressed = Product::csr(&parts);
        assert_eq!(compressed.is_ok(), all_valid && fit, "{compressed:?}");
        if let Ok(product) = compressed {
            check(&product, &input, &rows.iter().map(Vec::len).collect::<Vec<_>>());
        }
    }
});
