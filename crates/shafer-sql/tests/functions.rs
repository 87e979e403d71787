//! The functions against plain loops in f64, and against the core row after row.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "common/mod.rs"]
mod common;

use std::sync::Arc;

use datafusion::arrow::array::{
    Array, ArrayRef, AsArray as _, FixedSizeListArray, Float64Array, Int32Array, LargeListArray,
    ListArray, RecordBatch, StringArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{
    DataType, Field, Float16Type, Float32Type, Float64Type, Int32Type,
};
use datafusion::prelude::SessionContext;
use shafer::{Belief, Evidence, Method};

async fn select(table: &RecordBatch, expression: &str) -> Result<ArrayRef, String> {
    let context = SessionContext::new();
    for function in shafer_sql::functions() {
        context.register_udf(function);
    }
    context.register_batch("t", table.clone()).unwrap();
    let sql = format!("SELECT {expression} AS x FROM t ORDER BY id");
    let frame = context.sql(&sql).await.map_err(|error| error.to_string())?;
    let batches = frame.collect().await.map_err(|error| error.to_string())?;
    let columns: Vec<&dyn Array> = batches.iter().map(|batch| batch.column(0).as_ref()).collect();
    Ok(datafusion::arrow::compute::concat(&columns).unwrap())
}

/// The logits of a row in f64, or null.
fn row(table: &RecordBatch, row: usize) -> Option<Vec<f64>> {
    let lists = table.column(1).as_list::<i32>();
    let values = || lists.value(row).as_primitive::<Float32Type>().values().to_vec();
    lists.is_valid(row).then(|| values().into_iter().map(f64::from).collect())
}

/// The classes above the mean, and their softmax.
fn evidential(logits: &[f64]) -> Vec<(i32, f64)> {
    let mean = logits.iter().sum::<f64>() / logits.len() as f64;
    let vacuous = logits.iter().all(|logit| *logit == logits[0]);
    let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let kept = |logit: f64| vacuous || logit > mean;
    let kept: Vec<(i32, f64)> = (0..)
        .zip(logits)
        .filter(|(_, logit)| kept(**logit))
        .map(|(class, logit)| (class, (logit - most).exp()))
        .collect();
    let sum: f64 = kept.iter().map(|(_, p)| p).sum();
    kept.into_iter().map(|(class, p)| (class, p / sum)).collect()
}

/// The projection onto the simplex, by sorting.
fn sparsemax(logits: &[f64]) -> Vec<(i32, f64)> {
    let mut sorted = logits.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let (mut sum, mut tau) = (0.0, 0.0);
    for (k, logit) in sorted.iter().enumerate() {
        sum += logit;
        if 1.0 + (k + 1) as f64 * logit > sum {
            tau = (sum - 1.0) / (k + 1) as f64;
        }
    }
    let entries = (0..).zip(logits).map(|(class, logit)| (class, logit - tau));
    entries.filter(|(_, p)| *p > 0.0).collect()
}

/// Compares a sparse column with a loop over all rows.
fn check_sparse(table: &RecordBatch, found: &ArrayRef, oracle: impl Fn(&[f64]) -> Vec<(i32, f64)>) {
    let lists = found.as_list::<i32>();
    assert_eq!(lists.len(), table.num_rows());
    for i in 0..table.num_rows() {
        let Some(logits) = row(table, i) else {
            assert!(lists.is_null(i), "row {i}");
            continue;
        };
        let entries = lists.value(i);
        let entries = entries.as_struct();
        let classes = entries.column(0).as_primitive::<Int32Type>().values();
        let p = cast(entries.column(1), &DataType::Float64).unwrap();
        let p = p.as_primitive::<Float64Type>().values();
        let expected = oracle(&logits);
        assert_eq!(classes.to_vec(), expected.iter().map(|(class, _)| *class).collect::<Vec<_>>());
        for (found, (_, expected)) in p.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-5, "row {i}: {found}, not {expected}");
        }
    }
}

#[tokio::test]
async fn distributions_against_plain_loops() {
    let table = common::batch(0, 300, 9, true);
    for expression in [
        "evidential(logits)",
        "sparsify(logits)",
        "sparsify(logits, 'evidential')",
        "evidential(logits, 1)",
    ] {
        check_sparse(&table, &select(&table, expression).await.unwrap(), evidential);
    }
    for expression in ["sparsemax(logits)", "sparsify(logits, 'sparsemax')", "entmax(logits, 2)"] {
        check_sparse(&table, &select(&table, expression).await.unwrap(), sparsemax);
    }
    let sizes = select(&table, "support_size(logits)").await.unwrap();
    let sizes = sizes.as_primitive::<Int32Type>();
    for i in 0..300 {
        let expected = row(&table, i).map(|logits| evidential(&logits).len() as i32);
        assert_eq!(sizes.is_valid(i).then(|| sizes.value(i)), expected);
    }
}

