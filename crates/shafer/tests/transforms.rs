//! The methods against plain loops in double precision, and against themselves where two ways
//! must give the same: one row or many, dense or compressed, one thread or all, any layout.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{ALL, Oracle, SplitMix, rows};
use half::{bf16, f16};
use shafer::{CsrRows, Element, Logits, Method, Threads};

/// Around every width that a kernel treats differently.
const SIZES: [usize; 24] = [
    1, 2, 3, 4, 5, 7, 8, 9, 10, 15, 16, 17, 31, 32, 33, 63, 64, 65, 100, 255, 256, 257, 1025, 4100,
];

/// Up to this length, dense and compressed rows have the same bits, but for min-probability; in longer
/// `f32` rows, exponentials are added in another order.
const SAME_BITS: usize = 32;

/// Four units in the last place.
const CLOSE: f64 = 4.0 * f32::EPSILON as f64;

fn close<E: Element>(a: &[E], b: &[E], relative: f64) -> bool {
    let pairs = wide(a).into_iter().zip(wide(b));
    a.len() == b.len() && pairs.into_iter().all(|(a, b)| (a - b).abs() <= relative * b)
}

fn wide<E: Element>(values: &[E]) -> Vec<f64> {
    values.iter().map(|&x| x.to_f64()).collect()
}

/// Whether a rounding error could move a class over the edge of what is kept: the comparison would
/// then say nothing.
fn on_the_edge(oracle: Oracle, z: &[f64], temperature: f64) -> bool {
    let nudged = |by: f64| -> Vec<bool> {
        let z: Vec<f64> =
            z.iter().enumerate().map(|(k, z)| z + by * (k as f64 * 2.4).sin()).collect();
        oracle.row(&z, temperature).iter().map(|&p| p > 0.0).collect()
    };
    match oracle {
        Oracle::TopP { .. }
        | Oracle::MinP { .. }
        | Oracle::TopNSigma { .. }
        | Oracle::MinProbability { .. }
        | Oracle::MinEvidence { .. } => {
            let step = 1e-6 * temperature;
            nudged(step) != nudged(0.0) || nudged(-step) != nudged(0.0)
        }
        _ => false,
    }
}

/// `relative` to the plain loop's value, above `smallest`; projections are differences, so that
/// `absolute` is the rounding error of a logit.
fn against_plain_loops<E: Element>(relative: f64, smallest: f64) {
    let mut rng = SplitMix(7);
    let mut compared = 0;
    for classes in SIZES {
        let count = if classes > 1000 { 4 } else { 40 };
        for temperature in [1.0, 0.37, 2.5] {
            let logits: Vec<E> = rows(&mut rng, count, classes);
            for oracle in ALL {
                if matches!(oracle, Oracle::TopK { k } if k > classes) {
                    continue;
                }
                let batch =
                    Logits::rows(&logits, classes).unwrap().temperature(temperature).unwrap();
                let mut out = vec![E::default(); logits.len()];
                oracle.method().dense_into(&batch, Threads::One, &mut out).unwrap();
                // Dense, and then the same rows compressed.
                out.extend(oracle.method().csr(&batch, Threads::One).unwrap().to_dense());
                let twice = logits.chunks(classes).cycle();
                for (row, out) in twice.zip(out.chunks(classes)) {
                    let row = wide(row);
                    if on_the_edge(oracle, &row, temperature) {
                        continue;
                    }
                    let expected = oracle.row(&row, temperature);
                    compared += 1;
                    for (k, (a, b)) in wide(out).into_iter().zip(expected).enumerate() {
                        let error = (a - b).abs();
                        // What is kept by a hair is computed as the difference of two numbers.
                        let hair = match oracle {
                            Oracle::Sparsemax | Oracle::SparsegenLin { .. } => 1e-12,
                            Oracle::SparsegenHg { .. } | Oracle::Entmax { .. } => 1e-10,
                            _ => 0.0,
                        };
                        assert!(
                            error <= relative * b + smallest + hair,
                            "{oracle:?}, T {temperature}, class {k} of {row:?}: {a:e}, not {b:e}"
                        );
                    }
                }
            }
        }
    }
    assert!(compared > 20_000, "only {compared} rows were far enough from an edge");
}

