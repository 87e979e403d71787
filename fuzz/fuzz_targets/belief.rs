//! Evidence from weights and from logits, and every query on a belief.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer::{Belief, Evidence};
use shafer_fuzz::laws::Bits;
use shafer_fuzz::{Number, Type, doubles, with_type};

#[derive(Arbitrary, Debug)]
struct Input {
    of: Type,
    numbers: Vec<Number>,
    negative: Vec<Number>,
    /// Whether to take absolute values of the weights, so that most are accepted.
    clean: bool,
    set: Vec<u8>,
}

const ROUNDING: f64 = 1e-9;

fn from_logits<E: Bits>(input: &Input) {
    let logits: Vec<E> = input.numbers.iter().map(|x| x.get()).collect();
    let made = Evidence::from_logits(&logits);
    let wide: Vec<f64> = logits.iter().map(|x| x.to_f64()).collect();
    let bad = wide.iter().any(|x| x.is_nan() || *x == f64::INFINITY);
    let unmasked = wide.iter().filter(|x| x.is_finite()).count();
    assert_eq!(made.is_ok(), !bad && unmasked > 0, "{made:?}");
    let Ok(evidence) = made else { return };
    assert_eq!(evidence.unmasked(), unmasked);
    let largest = wide.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    for (class, &x) in wide.iter().enumerate() {
        assert!(x < largest || evidence.supports(class).unwrap(), "the largest is dropped");
        let (positive, negative) = (evidence.positive()[class], evidence.negative()[class]);
        assert!(positive == 0.0 || negative == 0.0, "evidence both for and against");
    }
    let constant = wide.iter().all(|&x| x == largest || x == f64::NEG_INFINITY);
    assert_eq!(evidence.is_vacuous(), constant);
    let belief = Belief::new(&evidence);
    assert_eq!(belief.degree_of_conflict(), 0.0);
    check(&belief, input);
}

fn from_weights(input: &Input) {
    let cleaned = |numbers: &[Number]| -> Vec<f64> {
        let clean = |x: f64| if input.clean && !x.is_nan() { x.abs() } else { x };
        doubles(numbers).into_iter().map(clean).collect()
    };
    let (mut positive, mut negative) = (cleaned(&input.numbers), cleaned(&input.negative));
    if input.clean {
        let len = positive.len().min(negative.len());
        positive.truncate(len);
        negative.truncate(len);
        for (positive, negative) in positive.iter_mut().zip(&negative) {
            if negative.is_infinite() {
                *positive = 0.0;
            }
        }
    }
    let fits = !positive.is_empty() && positive.len() == negative.len();
    let fine = positive
        .iter()
        .zip(&negative)
        .all(|(p, n)| p.is_finite() && *p >= 0.0 && *n >= 0.0 && (n.is_finite() || *p == 0.0));
    let unmasked = negative.iter().any(|x| x.is_finite());
    let made = Evidence::new(positive, negative);
    assert_eq!(made.is_ok(), fits && fine && unmasked, "{made:?}");
    if let Ok(evidence) = made {
        check(&Belief::from(evidence), input);
    }
}

fn check(belief: &Belief, input: &Input) {
    let evidence = belief.evidence();
    let classes = evidence.classes();
    let unit = |x: f64, what: &str| assert!((0.0..=1.0).contains(&x), "{what} is {x}: {belief:?}");
    let near = |x: f64, expected: f64, what: &str| {
        assert!((x - expected).abs() <= ROUNDING, "{what} is {x}, not {expected}: {belief:?}");
    };
    let masked = |class: usize| evidence.negative()[class].is_infinite();

    let singletons = belief.singletons();
    let contour = belief.contour();
    let probabilities = belief.plausibility_transform();
    for class in 0..classes {
        unit(singletons[class], "a singleton");
        unit(contour[class], "a plausibility");
        unit(probabilities[class], "a probability");
        assert_eq!(belief.singleton(class).unwrap(), singletons[class]);
        assert_eq!(belief.mass([class, class]).unwrap(), singletons[class]);
        near(belief.plausibility([class]).unwrap(), contour[class], "a plausibility");
        near(belief.belief([class]).unwrap(), singletons[class], "a belief");
        assert!(singletons[class] <= contour[class] + ROUNDING, "{belief:?}");
        let supported = evidence.supports(class).unwrap();
        assert!(supported || singletons[class] == 0.0, "{belief:?}");
        assert!(!masked(class) || (!supported && contour[class] == 0.0), "{belief:?}");
    }
    assert!(singletons.iter().sum::<f64>() <= 1.0 + ROUNDING, "{belief:?}");
    near(probabilities.iter().sum(), 1.0, "the sum of the probabilities");
    for outside in [classes, usize::MAX] {
        assert!(belief.singleton(outside).is_err() && evidence.supports(outside).is_err());
        assert!(belief.mass([0, outside]).is_err() && belief.belief([outside]).is_err());
        assert!(belief.plausibility([outside]).is_err());
    }

    let whole: Vec<usize> = (0..classes).collect();
    let frame: Vec<usize> = (0..classes).filter(|&class| !masked(class)).collect();
    near(belief.belief(whole.iter().copied()).unwrap(), 1.0, "the belief of everything");
    near(belief.plausibility(frame.iter().copied()).unwrap(), 1.0, "the plausibility of the frame");
    near(belief.mass(frame.iter().copied()).unwrap(), belief.ignorance(), "the mass of the frame");
    unit(belief.ignorance(), "the ignorance");
    unit(belief.degree_of_conflict(), "the conflict");
    unit(belief.internal_conflict(), "the internal conflict");
    assert!(!belief.ln_normaliser().is_nan() && belief.normaliser() >= 0.0, "{belief:?}");
    assert_eq!(belief.belief([]).unwrap(), 0.0, "nothing");
    assert_eq!(belief.plausibility([]).unwrap(), 0.0, "nothing");
    assert_eq!(belief.mass([]).unwrap(), 0.0, "nothing");

    let set: Vec<usize> = input.set.iter().map(|&class| usize::from(class) % classes).collect();
    let rest: Vec<usize> = whole.iter().copied().filter(|class| !set.contains(class)).collect();
    let (low, high) = (belief.belief(set.iter().copied()).unwrap(), belief.plausibility(set.iter().copied()).unwrap());
    for x in [low, high, belief.mass(set.iter().copied()).unwrap()] {
        unit(x, "of a set");
    }
    assert!(low <= high + ROUNDING && belief.mass(set.iter().copied()).unwrap() <= low + ROUNDING, "{belief:?}");
    near(1.0 - belief.belief(rest.iter().copied()).unwrap(), high, "a plausibility");

    if classes <= 5 {
        let subset = |bits: u32| (0..classes).filter(move |k| bits >> k & 1 == 1);
        let masses = (1..1 << classes).map(|bits| {
            let set: Vec<usize> = subset(bits).collect();
            belief.mass(set.iter().copied()).unwrap()
        });
        near(masses.sum(), 1.0, "the sum of all masses");
    }
}

fuzz_target!(|input: Input| {
    with_type!(input.of, from_logits(&input));
    from_weights(&input);
});
