//! Synthetic pedestrians, scenes and results, for tests.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fmt::Write as _;
use std::path::Path;

use shafer_data::dataset::set;

use super::aggregate::Scene;
use super::demo::crossing;
use super::measure::{AgentRecord, BestOf, Decoding, Errors, Evaluation, MethodRecord};
use super::results::PedestrianResults;
use super::train::PedestrianRecord;
use crate::experiments::methods::{self, MethodName};
use crate::experiments::report::{Results as _, VERSION};

/// The text of a scene in which pedestrians walk, turn and pass each other.
pub(crate) fn scene(pedestrians: usize, steps: usize) -> String {
    let mut text = String::new();
    for step in 0..steps {
        for pedestrian in 0..pedestrians {
            let (t, n) = (step as f64 * 0.4, pedestrian as f64);
            let x = 3.0 * (0.3 * n).sin() + (1.0 - 0.3 * n) * t;
            let y = n - 2.0 + 0.4 * (t + n).sin();
            let _ = writeln!(text, "{} {pedestrian} {x:.4} {y:.4}", step * 10);
        }
    }
    text
}

/// Every file of ETH/UCY, each with such a scene.
pub(crate) fn write_data(folder: &Path) {
    let set = set("ethucy").unwrap();
    let place = folder.join(&set.name);
    std::fs::create_dir_all(&place).unwrap();
    for (number, file) in set.files.iter().enumerate() {
        std::fs::write(place.join(&file.name), scene(2 + number % 3, 23)).unwrap();
    }
}

/// Results with numbers in all places.
pub(crate) fn results() -> PedestrianResults {
    let methods: Vec<MethodName> = methods::all(5).unwrap().iter().map(MethodName::of).collect();
    let errors = |x: f64| Errors { nll: 3.0 + x, ade: 0.4 + 0.1 * x, fde: 0.8 + 0.2 * x };
    let agent = |seed: u64, agent: u32| {
        let method = |method: usize| {
            let x = f64::from(agent % 7) / 7.0 + seed as f64 / 10.0 + method as f64 / 20.0;
            MethodRecord {
                kept: 1 + (agent as usize * 7 + 3 * method) % 12,
                direct: errors(x),
                best20: BestOf { ade: 0.2 + 0.1 * x, fde: 0.4 + 0.2 * x },
                top: errors(x - 1.0),
                nearest: 2.0 * x,
            }
        };
        let methods = (0..methods.len()).map(method).collect();
        AgentRecord { agent, frame: 780, steps: 12, methods }
    };
    let evaluation = |seed: u64| Evaluation {
        seed,
        agents: (0..40).map(|n| agent(seed, n)).collect(),
        decodings: vec![Decoding { seconds_kept: 5e-4, seconds_all: 1e-3 }; 40],
    };
    let evaluations = [evaluation(0), evaluation(2)];
    let distances = vec![0.5, 1.0, 2.0];
    let scene = |fold| Scene {
        fold,
        methods: &methods,
        classes: 25,
        distances: &distances,
        evaluations: &evaluations,
    };
    let training = |seed| PedestrianRecord {
        scene: "eth".to_owned(),
        seed,
        diverged: seed == 1,
        iterations: 2000,
        wall_seconds: 1.5,
        losses: None,
    };
    PedestrianResults {
        version: VERSION,
        experiment: PedestrianResults::KIND.to_owned(),
        classes: 25,
        seeds: 3,
        diverged: 1,
        wall_seconds: 12.0,
        revision: "0123456789abcdef".to_owned(),
        machine: "a made-up machine".to_owned(),
        config: serde_json::Value::Null,
        distances: distances.clone(),
        trainings: (0..3).map(training).collect(),
        scenes: ["eth", "eth_paper", "zara1"]
            .map(|name| (name.to_owned(), scene("eth").results(crossing().unwrap())))
            .into(),
        methods: methods.clone(),
    }
}
