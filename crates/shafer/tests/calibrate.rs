//! Calibrations: scores against methods and definitions, thresholds in every form, bad input.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::{SplitMix, rows};
use half::f16;
use shafer::calibrate::{
    AdaptiveThreshold, Audit, Calibration, Calibrator, ExchangeabilityTest, Labelled, Losses,
    Score, Scores, Strata, WeightedScores, binomial_tail, clopper_pearson, confident_rank,
    conformal_rank, rows_needed,
};
use shafer::{Element, Logits, Method, Threads};

const SCORES: [Score; 10] = [
    Score::Evidential,
    Score::Lac,
    Score::MinP,
    Score::TopNSigma,
    Score::TopP,
    Score::TopK,
    Score::Sparsemax,
    Score::Entmax { alpha: 1.5 },
    Score::Entmax { alpha: 1.2 },
    Score::Entmax { alpha: 3.0 },
];

/// The scores once more, by their definitions. `-inf` for masked classes, which have no score.
fn by_definition(score: Score, z: &[f64], k: usize) -> f64 {
    let unmasked: Vec<f64> = z.iter().copied().filter(|&x| x > f64::NEG_INFINITY).collect();
    let max = unmasked.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = unmasked.iter().map(|x| (x - max).exp()).sum();
    let p = |x: f64| (x - max).exp() / total;
    let before = |j: usize| z[j] > z[k] || (z[j] == z[k] && j < k);
    let mass: f64 = (0..z.len()).filter(|&j| before(j)).map(|j| p(z[j])).sum();
    let rank = (0..z.len()).filter(|&j| before(j)).count() + 1;
    let mean = unmasked.iter().sum::<f64>() / unmasked.len() as f64;
    match score {
        Score::Evidential => mean - z[k],
        Score::Lac => total.ln() + max - z[k],
        Score::MinP => max - z[k],
        Score::TopNSigma => {
            let squares: f64 = unmasked.iter().map(|x| (x - mean).powi(2)).sum();
            let sigma = (squares / unmasked.len() as f64).sqrt();
            if max == z[k] { 0.0 } else { (max - z[k]) / sigma }
        }
        Score::TopP => mass,
        Score::TopK => rank as f64,
        Score::Sparsemax => unmasked.iter().map(|x| (x - z[k]).max(0.0)).sum(),
        Score::Entmax { alpha } => {
            let order = 1.0 / (alpha - 1.0);
            let sum: f64 = unmasked.iter().map(|x| (x - z[k]).max(0.0).powf(order)).sum();
            (alpha - 1.0) * sum.powf(1.0 / order)
        }
        Score::Aps => mass + p(z[k]),
        Score::Raps { penalty, rank: free } => {
            mass + p(z[k]) + penalty * rank.saturating_sub(free as usize) as f64
        }
        _ => panic!("a score without a definition here"),
    }
}

#[test]
fn scores_are_what_the_table_says() {
    let mut rng = SplitMix(11);
    for classes in [1, 2, 5, 10, 33, 200] {
        let logits: Vec<f64> = rows(&mut rng, 60, classes);
        for row in logits.chunks(classes) {
            for score in
                SCORES.into_iter().chain([Score::Aps, Score::Raps { penalty: 0.05, rank: 2 }])
            {
                let found = score.of_row(row, 1.0).unwrap();
                for k in 0..classes {
                    if row[k] == f64::NEG_INFINITY {
                        assert_eq!(found[k], f64::INFINITY);
                        continue;
                    }
                    let expected = by_definition(score, row, k);
                    let scale = 1.0 + expected.abs() + row[k].abs();
                    assert!(
                        (found[k] - expected).abs() <= 1e-11 * scale,
                        "{score}, class {k} of {row:?}: {} and {expected}",
                        found[k]
                    );
                    let label = [k as u32];
                    let rows = Labelled::new(Logits::row(row).unwrap(), &label).unwrap();
                    assert_eq!(score.of_labels(&rows).unwrap(), [found[k]], "{score}, to the bit");
                }
            }
        }
    }
}

