//! What is measured of pedestrians, against plain loops.

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};
use shafer_data::dataset::{Scene, Window};
use shafer_nets::behaviour::{Draw, NetworkConfig, Point, Predictor, Query, kernel_nll};

use super::TINY;
use crate::experiments::pedestrians::BEHAVIOUR;
use crate::experiments::pedestrians::config::Config;
use crate::experiments::pedestrians::measure::{Errors, Evaluator, best_of};
use crate::experiments::pedestrians::synthetic::{results, scene};
use crate::experiments::preset;
use crate::method::{Choice, EVIDENTIAL, SOFTMAX, SPARSEMAX};
use crate::predict::{JointDistribution, window_shape};

/// Pedestrians, an untrained network whose logits are far apart, and the methods.
struct Case {
    windows: Vec<Window>,
    predictor: Predictor,
    config: Config,
}

impl Case {
    fn new(changes: &[&str]) -> Self {
        let changes: Vec<String> =
            TINY.iter().chain(changes).map(|&change| change.to_owned()).collect();
        let config = preset::configured::<Config>(&BEHAVIOUR, "smoke", None, &changes).unwrap();
        let scene = Scene::parse("street", scene(4, 23).as_bytes()).unwrap();
        let windows = scene.windows_at(&[70, 150], &window_shape(&config.network, 1, 1)).unwrap();
        let predictor = Predictor::untrained(&config.network, 3).unwrap();
        Self { windows, predictor, config }
    }
}

/// From logits to a distribution.
type Oracle = fn(&[f64]) -> Vec<f64>;

fn softmax(row: &[f64]) -> Vec<f64> {
    let sum: f64 = row.iter().map(|l| l.exp()).sum();
    row.iter().map(|l| l.exp() / sum).collect()
}

/// The projection onto the simplex, by trying every size of the support.
fn sparsemax(row: &[f64]) -> Vec<f64> {
    let mut sorted = row.to_vec();
    sorted.sort_by(|a, b| b.total_cmp(a));
    let mut threshold = 0.0;
    for size in 1..=row.len() {
        let candidate = (sorted[..size].iter().sum::<f64>() - 1.0) / size as f64;
        if sorted[size - 1] > candidate {
            threshold = candidate;
        }
    }
    row.iter().map(|l| (l - threshold).max(0.0)).collect()
}

fn evidential(row: &[f64]) -> Vec<f64> {
    let mean = row.iter().sum::<f64>() / row.len() as f64;
    let kept: Vec<f64> =
        softmax(row).into_iter().zip(row).map(|(p, l)| if *l > mean { p } else { 0.0 }).collect();
    let sum: f64 = kept.iter().sum();
    kept.iter().map(|p| p / sum).collect()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-9 * (1.0 + expected.abs()), "{found}, {expected}");
}

/// The mean of a path's distances to the truth, and the last.
fn displacement(path: &[Point], truth: &[Point]) -> [f64; 2] {
    let mut distances = Vec::new();
    for (step, place) in truth.iter().enumerate() {
        let (x, y) = (path[step][0] - place[0], path[step][1] - place[1]);
        distances.push((x * x + y * y).sqrt());
    }
    [distances.iter().sum::<f64>() / distances.len() as f64, distances[distances.len() - 1]]
}

