//! The closed form of equations 6a and 6b against its definition: Dempster's rule applied to every
//! simple mass function of equations 4 and 5, one after the other, on the explicit power set.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use proptest::prelude::*;
use shafer::{Belief, ClassSet, Combination, Construction, Evidence, Head, MassFunction, Result};

const TOLERANCE: f64 = 1e-12;

/// Splitmix64: the cases are the same on every machine and with every version of every crate.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }

    fn uniform(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.next() >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// Weights of every kind: none, tiny, ordinary, near certainty.
    fn weight(&mut self) -> f64 {
        match self.below(8) {
            0 | 1 => 0.0,
            2 => self.uniform(0.0, 1e-6),
            3 => self.uniform(5.0, 30.0),
            _ => self.uniform(0.0, 3.0),
        }
    }

    fn vector(&mut self, len: usize, low: f64, high: f64) -> Vec<f64> {
        (0..len).map(|_| self.uniform(low, high)).collect()
    }
}

/// Dempster's rule over many mass functions, keeping the product of all `1 - kappa`.
struct Fusion {
    mass: MassFunction,
    agreement: f64,
}

impl Fusion {
    fn new(classes: usize) -> Self {
        Self { mass: MassFunction::vacuous(classes).unwrap(), agreement: 1.0 }
    }

    fn add(&mut self, piece: &MassFunction) {
        let Combination { mass, conflict } = self.mass.combine(piece).unwrap();
        self.mass = mass;
        self.agreement *= 1.0 - conflict;
    }
}

/// The power-set side of a comparison: everything combined, and the two sides apart.
struct Oracle {
    all: Fusion,
    positive: Fusion,
    negative: Fusion,
}

impl Oracle {
    /// From weights `w_jk`, any number of rows `j`: `m+_jk` on `{k}` and `m-_jk` on its complement.
    fn new<'a>(
        classes: usize,
        positive: impl IntoIterator<Item = &'a [f64]>,
        negative: impl IntoIterator<Item = &'a [f64]>,
    ) -> Self {
        let mut oracle = Self {
            all: Fusion::new(classes),
            positive: Fusion::new(classes),
            negative: Fusion::new(classes),
        };
        for (plus, minus) in positive.into_iter().zip(negative) {
            for class in 0..classes {
                let set = ClassSet::singleton(class).unwrap();
                let rest = set.complement(classes).unwrap();
                let plus = MassFunction::simple_from_weight(classes, set, plus[class]).unwrap();
                let minus = MassFunction::simple_from_weight(classes, rest, minus[class]).unwrap();
                oracle.all.add(&plus);
                oracle.all.add(&minus);
                oracle.positive.add(&plus);
                oracle.negative.add(&minus);
            }
        }
        oracle
    }

    fn of(evidence: &Evidence) -> Self {
        Self::new(evidence.classes(), [evidence.positive()], [evidence.negative()])
    }

    /// Compares everything that `Belief` offers, sets drawn at random where there are many.
    fn check(&self, evidence: &Evidence, random: &mut Random) {
        let belief = Belief::new(evidence);
        let classes = evidence.classes();
        let mass = &self.all.mass;
        let close = |what: &str, found: f64, expected: f64| {
            assert!(
                (found - expected).abs() <= TOLERANCE,
                "{what}: {found} instead of {expected} for {evidence:?}"
            );
        };

        let transform = mass.plausibility_transform();
        for (class, &probability) in transform.iter().enumerate() {
            let set = ClassSet::singleton(class).unwrap();
            close("singleton", belief.singleton(class).unwrap(), mass.mass(set));
            close("singletons", belief.singletons()[class], mass.mass(set));
            close("contour", belief.contour()[class], mass.plausibility(set));
            close("transform", belief.plausibility_transform()[class], probability);
            if !evidence.is_vacuous() && evidence.unmasked() > 1 {
                // A product of many tiny factors underflows; signs do not.
                let kept = evidence.supports(class).unwrap();
                assert!(kept || mass.mass(set) == 0.0, "class {class} of {evidence:?}");
            }
        }
        let count: u64 = 1 << classes;
        for draw in 0..count.min(40) {
            let bits = if count <= 40 { draw } else { random.below(count) };
            let mut members: Vec<usize> = (0..classes).filter(|k| bits >> k & 1 == 1).collect();
            let set = ClassSet::new(members.iter().copied()).unwrap();
            members.reverse();
            members.extend_from_within(..members.len() / 2);
            assert_eq!(belief.mass(set), belief.mass(members.iter().copied()));
            close("mass", belief.mass(set).unwrap(), mass.mass(set));
            close("belief", belief.belief(members.iter().copied()).unwrap(), mass.belief(set));
            close(
                "plausibility",
                belief.plausibility(members.iter().copied()).unwrap(),
                mass.plausibility(set),
            );
        }
        let frame = (0..classes).filter(|&k| evidence.negative()[k].is_finite());
        close("ignorance", belief.ignorance(), mass.mass(ClassSet::new(frame).unwrap()));

        let between = self.positive.mass.combine(&self.negative.mass).unwrap().conflict;
        close("between", belief.degree_of_conflict(), between);
        close("internal", belief.internal_conflict(), 1.0 - self.positive.agreement);
    }
}

