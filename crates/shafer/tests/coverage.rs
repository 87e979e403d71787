//! What the theorems promise, by simulation: 2,000 calibration sets and test sets of each kind.
//!
//! Seeds are fixed, so that nothing here fails by chance. Every bound is at least four standard errors
//! from the expected value, or a goodness-of-fit test at a level of 1e-4.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use common::SplitMix;
use shafer::Logits;
use shafer::calibrate::{
    AdaptiveThreshold, ExchangeabilityTest, Labelled, Losses, Score, Scores, WeightedScores,
    confident_rank, conformal_rank,
};

const DRAWS: usize = 2000;
const CLASSES: usize = 6;

/// How the logits of a row relate to its label.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Kind {
    /// The label has the largest logit nearly always.
    Easy,
    /// The logits say little.
    Hard,
    /// Logits of three values, with many equal scores.
    Tied,
    /// The network is sure of anything but the label.
    Adversarial,
}

/// Scores of the true classes of independent rows.
fn scores(rng: &mut SplitMix, kind: Kind, score: Score, count: usize) -> Vec<f64> {
    let mut logits = Vec::with_capacity(count * CLASSES);
    let mut labels = Vec::with_capacity(count);
    for _ in 0..count {
        let label = rng.below(CLASSES);
        labels.push(label as u32);
        for class in 0..CLASSES {
            // Uniform noise: cheaper than normal, and as good.
            let noise = rng.unit();
            let true_class = f64::from(u8::from(class == label));
            logits.push(match kind {
                Kind::Easy => 5.0 * true_class + 4.0 * noise,
                Kind::Hard => 0.3 * true_class + 4.0 * noise,
                Kind::Tied => (true_class + 2.0 * noise).round(),
                Kind::Adversarial => -9.0 * true_class + 4.0 * noise,
            });
        }
    }
    let rows = Labelled::new(Logits::rows(&logits, CLASSES).unwrap(), &labels).unwrap();
    score.of_labels(&rows).unwrap()
}

/// Of how many test rows the score is at most the threshold.
fn covered(test: &[f64], threshold: f64) -> usize {
    test.iter().filter(|&&score| score <= threshold).count()
}

/// The law of the number of covered rows among `m`, at the threshold of rank `k` of `n`: beta-binomial,
/// by the recursion of its terms.
fn beta_binomial(m: usize, k: usize, n: usize) -> Vec<f64> {
    let (a, b) = (k as f64, (n + 1 - k) as f64);
    // From the first term on, in logarithms: the first can underflow.
    let mut ln = vec![0.0; m + 1];
    for j in 0..m {
        let (j_, m_) = (j as f64, m as f64);
        ln[j + 1] = ln[j] + ((m_ - j_) / (j_ + 1.0) * (j_ + a) / (m_ - j_ - 1.0 + b)).ln();
    }
    let largest = ln.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let terms: Vec<f64> = ln.iter().map(|ln| (ln - largest).exp()).collect();
    let sum: f64 = terms.iter().sum();
    terms.iter().map(|term| term / sum).collect()
}

/// Pearson's statistic of counts over classes of values that are each expected at least 40 times, over
/// its degrees of freedom, as a standard normal variable (Wilson and Hilferty).
fn misfit(found: &[usize], law: &[f64]) -> f64 {
    let mut counts = vec![0.0; law.len()];
    for &value in found {
        counts[value] += 1.0;
    }
    let (mut expected, mut observed) = (0.0, 0.0);
    let (mut statistic, mut groups) = (0.0, 0.0);
    let mut left: f64 = found.len() as f64;
    for (p, count) in law.iter().zip(&counts) {
        let share = p * found.len() as f64;
        expected += share;
        observed += count;
        left -= share;
        // The last group takes what is left.
        if expected >= 40.0 && left >= 40.0 {
            statistic += (observed - expected) * (observed - expected) / expected;
            groups += 1.0;
            (expected, observed) = (0.0, 0.0);
        }
    }
    statistic += (observed - expected) * (observed - expected) / expected;
    let freedom: f64 = groups;
    assert!(freedom >= 2.0, "too few groups to compare");
    let spread = 2.0 / (9.0 * freedom);
    ((statistic / freedom).cbrt() - (1.0 - spread)) / spread.sqrt()
}

/// One-sided level of 1e-4.
const CRITICAL: f64 = 3.719;

