//! Properties of distances, targets, products and draws: laws on valid rows, and no panic on any.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;
use shafer::{
    Product, Sampler, bhattacharyya, jensen_shannon, sample_csr, sample_dense, target_distribution,
    total_variation, wasserstein_1, wasserstein_1_unit,
};

/// Anything, with the values that tend to break things and those that make rows valid.
fn anything() -> impl Strategy<Value = f64> {
    prop_oneof![
        prop::num::f64::ANY,
        prop::sample::select(vec![
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            f64::from_bits(1),
            -0.0,
        ]),
        prop::sample::select(vec![0.0, 0.25, 0.5, 0.75, 1.0]),
    ]
}

fn any_row() -> impl Strategy<Value = Vec<f64>> {
    prop_oneof![
        prop::collection::vec(anything(), 0..6),
        // Mostly valid: the checks should not be all that is ever reached.
        (prop::collection::vec(prop::sample::select(vec![0.0, 5e-324, 1e-310, 1e-200]), 0..5))
            .prop_map(|mut row| {
                row.push(1.0);
                row
            }),
    ]
}

/// A distribution over `classes` classes, with zeros among them.
fn distribution(classes: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(prop_oneof![1 => Just(0.0), 3 => 1e-6..1.0], classes)
        .prop_filter("a positive sum", |row| row.iter().any(|&weight| weight > 0.0))
        .prop_map(|row| {
            let sum: f64 = row.iter().sum();
            row.iter().map(|weight| weight / sum).collect()
        })
}

type Three = (Vec<f64>, Vec<f64>, Vec<f64>, Vec<f64>);

/// Three distributions over the same classes, and positions for these.
fn three() -> impl Strategy<Value = Three> {
    (1_usize..12).prop_flat_map(|classes| {
        let positions = prop::collection::vec(-10.0..10.0, classes).prop_map(|mut positions| {
            positions.sort_by(f64::total_cmp);
            positions
        });
        (distribution(classes), distribution(classes), distribution(classes), positions)
    })
}

const ROUNDING: f64 = 1e-12;

proptest! {
    #[test]
    fn distances_obey_their_laws((p, q, r, x) in three()) {
        type Distance<'a> = &'a dyn Fn(&[f64], &[f64]) -> f64;
        let w: Distance<'_> = &|p, q| wasserstein_1(p, q, &x).unwrap();
        let unit: Distance<'_> = &|p, q| wasserstein_1_unit(p, q).unwrap();
        let variation: Distance<'_> = &|p, q| total_variation(p, q).unwrap();
        let root: Distance<'_> = &|p, q| jensen_shannon(p, q).unwrap().sqrt();
        let overlap: Distance<'_> = &|p, q| bhattacharyya(p, q).unwrap();
        for distance in [w, unit, variation, root, overlap] {
            prop_assert!(distance(&p, &q) >= 0.0);
            prop_assert_eq!(distance(&p, &p), 0.0);
            let (there, back) = (distance(&p, &q), distance(&q, &p));
            prop_assert!(there == back || (there - back).abs() <= ROUNDING);
        }
        for metric in [w, unit, variation, root] {
            prop_assert!(metric(&p, &r) <= metric(&p, &q) + metric(&q, &r) + ROUNDING);
        }
        prop_assert!(unit(&p, &q) <= variation(&p, &q) + ROUNDING);
        prop_assert!(variation(&p, &q) <= 1.0);
        let disjoint = p.iter().zip(&q).all(|(p, q)| *p == 0.0 || *q == 0.0);
        prop_assert_eq!(overlap(&p, &q).is_infinite(), disjoint);
    }

    #[test]
    fn moving_all_mass_costs_the_distance_moved(
        (from, to, x) in (1_usize..12).prop_flat_map(|classes| {
            (0..classes, 0..classes, prop::collection::vec(0.0..5.0, classes))
        }),
    ) {
        let mut x = x;
        x.sort_by(f64::total_cmp);
        let at = |class: usize| (0..x.len()).map(|k| f64::from(k == class)).collect::<Vec<f64>>();
        let moved = wasserstein_1(&at(from), &at(to), &x).unwrap();
        prop_assert!((moved - (x[from] - x[to]).abs()).abs() <= ROUNDING);
    }

    #[test]
    fn targets_are_distributions((p, q, _, _) in three()) {
        let kept = target_distribution(&p, &q).unwrap();
        prop_assert!((kept.iter().sum::<f64>() - 1.0).abs() <= ROUNDING);
        for k in 0..p.len() {
            prop_assert!(kept[k] == 0.0 || p[k] > 0.0);
            // A class of either distribution is in at least one of the two targets.
            let covered = kept[k] > 0.0 || target_distribution(&q, &p).unwrap()[k] > 0.0;
            prop_assert_eq!(covered, p[k] > 0.0 || q[k] > 0.0);
        }
        prop_assert!(total_variation(&target_distribution(&p, &p).unwrap(), &p).unwrap() <= ROUNDING);
    }

    #[test]
    fn nothing_panics(
        p in any_row(),
        q in any_row(),
        x in prop::collection::vec(anything(), 0..6),
        indices in prop::collection::vec(any::<u32>(), 0..6),
        len: usize,
        classes in prop::collection::vec(any::<usize>(), 0..4),
    ) {
        let narrow: Vec<f32> = p.iter().map(|&value| value as f32).collect();
        let sorted: Vec<u32> = (0..).zip(&p).map(|(index, _)| 2 * index).collect();
        for q in [&p, &q] {
            for distance in [
                bhattacharyya(&narrow, q),
                bhattacharyya(&p, q),
                wasserstein_1_unit(&p, q),
                wasserstein_1(&p, q, &x),
                total_variation(&p, q),
                jensen_shannon(&p, q),
            ].into_iter().flatten() {
                prop_assert!(distance >= 0.0);
            }
            let _ = target_distribution(&p, q);
            if let Ok(product) = Product::dense(&[&p, q]) {
                prop_assert!(product.iter_best().count() as u128 == product.support_size());
                let _ = product.contains(&classes);
                let _ = product.probability(&classes);
                let _ = product.ln_probability(&classes);
            }
        }
        let mut rng = StdRng::seed_from_u64(1);
        let _ = sample_dense(&p, &mut rng);
        for indices in [indices.as_slice(), &sorted] {
            let _ = sample_csr(indices, &p, &mut rng);
            if let Ok(sampler) = Sampler::csr(indices, &p) {
                sampler.sample(&mut rng);
            }
            for len in [len, 12] {
                if let Ok(product) = Product::csr(&[(len, indices, p.as_slice()); 2]) {
                    let all = product.best(usize::MAX);
                    prop_assert_eq!(all.len() as u128, product.support_size());
                    prop_assert!(all.iter().all(|joint| product.contains(&joint.classes) == Ok(true)));
                }
            }
        }
        if let Ok(sampler) = Sampler::dense(&p) {
            prop_assert!(p[sampler.sample(&mut rng)] > 0.0);
        }
    }
}
