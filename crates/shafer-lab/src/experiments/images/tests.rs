//! The evaluation against `NumPy` and `SciPy`, and its rules.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use serde::Deserialize;

use super::aggregate::Meta;
use super::record::{Checkpoint, SeedRecord};
use super::results::{BOTH, ByQuery, Evolution, ImageResults, Table, TargetFrom};
use super::synthetic::{meta, of_records, record, records, results};
use crate::experiments::report;
use crate::experiments::statistics::Curve;

#[derive(Deserialize)]
struct Fixture {
    experiment: Experiment,
}

#[derive(Deserialize)]
struct Experiment {
    /// By seed, checkpoint and query.
    logits: Vec<Vec<[Vec<f32>; 2]>>,
    expected: Vec<Expected>,
    training: Vec<ExpectedGain>,
}

#[derive(Deserialize)]
struct Expected {
    metric: String,
    query: usize,
    method: String,
    checkpoint: usize,
    values: Vec<Option<f64>>,
    mean: Option<f64>,
    se: Option<f64>,
    n: usize,
    infinite: usize,
}

#[derive(Deserialize)]
struct ExpectedGain {
    metric: String,
    queries: Vec<usize>,
    baseline: String,
    percent: f64,
    infinite: usize,
}

fn fixture() -> (Experiment, ImageResults) {
    let fixture: Fixture =
        serde_json::from_str(include_str!("../../../tests/fixtures/experiment.json")).unwrap();
    let records: Vec<SeedRecord> = (0..)
        .zip(&fixture.experiment.logits)
        .map(|(seed, checkpoints)| SeedRecord {
            checkpoints: (0..)
                .zip(checkpoints)
                .map(|(iteration, logits)| Checkpoint { iteration, logits: logits.to_vec() })
                .collect(),
            latents: None,
            ..record(seed, 1.0, 1)
        })
        .collect();
    (fixture.experiment, of_records(&meta(), &records).unwrap())
}

fn close(found: Option<f64>, expected: Option<f64>, tolerance: f64, of: &str) {
    let both = found.zip(expected);
    let fine = both.is_some_and(|(a, b)| (a - b).abs() <= tolerance * (1.0 + b.abs()));
    assert!(fine || found.is_none() && expected.is_none(), "{of}: {found:?}, not {expected:?}");
}

#[test]
fn evaluations_are_those_of_numpy() {
    let (experiment, results) = fixture();
    let Evolution { bhattacharyya, wasserstein, kept, .. } = &results.evolution;
    let at_end = &results.final_values;
    for case in &experiment.expected {
        let of = format!("{} {} {} {}", case.metric, case.query, case.method, case.checkpoint);
        let query = &results.queries[case.query];
        let by_query = |table: &ByQuery<Curve>| table[query].clone();
        let by_method = |table: &Table<Curve>| table[query][&case.method].clone();
        let method = &case.method;
        let (curve, last) = match case.metric.as_str() {
            "bhattacharyya" => (by_method(bhattacharyya), at_end.bhattacharyya[query][method]),
            "wasserstein" => (by_method(wasserstein), at_end.wasserstein[query][method]),
            "kept" => (by_method(kept), at_end.kept[query][method]),
            "ignorance" => (by_query(&results.evolution.ignorance), at_end.ignorance[query]),
            "internal_conflict" => {
                (by_query(&results.evolution.internal_conflict), at_end.internal_conflict[query])
            }
            other => panic!("{other}"),
        };
        let point = case.checkpoint;
        close(curve.mean[point].map(f64::from), case.mean, 1e-6, &of);
        close(curve.se[point].map(f64::from), case.se, 1e-6, &of);
        assert_eq!(curve.infinite.get(point).copied().unwrap_or(0), case.infinite, "{of}");
        if point + 1 == curve.mean.len() {
            close(last.mean, case.mean, 1e-12, &of);
            close(last.se, case.se, 1e-12, &of);
            assert_eq!((last.n, last.infinite), (case.n, case.infinite), "{of}");
            for (training, expected) in results.trainings.iter().zip(&case.values) {
                let table = match case.metric.as_str() {
                    "bhattacharyya" => training.bhattacharyya.as_ref().unwrap(),
                    "wasserstein" => training.wasserstein.as_ref().unwrap(),
                    _ => continue,
                };
                close(table[query][method], *expected, 1e-12, &of);
            }
        }
    }
}

