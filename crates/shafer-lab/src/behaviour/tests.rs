//! The experiment on made-up scenes with tiny networks, and its numbers against plain loops.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;

use rand::rngs::ChaCha8Rng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;
use shafer_data::dataset::{Scene, Window, set};
use shafer_nets::behaviour::{Draw, NetworkConfig, Point, Predictor, Query, Trainer, kernel_nll};

use super::config::{Config, shape};
use super::evaluation::{Errors, Evaluator, best_of};
use super::folds::Fold;
use super::results::BehaviourResults;
use super::synthetic::{results, scene, write_data};
use super::training::TrainingRecord;
use super::*;
use crate::method::{Choice, EVIDENTIAL, SOFTMAX, SPARSEMAX};
use crate::report::{self, Drawable as _};
use crate::reproduce::{Experiment, Folder, Preset, Reproduced, Request, training_file};

/// A network of a few hundred parameters, and a handful of paths.
const TINY: &[&str] = &[
    "network.history_width=4",
    "network.future_width=3",
    "network.edge_width=2",
    "network.prior_hidden=4",
    "network.decoder_width=6",
    "network.components=2",
    "training.iterations=4",
    "training.batch_size=3",
    "samples=30",
    "class_samples=5",
    "time_steps=6",
    "most_agents=3",
];

fn tiny() -> Vec<String> {
    TINY.iter().map(|&change| change.to_owned()).collect()
}

fn run(data: &Path, out: &Path, changes: &[String]) -> anyhow::Result<Reproduced> {
    run_with(data, out, changes, None)
}

/// With the networks of another run, if there is one.
fn run_with(
    data: &Path,
    out: &Path,
    changes: &[String],
    weights: Option<&Path>,
) -> anyhow::Result<Reproduced> {
    reproduce(&Request {
        experiment: Experiment::Behaviour,
        preset: Preset::Smoke,
        seeds: Some(2),
        changes,
        out,
        folders: &[data.to_owned()],
        weights,
        quiet: true,
    })
}

/// The results without what depends on the clock.
fn numbers(reproduced: &Reproduced) -> Value {
    let text = std::fs::read_to_string(&reproduced.results).unwrap();
    let mut results: Value = serde_json::from_str(&text).unwrap();
    results["wall_seconds"] = Value::Null;
    for training in results["trainings"].as_array_mut().unwrap() {
        training["wall_seconds"] = Value::Null;
    }
    for scene in ["eth_paper", "eth"] {
        for key in ["milliseconds_kept", "milliseconds_all", "speedup"] {
            results[scene]["decoding"][key] = Value::Null;
        }
    }
    results
}

#[test]
fn from_scenes_to_a_report() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    write_data(&data);
    let reproduced = run(&data, &out, &tiny()).unwrap();
    let results = numbers(&reproduced);
    for scene in ["eth_paper", "eth"] {
        let agents = results[scene]["agents"].as_u64().unwrap();
        assert!(agents > 1, "{agents}");
        for table in ["direct", "top5"] {
            for method in [EVIDENTIAL, SOFTMAX, SPARSEMAX, "entmax", "top-p"] {
                for metric in ["nll", "ade", "fde"] {
                    let found = &results[scene][table][method][metric];
                    assert!(found["mean"].is_f64() && found["se"].is_f64(), "{method} {metric}");
                    assert_eq!(found["n"], agents);
                    assert_eq!(found["by_seed"].as_array().unwrap().len(), 2);
                }
            }
        }
        let best = &results[scene]["best20"][EVIDENTIAL]["ade"];
        assert_eq!((best["mean"].is_f64(), &best["n"]), (true, &agents.into()));
        let kept = results[scene]["kept"].as_array().unwrap();
        assert_eq!(kept.iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), 2 * agents);
        assert_eq!(results[scene]["kept_by_method"][SOFTMAX]["smallest"], 25);
        let share = |method: &str, place: usize| {
            results[scene]["within"][method][place]["mean"].as_f64().unwrap()
        };
        for place in 0..3 {
            assert!(share(EVIDENTIAL, place) <= share(SOFTMAX, place));
        }
    }
    assert_eq!(results["eth"]["agents"], 3);
    assert_eq!((&results["experiment"], &results["seeds"]), (&"behaviour".into(), &2.into()));
    assert!(reproduced.text.contains("0.757 ± 0.049"), "{}", reproduced.text);
    assert!(out.join("results.parquet").is_file());
    assert!(out.join("figures/paths.png").is_file() && out.join("figures/reach.svg").is_file());
    assert!(out.join("trainings/eth-seed-01.weights.safetensors").is_file());
    assert!(!out.join("trainings/eth-seed-01.safetensors").exists());

    // What is done stays done, and can be drawn again.
    let page = std::fs::read(&reproduced.report).unwrap();
    assert_eq!(numbers(&run(&data, &out, &tiny()).unwrap()), results);
    let drawn = report::draw(&out, &*report::read(&out).unwrap()).unwrap();
    assert_eq!((drawn.data_set.as_str(), drawn.figures.len()), ("behaviour", 6));
    assert_eq!(std::fs::read(&drawn.report).unwrap().len(), page.len());
    let error = run(&data, &out, &[tiny(), vec!["samples=31".to_owned()]].concat());
    assert!(error.err().unwrap().to_string().contains("holds a run with another configuration"));
}

