//! All distances, and the paper's target for a pair of queries.
#![no_main]

use arbitrary::Arbitrary;
use libfuzzer_sys::fuzz_target;
use shafer::{
    Result, bhattacharyya, jensen_shannon, target_distribution, total_variation, wasserstein_1,
    wasserstein_1_unit,
};
use shafer_fuzz::laws::Bits;
use shafer_fuzz::{Number, Type, distribution, doubles, with_type};

#[derive(Arbitrary, Debug)]
struct Input {
    of: Type,
    p: Vec<Number>,
    q: Vec<Number>,
    positions: Vec<Number>,
    /// Whether to normalise and cut to equal length.
    clean: bool,
    sorted: bool,
}

const ROUNDING: f64 = 1e-9;

fn check<E: Bits>(input: &Input) {
    let (mut p, mut q) = (input.p.clone(), input.q.clone());
    let mut positions = doubles(&input.positions);
    if input.clean {
        let len = p.len().min(q.len());
        p.truncate(len);
        q.truncate(len);
        positions.resize(len, 1e9);
    }
    if input.sorted {
        positions.sort_by(f64::total_cmp);
    }
    let row =
        |numbers: &[Number]| if input.clean { distribution(numbers) } else { doubles(numbers) };
    let p: Vec<E> = row(&p).into_iter().map(E::from_f64).collect();
    let q = row(&q);
    let valid = |row: &[f64]| {
        let sum: f64 = row.iter().sum();
        row.iter().all(|p| p.is_finite() && *p >= 0.0) && (sum - 1.0).abs() <= 0.01
    };
    let wide: Vec<f64> = p.iter().map(|x| x.to_f64()).collect();
    let fine = p.len() == q.len() && valid(&wide) && valid(&q);

    type Distance<'a, A, B> = &'a dyn Fn(&[A], &[B]) -> Result<f64>;
    let laws =
        |there: Result<f64>, back: Result<f64>, own: Result<f64>, most: f64, accepted: bool| {
            assert_eq!((there.is_ok(), back.is_ok()), (accepted, accepted), "{there:?}, {back:?}");
            if let (Ok(there), Ok(back), Ok(own)) = (there, back, own) {
                assert!(there >= 0.0 && there <= most, "{there}");
                assert!(
                    there == back || (there - back).abs() <= ROUNDING * (1.0 + there),
                    "{there} {back}"
                );
                assert_eq!(own, 0.0);
            }
        };
    let ln_2 = std::f64::consts::LN_2;
    let bounded: [(Distance<E, f64>, Distance<f64, E>, Distance<E, E>, f64); 4] = [
        (&bhattacharyya, &bhattacharyya, &bhattacharyya, f64::INFINITY),
        (&wasserstein_1_unit, &wasserstein_1_unit, &wasserstein_1_unit, 1.0),
        (&total_variation, &total_variation, &total_variation, 1.0),
        (&jensen_shannon, &jensen_shannon, &jensen_shannon, ln_2),
    ];
    for (there, back, own, most) in bounded {
        laws(there(&p, &q), back(&q, &p), own(&p, &p), most, fine);
    }
    let span = positions.last().zip(positions.first()).map_or(0.0, |(last, first)| last - first);
    let on_line = positions.len() == p.len()
        && positions.iter().all(|x| x.is_finite())
        && positions.is_sorted()
        && span.is_finite();
    let there = wasserstein_1(&p, &q, &positions);
    let back = wasserstein_1(&q, &p, &positions);
    laws(there, back, wasserstein_1(&p, &p, &positions), span * (1.0 + ROUNDING), fine && on_line);

    let made = target_distribution(&p, &q);
    assert_eq!(made.is_ok(), fine, "{made:?}");
    if let Ok(made) = made {
        assert!((made.iter().sum::<f64>() - 1.0).abs() <= ROUNDING, "{made:?}");
        assert!(made.iter().zip(&wide).all(|(t, p)| *t >= 0.0 && (*t == 0.0 || *p > 0.0)));
    }
}

fuzz_target!(|input: Input| with_type!(input.of, check(&input)));
