//! Mass functions on small frames: construction, Dempster's rule, every query.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer::{ClassSet, Error, MassFunction};
use shafer_fuzz::{Number, distribution, doubles};

#[derive(Arbitrary, Debug)]
struct Input {
    classes: u8,
    sets: [Vec<u64>; 2],
    masses: [Vec<Number>; 2],
    /// Whether to normalise the masses.
    clean: bool,
    support: Number,
    query: u64,
}

const ROUNDING: f64 = 1e-8;

fn set(bits: u64) -> ClassSet {
    ClassSet::new((0..64).filter(|class| bits >> class & 1 == 1)).unwrap()
}

fn made(input: &Input, classes: usize, at: usize) -> Option<MassFunction> {
    let inside = u64::MAX >> (64 - classes.clamp(1, 64));
    let (mut sets, mut masses) = (input.sets[at].clone(), doubles(&input.masses[at]));
    if input.clean {
        masses.truncate(sets.len());
        masses = distribution(&input.masses[at][..masses.len()]);
        // Nonempty subsets of the frame.
        sets.iter_mut().for_each(|set| *set = (*set & inside).max(1));
    }
    let parts: Vec<(ClassSet, f64)> =
        sets.iter().map(|&bits| set(bits)).zip(masses.iter().copied()).collect();
    let made = MassFunction::new(classes, parts.iter().copied());
    let range = parts.iter().all(|(_, mass)| (0.0..=1.0).contains(mass));
    let empty = parts.iter().any(|(set, mass)| set.is_empty() && *mass > 0.0);
    let frame = (1..=64).contains(&classes);
    let within = sets.iter().take(parts.len()).all(|set| set & !inside == 0);
    let sum: f64 = parts.iter().map(|(_, mass)| mass).sum();
    let allowed = range && !empty && frame && within && (sum - 1.0).abs() <= 1e-9;
    assert_eq!(made.is_ok(), allowed, "{made:?}");
    made.ok()
}

fn check(m: &MassFunction, query: ClassSet) {
    let unit = |x: f64| assert!((0.0..=1.0 + ROUNDING).contains(&x), "{x} of {m:?}");
    let near = |a: f64, b: f64| assert!((a - b).abs() <= ROUNDING, "{a} and {b} of {m:?}");
    let frame = ClassSet::full(m.classes()).unwrap();
    near(m.focal_sets().iter().map(|(_, mass)| mass).sum(), 1.0);
    assert!(m.focal_sets().is_sorted_by(|a, b| a.0 < b.0));
    assert_eq!(m.mass(ClassSet::EMPTY), 0.0);
    near(m.belief(frame), 1.0);
    near(m.commonality(ClassSet::EMPTY), 1.0);
    let inside = query.intersection(frame);
    for query in [query, inside] {
        let (low, high) = (m.belief(query), m.plausibility(query));
        [low, high, m.mass(query), m.commonality(query)].into_iter().for_each(unit);
        assert!(low <= high + ROUNDING && m.mass(query) <= low + ROUNDING);
        near(m.belief(query.complement(m.classes()).unwrap()), 1.0 - high);
    }
    let probabilities = m.plausibility_transform();
    probabilities.iter().copied().for_each(unit);
    near(probabilities.iter().sum(), 1.0);
}

fuzz_target!(|input: Input| {
    let classes = usize::from(input.classes % 67);
    let query = set(input.query);
    let support: f64 = input.support.get();
    for simple in [
        MassFunction::vacuous(classes),
        MassFunction::simple(classes, query, support),
        MassFunction::simple_from_weight(classes, query, support),
    ] {
        if let Ok(simple) = simple {
            check(&simple, query);
        }
    }
    let [a, b] = [0, 1].map(|at| made(&input, classes, at));
    for m in [&a, &b].into_iter().flatten() {
        check(m, query);
    }
    let (Some(a), Some(b)) = (a, b) else { return };
    let other = MassFunction::vacuous(classes % 64 + 1).unwrap();
    assert_eq!(a.combine(&other).is_ok(), other.classes() == classes);
    match (a.combine(&b), b.combine(&a)) {
        (Ok(ab), Ok(ba)) => {
            check(&ab.mass, query);
            assert!((0.0..=1.0 + ROUNDING).contains(&ab.conflict), "{}", ab.conflict);
            assert!((ab.conflict - ba.conflict).abs() <= ROUNDING);
            let (there, back) = (ab.mass.belief(query), ba.mass.belief(query));
            assert!((there - back).abs() <= ROUNDING, "{there} and {back}");
        }
        (Err(Error::TotalConflict), Err(Error::TotalConflict)) => {
            let meet =
                |x: ClassSet| b.focal_sets().iter().any(|(y, _)| !x.intersection(*y).is_empty());
            // Only products that underflow may be lost.
            let large = |m: &MassFunction| m.focal_sets().iter().all(|(_, mass)| *mass > 1e-100);
            let meets = a.focal_sets().iter().any(|(x, _)| meet(*x));
            assert!(!meets || !large(&a) || !large(&b));
        }
        (ab, ba) => panic!("{ab:?} and {ba:?}"),
    }
});
