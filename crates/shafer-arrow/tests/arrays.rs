//! Every function on every type of lists, against plain loops in double precision.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;

use arrow_array::builder::{FixedSizeListBuilder, LargeListBuilder, ListBuilder, PrimitiveBuilder};
use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float16Type, Float32Type, Float64Type, Int32Type, Int64Type, UInt8Type,
};
use arrow_array::{
    Array, ArrayRef, FixedSizeListArray, Float64Array, Int64Array, ListArray, Scalar, UInt64Array,
};
use arrow_buffer::{NullBuffer, OffsetBuffer};
use arrow_schema::{DataType, Field};
use shafer::{Element, Method, Threads};
use shafer_arrow::{Error, LogitLists, sparse_type, split};

type Rows = Vec<Option<Vec<f64>>>;

/// Numbers of `SplitMix64`, from -4 to 4, in steps that `f16` has exactly.
fn numbers(seed: u64) -> impl Iterator<Item = f64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) % 256) as f64 / 32.0 - 4.0
    })
}

/// Rows of these lengths; 0 is a null row.
fn rows(lengths: &[usize]) -> Rows {
    let mut numbers = numbers(7);
    let row = |n: usize| (n > 0).then(|| numbers.by_ref().take(n).collect());
    lengths.iter().copied().map(row).collect()
}

fn lists<T: ArrowPrimitiveType<Native: Element>>(rows: &Rows) -> [ArrayRef; 2] {
    let mut small = ListBuilder::new(PrimitiveBuilder::<T>::new());
    let mut large = LargeListBuilder::new(PrimitiveBuilder::<T>::new());
    for row in rows {
        for &value in row.iter().flatten() {
            small.values().append_value(T::Native::from_f64(value));
            large.values().append_value(T::Native::from_f64(value));
        }
        small.append(row.is_some());
        large.append(row.is_some());
    }
    [Arc::new(small.finish()), Arc::new(large.finish())]
}

fn fixed<T: ArrowPrimitiveType<Native: Element>>(rows: &Rows, classes: usize) -> ArrayRef {
    let mut lists = FixedSizeListBuilder::new(PrimitiveBuilder::<T>::new(), classes as i32);
    for row in rows {
        match row {
            Some(row) => {
                for &value in row {
                    lists.values().append_value(T::Native::from_f64(value));
                }
            }
            // The values of a null row are null.
            None => lists.values().append_nulls(classes),
        }
        lists.append(row.is_some());
    }
    Arc::new(lists.finish())
}

/// All arrays of these rows, with the error that their type of number allows.
fn arrays(rows: &Rows) -> Vec<(ArrayRef, f64)> {
    fn of<T: ArrowPrimitiveType<Native: Element>>(rows: &Rows, error: f64) -> Vec<(ArrayRef, f64)> {
        let mut all = lists::<T>(rows).to_vec();
        let lengths: Vec<usize> = rows.iter().flatten().map(Vec::len).collect();
        if let Some(&classes) = lengths.first()
            && lengths.iter().all(|&n| n == classes)
        {
            all.push(fixed::<T>(rows, classes));
        }
        all.into_iter().map(|array| (array, error)).collect()
    }
    let mut all = of::<Float16Type>(rows, 1e-3);
    all.extend(of::<Float32Type>(rows, 2e-6));
    all.extend(of::<Float64Type>(rows, 1e-12));
    all
}

/// The classes above the mean, or all if none is, with their softmax.
fn evidential(row: &[f64]) -> Vec<f64> {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    let vacuous = row.iter().all(|&l| l == row[0]);
    let kept = |l: f64| vacuous || l > mean;
    let sum: f64 = row.iter().filter(|&&l| kept(l)).map(|l| l.exp()).sum();
    row.iter().map(|&l| if kept(l) { l.exp() / sum } else { 0.0 }).collect()
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let sum: f64 = row.iter().map(|l| l.exp()).sum();
    row.iter().map(|l| l.exp() / sum).collect()
}

/// The numbers of a column of lists, as `f64`.
fn read(column: &dyn Array) -> Rows {
    let row = |row: usize| {
        let values = match column.data_type() {
            DataType::List(_) => column.as_list::<i32>().value(row),
            DataType::LargeList(_) => column.as_list::<i64>().value(row),
            _ => column.as_fixed_size_list().value(row),
        };
        assert_eq!(values.null_count(), 0);
        match values.data_type() {
            DataType::Float16 => floats::<Float16Type>(&values),
            DataType::Float32 => floats::<Float32Type>(&values),
            DataType::Float64 => floats::<Float64Type>(&values),
            _ => {
                values.as_primitive::<Int32Type>().values().iter().map(|&v| f64::from(v)).collect()
            }
        }
    };
    (0..column.len()).map(|i| column.is_valid(i).then(|| row(i))).collect()
}

