//! From scenes to a report, at once, after an interruption or with the networks of another run.

use std::path::Path;

use serde_json::Value;
use shafer_data::dataset::set;
use shafer_nets::behaviour::Predictor;
use shafer_nets::{Trainer, cpu};

use super::tiny;
use crate::experiments::folder::{Folder, job_file};
use crate::experiments::pedestrians::BEHAVIOUR;
use crate::experiments::pedestrians::config::Config;
use crate::experiments::pedestrians::folds::Fold;
use crate::experiments::pedestrians::synthetic::{scene, write_data};
use crate::experiments::pedestrians::train::PedestrianRecord;
use crate::experiments::{CPU, Reproduced, Request, preset, report, reproduce};
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

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
        experiment: &BEHAVIOUR,
        preset: "smoke",
        seeds: Some(2),
        changes,
        out,
        folders: &[data.to_owned()],
        own_data: true,
        weights,
        device: CPU,
        quiet: true,
    })
}

fn config(changes: &[String]) -> Config {
    preset::configured(&BEHAVIOUR, "smoke", Some(2), changes).unwrap()
}

/// What run.json holds.
fn recorded(config: &Config) -> Value {
    let mut value = serde_json::to_value(config).unwrap();
    value["own_data"] = true.into();
    value
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
        let config = config(&tiny());
        let fold = Fold::read("eth", set("ethucy").unwrap(), std::slice::from_ref(&data), &config)
            .unwrap();
        let folder = Folder::open(&killed, recorded(&config)).unwrap();
        let mut trainer =
            Trainer::<Predictor>::new(&config.nets(), &fold.examples[..], 0, &cpu()).unwrap();
        let mut record = record(0, false);
        for _ in 0..2 {
            record.losses = Some(trainer.step().unwrap().unwrap().losses);
        }
        folder.write(job_file("eth-seed-00", "part.json"), &record).unwrap();
        let state = job_file("eth-seed-00", "safetensors");
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
    assert!(error.contains("was trained with training = "), "{error}");
    let error = fault(&with("differences=\"backward\""));
    assert!(error.contains("with differences = "), "{error}");
    let error = fault(&with("scenes=[\"hotel\"]"));
    assert!(error.contains("hotel-seed-00.json: does not exist"), "{error}");
    let weights = first.join("trainings/eth-seed-01.weights.safetensors");
    std::fs::write(&weights, b"nothing").unwrap();
    let error = fault(&fewer);
    assert!(error.contains("eth-seed-01.weights.safetensors"), "{error}");
    std::fs::remove_file(first.join("run.json")).unwrap();
    assert!(fault(&fewer).contains("run.json: does not exist"));
    assert!(!second.exists());
}

fn record(seed: u64, diverged: bool) -> PedestrianRecord {
    PedestrianRecord {
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
    let config = config(&tiny());
    let opened = Folder::open(&out, recorded(&config)).unwrap();
    opened.write(job_file("eth-seed-00", "json"), &record(0, true)).unwrap();
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
    assert!(serde_json::from_str::<PedestrianRecord>(&text).unwrap().diverged);
}

#[test]
fn scenes_without_anybody_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path();
    write_data(data);
    let config = config(&tiny());
    let read = |fold: &str| Fold::read(fold, set("ethucy").unwrap(), &[data.to_owned()], &config);
    std::fs::write(data.join("ethucy/biwi_hotel.txt"), scene(2, 9)).unwrap();
    let error = read("hotel").err().unwrap().to_string();
    assert!(error.contains("biwi_hotel: no pedestrian has at least 7 steps before"), "{error}");
    std::fs::write(data.join("ethucy/biwi_eth_val.txt"), scene(2, 9)).unwrap();
    let error = read("eth").err().unwrap().to_string();
    assert!(error.contains("biwi_eth_val: no pedestrian is there at any of 6 random"), "{error}");
    let error = read("oxford").err().unwrap().to_string();
    assert!(error.contains("has no fold oxford"), "{error}");
}