#[test]
fn coverage_and_its_spread() {
    let kinds = [
        (Kind::Easy, Score::Evidential),
        (Kind::Hard, Score::Lac),
        (Kind::Hard, Score::Sparsemax),
        (Kind::Tied, Score::Evidential),
        (Kind::Adversarial, Score::Evidential),
    ];
    let (mut compared, mut refuted, mut tests) = (0, 0, 0);
    for (number, (kind, score)) in kinds.into_iter().enumerate() {
        for n in [50, 200, 1000] {
            let mut rng = SplitMix(1000 * number as u64 + n as u64);
            let m = 200;
            let alphas = [0.01, 0.05, 0.2];
            let mut found = alphas.map(|_| Vec::with_capacity(DRAWS));
            for _ in 0..DRAWS {
                let calibration = scores(&mut rng, kind, score, n);
                let calibration = Scores::new(calibration).unwrap();
                let test = scores(&mut rng, kind, score, m);
                for (found, alpha) in found.iter_mut().zip(alphas) {
                    found.push(covered(&test, calibration.threshold(alpha).unwrap()));
                }
            }
            for (found, alpha) in found.iter().zip(alphas) {
                let about = format!("{kind:?} {score}, n = {n}, alpha = {alpha}");
                let total = (DRAWS * m) as f64;
                let mean = found.iter().sum::<usize>() as f64 / total;
                let Some(rank) = conformal_rank(n, alpha).unwrap() else {
                    assert_eq!(mean, 1.0, "{about}: everything is kept");
                    continue;
                };
                let law = beta_binomial(m, rank, n);
                let exact = rank as f64 / (n + 1) as f64;
                let second = law.iter().enumerate().map(|(j, p)| p * (j as f64).powi(2));
                let variance = second.sum::<f64>() - (exact * m as f64).powi(2);
                let error = (variance / DRAWS as f64).sqrt() / m as f64;
                compared += 1;
                assert!(mean >= 1.0 - alpha - 4.0 * error, "{about}: {mean}");
                if kind == Kind::Tied {
                    continue;
                }
                let most = 1.0 - alpha + 1.0 / (n + 1) as f64;
                assert!(mean <= most + 4.0 * error, "{about}: {mean}");
                assert!((mean - exact).abs() <= 4.0 * error, "{about}: {mean}, not {exact}");
                let z = misfit(found, &law);
                assert!(z < CRITICAL, "{about}: the spread is not that of the law, {z}");
                // The test can fail: a rank that is wrong by a fiftieth of the rows is found out.
                if n > 50 && rank > n / 50 + 1 {
                    tests += 1;
                    let wrong = beta_binomial(m, rank - n / 50, n);
                    refuted += usize::from(misfit(found, &wrong) > CRITICAL);
                }
            }
        }
    }
    assert_eq!(compared, 5 * 8); // n = 50 is too few for 0.01.
    assert!(tests == 24 && refuted == tests, "{refuted} of {tests}");
}

/// Uniform scores: the coverage of a threshold is the threshold.
fn uniform(rng: &mut SplitMix, count: usize) -> Vec<f64> {
    (0..count).map(|_| rng.unit()).collect()
}

#[test]
fn the_bound_with_confidence() {
    let mut rng = SplitMix(17);
    for (n, alpha, delta) in
        [(50, 0.1, 0.2), (200, 0.05, 0.1), (1000, 0.05, 0.05), (1000, 0.01, 0.1)]
    {
        let rank = confident_rank(n, alpha, delta).unwrap().unwrap();
        let (mut failures, mut tighter) = (0, 0);
        for _ in 0..DRAWS {
            let mut scores = uniform(&mut rng, n);
            scores.sort_by(f64::total_cmp);
            failures += usize::from(scores[rank - 1] < 1.0 - alpha);
            tighter += usize::from(scores[rank - 2] < 1.0 - alpha);
        }
        let error = (delta * (1.0 - delta) / DRAWS as f64).sqrt();
        let share = failures as f64 / DRAWS as f64;
        assert!(share <= delta + 4.0 * error, "{n} {alpha} {delta}: {share}");
        // And no rank less would do.
        let share = tighter as f64 / DRAWS as f64;
        assert!(share > delta - 4.0 * error, "{n} {alpha} {delta}: {share}");
    }
}

/// The loss of a row at a threshold: how far its score, from 0 to 1, lies above it.
fn loss(score: f64, threshold: f64) -> f64 {
    (score - threshold).max(0.0)
}

/// Its mean, for uniform scores.
fn risk(threshold: f64) -> f64 {
    (1.0 - threshold).powi(2) / 2.0
}