/// The normaliser, from the conflict of every step of Dempster's rule: what is left of 1 after all
/// of them is `prod_k e^{-w+_k} / C`.
fn check_normaliser(oracle: &Oracle, evidence: &Evidence) {
    let positive: f64 = evidence.positive().iter().sum();
    let expected = (-positive).exp() / oracle.all.agreement;
    // Beyond this the factors 1 - kappa themselves have lost their digits.
    if oracle.all.agreement > 1e-3 {
        let belief = Belief::new(evidence);
        let error = (belief.normaliser() / expected - 1.0).abs();
        assert!(error < TOLERANCE, "{error} for {evidence:?}");
        assert!((belief.ln_normaliser() - expected.ln()).abs() < TOLERANCE);
    }
}

#[test]
fn weights_for_and_against_every_class() {
    let mut random = Random(1);
    for (classes, cases) in [
        (2, 5000),
        (3, 5000),
        (4, 4000),
        (5, 3000),
        (6, 2000),
        (7, 1000),
        (8, 500),
        (9, 200),
        (10, 100),
    ] {
        for _ in 0..cases {
            let positive = (0..classes).map(|_| random.weight()).collect();
            let negative = (0..classes).map(|_| random.weight()).collect();
            let evidence = Evidence::new(positive, negative).unwrap();
            let oracle = Oracle::of(&evidence);
            oracle.check(&evidence, &mut random);
            check_normaliser(&oracle, &evidence);
        }
    }
}

#[test]
fn logits() {
    let mut random = Random(2);
    for (classes, cases) in [(2, 5000), (3, 5000), (5, 3000), (7, 1000), (9, 200), (10, 100)] {
        for _ in 0..cases {
            let spread = random.uniform(0.0, 8.0);
            let logits = random.vector(classes, -spread, spread);
            let evidence = Evidence::from_logits(&logits).unwrap();
            let oracle = Oracle::of(&evidence);
            oracle.check(&evidence, &mut random);
            check_normaliser(&oracle, &evidence);
            // With the paper's weights no class has evidence of both kinds.
            assert_eq!(Belief::new(&evidence).degree_of_conflict(), 0.0);
            let mean = logits.iter().sum::<f64>() / classes as f64;
            let above: Vec<usize> = (0..classes).filter(|&k| logits[k] > mean).collect();
            assert_eq!(evidence.support(), above);
        }
    }
}