#[test]
fn gains_are_those_of_numpy() {
    let (experiment, results) = fixture();
    for case in &experiment.training {
        let gains = &results.improvement.training;
        let table =
            if case.metric == "wasserstein" { &gains.wasserstein } else { &gains.bhattacharyya };
        let row = if let [query] = case.queries[..] { &results.queries[query] } else { BOTH };
        let gain = table[row][&case.baseline];
        close(gain.percent.map(|p| p.value), Some(case.percent), 1e-10, row);
        assert_eq!(gain.infinite, case.infinite);
        // At the end, it is the ratio of the means of the table.
        let at_end = &results.improvement.final_values.wasserstein[row][&case.baseline];
        let mean = |method: &str| {
            let of =
                |q: &usize| results.final_values.wasserstein[&results.queries[*q]][method].mean;
            case.queries.iter().filter_map(of).sum::<f64>()
        };
        let expected = 100.0 * (1.0 - mean("evidential") / mean(&case.baseline));
        close(at_end.percent.map(|p| p.value), Some(expected), 1e-10, row);
    }
}

#[test]
fn a_target_of_each_checkpoint_ends_like_that_of_the_last() {
    let each = Meta { target: TargetFrom::EachCheckpoint, ..meta() };
    let each = of_records(&each, &records()).unwrap();
    let last = results();
    assert_eq!(each.final_values, last.final_values);
    assert_ne!(each.evolution.bhattacharyya, last.evolution.bhattacharyya);
    assert_eq!(each.evolution.kept, last.evolution.kept);
}

#[test]
fn collapsed_and_diverged_seeds_are_counted() {
    let results = results();
    assert_eq!((results.seeds, results.collapsed, results.diverged), (8, 1, 1));
    let value = results.final_values.wasserstein["even"]["evidential"];
    assert_eq!(value.n, 7);
    let without = results.without_collapsed.as_ref().unwrap();
    assert_eq!(without.final_values.wasserstein["even"]["evidential"].n, 6);
    // Without them it is the experiment that never had them.
    let mut healthy = records();
    healthy.retain(|record| !record.collapsed && !record.diverged);
    let healthy = of_records(&meta(), &healthy).unwrap();
    assert_eq!(healthy.final_values, without.final_values);
    assert_eq!(healthy.evolution, without.evolution);
    assert_eq!(healthy.improvement, without.improvement);
    assert_eq!(healthy.without_collapsed, None);
    let diverged = results.trainings.iter().find(|training| training.diverged).unwrap();
    assert_eq!((diverged.seed, &diverged.wasserstein), (6, &None));
}

#[test]
fn reduced_data_has_a_row_for_each_fraction() {
    let results = results();
    let fractions: Vec<(f64, usize)> =
        results.reduced.iter().map(|r| (r.fraction, r.seeds)).collect();
    assert_eq!(fractions, [(0.1, 5), (0.5, 5), (0.75, 5), (1.0, 8)]);
    assert_eq!(results.reduced[3].final_values, results.final_values);
    assert_eq!(results.reduced[0].final_values.kept["odd"]["softmax"].mean, Some(10.0));
    let whole = of_records(&meta(), &[record(1, 1.0, 2)]).unwrap();
    assert!(whole.reduced.is_empty());
}

#[test]
fn the_exemplar_is_drawn_from_its_distributions() {
    let results = results();
    let exemplar = results.exemplar.as_ref().unwrap();
    assert_eq!(exemplar.seed, 1);
    for bars in exemplar.queries.values() {
        assert!((bars.target.iter().sum::<f64>() - 1.0).abs() < 1e-12);
        for bars in bars.methods.values() {
            assert_eq!(bars.samples.len(), 25);
            assert!(bars.samples.iter().all(|class| bars.probabilities[*class] > 0.0));
        }
    }
    // Even classes belong to the even query: the others are wrong.
    let softmax = &exemplar.queries["even"].methods["softmax"];
    let odd = softmax.samples.iter().filter(|class| *class % 2 == 1).count();
    assert_eq!(softmax.wrong_samples, Some(odd));
    assert!(of_records(&meta(), &records()).unwrap() == results);
    let other = Meta { exemplar: Some(4), ..meta() };
    let other = of_records(&other, &records()).unwrap();
    assert_eq!(other.exemplar.unwrap().seed, 4);
}

#[test]
fn wrong_samples_are_expected_as_often_as_the_probabilities_say() {
    let results = of_records(&meta(), &[record(3, 1.0, 5)]).unwrap();
    let exemplar = results.exemplar.as_ref().unwrap();
    let wrong = results.final_values.wrong.as_ref().unwrap();
    let row = &exemplar.queries["odd"].methods["softmax"].probabilities;
    let even: f64 = row.iter().step_by(2).sum();
    close(wrong["odd"]["softmax"].mean, Some(even), 1e-12, "odd");
}