#[test]
fn risks_are_controlled() {
    let thresholds: Vec<f64> = (0..=200).map(|i| f64::from(i) / 200.0).collect();
    let mut rng = SplitMix(19);
    for (n, alpha) in [(50, 0.1), (200, 0.05), (1000, 0.05), (1000, 0.01)] {
        let (mut total, mut square, mut excesses, mut found) = (0.0, 0.0, 0, 0);
        let draws = DRAWS / 4;
        for _ in 0..draws {
            let scores = uniform(&mut rng, n);
            let rows = scores.iter().flat_map(|&s| thresholds.iter().map(move |&t| loss(s, t)));
            let table: Vec<f64> = rows.collect();
            let losses = Losses::new(&table, thresholds.len(), 1.0).unwrap();
            let chosen = losses.control_risk(alpha).unwrap().unwrap();
            let r = risk(thresholds[chosen]);
            total += r;
            square += r * r;
            if let Some(chosen) = losses.learn_then_test(alpha, 0.1).unwrap() {
                found += 1;
                excesses += usize::from(risk(thresholds[chosen]) > alpha);
            }
        }
        let mean = total / draws as f64;
        let error = ((square / draws as f64 - mean * mean) / draws as f64).sqrt();
        assert!(mean <= alpha + 4.0 * error, "{n} {alpha}: {mean}");
        // At least alpha - 2 / (n + 1), and the distance of two thresholds.
        let step = (2.0 * alpha).sqrt() / 200.0;
        let least = alpha - 2.0 / (n + 1) as f64 - step;
        assert!(mean >= least - 4.0 * error, "{n} {alpha}: {mean} is less than {least}");
        let share = excesses as f64 / draws as f64;
        assert!(share <= 0.1 + 4.0 * (0.09 / draws as f64).sqrt(), "{n} {alpha}: {share}");
        assert!(found > draws * 9 / 10, "{n} {alpha}: a threshold in {found} of {draws}");
    }
}

#[test]
fn exact_tests_of_losses_of_0_and_1() {
    let thresholds: Vec<f64> = (0..=100).map(|i| f64::from(i) / 100.0).collect();
    let mut rng = SplitMix(23);
    let (mut excesses, mut close) = (0, 0);
    for _ in 0..DRAWS {
        let scores = uniform(&mut rng, 100);
        let missed = |s: f64, t: f64| f64::from(u8::from(s > t));
        let rows = scores.iter().flat_map(|&s| thresholds.iter().map(move |&t| missed(s, t)));
        let table: Vec<f64> = rows.collect();
        let losses = Losses::new(&table, thresholds.len(), 1.0).unwrap();
        let chosen = losses.learn_then_test(0.2, 0.1).unwrap().unwrap();
        excesses += usize::from(1.0 - thresholds[chosen] > 0.2 + 1e-9);
        close += usize::from(thresholds[chosen] < 0.95);
    }
    let share = excesses as f64 / DRAWS as f64;
    assert!(share <= 0.1 + 4.0 * (0.09 / DRAWS as f64).sqrt(), "{share}");
    assert!(close > DRAWS * 9 / 10, "{close}");
}

#[test]
fn a_known_shift_is_weighed_away() {
    // Rows of the second kind score higher, and are nine times as frequent after the shift.
    let mut rng = SplitMix(29);
    let kind = |rng: &mut SplitMix, share: f64| rng.unit() < share;
    let score = |rng: &mut SplitMix, second: bool| rng.unit() + f64::from(u8::from(second));
    let weight = |second: bool| if second { 0.9 / 0.3 } else { 0.1 / 0.7 };
    let (mut hits, mut plain_hits) = (0, 0);
    for _ in 0..DRAWS {
        let rows: Vec<(f64, f64)> = (0..200)
            .map(|_| {
                let second = kind(&mut rng, 0.3);
                (score(&mut rng, second), weight(second))
            })
            .collect();
        let plain = Scores::new(rows.iter().map(|row| row.0).collect()).unwrap();
        let plain = plain.threshold(0.2).unwrap();
        let weighted = WeightedScores::new(rows).unwrap();
        for _ in 0..5 {
            let second = kind(&mut rng, 0.9);
            let s = score(&mut rng, second);
            hits += usize::from(s <= weighted.threshold(0.2, weight(second)).unwrap());
            plain_hits += usize::from(s <= plain);
        }
    }
    let rows = (5 * DRAWS) as f64;
    assert!((hits as f64 / rows - 0.8).abs() < 0.025, "{}", hits as f64 / rows);
    assert!((plain_hits as f64 / rows) < 0.5, "without weights it is far off");
}