#[test]
fn masked_classes_are_certainly_excluded() {
    let mut random = Random(3);
    for classes in 2..=6 {
        for _ in 0..300 {
            // Class 0 stays, so that the frame is never empty.
            let masked: Vec<bool> = (0..classes).map(|k| k > 0 && random.below(3) == 0).collect();
            let mut positive: Vec<f64> = (0..classes).map(|_| random.weight()).collect();
            let mut negative: Vec<f64> = (0..classes).map(|_| random.weight()).collect();
            for class in (0..classes).filter(|&class| masked[class]) {
                positive[class] = 0.0;
                negative[class] = f64::INFINITY;
            }
            let evidence = Evidence::new(positive, negative).unwrap();
            Oracle::of(&evidence).check(&evidence, &mut random);

            // Leaving a class out says the same as masking it.
            let logits = random.vector(classes, -3.0, 3.0);
            let mask = |k: usize| if masked[k] { f64::NEG_INFINITY } else { logits[k] };
            let with = Evidence::from_logits(&(0..classes).map(mask).collect::<Vec<_>>()).unwrap();
            let kept: Vec<usize> = (0..classes).filter(|&k| !masked[k]).collect();
            let rest: Vec<f64> = kept.iter().map(|&k| logits[k]).collect();
            let without = Belief::new(&Evidence::from_logits(&rest).unwrap());
            let with = Belief::new(&with);
            assert_eq!(with.ignorance(), without.ignorance());
            for (index, &class) in kept.iter().enumerate() {
                let error = with.singleton(class).unwrap() - without.singleton(index).unwrap();
                assert!(error.abs() < 1e-15);
            }
        }
    }
}

/// A random layer with the features and mean features of a query.
struct Query {
    head: Head,
    bias: Vec<f64>,
    features: Vec<f64>,
    mean: Vec<f64>,
}

impl Query {
    fn new(random: &mut Random, features: usize, classes: usize) -> Self {
        let weights = random.vector(features * classes, -1.5, 1.5);
        let bias = random.vector(classes, -1.0, 1.0);
        Self {
            head: Head::new(features, classes, weights, bias.clone()).unwrap(),
            bias,
            features: random.vector(features, -1.0, 2.0),
            mean: random.vector(features, -1.0, 2.0),
        }
    }

    fn constructions(&self) -> [Construction<'_>; 2] {
        [Construction::Direct, Construction::LeastCommitment { mean: &self.mean }]
    }

    /// `w_jk` of equation 3, split into its positive and negative parts.
    fn weights(&self, construction: Construction<'_>) -> [Vec<f64>; 2] {
        let parameters = self.head.parameters(&self.features, construction).unwrap();
        let weights: Vec<f64> = parameters
            .beta
            .iter()
            .zip(&parameters.alpha)
            .enumerate()
            .map(|(at, (beta, alpha))| beta * self.features[at / self.head.classes()] + alpha)
            .collect();
        [
            weights.iter().map(|w| w.max(0.0)).collect(),
            weights.iter().map(|w| (-w).max(0.0)).collect(),
        ]
    }
}

#[test]
fn every_feature_combined_one_by_one() {
    let mut random = Random(4);
    for features in 1..=4 {
        for classes in 2..=6 {
            for _ in 0..300 {
                let query = Query::new(&mut random, features, classes);
                for construction in query.constructions() {
                    let [positive, negative] = query.weights(construction);
                    let evidence = query.head.evidence(&query.features, construction).unwrap();
                    Oracle::new(
                        classes,
                        positive.chunks_exact(classes),
                        negative.chunks_exact(classes),
                    )
                    .check(&evidence, &mut random);
                }
            }
        }
    }
}

#[test]
fn parameters_satisfy_appendix_b_and_give_the_evidence() {
    let mut random = Random(5);
    for _ in 0..2000 {
        let (features, classes) = (1 + random.below(30) as usize, 1 + random.below(12) as usize);
        let query = Query::new(&mut random, features, classes);
        for construction in query.constructions() {
            let parameters = query.head.parameters(&query.features, construction).unwrap();
            let sum = |class: usize| -> f64 {
                parameters.alpha.iter().skip(class).step_by(classes).sum()
            };
            let constant = sum(0) - query.bias[0];
            for class in 0..classes {
                assert!((sum(class) - query.bias[class] - constant).abs() < TOLERANCE);
            }

            let evidence = query.head.evidence(&query.features, construction).unwrap();
            let [positive, negative] = query.weights(construction);
            for class in 0..classes {
                let plus: f64 = positive.iter().skip(class).step_by(classes).sum();
                let minus: f64 = negative.iter().skip(class).step_by(classes).sum();
                assert!((evidence.positive()[class] - plus).abs() < TOLERANCE);
                assert!((evidence.negative()[class] - minus).abs() < TOLERANCE);
            }
        }
    }
}