#[test]
fn f32_against_plain_loops() {
    against_plain_loops::<f32>(1e-6, 1e-37);
}

#[test]
fn f64_against_plain_loops() {
    against_plain_loops::<f64>(1e-11, 1e-300);
}

#[test]
fn f16_against_plain_loops() {
    // Half a unit in the last place, and the smallest subnormal.
    against_plain_loops::<f16>(f16::EPSILON.to_f64() * 0.51, 6e-8);
}

#[test]
fn bf16_against_plain_loops() {
    against_plain_loops::<bf16>(bf16::EPSILON.to_f64() * 0.51, 1e-37);
}

/// `relative` is how far compressed rows may be from dense ones, if they are long.
fn same_in_every_form<E: Element>(relative: f64) {
    let mut rng = SplitMix(11);
    for classes in SIZES {
        for count in [1, 5, 16, 33, 700] {
            let count = count.min(1 + 40_000 / classes);
            let logits: Vec<E> = rows(&mut rng, count, classes);
            let batch = Logits::rows(&logits, classes).unwrap();
            for oracle in ALL {
                if matches!(oracle, Oracle::TopK { k } if k > classes) {
                    continue;
                }
                let method = oracle.method();
                let mut dense = vec![E::default(); logits.len()];
                let report = method.dense_into(&batch, Threads::One, &mut dense).unwrap();

                let mut parallel = vec![E::default(); logits.len()];
                let again = method.dense_into(&batch, Threads::All, &mut parallel).unwrap();
                assert!(dense == parallel && report == again, "{oracle:?} on threads");

                let mut compressed = CsrRows::new();
                let again = method.csr_into(&batch, Threads::One, &mut compressed).unwrap();
                assert_eq!(report, again);
                let threads = method.csr(&batch, Threads::All).unwrap();
                assert!(compressed == threads, "{oracle:?} compressed on threads");
                assert_eq!(compressed.rows(), count);
                assert_eq!(compressed.classes(), classes);

                let mut sizes = vec![0; count];
                assert_eq!(method.sizes_into(&batch, Threads::One, &mut sizes).unwrap(), report);
                let mut again = vec![E::default(); logits.len()];
                let mut sizes_again = vec![0; count];
                let threads = Threads::AtMost(2);
                let report_again =
                    method.dense_and_sizes_into(&batch, threads, &mut again, &mut sizes_again);
                assert_eq!((report_again.unwrap(), &sizes_again), (report, &sizes));
                assert!(again == dense, "{oracle:?} with sizes");
                for (i, (indices, _)) in compressed.iter().enumerate() {
                    assert_eq!(indices.len(), sizes[i] as usize, "{oracle:?}");
                    assert!(indices.windows(2).all(|pair| pair[0] < pair[1]));
                }
                let relative = if classes <= SAME_BITS { 0.0 } else { relative };
                let expanded = compressed.to_dense();
                assert!(close(&expanded, &dense, relative), "{oracle:?} compressed");

                // One row at a time.
                for (row, dense) in logits.chunks(classes).zip(dense.chunks(classes)).take(20) {
                    let alone = method.row(row).unwrap();
                    assert!(alone == dense, "{oracle:?} alone on {row:?}");
                }
            }
        }
    }
}

#[test]
fn same_in_every_form_f32() {
    same_in_every_form::<f32>(CLOSE);
}

#[test]
fn same_in_every_form_f64() {
    same_in_every_form::<f64>(0.0);
}

#[test]
fn same_in_every_form_bf16() {
    same_in_every_form::<bf16>(bf16::EPSILON.to_f64());
}