fn floats<T: ArrowPrimitiveType<Native: Element>>(values: &dyn Array) -> Vec<f64> {
    values.as_primitive::<T>().values().iter().map(|v| v.to_f64()).collect()
}

#[track_caller]
fn close(found: f64, expected: f64, error: f64) {
    assert!((found - expected).abs() <= error, "{found} instead of {expected}");
}

/// Lengths of rows: equal, with nulls, ragged, single classes, rows longer than a vector.
const LENGTHS: [&[usize]; 7] = [
    &[5, 5, 5, 5],
    &[0, 6, 6, 0, 0, 6, 0],
    &[3, 3, 7, 1, 0, 1, 7, 7, 40],
    &[1],
    &[100, 0, 100, 100],
    &[0, 0],
    &[],
];

#[test]
fn distributions() {
    for lengths in LENGTHS {
        let rows = rows(lengths);
        for (method, oracle) in
            [(Method::EVIDENTIAL, evidential as fn(&[f64]) -> Vec<f64>), (Method::SOFTMAX, softmax)]
        {
            for (column, error) in arrays(&rows) {
                let logits = LogitLists::new(&column).unwrap();
                let dense = logits.dense(method).unwrap();
                assert_eq!(dense.data_type(), column.data_type());
                let (sparse, counts) = logits.sparse(method).unwrap();
                assert_eq!(sparse.data_type(), &sparse_type(column.data_type()).unwrap());
                assert_eq!(counts.rows, rows.iter().flatten().count());
                let [classes, probabilities] = split(&sparse).unwrap();
                let sizes = logits.support_size(method).unwrap();
                let (dense, classes) = (read(&dense), read(&classes));
                let probabilities = read(&probabilities);
                assert_eq!(dense.len(), rows.len());
                for (i, row) in rows.iter().enumerate() {
                    let Some(row) = row else {
                        assert!(dense[i].is_none() && classes[i].is_none());
                        assert!(probabilities[i].is_none() && sizes.is_null(i));
                        continue;
                    };
                    let expected = oracle(row);
                    let dense = dense[i].as_ref().unwrap();
                    assert_eq!(dense.len(), row.len());
                    for (&found, &expected) in dense.iter().zip(&expected) {
                        close(found, expected, error);
                        assert_eq!(found == 0.0, expected == 0.0);
                    }
                    let kept: Vec<f64> =
                        (0..row.len()).filter(|&k| expected[k] > 0.0).map(|k| k as f64).collect();
                    assert_eq!(classes[i].as_ref(), Some(&kept));
                    assert_eq!(sizes.value(i), kept.len() as i32);
                    for (&class, &p) in kept.iter().zip(probabilities[i].as_ref().unwrap()) {
                        close(p, expected[class as usize], error);
                    }
                }
            }
        }
    }
}

#[test]
fn the_evidence_of_rows() {
    for lengths in LENGTHS {
        let rows = rows(lengths);
        let classes = rows.iter().flatten().map(Vec::len).min().unwrap_or(1) as i64;
        let set: Vec<Option<i64>> = (0..classes).step_by(2).map(Some).collect();
        let sets = ListArray::from_iter_primitive::<Int64Type, _, _>([Some(set)]);
        for (column, _) in arrays(&rows) {
            let logits = LogitLists::new(&column).unwrap();
            let ignorance = logits.ignorance().unwrap();
            let conflict = logits.conflict().unwrap();
            let belief = logits.belief(&Scalar::new(sets.clone())).unwrap();
            assert_eq!(belief.len(), rows.len());
            for (i, row) in rows.iter().enumerate() {
                let Some(row) = row else {
                    assert!(ignorance.is_null(i) && conflict.is_null(i) && belief.is_null(i));
                    continue;
                };
                if row.len() == 1 {
                    assert_eq!((ignorance.value(i), conflict.value(i)), (1.0, 0.0));
                    assert_eq!(belief.value(i), 1.0);
                    continue;
                }
                let mean = row.iter().sum::<f64>() / row.len() as f64;
                let positive: Vec<f64> = row.iter().map(|l| (l - mean).max(0.0)).collect();
                let negative: Vec<f64> = row.iter().map(|l| (mean - l).max(0.0)).collect();
                let singles: Vec<f64> = (0..row.len())
                    .map(|k| (-negative[k]).exp() * (positive[k].exp() - 1.0))
                    .collect();
                let missed = |k: usize| 1.0 - (-negative[k]).exp();
                let all: f64 = (0..row.len()).map(missed).product();
                let normaliser = 1.0 / (singles.iter().sum::<f64>() + 1.0 - all);
                let whole = normaliser * negative.iter().map(|w| (-w).exp()).product::<f64>();
                close(ignorance.value(i), whole, 1e-12);
                let alone: f64 = positive.iter().map(|w| (-w).exp()).product();
                let odds: f64 = positive.iter().map(|w| w.exp() - 1.0).sum();
                close(conflict.value(i), 1.0 - alone * (1.0 + odds), 1e-11);
                let inside = |k: usize| k.is_multiple_of(2) && (k as i64) < classes;
                let direct: f64 = (0..row.len()).filter(|&k| inside(k)).map(|k| singles[k]).sum();
                let outside: f64 = (0..row.len()).filter(|&k| !inside(k)).map(missed).product();
                close(belief.value(i), normaliser * (direct + outside - all), 1e-12);
            }
        }
    }
}