/// The method at the score of a class keeps that class, and drops those with a score that is
/// greater by more than rounding.
fn methods_keep_what_scores_say<E: Element>(seed: u64, resolution: f64) {
    let mut rng = SplitMix(seed);
    let mut dropped = 0;
    for classes in [1, 2, 7, 16, 32, 33, 150] {
        let logits: Vec<E> = rows(&mut rng, 40, classes);
        for temperature in [1.0, 0.4, 3.0] {
            for row in logits.chunks(classes) {
                let batch = Logits::row(row).unwrap().temperature(temperature).unwrap();
                let z: Vec<f64> = row.iter().map(|x| x.to_f64() / temperature).collect();
                let best = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                for score in SCORES {
                    let scores = score.of_row(&z, 1.0).unwrap();
                    let k = rng.below(classes);
                    if z[k] == f64::NEG_INFINITY {
                        continue;
                    }
                    let calibration =
                        Calibration::of_threshold(score, classes, 0.1, scores[k]).unwrap();
                    let kept = calibration.csr(&batch, None, Threads::One).unwrap();
                    let (kept, p) = kept.row(0).unwrap();
                    assert!((p.iter().map(|p| p.to_f64()).sum::<f64>() - 1.0).abs() < 1e-2);
                    if matches!(score, Score::Lac | Score::MinP) && scores[k] > 690.0 {
                        // The probability underflows: all classes are kept.
                        continue;
                    }
                    let slack = resolution * (1.0 + scores[k].abs());
                    for j in 0..classes {
                        let is_kept = kept.contains(&(j as u32));
                        if j == k {
                            assert!(is_kept, "{score} drops {k} of {z:?} at {}", scores[k]);
                        } else if scores[j] > scores[k] + slack && z[j] < best {
                            assert!(!is_kept, "{score} keeps {j} of {z:?} at {}", scores[k]);
                            dropped += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(dropped > 10_000, "{dropped}");
}

#[test]
fn methods_keep_what_scores_say_f64() {
    methods_keep_what_scores_say::<f64>(1, 1e-5);
}

#[test]
fn methods_keep_what_scores_say_f32() {
    methods_keep_what_scores_say::<f32>(2, 1e-4);
}

#[test]
fn methods_keep_what_scores_say_f16() {
    methods_keep_what_scores_say::<f16>(3, 1e-4);
}

/// Labelled rows: the label is drawn from the softmax of other logits than those given.
fn sample(rng: &mut SplitMix, count: usize, classes: usize) -> (Vec<f32>, Vec<u32>) {
    let mut logits = Vec::new();
    let mut labels = Vec::new();
    for _ in 0..count {
        let row: Vec<f64> = (0..classes).map(|_| 2.0 * rng.normal()).collect();
        let weights: Vec<f64> = row.iter().map(|x| x.exp()).collect();
        let mut left = rng.unit() * weights.iter().sum::<f64>();
        let hit = |w: &f64| {
            left -= w;
            left < 0.0
        };
        labels.push(weights.iter().position(hit).unwrap_or(0) as u32);
        logits.extend(row.iter().map(|&x| x as f32));
    }
    (logits, labels)
}

#[test]
fn a_calibration_covers_its_own_rows() {
    let mut rng = SplitMix(5);
    let (logits, labels) = sample(&mut rng, 500, 12);
    let batch = Logits::rows(&logits, 12).unwrap();
    let rows = Labelled::new(batch, &labels).unwrap();
    for score in SCORES {
        let mut calibrator = Calibrator::new(score, Strata::All);
        calibrator.add(&rows).unwrap();
        for alpha in [0.02, 0.1, 0.4] {
            let calibration = calibrator.calibration(alpha).unwrap();
            let rank = conformal_rank(500, alpha).unwrap().unwrap();
            let kept = calibration.csr(&batch, None, Threads::All).unwrap();
            let hit = |(row, label): ((&[u32], &[f32]), &u32)| usize::from(row.0.contains(label));
            let covered: usize = kept.iter().zip(&labels).map(hit).sum();
            assert!(covered >= rank, "{score}: {covered} of {rank}");
            // What the best class and ties add is little, but for top-k, which is coarse.
            if !matches!(score, Score::TopK) && alpha < 0.3 {
                assert!(covered <= rank + 2, "{score}: {covered} of {rank}");
            }
            let confident = calibrator.confident_calibration(alpha, 0.05).unwrap();
            assert!(confident.threshold(None).unwrap() >= calibration.threshold(None).unwrap());
        }
    }
}

#[test]
fn groups_have_thresholds_of_their_own() {
    let mut rng = SplitMix(8);
    let (logits, labels) = sample(&mut rng, 300, 6);
    let groups: Vec<u32> = (0..300).map(|_| [3, 10, 900][rng.below(3)]).collect();
    let mask: Vec<bool> = (0..6).map(|k| k != 4).collect();
    let labels: Vec<u32> = labels.iter().map(|&k| if k == 4 { 0 } else { k }).collect();
    let batch = Logits::rows(&logits, 6).unwrap().mask(&mask).unwrap().temperature(0.7).unwrap();
    let rows = Labelled::new(batch, &labels).unwrap().groups(&groups).unwrap();
    for score in SCORES {
        let mut calibrator = Calibrator::new(score, Strata::Group);
        calibrator.add(&rows).unwrap();
        let calibration = calibrator.calibration(0.1).unwrap();
        assert_eq!(calibration.thresholds().len(), 3);
        let csr = calibration.csr(&batch, Some(&groups), Threads::One).unwrap();
        let dense = calibration.dense(&batch, Some(&groups), Threads::All).unwrap();
        assert_eq!(csr.to_dense(), dense);
        let sets = calibration.sets(&batch, Some(&groups), || 1.0).unwrap();
        for (i, row) in logits.chunks(6).enumerate() {
            let (method, temperature) = calibration.method(Some(groups[i])).unwrap();
            let alone = Logits::row(row).unwrap().mask(&mask).unwrap();
            let alone = alone.temperature(0.7 * temperature).unwrap();
            assert_eq!(method.dense(&alone, Threads::One).unwrap(), dense[i * 6..][..6]);
            let kept: Vec<u32> = csr.row(i).unwrap().0.to_vec();
            assert!(sets[i].iter().all(|class| kept.contains(class)), "{score}, row {i}");
        }
        // Groups as another axis: the transpose has the same distributions.
        let transposed: Vec<f32> =
            (0..6).flat_map(|k| logits.chunks(6).map(move |row| row[k])).collect();
        let columns = Logits::strided(&transposed, &[6, 300], &[300, 1], 0, 0).unwrap();
        let columns = columns.mask(&mask).unwrap().temperature(0.7).unwrap();
        let across = calibration.dense(&columns, Some(&groups), Threads::One).unwrap();
        for i in 0..300 {
            for k in 0..6 {
                assert_eq!(across[k * 300 + i], dense[i * 6 + k]);
            }
        }
    }
}

#[test]
fn classes_have_thresholds_of_their_own() {
    let mut rng = SplitMix(21);
    let (logits, mut labels) = sample(&mut rng, 400, 5);
    // Class 4 never occurs.
    for label in &mut labels {
        *label = (*label).min(3);
    }
    let rows = Labelled::new(Logits::rows(&logits, 5).unwrap(), &labels).unwrap();
    let mut calibrator = Calibrator::new(Score::Lac, Strata::Class);
    calibrator.add(&rows).unwrap();
    let calibration = calibrator.calibration(0.1).unwrap();
    assert_eq!(calibration.thresholds()[&4].value, f64::INFINITY);
    let sets = calibration.sets(&Logits::rows(&logits, 5).unwrap(), None, || 1.0).unwrap();
    assert!(sets.iter().all(|set| set.contains(&4)));
    for class in 0..4 {
        let of_class = || sets.iter().zip(&labels).filter(move |(_, label)| **label == class);
        let kept = of_class().filter(|(set, _)| set.contains(&class)).count();
        let rank = conformal_rank(of_class().count(), 0.1).unwrap().unwrap();
        assert_eq!(kept, rank, "class {class}");
    }
    let error = calibration.method(None).unwrap_err().to_string();
    assert!(error.contains("each class has a threshold of its own"), "{error}");
}

/// Against a plain loop: the set, the best class with it, and the ratios of softmax.
#[test]
fn classes_with_thresholds_of_their_own_have_distributions() {
    let mut rng = SplitMix(22);
    let (logits, labels) = sample(&mut rng, 500, 7);
    let labels: Vec<u32> = labels.iter().map(|&k| if k == 2 { 0 } else { k }).collect();
    let mask: Vec<bool> = (0..7).map(|k| k != 2).collect();
    let batch = Logits::rows(&logits, 7).unwrap().mask(&mask).unwrap().temperature(0.8).unwrap();
    let rows = Labelled::new(batch, &labels).unwrap();
    for score in SCORES {
        let mut calibrator = Calibrator::new(score, Strata::Class);
        calibrator.add(&rows).unwrap();
        let calibration = calibrator.calibration(0.2).unwrap();
        if matches!(score, Score::Sparsemax | Score::Entmax { .. }) {
            let error = calibration.csr(&batch, None, Threads::One).unwrap_err().to_string();
            assert!(error.contains("the temperature of a row"), "{error}");
            continue;
        }
        let csr = calibration.csr(&batch, None, Threads::All).unwrap();
        let dense = calibration.dense(&batch, None, Threads::One).unwrap();
        assert_eq!(csr.to_dense(), dense);
        let mut dropped = 0;
        for (i, row) in logits.chunks(7).enumerate() {
            let unmasked = |(k, &x): (usize, &f32)| {
                if k == 2 { f64::NEG_INFINITY } else { f64::from(x) / 0.8 }
            };
            let z: Vec<f64> = row.iter().enumerate().map(unmasked).collect();
            let max = z.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            // Scores next to their threshold are decided by rounding.
            let scores: Vec<f64> = (0..7).map(|k| by_definition(score, &z, k)).collect();
            let at = |k: usize| calibration.thresholds()[&(k as u32)].value;
            if (0..7).any(|k| k != 2 && (scores[k] - at(k)).abs() < 1e-9 && score != Score::TopK) {
                continue;
            }
            let keeps = |k: usize| k != 2 && (scores[k] <= at(k) || z[k] == max);
            let weight = |k: usize| if keeps(k) { (z[k] - max).exp() } else { 0.0 };
            let total: f64 = (0..7).map(weight).sum();
            for k in 0..7 {
                dropped += usize::from(!keeps(k));
                let found = f64::from(dense[i * 7 + k]);
                assert!((found - weight(k) / total).abs() < 1e-6, "{score}, row {i}, class {k}");
                assert_eq!(csr.row(i).unwrap().0.contains(&(k as u32)), keeps(k));
            }
        }
        assert!(dropped > 500, "{score}: {dropped}");
        // Of the rows of a class, its rank is kept at least.
        for class in [0, 1, 3, 4, 5, 6] {
            let of_class = || csr.iter().zip(&labels).filter(move |(_, label)| **label == class);
            let kept = of_class().filter(|((classes, _), _)| classes.contains(&class)).count();
            let rank = conformal_rank(of_class().count(), 0.2).unwrap().unwrap();
            assert!(kept >= rank, "{score}, class {class}: {kept} of {rank}");
        }
    }
    // Errors name the row.
    let mut nan = logits[..70].to_vec();
    nan[7 * 4 + 1] = f32::NAN;
    let mut calibrator = Calibrator::new(Score::Evidential, Strata::Class);
    calibrator.add(&rows).unwrap();
    let calibration = calibrator.calibration(0.2).unwrap();
    let nan = Logits::rows(&nan, 7).unwrap();
    let error = calibration.csr(&nan, None, Threads::One).unwrap_err().to_string();
    assert!(error.starts_with("row 4, column 1: logit is NaN"), "{error}");
}

#[test]
fn audits_count_what_is_dropped() {
    let mut rng = SplitMix(31);
    let (logits, labels) = sample(&mut rng, 700, 9);
    let groups: Vec<u32> = (0..700).map(|i| i % 4).collect();
    let mut audit = Audit::default();
    // In two batches.
    for part in [0..300, 300..700] {
        let logits = Logits::rows(&logits[part.start * 9..part.end * 9], 9).unwrap();
        let rows = Labelled::new(logits, &labels[part.clone()]).unwrap();
        let rows = rows.groups(&groups[part]).unwrap();
        audit.add(Method::EVIDENTIAL, &rows, Threads::All).unwrap();
    }
    let (mut missed, mut size) = (0, 0);
    for (row, &label) in logits.chunks(9).zip(&labels) {
        let mean = row.iter().map(|&x| f64::from(x)).sum::<f64>() / 9.0;
        missed += u64::from(f64::from(row[label as usize]) <= mean);
        size += row.iter().filter(|&&x| f64::from(x) > mean).count();
    }
    assert!(missed > 10);
    assert_eq!((audit.all().missed, audit.all().rows), (missed, 700));
    assert_eq!(audit.by_group().values().map(|m| m.missed).sum::<u64>(), missed);
    assert_eq!(audit.by_size().values().map(|m| m.missed).sum::<u64>(), missed);
    assert!((audit.mean_size().unwrap() - size as f64 / 700.0).abs() < 1e-12);
}

#[test]
fn weights_are_as_many_rows() {
    let mut rng = SplitMix(41);
    let scores: Vec<f64> = (0..80).map(|_| rng.normal()).collect();
    let weights: Vec<f64> = (0..80).map(|_| rng.below(4) as f64).collect();
    let weighted =
        WeightedScores::new(scores.iter().copied().zip(weights.iter().copied())).unwrap();
    let copies = |(&score, &weight): (&f64, &f64)| std::iter::repeat_n(score, weight as usize);
    let repeated: Vec<f64> = scores.iter().zip(&weights).flat_map(copies).collect();
    let repeated = Scores::new(repeated).unwrap();
    for alpha in [0.01, 0.05, 0.1, 0.3] {
        assert_eq!(weighted.threshold(alpha, 1.0), repeated.threshold(alpha), "{alpha}");
    }
    for score in [-1.0, 0.3, 9.0] {
        let (p, expected) = (weighted.p_value(score, 1.0).unwrap(), repeated.p_value(score));
        assert!((p - expected).abs() < 1e-12);
    }
    assert_eq!(WeightedScores::new([(1.0, 0.0)]).unwrap().threshold(0.5, 0.0), Ok(f64::INFINITY));
}

#[test]
fn ranks_at_their_edges() {
    for (rows, alpha, rank) in [
        (0, 0.5, None),
        (1, 0.5, Some(1)),
        (19, 0.05, Some(19)),
        (18, 0.05, None),
        (99, 0.01, Some(99)),
        (98, 0.01, None),
        (9, 0.1, Some(9)),
        (29, 0.1, Some(27)),
        (99, 0.07, Some(93)),
        (99, 0.29, Some(71)),
    ] {
        assert_eq!(conformal_rank(rows, alpha), Ok(rank), "{rows}, {alpha}");
    }
    for alpha in [0.001, 0.01, 0.05, 0.2, 0.7] {
        let needed = rows_needed(alpha, None).unwrap();
        assert!(conformal_rank(needed, alpha).unwrap().is_some());
        assert!(needed == 1 || conformal_rank(needed - 1, alpha).unwrap().is_none());
        let needed = rows_needed(alpha, Some(0.1)).unwrap();
        assert!(confident_rank(needed, alpha, 0.1).unwrap().is_some());
        assert!(needed == 1 || confident_rank(needed - 1, alpha, 0.1).unwrap().is_none());
    }
}

#[test]
fn bad_input_is_named() {
    let logits = [1.0, 2.0, 3.0, 4.0, 5.0, f64::NEG_INFINITY];
    let batch = Logits::rows(&logits, 3).unwrap();
    let message = |result: shafer::Result<()>| result.unwrap_err().to_string();
    let add = |logits: &[f64], labels: &[u32]| -> shafer::Result<()> {
        let rows = Labelled::new(Logits::rows(logits, 3)?, labels)?;
        let mut calibrator = Calibrator::new(Score::Evidential, Strata::All);
        calibrator.add(&rows)?;
        Audit::default().add(Method::EVIDENTIAL, &rows, Threads::One)
    };
    assert_eq!(message(add(&logits, &[0])), "labels has length 1, but 2 is needed");
    assert_eq!(
        message(add(&logits, &[0, 3])),
        "row 1: label 3 is not a class: labels count the classes from 0"
    );
    let masked = "row 1: label 2 is a masked class, which no method can keep";
    assert_eq!(message(add(&logits, &[0, 2])), masked);
    let labelled = Labelled::new(batch, &[0, 2]).unwrap();
    let audited = Audit::default().add(Method::SOFTMAX, &labelled, Threads::One);
    assert_eq!(message(audited), masked);
    let nan = [0.0, 0.0, 0.0, 1.0, f64::NAN, 0.0];
    assert_eq!(
        message(add(&nan, &[0, 1])),
        "row 1, column 1: logit is NaN, but must be finite, or -inf for a masked class"
    );
    let empty = Calibrator::new(Score::Lac, Strata::All).calibration(0.1).map(|_| ());
    assert!(message(empty).contains("the set of calibration rows is empty"));
    for alpha in [0.0, 1.0, -0.5, f64::NAN] {
        let error = Scores::new(vec![1.0]).unwrap().threshold(alpha).unwrap_err().to_string();
        assert!(error.contains("must be between 0 and 1"), "{error}");
    }
    let calibration = Calibration::of_threshold(Score::Lac, 4, 0.1, 2.0).unwrap();
    let other = calibration.dense(&batch, None, Threads::One).unwrap_err().to_string();
    assert_eq!(other, "a row of logits has length 3, but 4 is needed");
    let sets_only = Calibration::of_threshold(Score::Aps, 3, 0.1, 2.0).unwrap();
    let error = sets_only.dense(&batch, None, Threads::One).unwrap_err().to_string();
    assert_eq!(error, "method `aps`: this score gives sets of classes, not distributions");

    let rows = Labelled::new(batch, &[0, 1]).unwrap();
    let mut by_group = Calibrator::new(Score::MinP, Strata::Group);
    assert_eq!(message(by_group.add(&rows)), "groups is empty, but must hold at least one element");
    by_group.add(&rows.groups(&[5, 6]).unwrap()).unwrap();
    let by_group = by_group.calibration(0.6).unwrap();
    let error = by_group.csr(&batch, Some(&[5, 7]), Threads::One).unwrap_err().to_string();
    assert_eq!(error, "row 1: group 7 has no threshold, because it did not occur in calibration");
    assert!(by_group.csr(&batch, Some(&[5]), Threads::One).is_err());
    assert!(by_group.csr(&batch, None, Threads::One).is_err());
    // The row of an error is that of the batch, not of the group.
    let nan = Logits::rows(&nan, 3).unwrap();
    let error = by_group.dense(&nan, Some(&[5, 6]), Threads::One).unwrap_err().to_string();
    assert!(error.starts_with("row 1, column 1"), "{error}");

    assert!(Scores::new(vec![f64::NAN]).is_err());
    assert!(WeightedScores::new([(1.0, -1.0)]).is_err());
    assert!(Losses::new(&[0.5, 1.5], 2, 1.0).is_err());
    assert!(Losses::new(&[0.5], 2, 1.0).is_err());
    let growing = [0.5, 0.25, 0.25, 0.5];
    let error = Losses::new(&growing, 2, 1.0).unwrap().control_risk(0.9).unwrap_err();
    assert!(error.to_string().starts_with("row 1, column 1: loss is 0.5, but must not be greater"));
    assert!(ExchangeabilityTest::new().add(1.0, 1.0).is_err());
    assert!(AdaptiveThreshold::new(0.1, 0.0, 10).is_err());
    assert!(AdaptiveThreshold::new(0.1, 0.1, 0).is_err());
    assert!(clopper_pearson(3, 2, 0.9).is_err());
    assert!(clopper_pearson(0, 0, 0.9).is_err());
    assert!(Calibration::of_threshold(Score::Lac, 3, 0.1, f64::NAN).is_err());
}

#[test]
fn scores_as_text() {
    for text in [
        "evidential",
        "lac",
        "min-p",
        "top-n-sigma",
        "top-p",
        "top-k",
        "sparsemax",
        "entmax:alpha=1.25",
        "aps",
        "raps:penalty=0.02,rank=3",
    ] {
        assert_eq!(text.parse::<Score>().unwrap().to_string(), text);
    }
    assert_eq!("entmax".parse(), Ok(Score::Entmax { alpha: 1.5 }));
    for bad in [
        "softmax",
        "entmax:alpha=1",
        "raps:rank=1.5",
        "raps:penalty=-1",
        "lac:k=2",
        "entmax:alpha",
        "aps:u=x",
    ] {
        assert!(bad.parse::<Score>().is_err(), "{bad}");
    }
}

#[test]
fn extreme_thresholds_keep_all_or_one() {
    let logits = [3.0_f32, 1.0, -2.0, 0.5, f32::NEG_INFINITY];
    let batch = Logits::row(&logits).unwrap();
    for score in SCORES {
        for (threshold, kept) in
            [(f64::INFINITY, 4), (1e300, 4), (f64::NEG_INFINITY, 1), (-1e300, 1)]
        {
            let threshold = if score == Score::TopK { threshold.min(5.0) } else { threshold };
            let calibration = Calibration::of_threshold(score, 5, 0.1, threshold).unwrap();
            let rows = calibration.csr(&batch, None, Threads::One).unwrap();
            assert_eq!(rows.nnz(), kept, "{score} at {threshold}");
        }
    }
}

#[test]
fn tails_add_up() {
    for (n, p) in [(7_u64, 0.3), (40, 0.95), (1000, 0.002)] {
        // Pascal's triangle, one trial after the other.
        let mut mass = vec![1.0];
        for _ in 0..n {
            let mut next = vec![0.0; mass.len() + 1];
            for (k, &m) in mass.iter().enumerate() {
                next[k] += m * (1.0 - p);
                next[k + 1] += m * p;
            }
            mass = next;
        }
        for k in 0..=n {
            let tail: f64 = mass[k as usize..].iter().sum();
            let found = binomial_tail(n, p, k);
            assert!(
                (found - tail).abs() <= 1e-12 * tail.max(1e-280) + 1e-300,
                "{n} {p} {k}: {found} {tail}"
            );
        }
    }
}

#[cfg(feature = "serde")]
#[test]
fn a_calibration_is_read_back() {
    let mut rng = SplitMix(3);
    let (logits, labels) = sample(&mut rng, 120, 4);
    let groups: Vec<u32> = (0..120).map(|i| u32::from(i > 110)).collect();
    let rows = Labelled::new(Logits::rows(&logits, 4).unwrap(), &labels).unwrap();
    let rows = rows.groups(&groups).unwrap();
    for by in [Strata::All, Strata::Group, Strata::Class] {
        let mut calibrator = Calibrator::new(Score::Entmax { alpha: 1.5 }, by);
        calibrator.add(&rows).unwrap();
        let calibration = calibrator.confident_calibration(0.05, 0.1).unwrap();
        let calibration = calibration.measured_on("logits.npy");
        let text = serde_json::to_string(&calibration).unwrap();
        assert_eq!(serde_json::from_str::<Calibration>(&text).unwrap(), calibration, "{text}");
        for (good, bad) in [
            ("\"version\":1", "\"version\":2"),
            ("\"alpha\":0.05", "\"alpha\":1.5"),
            ("entmax:alpha", "entmax:beta"),
            ("\"classes\":4", "\"classes\":0"),
            ("\"stratum\":0", "\"stratum\":7,\"x\":1"),
        ] {
            assert!(text.contains(good), "{text}");
            let changed = text.replace(good, bad);
            assert!(serde_json::from_str::<Calibration>(&changed).is_err(), "{changed}");
        }
    }
}