/// Long rows are packed in blocks: any length of the last block, and any number of kept classes.
#[test]
fn long_rows_of_any_length() {
    let mut rng = SplitMix(29);
    let oracles = [
        Oracle::Softmax,
        Oracle::Evidential { rounds: 1 },
        Oracle::MinP { p: 0.3 },
        Oracle::MinP { p: 1e-6 },
        Oracle::TopNSigma { n: 1.5 },
    ];
    for classes in (256..=290).chain(500..=530).chain([768, 1023, 8200]) {
        let count = 1 + 150_000 / classes;
        let logits: Vec<f32> = rows(&mut rng, count, classes);
        let batch = Logits::rows(&logits, classes).unwrap();
        for oracle in oracles {
            let method = oracle.method();
            let compressed = method.csr(&batch, Threads::One).unwrap();
            let threads = method.csr(&batch, Threads::All).unwrap();
            assert!(compressed == threads, "{oracle:?}, {classes} classes, on threads");
            let expanded = compressed.to_dense();
            let pairs = logits.chunks(classes).zip(expanded.chunks(classes));
            for (row, p) in pairs.step_by(1 + count / 8) {
                let row = wide(row);
                let expected = oracle.row(&row, 1.0);
                let close = |(a, &b): (f64, &f64)| (a - b).abs() <= 1e-6 * b + 1e-37;
                let all = wide(p).into_iter().zip(&expected).all(close);
                assert!(all || on_the_edge(oracle, &row, 1.0), "{oracle:?} of {row:?}");
            }
        }
    }
}

/// Every axis of arrays with any strides, against the same rows packed.
#[test]
fn any_axis() {
    let mut rng = SplitMix(13);
    for shape in [vec![6, 5], vec![3, 40, 7], vec![2, 3, 4, 5], vec![1, 9, 1], vec![130, 70]] {
        let size: usize = shape.iter().product();
        let data: Vec<f32> = (0..2 * size + 7).map(|_| rng.normal() as f32 * 3.0).collect();
        for order in 0..3 {
            let (strides, offset) = strides(&shape, order);
            for axis in 0..shape.len() {
                let input = Logits::strided(&data, &shape, &strides, offset, axis).unwrap();
                let inner: usize = shape[axis + 1..].iter().product();
                let classes = shape[axis];
                // The same rows, packed by hand from the definition.
                let packed: Vec<f32> = (0..size / classes)
                    .flat_map(|row| {
                        let (outer, rest) = (row / inner, row % inner);
                        (0..classes).map(move |class| (outer * classes + class) * inner + rest)
                    })
                    .map(|flat| data[position(flat, &shape, &strides, offset)])
                    .collect();
                for oracle in [Oracle::Evidential { rounds: 1 }, Oracle::Sparsemax] {
                    let method = oracle.method();
                    let rows = Logits::rows(&packed, classes).unwrap();
                    let mut expected = vec![0.0; size];
                    method.dense_into(&rows, Threads::One, &mut expected).unwrap();
                    for threads in [Threads::One, Threads::All] {
                        let mut out = vec![0.0; size];
                        method.dense_into(&input, threads, &mut out).unwrap();
                        for row in 0..size / classes {
                            for class in 0..classes {
                                let place = (row / inner * classes + class) * inner + row % inner;
                                assert_eq!(out[place], expected[row * classes + class]);
                            }
                        }
                        let (a, b) = (method.csr(&input, threads), method.csr(&rows, Threads::One));
                        assert!(a.unwrap() == b.unwrap());
                        gradients_agree(method, &input, &rows, &out, &expected, inner);
                    }
                }
            }
        }
    }
}

/// C order, Fortran order with gaps, and reversed.
fn strides(shape: &[usize], order: usize) -> (Vec<isize>, usize) {
    let mut strides = vec![0; shape.len()];
    let mut step = if order == 1 { 2 } else { 1 };
    let dimensions: Vec<usize> =
        if order == 1 { (0..shape.len()).collect() } else { (0..shape.len()).rev().collect() };
    for dimension in dimensions {
        strides[dimension] = step;
        step *= shape[dimension] as isize;
    }
    if order == 2 {
        let last = strides.iter().zip(shape).map(|(s, n)| *s as usize * (n - 1)).sum();
        (strides.iter().map(|s| -s).collect(), last)
    } else {
        (strides, 3)
    }
}

/// Of the element with this number in C order.
fn position(flat: usize, shape: &[usize], strides: &[isize], offset: usize) -> usize {
    let (mut rest, mut position) = (flat, offset as isize);
    for dimension in (0..shape.len()).rev() {
        position += (rest % shape[dimension]) as isize * strides[dimension];
        rest /= shape[dimension];
    }
    position as usize
}