#[test]
fn one_pedestrian_against_plain_loops() {
    let Case { windows, predictor, config } = Case::new(&[]);
    let oracles: [(&str, Oracle); 3] =
        [(SOFTMAX, softmax), (SPARSEMAX, sparsemax), (EVIDENTIAL, evidential)];
    let methods: Vec<_> = oracles
        .iter()
        .map(|(name, _)| name.parse::<Choice>().unwrap().method(5).unwrap())
        .collect();
    let evaluator = Evaluator { predictor: &predictor, methods: &methods, config: &config };
    let encoded = evaluator.encode(&windows).unwrap();
    let agents = |places| evaluator.agents(&encoded, &windows, places, &|| {}).unwrap();
    let records = agents(0..windows.len());
    assert_eq!(records.len(), windows.len());
    let place = windows.len() - 1;
    // Wherever a part begins.
    assert_eq!(agents(place..windows.len()), records[place..]);
    // This one leaves before the network has said all.
    let truth = windows[place].truth();
    assert!(truth.len() < config.network.future_steps && records[place].steps == truth.len());
    let logits: Vec<f64> = encoded.logits(place).iter().map(|l| f64::from(*l)).collect();
    for (method, (name, oracle)) in oracles.iter().enumerate() {
        let found = &records[place].methods[method];
        let (first, second) = (oracle(&logits[..5]), oracle(&logits[5..]));
        let joint: Vec<f64> =
            first.iter().flat_map(|a| second.iter().map(move |b| a * b)).collect();
        assert_eq!(found.kept, joint.iter().filter(|p| **p > 0.0).count(), "{name}");

        // Paths drawn one after the other.
        let mut random = ChaCha8Rng::seed_from_u64(config.evaluation_seed);
        random.set_stream(place as u64);
        let mut counts = [0; 25];
        for _ in 0..config.samples {
            let uniform = (random.next_u64() >> 11) as f64 / 2.0_f64.powi(53);
            let mut class = 0;
            let mut below = joint[0];
            while below <= uniform {
                class += 1;
                below += joint[class];
            }
            counts[class] += 1;
        }
        let draw = |class: usize, paths: usize| {
            let draw = Draw { agent: place, class, paths };
            predictor.sample(&encoded, &[draw], config.evaluation_seed).unwrap().remove(0)
        };
        let drawn: Vec<Vec<Point>> = (0..25).flat_map(|class| draw(class, counts[class])).collect();
        assert_eq!(drawn.len(), config.samples);
        let mean = |part: usize| {
            let sum: f64 = drawn.iter().map(|path| displacement(path, &truth)[part]).sum();
            sum / drawn.len() as f64
        };
        let Errors { nll, ade, fde } = found.direct;
        close(nll, kernel_nll(&drawn, &truth).unwrap());
        close(ade, mean(0));
        close(fde, mean(1));

        // The best of 20 of them: the chance that none of 20 is among the best so many.
        let none = |so_many: usize| -> f64 {
            (0..20)
                .map(|i| {
                    (drawn.len() as f64 - so_many as f64 - f64::from(i)).max(0.0)
                        / (drawn.len() as f64 - f64::from(i))
                })
                .product()
        };
        for (part, best) in [found.best20.ade, found.best20.fde].into_iter().enumerate() {
            let mut errors: Vec<f64> =
                drawn.iter().map(|path| displacement(path, &truth)[part]).collect();
            errors.sort_by(f64::total_cmp);
            let expected =
                errors.iter().enumerate().map(|(i, error)| error * (none(i) - none(i + 1)));
            close(best, expected.sum());
        }

        // The best of the most likely.
        let mut ranked: Vec<usize> = (0..25).filter(|&class| joint[class] > 0.0).collect();
        ranked.sort_by(|&a, &b| joint[b].total_cmp(&joint[a]));
        let mut best = [f64::INFINITY; 3];
        for &class in ranked.iter().take(config.top) {
            let paths = draw(class, config.class_samples);
            let mut mean = vec![[0.0; 2]; truth.len()];
            for path in &paths {
                for (mean, place) in mean.iter_mut().zip(path) {
                    mean[0] += place[0] / paths.len() as f64;
                    mean[1] += place[1] / paths.len() as f64;
                }
            }
            let [ade, fde] = displacement(&mean, &truth);
            let errors = [kernel_nll(&paths, &truth).unwrap(), ade, fde];
            for (best, error) in best.iter_mut().zip(errors) {
                *best = best.min(error);
            }
        }
        let Errors { nll, ade, fde } = found.top;
        for (found, expected) in [nll, ade, fde].into_iter().zip(best) {
            close(found, expected);
        }

        // The nearest mode that is kept.
        let nearest = ranked.iter().map(|&class| {
            let query = Query { agent: place, class };
            let mean = predictor.forecast(&encoded, &[query]).unwrap().remove(0).mean;
            displacement(&mean, &truth)[1]
        });
        // Rows of a batch may be rounded in another order.
        let nearest = nearest.fold(f64::INFINITY, f64::min);
        assert!((found.nearest - nearest).abs() < 1e-4, "{} {nearest}", found.nearest);
    }
}

