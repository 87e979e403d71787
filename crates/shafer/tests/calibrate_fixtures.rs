//! Calibrations against MAPIE, crepes, `TorchCP` and SciPy: `fixtures/calibrate.json`, and beside it the
//! script that made it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;

use serde::Deserialize;
use shafer::Logits;
use shafer::calibrate::{
    Calibrator, ExchangeabilityTest, Labelled, Losses, Score, Scores, Strata, binomial_tail,
    clopper_pearson,
};

#[derive(Deserialize)]
struct Fixtures {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Case {
    Data {
        logits: Vec<Vec<f64>>,
        labels: Vec<u32>,
    },
    Threshold(Threshold),
    PValues {
        scores: Vec<f64>,
        groups: Vec<u32>,
        tests: Vec<Vec<f64>>,
        test_groups: Vec<u32>,
        p_values: Vec<Vec<f64>>,
    },
    Martingale {
        uniform: Vec<f64>,
        p_values: Vec<f64>,
        capital: Vec<f64>,
    },
    Risk {
        rows: Vec<f64>,
        thresholds: Vec<f64>,
        alpha: f64,
        chosen: usize,
    },
    Bentkus {
        alpha: f64,
        losses: Vec<f64>,
        p_value: f64,
        binary: Vec<f64>,
        exact: f64,
    },
    Interval {
        k: u64,
        n: u64,
        confidence: f64,
        low: f64,
        high: f64,
    },
    Tail {
        n: u64,
        p: f64,
        k: u64,
        tail: f64,
    },
}

#[derive(Deserialize)]
struct Threshold {
    from: String,
    score: String,
    alpha: f64,
    data: usize,
    #[serde(default, rename = "threshold")]
    plain: Option<f64>,
    #[serde(default)]
    by_class: Option<Vec<Option<f64>>>,
    #[serde(default)]
    uniform: Option<Vec<f64>>,
}

fn cases() -> Vec<Case> {
    let text = include_str!("fixtures/calibrate.json");
    serde_json::from_str::<Fixtures>(text).unwrap().cases
}

fn close(found: f64, expected: f64, relative: f64) -> bool {
    found == expected || (found - expected).abs() <= relative * expected.abs()
}

impl Threshold {
    /// The threshold of a package in our terms.
    fn ours(&self, score: Score, theirs: Option<f64>) -> f64 {
        let Some(theirs) = theirs else { return f64::INFINITY };
        match score {
            Score::Lac => -(-theirs).ln_1p(),
            // MAPIE counts ranks from 0.
            Score::TopK if self.from == "mapie" => theirs + 1.0,
            // TorchCP leaves this factor out, which does not change its sets.
            Score::Entmax { alpha } => theirs * (alpha - 1.0),
            _ => theirs,
        }
    }