/// Slices, values outside of all rows, and rows that are null with values of their own.
#[test]
fn views_of_larger_arrays() {
    let rows = rows(&[5, 5, 0, 3, 3, 3, 0, 4, 5]);
    for (column, _) in arrays(&rows) {
        let all = LogitLists::new(&column).unwrap().dense(Method::EVIDENTIAL).unwrap();
        let all = read(&all);
        for (start, n) in [(0, 3), (1, 7), (2, 1), (3, 3), (4, 5), (9, 0)] {
            let part = column.slice(start, n);
            let logits = LogitLists::new(&part).unwrap();
            let dense = logits.dense(Method::EVIDENTIAL).unwrap();
            assert_eq!(read(&dense), all[start..start + n]);
            let (sparse, _) = logits.sparse(Method::EVIDENTIAL).unwrap();
            let [_, probabilities] = split(&sparse).unwrap();
            let expected: Rows = all[start..start + n]
                .iter()
                .map(|row| Some(row.as_ref()?.iter().copied().filter(|&p| p > 0.0).collect()))
                .collect();
            assert_eq!(read(&probabilities), expected);
        }
    }
    let fixed_rows = self::rows(&[4, 0, 4, 4]);
    let column = fixed::<Float32Type>(&fixed_rows, 4);
    let whole = read(&LogitLists::new(&column).unwrap().dense(Method::SOFTMAX).unwrap());
    let part = column.slice(1, 3);
    let part = LogitLists::new(&part).unwrap().dense(Method::SOFTMAX).unwrap();
    assert_eq!(read(&part), whole[1..]);

    // The second row is null, with two values that are no logits.
    let values = Float64Array::from(vec![9.0, 1.0, 1.0, f64::NAN, f64::NAN, 0.0, 2.0, 9.0]);
    let field = Arc::new(Field::new("item", DataType::Float64, true));
    let offsets = OffsetBuffer::new(vec![1, 3, 5, 7].into());
    let nulls = NullBuffer::from(vec![true, false, true]);
    let column = ListArray::new(field, offsets, Arc::new(values), Some(nulls));
    let dense = LogitLists::new(&column).unwrap().dense(Method::SPARSEMAX).unwrap();
    assert_eq!(read(&dense), [Some(vec![0.5, 0.5]), None, Some(vec![0.0, 1.0])]);
}

#[test]
fn the_same_on_any_number_of_threads_and_in_any_batch() {
    let rows = rows(&vec![64; 5000]);
    let column = &lists::<Float32Type>(&rows)[0];
    let logits = LogitLists::new(column).unwrap();
    let (one, _) = logits.sparse(Method::EVIDENTIAL).unwrap();
    let (all, _) = logits.clone().threads(Threads::All).sparse(Method::EVIDENTIAL).unwrap();
    assert_eq!(&one, &all);
    let seeds = UInt64Array::from_iter_values(0..5000);
    let drawn = logits.draw(Method::SOFTMAX, &seeds).unwrap();
    let part = LogitLists::new(&column.slice(4000, 10)).unwrap();
    let again = part.draw(Method::SOFTMAX, &seeds.slice(4000, 10)).unwrap();
    assert_eq!(&again, &drawn.slice(4000, 10));
}

/// Frequencies of draws within five standard deviations; classes without probability never.
#[test]
fn draws() {
    let row = vec![1.0, 3.0, -2.0, 2.5, 0.0];
    let (expected, n) = (evidential(&row), 20_000);
    let column = &lists::<Float64Type>(&vec![Some(row); n])[1];
    let logits = LogitLists::new(column).unwrap();
    let seeds = UInt64Array::from_iter_values(0..n as u64);
    let drawn = logits.draw(Method::EVIDENTIAL, &seeds).unwrap();
    for (class, p) in expected.into_iter().enumerate() {
        let count = drawn.values().iter().filter(|&&drawn| drawn as usize == class).count();
        let deviation = (n as f64 * p * (1.0 - p)).sqrt();
        close(count as f64, n as f64 * p, 5.0 * deviation);
    }
    let few = LogitLists::new(&column.slice(0, 2)).unwrap();
    let seeds = UInt64Array::from(vec![None, Some(3)]);
    let drawn = few.draw(Method::SOFTMAX, &seeds).unwrap();
    assert!(drawn.is_null(0) && drawn.is_valid(1));
    let wrong = few.draw(Method::SOFTMAX, &UInt64Array::from(vec![1])).unwrap_err();
    assert_eq!(wrong.to_string(), "there are 1 seeds for 2 rows");
}