#[test]
fn sparsemax_is_sampled_from_its_own_distribution() {
    let Case { windows, predictor, config } = Case::new(&["samples=2000"]);
    let methods =
        [SOFTMAX, SPARSEMAX].map(|name| name.parse::<Choice>().unwrap().method(5).unwrap());
    let evaluator = Evaluator { predictor: &predictor, methods: &methods, config: &config };
    let network = NetworkConfig::default();
    // Far apart, so that sparsemax drops some.
    let logits = [2.0, 1.5, -0.5, -1.0, 0.0, 0.1, 1.0, -2.0, 0.9, -0.3];
    let [all, sparse] = [0, 1].map(|place: usize| {
        JointDistribution::at(methods[place].1, 1.0, &logits, &network).unwrap()
    });
    assert!(sparse.ranked.len() < all.ranked.len());
    let (of_all, of_sparse) =
        (evaluator.counts(&all, 0).unwrap(), evaluator.counts(&sparse, 0).unwrap());
    assert_eq!(of_sparse.iter().sum::<usize>(), 2000);
    let mut softmax_only = 0;
    for class in 0..25 {
        if sparse.probabilities[class] == 0.0 {
            assert_eq!(of_sparse[class], 0, "class {class}");
            softmax_only += of_all[class];
        } else {
            let expected = 2000.0 * sparse.probabilities[class];
            let error = (of_sparse[class] as f64 - expected).abs();
            assert!(error < 5.0 * expected.sqrt() + 1.0, "{class}: {expected}");
        }
    }
    assert!(softmax_only > 100, "{softmax_only}");
    // Another pedestrian has other random numbers.
    assert!(evaluator.counts(&sparse, 1).unwrap() != of_sparse);
    assert!(!windows.is_empty());
}

#[test]
fn the_best_of_a_few_is_the_mean_over_all_choices() {
    let errors = [3.0, 0.5, 2.0, 2.0, 7.0, 1.0, 4.0];
    for few in 1..=7 {
        let (mut sum, mut choices) = (0.0, 0);
        for choice in 0_u32..1 << 7 {
            if choice.count_ones() == few {
                let chosen = errors.iter().enumerate().filter(|(i, _)| choice >> i & 1 == 1);
                sum += chosen.map(|(_, error)| *error).fold(f64::INFINITY, f64::min);
                choices += 1;
            }
        }
        close(best_of(few as usize, errors.to_vec()), sum / f64::from(choices));
    }
    // Of fewer than that it is the best of all.
    close(best_of(20, errors.to_vec()), 0.5);
}

#[test]
fn means_are_over_seeds_first_and_then_over_pedestrians() {
    let results = results();
    let scene = &results.scenes["eth_paper"];
    let ade = &scene.direct[EVIDENTIAL].ade;
    // Evidential is the first method; x is (agent mod 7) / 7 + seed / 10, with the seeds 0 and 2.
    let of_agent: Vec<f64> =
        (0..40).map(|agent| 0.4 + 0.1 * (f64::from(agent % 7) / 7.0 + 0.1)).collect();
    let mean = of_agent.iter().sum::<f64>() / 40.0;
    let squares: f64 = of_agent.iter().map(|x| (x - mean) * (x - mean)).sum();
    close(ade.mean.unwrap(), mean);
    close(ade.se.unwrap(), (squares / 39.0 / 40.0).sqrt());
    assert_eq!((ade.n, ade.by_seed.len()), (40, 2));
    close(ade.by_seed[0], mean - 0.01);
    close(ade.by_seed[1], mean + 0.01);
    close(scene.decoding.speedup, 2.0);
    let near = (0..40).filter(|agent| 2.0 * f64::from(agent % 7) / 7.0 <= 1.0).count() as f64;
    close(scene.within[EVIDENTIAL][1].by_seed[0], near / 40.0);
}