#[test]
fn a_run_that_was_killed_ends_with_the_same_numbers() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    write_data(&data);
    let [whole, killed] = ["whole", "killed"].map(|name| folder.path().join(name));
    let expected = numbers(&run(&data, &whole, &tiny()).unwrap());

    // What a run that was killed leaves: the first seed after two iterations, the second not begun.
    {
        let config = Config::new(Preset::Smoke, Some(2), &tiny()).unwrap();
        let fold = Fold::read("eth", set("ethucy").unwrap(), std::slice::from_ref(&data), &config)
            .unwrap();
        let folder = Folder::open(&killed, &config).unwrap();
        let mut trainer = Trainer::new(&config.nets(), &fold.examples, 0).unwrap();
        let mut record = record(0, false);
        for _ in 0..2 {
            record.losses = Some(trainer.step().unwrap().unwrap().losses);
        }
        folder.write(training_file("eth-seed-00", "part.json"), &record).unwrap();
        let state = training_file("eth-seed-00", "safetensors");
        folder.write_bytes(state, &trainer.save().unwrap()).unwrap();
    }
    assert_eq!(numbers(&run(&data, &killed, &tiny()).unwrap()), expected);
    // Or killed between two evaluations.
    std::fs::remove_file(killed.join("trainings/eth-seed-01.eth-00000.json")).unwrap();
    assert_eq!(numbers(&run(&data, &killed, &tiny()).unwrap()), expected);
}

#[test]
fn networks_of_another_run_can_be_taken() {
    let folder = tempfile::tempdir().unwrap();
    let [data, first, second] = ["data", "first", "second"].map(|name| folder.path().join(name));
    write_data(&data);
    run(&data, &first, &tiny()).unwrap();
    let fewer = [tiny(), vec!["samples=20".to_owned()]].concat();
    let take = |changes: &[String]| run_with(&data, &second, changes, Some(&first));
    let with = |change: &str| [fewer.clone(), vec![change.to_owned()]].concat();
    let fault = |changes: &[String]| format!("{:#}", take(changes).err().unwrap());

    // The same numbers as if they had been trained again, and nothing was trained.
    let trained = numbers(&run(&data, &folder.path().join("third"), &fewer).unwrap());
    assert_eq!(numbers(&take(&fewer).unwrap()), trained);
    for file in ["eth-seed-00.json", "eth-seed-01.weights.safetensors"] {
        let [there, here] =
            [&first, &second].map(|run| std::fs::read(run.join("trainings").join(file)).unwrap());
        assert!(there == here, "{file}");
    }

    // Only what fits is taken, and otherwise nothing is begun.
    std::fs::remove_dir_all(&second).unwrap();
    let error = fault(&with("training.iterations=5"));
    assert!(error.contains("was trained with another training than is asked for"), "{error}");
    let error = fault(&with("differences=\"backward\""));
    assert!(error.contains("with other differences"), "{error}");
    let error = fault(&with("scenes=[\"hotel\"]"));
    assert!(error.contains("hotel-seed-00.json: is not there"), "{error}");
    let weights = first.join("trainings/eth-seed-01.weights.safetensors");
    std::fs::write(&weights, b"nothing").unwrap();
    let error = fault(&fewer);
    assert!(error.contains("eth-seed-01.weights.safetensors"), "{error}");
    std::fs::remove_file(first.join("run.json")).unwrap();
    assert!(fault(&fewer).contains("run.json: is not there"));
    assert!(!second.exists());
}

fn record(seed: u64, diverged: bool) -> TrainingRecord {
    TrainingRecord {
        scene: "eth".to_owned(),
        seed,
        diverged,
        iterations: 0,
        wall_seconds: 0.0,
        losses: None,
    }
}

#[test]
fn seeds_that_diverge_are_named_and_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let (data, out) = (folder.path().join("data"), folder.path().join("out"));
    write_data(&data);
    let config = Config::new(Preset::Smoke, Some(2), &tiny()).unwrap();
    let opened = Folder::open(&out, &config).unwrap();
    opened.write(training_file("eth-seed-00", "json"), &record(0, true)).unwrap();
    drop(opened);
    let results = numbers(&run(&data, &out, &tiny()).unwrap());
    assert_eq!(results["diverged"], 1);
    assert_eq!(results["eth"]["seeds"], Value::from(vec![1]));

    // A step so long that nothing is left.
    let rate = "training.learning_rate={ start = 1e38, decay = 1.0, floor = 1e38 }".to_owned();
    let clip = "training.gradient_norm=1e38".to_owned();
    let changes = [tiny(), vec![rate, clip, "training.iterations=9".to_owned()]].concat();
    let out = folder.path().join("lost");
    let error = run(&data, &out, &changes).err().unwrap().to_string();
    assert!(error.contains("all 2 trainings diverged"), "{error}");
    let text = std::fs::read_to_string(out.join("trainings/eth-seed-01.json")).unwrap();
    assert!(serde_json::from_str::<TrainingRecord>(&text).unwrap().diverged);
}