#[test]
fn temperature() {
    let rows = rows(&[6, 0, 6]);
    let cooled: Rows =
        rows.iter().map(|row| Some(row.as_ref()?.iter().map(|l| l / 0.5).collect())).collect();
    let logits = |rows: &Rows| LogitLists::new(&lists::<Float64Type>(rows)[0]).unwrap();
    let found = logits(&rows).temperature(0.5).unwrap();
    let expected = logits(&cooled);
    let softmax = |lists: &LogitLists| read(&lists.dense(Method::SOFTMAX).unwrap());
    for (found, expected) in
        softmax(&found).iter().flatten().zip(softmax(&expected).iter().flatten())
    {
        found.iter().zip(expected).for_each(|(&a, &b)| close(a, b, 1e-15));
    }
    assert_eq!(found.conflict().unwrap(), expected.conflict().unwrap());
    for bad in [0.0, -1.0, f64::NAN] {
        assert!(logits(&rows).temperature(bad).is_err());
    }
}

#[test]
fn what_is_refused() {
    let refused = |column: &dyn Array| LogitLists::new(column).unwrap_err().to_string();
    let float = |rows: Vec<Option<Vec<Option<f32>>>>| {
        ListArray::from_iter_primitive::<Float32Type, _, _>(rows)
    };
    let good = || Some(vec![Some(1.0), Some(2.0)]);
    assert_eq!(
        refused(&float(vec![good(), None, good(), Some(vec![Some(1.0), None])])),
        "row 3, column 1 is null; write -inf for a masked class"
    );
    assert_eq!(
        refused(&float(vec![None, good(), Some(vec![])])),
        "row 2 is empty; a row has at least one class"
    );
    let none = FixedSizeListArray::new(
        Arc::new(Field::new("item", DataType::Float32, true)),
        0,
        Arc::new(arrow_array::Float32Array::from(Vec::<f32>::new())),
        Some(NullBuffer::from(vec![false, true])),
    );
    assert_eq!(refused(&none), "row 1 is empty; a row has at least one class");
    assert_eq!(
        refused(&Int64Array::from(vec![1])),
        "the logits are Int64, but must be lists of f16, f32 or f64"
    );

    let bad = float(vec![None, good(), Some(vec![Some(0.0), Some(f32::NAN)])]);
    let logits = LogitLists::new(&bad).unwrap();
    let nan = "row 2, column 1: logit is NaN, but must be finite, or -inf for a masked class";
    let seeds = UInt64Array::from(vec![1, 2, 3]);
    for error in [
        logits.sparse(Method::EVIDENTIAL).unwrap_err(),
        logits.dense(Method::SOFTMAX).unwrap_err(),
        logits.support_size(Method::EVIDENTIAL).unwrap_err(),
        logits.draw(Method::EVIDENTIAL, &seeds).unwrap_err(),
        logits.ignorance().unwrap_err(),
        logits.conflict().unwrap_err(),
    ] {
        assert_eq!(error.to_string(), nan);
    }
}

#[test]
fn sets_of_classes() {
    let column = &lists::<Float64Type>(&rows(&[3, 0, 3, 2]))[0];
    let logits = LogitLists::new(column).unwrap();
    let sets = |rows: Vec<Option<Vec<Option<u8>>>>| {
        ListArray::from_iter_primitive::<UInt8Type, _, _>(rows)
    };
    let some = |class| Some(vec![Some(class)]);
    let belief = logits.belief(&sets(vec![some(2), some(9), None, Some(vec![])])).unwrap();
    assert!(belief.is_valid(0) && belief.is_null(1) && belief.is_null(2));
    assert_eq!(belief.value(3), 0.0);
    let refused = |rows| logits.belief(&sets(rows)).unwrap_err().to_string();
    assert_eq!(refused(vec![some(0); 3]), "there are 3 sets for 4 rows");
    assert_eq!(refused(vec![some(2); 4]), "row 3 has 2 classes, and no class 2");
    let negative =
        Scalar::new(ListArray::from_iter_primitive::<Int64Type, _, _>([Some([Some(-1)])]));
    let expected = Error::Class { row: 0, class: -1, classes: 3 };
    assert_eq!(logits.belief(&negative).unwrap_err(), expected);
    let wrong = logits.belief(&Scalar::new(Int64Array::from(vec![1]))).unwrap_err().to_string();
    assert_eq!(wrong, "the sets are Int64, but must be lists of integers");
}