fn softmax(logits: &[f64]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = logits.iter().map(|l| (l - largest).exp()).sum();
    logits.iter().map(|l| (l - largest).exp() / total).collect()
}

#[test]
fn the_normalised_contour_is_softmax() {
    let mut random = Random(6);
    for _ in 0..2000 {
        let (features, classes) = (1 + random.below(20) as usize, 1 + random.below(40) as usize);
        let query = Query::new(&mut random, features, classes);
        let expected = softmax(&query.head.logits(&query.features).unwrap());
        for construction in query.constructions() {
            let belief = Belief::new(&query.head.evidence(&query.features, construction).unwrap());
            let contour = belief.contour();
            let total: f64 = contour.iter().sum();
            for (class, probability) in belief.plausibility_transform().into_iter().enumerate() {
                assert!((contour[class] / total - expected[class]).abs() < TOLERANCE);
                assert!((probability - expected[class]).abs() < TOLERANCE);
            }
        }
    }
}

const VOCABULARY: usize = 131_072;

fn assert_relative(found: f64, expected: f64) {
    let error = if expected == 0.0 { found } else { found / expected - 1.0 };
    assert!(error.abs() < TOLERANCE, "{found} instead of {expected}");
}

/// All logits between -1e4 and 1e4 by the formula without products, which are 0 as soon as two
/// classes are undoubted, every exponential divided by the largest.
#[test]
fn a_vocabulary_of_extreme_logits() {
    let mut random = Random(7);
    for spread in [1.0, 30.0, 1e4] {
        let mut logits = random.vector(VOCABULARY, -spread, spread);
        // A few classes close to the top, so that there is more than one mass to compare.
        for class in 0..50 {
            logits[class * 1000] = spread + random.uniform(0.0, 3.0);
        }
        let belief = Belief::new(&Evidence::from_logits(&logits).unwrap());
        let mean = logits.iter().sum::<f64>() / VOCABULARY as f64;
        let top = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let scaled = |l: f64| (l - top).exp() - (mean - top).exp();
        let total: f64 = logits.iter().filter(|&&l| l > mean).map(|&l| scaled(l)).sum::<f64>()
            + (mean - top).exp();
        let (singletons, contour) = (belief.singletons(), belief.contour());
        for class in (0..50).map(|k| k * 1000) {
            // The logits themselves are known to 1e-12 only: so far apart that it shows.
            let tolerance = 1e-11;
            let error = singletons[class] / (scaled(logits[class]) / total) - 1.0;
            assert!(error.abs() < tolerance, "{error} at {spread}");
            let error = contour[class] / ((logits[class] - top).exp() / total) - 1.0;
            assert!(error.abs() < tolerance, "{error} at {spread}");
        }
        assert!((0..VOCABULARY).all(|k| logits[k] > mean || singletons[k] == 0.0));
        let above = logits.iter().filter(|&&l| l > mean).count();
        assert_eq!(belief.evidence().support().len(), above);
        let all: Vec<usize> = (0..VOCABULARY).collect();
        assert_relative(belief.belief(all.iter().copied()).unwrap(), 1.0);
        assert_relative(belief.plausibility(all.iter().copied()).unwrap(), 1.0);
        let probabilities = belief.plausibility_transform();
        for (probability, expected) in probabilities.iter().zip(softmax(&logits)) {
            assert!((probability - expected).abs() < TOLERANCE);
        }
    }
}

/// One class far above all others, which are equal: `1/C = e^{w_0}`.
#[test]
fn one_peak_in_a_vocabulary() {
    let mut logits = vec![-1e4; VOCABULARY];
    logits[77] = 1e4;
    let belief = Belief::new(&Evidence::from_logits(&logits).unwrap());
    assert_eq!(belief.singleton(77).unwrap(), 1.0);
    assert_relative(belief.ln_normaliser(), -2e4 * (1.0 - 1.0 / VOCABULARY as f64));
    assert_eq!(belief.contour()[77], 1.0);
    assert_eq!(belief.evidence().support(), [77]);
    assert_eq!(belief.internal_conflict(), 0.0);
}