#[test]
fn broken_records_are_named() {
    let fault = |change: &dyn Fn(&mut Vec<SeedRecord>)| {
        let mut records = records();
        change(&mut records);
        format!("{:#}", of_records(&meta(), &records).unwrap_err())
    };
    let faults = [
        (fault(&|r| r.clear()), "no training with a checkpoint"),
        (fault(&|r| r[1].seed = 1), "seed 1, fraction 1 is there twice"),
        (fault(&|r| r[1].fraction = 0.0), "seed 2, fraction 0: the fraction is 0"),
        (fault(&|r| r[1].checkpoints.clear()), "seed 2, fraction 1: there is no checkpoint"),
        (fault(&|r| r[1].checkpoints[1].iteration = 0), "iteration 0 comes after"),
        (
            fault(&|r| r[1].checkpoints[1].logits[1][3] = f32::NAN),
            "query 1, class 3: the logit is NaN",
        ),
        (fault(&|r| r[1].checkpoints[1].logits[1].truncate(9)), "9 logits, but there are 10"),
        (fault(&|r| r[1].checkpoints.truncate(5)), "seed 2, fraction 1 has other checkpoints"),
        (fault(&|r| r.retain(|r| r.diverged)), "no training on the whole data set"),
        (fault(&|r| r[1].latents.as_mut().unwrap().truncate(9)), "9 decoded latent classes"),
        (fault(&|r| r[1].latents.as_mut().unwrap()[0].judged = None), "judged 9 of 10"),
    ];
    for (found, expected) in faults {
        assert!(found.contains(expected), "{found}, not {expected}");
    }
    let other = Meta { exemplar: Some(6), ..meta() };
    let error = of_records(&other, &records()).unwrap_err();
    assert!(error.to_string().contains("the exemplar is seed 6"), "{error}");
}

#[test]
fn files_come_back_and_have_the_paths_that_others_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    let mut results = results();
    // An early guess may have nothing in common with the target.
    results
        .final_values
        .bhattacharyya
        .get_mut("odd")
        .unwrap()
        .get_mut("sparsemax")
        .unwrap()
        .infinite = 2;
    report::write_json(&path, &results).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(serde_json::from_str::<ImageResults>(&text).unwrap() == results);
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    for query in ["even", "odd"] {
        for method in [
            "evidential",
            "softmax",
            "sparsemax",
            "sparsegen-lin",
            "sparsegen-hg",
            "entmax",
            "top-k",
            "top-p",
            "min-p",
        ] {
            for metric in ["bhattacharyya", "wasserstein"] {
                let summary = &json["final"][metric][query][method];
                assert!(summary["mean"].is_f64() && summary["se"].is_f64(), "{method}: {summary}");
                assert_eq!(summary["n"], 7);
            }
        }
    }
    for (path, expected) in [("seeds", 8.0), ("collapsed", 1.0), ("steps", 18_760.0)] {
        assert_eq!(json[path].as_f64(), Some(expected));
    }
    assert_eq!(json["wall_seconds"], 1234.5);
    assert_eq!(json["revision"], "0123456789abcdef");
    // Records survive their file too: a run that was killed goes on from it.
    let records = records();
    let text = serde_json::to_string(&records).unwrap();
    assert!(serde_json::from_str::<Vec<SeedRecord>>(&text).unwrap() == records);
}

#[test]
fn files_that_cannot_be_read_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("results.json");
    let json = serde_json::to_value(results()).unwrap();
    let fault = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut json = json.clone();
        change(&mut json);
        std::fs::write(&path, json.to_string()).unwrap();
        format!("{:#}", report::read(folder.path()).unwrap_err())
    };
    let faults = [
        (fault(&|json| json["version"] = 2.into()), "layout 2, but this program reads layout 1"),
        (fault(&|json| json["experiment"] = "chess".into()), "results of \"chess\""),
        (fault(&|json| json["colour"] = 1.into()), "unknown field `colour`"),
        (fault(&|json| *json = 1.into()), "not a results file"),
        (fault(&|json| *json = serde_json::json!({})), "it has no version"),
        (fault(&|json| json["seeds"] = "many".into()), "expected usize"),
        (
            fault(&|json| json["evolution"]["iterations"] = vec![1].into()),
            "points for 1 iterations",
        ),
        (fault(&|json| json["classes"] = 9.into()), "10 latent classes are decoded of 9"),
        (fault(&|json| json["diverged"] = 9.into()), "9 diverged seeds are more than 8"),
        (fault(&|json| json["reduced"][0]["fraction"] = 0.8.into()), "fractions of reduced data"),
        (fault(&|json| json["queries"][0] = "odd".into()), "queries need different names"),
    ];
    for (found, expected) in faults {
        assert!(found.contains("results.json: ") && found.contains(expected), "{found}");
    }
}