fn gradients_agree(
    method: Method,
    strided: &Logits<'_, f32>,
    packed: &Logits<'_, f32>,
    p: &[f32],
    p_packed: &[f32],
    inner: usize,
) {
    let classes = strided.classes();
    let place =
        |i: usize| (i / classes / inner * classes + i % classes) * inner + i / classes % inner;
    let upstream: Vec<f32> = (0..p.len()).map(|i| (i as f32).sin()).collect();
    let upstream_packed: Vec<f32> = (0..p.len()).map(|i| upstream[place(i)]).collect();
    let (mut a, mut b) = (vec![0.0; p.len()], vec![0.0; p.len()]);
    method.vjp(strided, Threads::One, p, &upstream, &mut a).unwrap();
    method.vjp(packed, Threads::One, p_packed, &upstream_packed, &mut b).unwrap();
    for i in 0..p.len() {
        assert_eq!(a[place(i)], b[i]);
    }
}

/// A mask does what `-inf` does.
#[test]
fn masks() {
    let mut rng = SplitMix(17);
    // The longer rows are several blocks for threads.
    for (classes, count) in [(3, 50), (10, 50), (33, 2500), (100, 900), (300, 500)] {
        let logits: Vec<f32> = (0..classes * count).map(|_| rng.normal() as f32).collect();
        let shared: Vec<bool> = (0..classes).map(|k| k == 0 || rng.below(3) > 0).collect();
        let each: Vec<bool> =
            (0..logits.len()).map(|i| i % classes == 1 || rng.below(3) > 0).collect();
        for mask in [&shared, &each] {
            let hidden: Vec<f32> = logits
                .iter()
                .enumerate()
                .map(|(i, &x)| if mask[i % mask.len()] { x } else { f32::NEG_INFINITY })
                .collect();
            for oracle in ALL {
                let method = oracle.method();
                let (mut a, mut b) = (vec![0.0; logits.len()], vec![0.0; logits.len()]);
                let input = Logits::rows(&logits, classes).unwrap().mask(mask).unwrap();
                let hidden = Logits::rows(&hidden, classes).unwrap();
                method.dense_into(&input, Threads::One, &mut a).unwrap();
                method.dense_into(&hidden, Threads::One, &mut b).unwrap();
                assert!(a == b, "{oracle:?}");
                let expected = method.csr(&hidden, Threads::One).unwrap();
                for (batch, threads) in
                    [(input, Threads::One), (input, Threads::All), (hidden, Threads::All)]
                {
                    let found = method.csr(&batch, threads).unwrap();
                    assert!(found == expected, "{oracle:?} compressed");
                }
            }
        }
    }
}

/// Gradients against central differences of the plain loops, away from the edges of supports.
#[test]
fn gradients_against_finite_differences() {
    let mut rng = SplitMix(19);
    let mut checked = 0;
    for round in 0..300 {
        let classes = 1 + rng.below(12);
        let temperature = [1.0, 0.6, 1.9][round % 3];
        let logits: Vec<f64> = (0..classes).map(|_| 1.5 * rng.normal()).collect();
        let upstream: Vec<f64> = (0..classes).map(|_| rng.normal()).collect();
        for oracle in ALL {
            if matches!(oracle, Oracle::TopK { k } if k > classes) {
                continue;
            }
            let value = |logits: &[f64]| -> (f64, Vec<bool>) {
                let p = oracle.row(logits, temperature);
                let value = p.iter().zip(&upstream).map(|(p, g)| p * g).sum();
                (value, p.iter().map(|&p| p > 0.0).collect())
            };
            let row = Logits::row(&logits).unwrap().temperature(temperature).unwrap();
            let method = oracle.method();
            let mut p = vec![0.0; classes];
            method.dense_into(&row, Threads::One, &mut p).unwrap();
            let mut gradient = vec![0.0; classes];
            method.vjp(&row, Threads::One, &p, &upstream, &mut gradient).unwrap();
            // The upstream gradient of a dropped class has no effect.
            let kept = method.csr(&row, Threads::One).unwrap();
            let of_kept: Vec<f64> =
                kept.indices().iter().map(|&class| upstream[class as usize]).collect();
            let mut again = vec![f64::NAN; classes];
            method.csr_vjp(&row, Threads::One, &kept, &of_kept, &mut again).unwrap();
            assert_eq!(again, gradient, "{oracle:?}");
            // Powers below 1 have no finite slope at the edge: stay well inside.
            if matches!(oracle, Oracle::Entmax { .. }) && p.iter().any(|&p| p > 0.0 && p < 0.02) {
                continue;
            }
            for k in 0..classes {
                let h = 1e-5;
                let mut moved = logits.clone();
                moved[k] += h;
                let (up, support_up) = value(&moved);
                moved[k] -= 2.0 * h;
                let (down, support_down) = value(&moved);
                let support: Vec<bool> = p.iter().map(|&p| p > 0.0).collect();
                if support_up != support || support_down != support {
                    continue;
                }
                let slope = (up - down) / (2.0 * h);
                assert!(
                    (gradient[k] - slope).abs() <= 2e-7 * (1.0 + slope.abs()),
                    "{oracle:?} class {k} of {logits:?}: {} but {slope}",
                    gradient[k]
                );
                checked += 1;
            }
        }
    }
    assert!(checked > 10_000);
}