#[test]
fn scenes_without_anybody_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    write_data(data);
    let config = Config::new(Preset::Smoke, None, &tiny()).unwrap();
    let read = |fold: &str| Fold::read(fold, set("ethucy").unwrap(), &[data.to_owned()], &config);
    std::fs::write(data.join("ethucy/biwi_hotel.txt"), scene(2, 9)).unwrap();
    let error = read("hotel").err().unwrap().to_string();
    assert!(error.contains("biwi_hotel: no pedestrian has at least 7 steps before"), "{error}");
    std::fs::write(data.join("ethucy/biwi_eth_val.txt"), scene(2, 9)).unwrap();
    let error = read("eth").err().unwrap().to_string();
    assert!(error.contains("biwi_eth_val: nobody is there at any of 6 random"), "{error}");
    let error = read("oxford").err().unwrap().to_string();
    assert!(error.contains("has no fold oxford"), "{error}");
}

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
        let config = Config::new(Preset::Smoke, None, &changes).unwrap();
        let scene = Scene::parse("street", scene(4, 23).as_bytes()).unwrap();
        let windows = scene.windows_at(&[70, 150], &shape(&config.network, 1, 1)).unwrap();
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
        .map(|(name, _)| name.parse::<Choice>().unwrap().transform(5).unwrap())
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
        [SOFTMAX, SPARSEMAX].map(|name| name.parse::<Choice>().unwrap().transform(5).unwrap());
    let evaluator = Evaluator { predictor: &predictor, methods: &methods, config: &config };
    let network = NetworkConfig::default();
    // Far apart, so that sparsemax drops some.
    let logits = [2.0, 1.5, -0.5, -1.0, 0.0, 0.1, 1.0, -2.0, 0.9, -0.3];
    let [all, sparse] = [0, 1].map(|place: usize| {
        distribution::JointDistribution::new(&*methods[place].1, &logits, &network).unwrap()
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

#[test]
fn results_survive_their_file_and_broken_ones_do_not() {
    let results = results();
    let json = serde_json::to_value(&results).unwrap();
    assert_eq!(BehaviourResults::parse(&json.to_string()).unwrap(), results);
    let fault = |change: &dyn Fn(&mut Value)| {
        let mut json = json.clone();
        change(&mut json);
        format!("{:#}", BehaviourResults::parse(&json.to_string()).unwrap_err())
    };
    for (found, expected) in [
        (fault(&|json| json["colour"] = 1.into()), "cannot be understood"),
        (fault(&|json| json["eth"]["kept"] = vec![1].into()), "eth: the histogram"),
        (fault(&|json| json["eth"]["reach"]["distances"] = vec![1.0].into()), "a curve"),
        (fault(&|json| json["distances"] = vec![1.0].into()), "a share for each distance"),
        (fault(&|json| json["eth"]["exemplars"][0]["history"] = Value::Array(vec![])), "history"),
        (fault(&|json| json["eth"]["exemplars"][0]["truth"][0][0] = 1e9.into()), "nowhere near"),
        (
            fault(&|json| json["eth"]["exemplars"][0]["kept"]["softmax"][0] = 25.into()),
            "does not exist",
        ),
    ] {
        assert!(found.contains(expected), "{expected}: {found}");
    }
}

#[test]
fn the_page_shows_the_papers_numbers_and_ours_and_needs_nothing() {
    let results = results();
    let figures = results.figures();
    let names: Vec<&str> = figures.iter().map(|figure| figure.name).collect();
    assert_eq!(names, ["paths", "kept", "reach"]);
    let page = results.page(&figures).unwrap();
    let ours = &results.scenes["eth_paper"].top5[EVIDENTIAL].fde;
    for expected in [
        "3.862 <small>± 0.419",
        &format!("{:.3} <small>± {:.3}", ours.mean.unwrap(), ours.se.unwrap()),
        "the paper's figure 4",
        "1 of 3 trainings diverged",
        "0123456789abcdef",
    ] {
        assert!(page.contains(expected), "{expected}");
    }
    for outside in ["src=\"", "href=\"http", "url(", "<script", "@import", "NaN", "{{"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

/// `RUN=/tmp/run cargo test -p shafer-lab pedestrians_to_look_at -- --ignored`, and then
/// `cargo run -- report /tmp/run`.
#[test]
#[ignore = "writes a made-up run into the folder RUN, to look at its report"]
fn pedestrians_to_look_at() {
    let folder = std::path::PathBuf::from(std::env::var_os("RUN").expect("RUN names a folder"));
    std::fs::create_dir_all(&folder).unwrap();
    report::write_json(&folder.join(report::RESULTS), &results()).unwrap();
    report::draw(&folder, &results()).unwrap();
}