#[test]
fn p_values_are_uniform() {
    let mut rng = SplitMix(37);
    for n in [19, 100] {
        let mut counts = [0; 20];
        let mut small = 0;
        for _ in 0..DRAWS {
            // Of five values, with many ties.
            let mut draw = || (rng.unit() * 5.0).floor();
            let scores = Scores::new((0..n).map(|_| draw()).collect()).unwrap();
            let score = draw();
            small += usize::from(scores.p_value(score) <= 0.1);
            counts[(scores.smoothed_p_value(score, rng.unit()) * 20.0) as usize] += 1;
        }
        let found: Vec<usize> =
            counts.iter().enumerate().flat_map(|(i, &c)| std::iter::repeat_n(i, c)).collect();
        let z = misfit(&found, &[0.05; 20]);
        assert!(z < CRITICAL, "{n}: {z}");
        assert!(small as f64 / (DRAWS as f64) < 0.1 + 4.0 * (0.09 / DRAWS as f64).sqrt());
    }
}

#[test]
fn the_martingale_rarely_alarms_without_a_reason_and_always_with_one() {
    let mut rng = SplitMix(43);
    let (mut alarms, mut detections) = (0, 0);
    let draws = DRAWS / 2;
    for _ in 0..draws {
        let mut same = ExchangeabilityTest::new();
        let mut shifted = ExchangeabilityTest::new();
        for i in 0..300 {
            let (score, u) = (rng.unit(), rng.unit());
            same.add(score, u).unwrap();
            let shift = if i < 100 { 0.0 } else { 0.5 };
            shifted.add(score + shift, u).unwrap();
        }
        alarms += usize::from(same.ln_most() >= 10_f64.ln());
        detections += usize::from(shifted.ln_most() >= 10_f64.ln());
    }
    let share = alarms as f64 / draws as f64;
    assert!(share <= 0.1 + 4.0 * (0.09 / draws as f64).sqrt(), "{share}");
    assert!(detections > draws * 95 / 100, "{detections} of {draws}");
}

/// The score of a row of a stream.
type Stream = fn(usize, &mut SplitMix) -> f64;

#[test]
fn the_online_threshold_holds_whatever_comes() {
    let mut rng = SplitMix(47);
    // Every stream, with labels after 0 and after 25 rows.
    let streams: [Stream; 4] = [
        |_, rng| rng.unit(),
        |i, rng| rng.unit() + i as f64 / 50.0,
        |i, rng| rng.unit() + if i % 1000 < 500 { 0.0 } else { 3.0 },
        // Always just above all before it.
        |i, _| i as f64,
    ];
    for (number, stream) in streams.into_iter().enumerate() {
        for late in [0, 25] {
            for (alpha, rate) in [(0.1, 0.02), (0.05, 0.005), (0.2, 0.1)] {
                let mut online = AdaptiveThreshold::new(alpha, rate, 300).unwrap();
                let mut waiting = std::collections::VecDeque::new();
                let (mut hits, mut finite) = (0_u64, 0);
                for i in 0..5000 {
                    let threshold = online.threshold();
                    finite += usize::from(threshold < f64::INFINITY);
                    waiting.push_back((threshold, stream(i, &mut rng)));
                    if waiting.len() > late {
                        let (threshold, score) = waiting.pop_front().unwrap();
                        hits += u64::from(online.observe(threshold, score).unwrap());
                    }
                }
                let misses = online.misses();
                assert_eq!(misses.rows - misses.missed, hits);
                let about = format!("stream {number}, {late} late, {alpha}, {rate}");
                let share = misses.share().unwrap();
                assert!(share <= alpha + online.bound() + 1e-12, "{about}: {share}");
                // The theorem: the level never falls below this.
                let lowest = rate * (1 + late) as f64;
                let bound = (alpha + lowest) / (rate * misses.rows as f64);
                assert!(online.bound() <= bound + 1e-12, "{about}: {} {bound}", online.bound());
                assert!(share >= alpha - 0.3 * alpha, "{about}: {share} keeps too much");
                // Not by keeping everything. Late labels make large steps overshoot.
                let least = if number == 0 { 2000 } else { 100 };
                assert!(finite > least, "{about}: {finite}");
            }
        }
    }
}