#[tokio::test]
async fn every_method_as_in_the_core_to_the_bit() {
    let table = common::batch(0, 120, 12, false);
    let lists = table.column(1).as_list::<i32>();
    for name in Method::names() {
        let method = Method::named(name, None).unwrap();
        let dense = select(&table, &format!("sparsify_dense(logits, '{name}')")).await.unwrap();
        let sparse = select(&table, &format!("{}(logits)", name.replace('-', "_"))).await.unwrap();
        for i in 0..120 {
            if lists.is_null(i) {
                assert!(dense.is_null(i) && sparse.is_null(i));
                continue;
            }
            let logits = lists.value(i);
            let expected = method.row(logits.as_primitive::<Float32Type>().values()).unwrap();
            let found = dense.as_list::<i32>().value(i);
            assert_eq!(found.as_primitive::<Float32Type>().values(), &expected[..], "{name}");
            let entries = sparse.as_list::<i32>().value(i);
            let p = entries.as_struct().column(1).as_primitive::<Float32Type>().values().clone();
            let positive: Vec<f32> = expected.into_iter().filter(|p| *p > 0.0).collect();
            assert_eq!(&p[..], &positive[..], "{name}");
        }
    }
}

#[tokio::test]
async fn evidence_as_in_the_core() {
    type Oracle<'a> = &'a dyn Fn(&[f64]) -> f64;

    let table = common::batch(0, 100, 8, false);
    let belief = |logits: &[f64]| Belief::from(Evidence::from_logits(logits).unwrap());
    let checks: [(&str, Oracle<'_>); 4] = [
        ("ignorance(logits)", &|logits| belief(logits).ignorance()),
        ("conflict(logits)", &|logits| belief(logits).internal_conflict()),
        ("belief(logits, [0, 5])", &|logits| belief(logits).belief([0, 5]).unwrap()),
        ("belief(logits, make_array(id * 0, 5))", &|logits| belief(logits).belief([0, 5]).unwrap()),
    ];
    for (expression, oracle) in checks {
        let found = select(&table, expression).await.unwrap();
        let expected: Float64Array =
            (0..100).map(|i| row(&table, i).map(|logits| oracle(&logits))).collect();
        assert_eq!(found.as_primitive::<Float64Type>(), &expected, "{expression}");
    }
    assert!(select(&table, "belief(logits, NULL)").await.unwrap().is_null(0));
}

#[tokio::test]
async fn draws_follow_the_distribution_and_the_seed() {
    let table = common::batch(0, 2000, 6, false);
    let draw = async |seed: &str| {
        let found = select(&table, &format!("draw(logits, 'sparsemax', {seed})")).await.unwrap();
        found.as_primitive::<Int32Type>().clone()
    };
    let first = draw("id").await;
    assert_eq!(first, draw("id").await);
    assert_ne!(first, draw("id + 1").await);
    assert_ne!(first, draw("-id").await);
    let (mut drawn, mut expected) = (vec![0.0; 6], vec![0.0; 6]);
    for i in 0..2000 {
        let Some(logits) = row(&table, i) else {
            assert!(first.is_null(i));
            continue;
        };
        let entries = sparsemax(&logits);
        assert!(entries.iter().any(|(class, _)| *class == first.value(i)));
        drawn[first.value(i) as usize] += 1.0;
        for (class, p) in entries {
            expected[class as usize] += p;
        }
    }
    // Five standard deviations of a binomial number of 1714 rows.
    for (drawn, expected) in drawn.iter().zip(&expected) {
        assert!(
            (drawn - expected).abs() < 5.0 * (expected + 1.0_f64).sqrt(),
            "{drawn}, {expected}"
        );
    }
}

#[tokio::test]
async fn every_type_of_lists() {
    let rows = || [Some(vec![Some(1.0), Some(1.0), Some(0.0)]), None];
    let ids: ArrayRef = Arc::new(Int32Array::from(vec![0, 1]));
    let small: ArrayRef = Arc::new(ListArray::from_iter_primitive::<Float64Type, _, _>(rows()));
    let large: ArrayRef =
        Arc::new(LargeListArray::from_iter_primitive::<Float64Type, _, _>(rows()));
    let fixed: ArrayRef =
        Arc::new(FixedSizeListArray::from_iter_primitive::<Float64Type, _, _>(rows(), 3));
    let of = |kind: DataType| Arc::new(Field::new("item", kind, true));
    let mut columns = vec![];
    for kind in [DataType::Float16, DataType::Float32, DataType::Float64, DataType::Int16] {
        columns.push(cast(&small, &DataType::List(of(kind.clone()))).unwrap());
        columns.push(cast(&large, &DataType::LargeList(of(kind.clone()))).unwrap());
        columns.push(cast(&fixed, &DataType::FixedSizeList(of(kind), 3)).unwrap());
    }
    for column in columns {
        let kind = column.data_type().clone();
        let table = [("id", ids.clone()), ("logits", column)];
        let table = RecordBatch::try_from_iter(table).unwrap();
        let sizes = select(&table, "support_size(logits)").await.unwrap();
        assert_eq!(sizes.as_primitive::<Int32Type>(), &Int32Array::from(vec![Some(2), None]));
        let sparse = select(&table, "evidential(logits)").await.unwrap();
        assert_eq!(
            matches!(kind, DataType::LargeList(_)),
            matches!(sparse.data_type(), DataType::LargeList(_)),
            "{kind}"
        );
        let [_, p] = shafer_arrow::split(&sparse).unwrap();
        let p = match &p {
            p if p.as_list_opt::<i32>().is_some() => p.as_list::<i32>().value(0),
            p => p.as_list::<i64>().value(0),
        };
        if let Some(p) = p.as_primitive_opt::<Float16Type>() {
            assert_eq!(f32::from(p.value(0)), 0.5);
        } else {
            let p = cast(&p, &DataType::Float64).unwrap();
            assert_eq!(p.as_primitive::<Float64Type>().values(), &[0.5, 0.5]);
        }
        assert!(sparse.is_null(1));
    }
}

#[tokio::test]
async fn constants_are_folded() {
    let table = common::batch(0, 2, 3, false);
    let context = SessionContext::new();
    for function in shafer_sql::functions() {
        context.register_udf(function);
    }
    context.register_batch("t", table).unwrap();
    let sql = "EXPLAIN SELECT support_size([1.0, 1.0, 0.0], 'top-k:k=' || 1) AS n FROM t";
    let plan = context.sql(sql).await.unwrap().collect().await.unwrap();
    let plan = plan[0].column(1).as_string::<i32>().value(0).to_owned();
    assert!(plan.contains("Int32(1) AS n") && !plan.contains("support_size"), "{plan}");
}

#[tokio::test]
async fn wrong_calls_name_the_function_and_what_is_wrong() {
    let table = common::batch(0, 3, 3, false);
    for (expression, expected) in [
        ("evidential(name)", "evidential(Utf8) does not exist; call evidential(logits[, rounds])"),
        ("evidential()", "evidential() does not exist"),
        ("softmax(logits, 2)", "call softmax(logits)"),
        ("support_size(logits, 3)", "call support_size(logits[, 'method'])"),
        ("belief(logits, 3)", "call belief(logits, [classes])"),
        ("draw(logits)", "call draw(logits[, 'method'], seed)"),
        (
            "sparsify(logits, 'sparsmax')",
            "sparsify: method `sparsmax`: there is no such method; use evidential",
        ),
        ("top_k(logits, 0)", "top_k: k is 0, but must be at least 1"),
        ("entmax(logits, id)", "entmax: the parameter must be a constant"),
        ("sparsify(logits, name)", "sparsify: the method must be a constant"),
        ("belief(logits, [7])", "belief(logits): row 0 has 3 classes, and no class 7"),
    ] {
        let error = select(&table, expression).await.unwrap_err();
        assert!(error.contains(expected), "{expression}: {error}");
    }
}

#[tokio::test]
async fn rows_that_are_refused() {
    let nan = vec![Some(vec![Some(1.0), Some(0.0)]), Some(vec![Some(0.0), Some(f64::NAN)])];
    let hole = vec![None, Some(vec![Some(0.0), None, Some(2.0)])];
    let empty = vec![Some(vec![Some(0.0)]), Some(vec![])];
    for (rows, error, found) in [
        (nan, "row 1, column 1: logit is NaN", "column 1: logit is NaN"),
        (hole, "row 1, column 1 is null", "column 1 is null"),
        (empty, "row 1 is empty", "is empty"),
    ] {
        let lists = ListArray::from_iter_primitive::<Float64Type, _, _>(rows);
        let ids: ArrayRef = Arc::new(Int32Array::from(vec![0, 1]));
        let table: [(&str, ArrayRef); 2] = [("id", ids), ("logits", Arc::new(lists))];
        let table = RecordBatch::try_from_iter(table).unwrap();
        let message = select(&table, "softmax(logits)").await.unwrap_err();
        assert!(message.contains(&format!("softmax(logits): {error}")), "{message}");
        let errors = select(&table, "logits_error(logits)").await.unwrap();
        let errors: &StringArray = errors.as_string();
        assert!(errors.is_null(0) && errors.value(1).starts_with(found), "{errors:?}");
        // A guard, in a query.
        let guarded = "CASE WHEN logits_error(logits) IS NULL THEN support_size(logits) END";
        let sizes = select(&table, guarded).await.unwrap();
        assert!(sizes.is_null(1));
    }
}