/// Evidence against everything: two groups of classes, each with one weight, so that every product
/// is two powers; up to weights whose exponentials are far below the smallest number.
#[test]
fn a_vocabulary_contradicted_altogether() {
    let n = VOCABULARY as f64;
    for (a, b) in [(0.5, 1.0), (10.0, 12.0), (40.0, 41.0), (1e4, 1e4 + 1.0)] {
        let mut negative = vec![a; VOCABULARY];
        negative[VOCABULARY / 2..].fill(b);
        let belief = Belief::new(&Evidence::new(vec![0.0; VOCABULARY], negative).unwrap());
        // Divided by e^-a throughout: the masses before normalisation.
        let ratio = f64::exp(a - b);
        let (ln_a, ln_b) = ((-f64::exp(-a)).ln_1p(), (-f64::exp(-b)).ln_1p());
        let half = n / 2.0;
        let total = if a > 600.0 {
            half + half * ratio
        } else {
            -(half * ln_a + half * ln_b).exp_m1() * a.exp()
        };
        let first = ((half - 1.0) * ln_a + half * ln_b).exp() / total;
        let last = (half * ln_a + (half - 1.0) * ln_b).exp() * ratio / total;
        assert_relative(belief.singleton(0).unwrap(), first);
        assert_relative(belief.singleton(VOCABULARY - 1).unwrap(), last);
        assert_relative(belief.contour()[0], 1.0 / total);
        assert_relative(belief.ln_normaliser(), a - total.ln());
        // The second half: plausible unless something in the first half alone explains it all.
        let set: Vec<usize> = (VOCABULARY / 2..VOCABULARY).collect();
        let plausible =
            if a > 600.0 { half * ratio } else { -(half * ln_b).exp_m1() * a.exp() } / total;
        assert_relative(belief.plausibility(set.iter().copied()).unwrap(), plausible);
        assert_relative(
            belief.belief(set.iter().copied()).unwrap(),
            (half * ln_a).exp() * plausible,
        );
        assert!(belief.ignorance() < 1e-300);
        assert_eq!(belief.evidence().support().len(), VOCABULARY);
    }
}

/// `n` equal weights for classes: the number of supporters is binomial, and two of them conflict.
#[test]
fn internal_conflict_is_exact_for_small_and_many_weights() {
    for weight in [1e-12, 1e-9, 1e-3] {
        let belief = Belief::new(&Evidence::new(vec![weight, weight, 0.0], vec![0.0; 3]).unwrap());
        let support = -f64::exp_m1(-weight);
        assert_relative(belief.internal_conflict(), support * support);
    }
    let n = VOCABULARY as f64;
    let weight = 1.0 / n;
    let evidence = Evidence::new(vec![weight; VOCABULARY], vec![0.0; VOCABULARY]).unwrap();
    let expected = 1.0 - (-1.0_f64).exp() * (1.0 + n * weight.exp_m1());
    assert_relative(Belief::new(&evidence).internal_conflict(), expected);
}

/// Weights against every class so large that a float cannot hold their sum with a small one: what
/// they share cancels, what they differ by remains.
#[test]
fn huge_weights_do_not_swallow_small_ones() {
    for huge in [1e20, 1e278] {
        let evidence = Evidence::new(vec![0.0; 3], vec![huge; 3]).unwrap();
        let belief = Belief::new(&evidence);
        assert_relative(belief.singleton(1).unwrap(), 1.0 / 3.0);
        assert_relative(belief.plausibility([0, 2]).unwrap(), 2.0 / 3.0);
        // Masses e^2, 1 and 1 before normalisation: each class is all that may be left.
        let evidence = Evidence::new(vec![2.0, 0.0, 0.0], vec![huge; 3]).unwrap();
        let belief = Belief::new(&evidence);
        let total = 2.0_f64.exp() + 2.0;
        assert_relative(belief.singleton(0).unwrap(), 2.0_f64.exp() / total);
        assert_relative(belief.singleton(2).unwrap(), 1.0 / total);
        assert_relative(belief.plausibility_transform()[0], 2.0_f64.exp() / total);
    }
}