/// Batches larger than the caches and than a wave of blocks.
#[test]
fn large_batches_are_as_small_ones() {
    let (classes, count) = (1027, 8200);
    let mut rng = SplitMix(11);
    let some: Vec<f32> = rows(&mut rng, 200, classes);
    let logits: Vec<f32> = some.iter().copied().cycle().take(count * classes).collect();
    assert!(logits.len() > 1 << 23);
    let batch = Logits::rows(&logits, classes).unwrap();
    // Not where a cache line begins.
    let mut out = vec![0.0; logits.len() + 1];
    for method in [Method::EVIDENTIAL, Method::SPARSEMAX] {
        let few = Logits::rows(&some, classes).unwrap();
        let mut expected = vec![0.0; some.len()];
        method.dense_into(&few, Threads::One, &mut expected).unwrap();
        let compressed = method.csr(&few, Threads::One).unwrap();
        let repeated = |i: usize| compressed.row(i % 200);
        for threads in [Threads::One, Threads::All] {
            out.fill(7.0);
            let report = method.dense_into(&batch, threads, &mut out[1..]).unwrap();
            assert_eq!((report.rows, out[0]), (count, 7.0));
            for found in out[1..].chunks(some.len()) {
                assert!(*found == expected[..found.len()]);
            }
            let found = method.csr(&batch, threads).unwrap();
            assert_eq!(found.rows(), count);
            assert!((0..count).all(|i| found.row(i) == repeated(i)));
        }
    }
    // Rows that fill a block each.
    let classes = 1 << 17;
    let long = &logits[..classes * 64];
    let batch = Logits::rows(long, classes).unwrap();
    for method in [Method::EVIDENTIAL, Method::SPARSEMAX] {
        let expected = method.csr(&batch, Threads::One).unwrap();
        assert!(method.csr(&batch, Threads::All).unwrap() == expected);
        let out = &mut out[1..=long.len()];
        method.dense_into(&batch, Threads::One, out).unwrap();
        assert!(close(out, &expected.to_dense(), CLOSE));
    }
}

/// How a block is packed depends on how much the block before kept: the result must not.
#[test]
fn few_and_many_kept_on_threads() {
    let (classes, block) = (1024, 32);
    let mut rng = SplitMix(17);
    let mut logits: Vec<f32> = rows(&mut rng, 24 * block, classes);
    for (i, rows) in logits.chunks_mut(block * classes).enumerate() {
        // Blocks of which few are kept, alone, and some after each other.
        if i % 2 == 0 || (8..16).contains(&i) {
            for (j, x) in rows.iter_mut().enumerate() {
                *x = if j % 97 == 0 { 3.0 + (j % 5) as f32 } else { 0.0 };
            }
        }
    }
    let batch = Logits::rows(&logits, classes).unwrap();
    let method = Method::EVIDENTIAL;
    let expected = method.csr(&batch, Threads::One).unwrap();
    let few = |row: usize| expected.row(row).unwrap().0.len() < classes / 16;
    assert!(few(0) && !few(block) && few(9 * block), "the blocks are not what they should be");
    for _ in 0..8 {
        assert!(method.csr(&batch, Threads::All).unwrap() == expected);
    }
}