    fn check(&self, (logits, labels): &(Vec<Vec<f64>>, Vec<u32>)) {
        let score: Score = self.score.parse().unwrap();
        let flat = logits.concat();
        let rows = Labelled::new(Logits::rows(&flat, logits[0].len()).unwrap(), labels).unwrap();
        let by = if self.by_class.is_some() { Strata::Class } else { Strata::All };
        let mut calibrator = Calibrator::new(score, by);
        let mut uniform = self.uniform.iter().flatten();
        calibrator.add_randomised(&rows, || uniform.next().copied().unwrap_or(1.0)).unwrap();
        let calibration = calibrator.calibration(self.alpha).unwrap();
        let theirs = self.by_class.clone().unwrap_or_else(|| vec![self.plain]);
        assert_eq!(theirs.len(), calibration.thresholds().len());
        for (stratum, theirs) in theirs.into_iter().enumerate() {
            let expected = self.ours(score, theirs);
            let found = calibration.thresholds()[&(stratum as u32)].value;
            let about =
                format!("{} of {}, alpha {}, data {}", score, self.from, self.alpha, self.data);
            // 1 - p has lost digits where p is small.
            let relative = if score == Score::Lac { 1e-9 } else { 1e-11 };
            assert!(close(found, expected, relative), "{about}: {found}, not {expected}");
        }
    }
}

#[test]
fn thresholds_of_mapie_and_torchcp() {
    let mut data = Vec::new();
    let mut compared: BTreeMap<String, usize> = BTreeMap::new();
    for case in cases() {
        match case {
            Case::Data { logits, labels } => data.push((logits, labels)),
            Case::Threshold(threshold) => {
                threshold.check(&data[threshold.data]);
                *compared.entry(threshold.from).or_default() += 1;
            }
            _ => {}
        }
    }
    assert!(compared["torchcp"] >= 100 && compared["mapie"] >= 18, "{compared:?}");
}

#[test]
fn p_values_of_crepes() {
    let mut compared = 0;
    for case in cases() {
        let Case::PValues { scores, groups, tests, test_groups, p_values } = case else { continue };
        let of_group = |group: u32| {
            let own = scores.iter().zip(&groups).filter(|(_, g)| **g == group);
            Scores::new(own.map(|(score, _)| *score).collect()).unwrap()
        };
        for ((tests, group), expected) in tests.iter().zip(test_groups).zip(p_values) {
            for (&test, expected) in tests.iter().zip(expected) {
                assert!(close(of_group(group).p_value(test), expected, 1e-12));
                compared += 1;
            }
        }
    }
    assert!(compared >= 100);
}

#[test]
fn the_martingale_of_crepes() {
    let mut compared = 0;
    for case in cases() {
        let Case::Martingale { uniform, p_values, capital } = case else { continue };
        let mut test = ExchangeabilityTest::new();
        for (i, ((u, p), capital)) in uniform.iter().zip(p_values).zip(capital).enumerate() {
            // Every score is less than all before it.
            let found = test.add(-(i as f64), *u).unwrap();
            assert!(close(found, p, 1e-12), "{found}, not {p}");
            assert!(close(test.ln_capital().exp(), capital, 1e-11));
            compared += 1;
        }
    }
    assert!(compared >= 60);
}

#[test]
fn risk_control_of_mapie() {
    let mut compared = 0;
    for case in cases() {
        match case {
            Case::Risk { rows, thresholds, alpha, chosen } => {
                let row = |&row: &f64| {
                    thresholds.iter().map(move |t| (row - t).max(0.0)).collect::<Vec<_>>()
                };
                let table: Vec<f64> = rows.iter().flat_map(row).collect();
                let losses = Losses::new(&table, thresholds.len(), 1.0).unwrap();
                assert_eq!(losses.control_risk(alpha).unwrap(), Some(chosen));
                compared += 1;
            }
            Case::Bentkus { alpha, losses, p_value, binary, exact } => {
                // The smallest level at which the only threshold passes is its p-value.
                for (table, p) in [(losses, p_value), (binary, exact)] {
                    let losses = Losses::new(&table, 1, 1.0).unwrap();
                    let passes =
                        |delta: f64| losses.learn_then_test(alpha, delta).unwrap().is_some();
                    assert!(passes(p * (1.0 + 1e-9)) && !passes(p * (1.0 - 1e-9)), "{p}");
                    compared += 1;
                }
            }
            _ => {}
        }
    }
    assert!(compared >= 12);
}

#[test]
fn intervals_and_tails_of_scipy() {
    let mut compared = 0;
    for case in cases() {
        match case {
            Case::Interval { k, n, confidence, low, high } => {
                let found = clopper_pearson(k, n, confidence).unwrap();
                let good = close(found.0, low, 1e-9) && close(found.1, high, 1e-9);
                assert!(good, "{k} of {n}: {found:?}, not {low} to {high}");
                compared += 1;
            }
            Case::Tail { n, p, k, tail } => {
                let found = binomial_tail(n, p, k);
                assert!(close(found, tail, 1e-9), "{k} of {n}, {p}: {found}, not {tail}");
                compared += 1;
            }
            _ => {}
        }
    }
    assert!(compared >= 25);
}