#[test]
fn one_class_is_certain() {
    for (positive, negative) in [(0.0, 0.0), (3.0, 0.0), (0.0, 1e4), (f64::MAX, f64::MAX)] {
        let belief = Belief::new(&Evidence::new(vec![positive], vec![negative]).unwrap());
        assert_eq!(belief.singletons(), [1.0]);
        assert_eq!(belief.ignorance(), 1.0);
        assert_eq!(belief.plausibility_transform(), [1.0]);
        assert_eq!(belief.evidence().support(), [0]);
        assert_relative(belief.contour()[0], 1.0);
        assert_relative(belief.belief([0]).unwrap(), 1.0);
        assert_eq!(belief.degree_of_conflict(), 0.0);
    }
}

/// Any bit pattern, with the treacherous ones more often than chance.
fn any_float() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => proptest::num::f64::ANY,
        4 => -50.0..50.0,
        1 => prop::sample::select(vec![
            0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, f64::MIN,
            f64::MIN_POSITIVE, f64::from_bits(1), f64::EPSILON, 1.0, -1.0, 600.0, 745.0,
        ]),
    ]
}

fn any_vector(len: impl Into<prop::collection::SizeRange>) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(any_float(), len)
}

/// Everything a belief offers stays within its range for any evidence that can be built.
fn exercise(evidence: &Evidence, set: &[usize]) -> Result<()> {
    let classes = evidence.classes();
    let belief = Belief::new(evidence);
    let unit = |what: &str, value: f64| {
        assert!((0.0..=1.0).contains(&value), "{what} is {value} for {evidence:?}");
    };
    let singletons = belief.singletons();
    for (class, &mass) in singletons.iter().enumerate() {
        unit("singleton", mass);
        assert!(mass == 0.0 || evidence.supports(class)?, "class {class} of {evidence:?}");
    }
    assert!(singletons.iter().sum::<f64>() < 1.0 + 1e-9, "{evidence:?}");
    for value in belief.contour() {
        unit("contour", value);
    }
    let transform = belief.plausibility_transform();
    for &value in &transform {
        unit("transform", value);
    }
    assert!((transform.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    unit("ignorance", belief.ignorance());
    unit("conflict", belief.degree_of_conflict());
    unit("conflict", belief.internal_conflict());
    assert!(belief.ln_normaliser().is_finite());
    assert!(!belief.normaliser().is_nan());
    let within: Vec<usize> = set.iter().map(|class| class % classes).collect();
    unit("mass", belief.mass(within.iter().copied())?);
    let (lower, upper) =
        (belief.belief(within.iter().copied())?, belief.plausibility(within.iter().copied())?);
    unit("belief", lower);
    unit("plausibility", upper);
    assert!(lower <= upper + 1e-12, "{lower} above {upper} for {within:?} of {evidence:?}");
    assert!(belief.mass([classes]).is_err());
    assert!(belief.belief([0, usize::MAX]).is_err());
    assert!(belief.plausibility([classes]).is_err());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3000, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn any_logits(
        logits in any_vector(0..12),
        set in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let bad = logits.iter().any(|l| l.is_nan() || *l == f64::INFINITY);
        let masked = logits.iter().all(|&l| l == f64::NEG_INFINITY);
        match Evidence::from_logits(&logits) {
            Ok(evidence) => {
                prop_assert!(!bad && !masked);
                prop_assert!(exercise(&evidence, &set).is_ok());
                // The largest logit always stays, a masked class never.
                let support = evidence.support();
                let largest = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                for (class, &logit) in logits.iter().enumerate() {
                    prop_assert!(logit != largest || support.contains(&class));
                    prop_assert!(logit.is_finite() || !support.contains(&class));
                }
            }
            Err(_) => prop_assert!(bad || masked),
        }
        let single: Vec<f32> = logits.iter().map(|&l| l as f32).collect();
        if let Ok(evidence) = Evidence::from_logits(&single) {
            prop_assert!(exercise(&evidence, &set).is_ok());
        }
    }

    #[test]
    fn any_weights(
        mut positive in any_vector(0..8),
        mut negative in any_vector(0..8),
        set in prop::collection::vec(any::<usize>(), 0..8),
    ) {
        let _ = Evidence::new(positive.clone(), negative.clone());
        // Mended just enough to be accepted most of the time.
        let len = positive.len().min(negative.len());
        positive.truncate(len);
        negative.truncate(len);
        for (plus, minus) in positive.iter_mut().zip(&mut negative) {
            *minus = if minus.is_nan() { 0.0 } else { minus.abs() };
            *plus = if plus.is_finite() && minus.is_finite() { plus.abs() } else { 0.0 };
        }
        if let Ok(evidence) = Evidence::new(positive, negative) {
            prop_assert!(exercise(&evidence, &set).is_ok());
        }
    }

    #[test]
    fn any_head(
        (features, classes) in (0_usize..4, 0_usize..4),
        weights in any_vector(0..10),
        bias in any_vector(0..5),
        query in any_vector(0..5),
        mean in any_vector(0..5),
    ) {
        let _ = Head::from_output_major(features, classes, &weights, bias.clone());
        let _ = Head::new(features, classes, weights.clone(), bias.clone());
        // The same numbers made finite, at lengths that fit.
        let fill = |values: &[f64], len: usize| -> Vec<f64> {
            let finite = values.iter().copied().filter(|value| value.is_finite());
            finite.chain(std::iter::repeat(0.25)).take(len).collect()
        };
        let (features, classes) = (features + 1, classes + 1);
        let weights = fill(&weights, features * classes);
        let head = Head::new(features, classes, weights, fill(&bias, classes)).unwrap();
        let fitting = (fill(&query, features), fill(&mean, features));
        for (query, mean) in [(&query, &mean), (&fitting.0, &fitting.1)] {
            let _ = head.logits(query);
            for construction in [Construction::Direct, Construction::LeastCommitment { mean }] {
                if let Ok(parameters) = head.parameters(query, construction) {
                    let all = parameters.alpha.iter().chain(&parameters.beta);
                    prop_assert!(all.into_iter().all(|value| value.is_finite()));
                }
                if let Ok(evidence) = head.evidence(query, construction) {
                    prop_assert_eq!(evidence.unmasked(), classes);
                    prop_assert!(exercise(&evidence, &[0, 2]).is_ok());
                }
            }
        }
    }

    #[test]
    fn any_mass_function(
        classes in 0_usize..70,
        masses in prop::collection::vec((prop::collection::vec(0_usize..70, 0..4), any_float()), 0..5),
        value in any_float(),
    ) {
        let set = |members: &Vec<usize>| ClassSet::new(members.iter().copied());
        let pairs: Vec<(ClassSet, f64)> =
            masses.iter().filter_map(|(members, mass)| Some((set(members).ok()?, *mass))).collect();
        let _ = MassFunction::new(classes, pairs.clone());
        // The same, normalised.
        let total: f64 = pairs.iter().map(|&(_, mass)| mass.abs()).sum();
        let normalised = pairs.iter().map(|&(set, mass)| (set, mass.abs() / total));
        let mut functions: Vec<MassFunction> =
            MassFunction::new(classes, normalised).into_iter().collect();
        for &(set, _) in &pairs {
            functions.extend(MassFunction::simple(classes, set, value));
            functions.extend(MassFunction::simple_from_weight(classes, set, value));
            prop_assert!(classes > 64 || set.complement(classes).is_ok());
        }
        for a in &functions {
            for b in &functions {
                if let Ok(Combination { mass, conflict }) = a.combine(b) {
                    let sum: f64 = mass.focal_sets().iter().map(|&(_, mass)| mass).sum();
                    prop_assert!((sum - 1.0).abs() < 1e-9);
                    prop_assert!((0.0..1.0 + 1e-9).contains(&conflict));
                    let probability: f64 = mass.plausibility_transform().iter().sum();
                    prop_assert!((probability - 1.0).abs() < 1e-9);
                }
            }
        }
    }
}
