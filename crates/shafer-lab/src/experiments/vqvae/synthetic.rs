//! Results with made-up numbers, and a data set of made-up images.

use std::collections::BTreeMap;
use std::path::Path;

use super::candidates;
use super::results::{
    Codebook, KeptSummary, Pictures, REAL, RECONSTRUCTED, Trainings, VqVaeResults,
};
use super::train::{ClassifierEpoch, PriorEpoch, Trained, VqVaeEpoch};
use crate::drawing::Image;
use crate::experiments::methods::MethodName;
use crate::experiments::report::{Results as _, VERSION};
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

/// Writes CIFAR-10's files, each with one bright image of every class: a square at a place given by the class.
pub(super) fn write_cifar(folder: &Path) {
    let place = folder.join("cifar10");
    std::fs::create_dir_all(&place).unwrap();
    let files = (1..=5).map(|batch| format!("data_batch_{batch}.bin"));
    for (number, file) in files.chain(["test_batch.bin".to_owned()]).enumerate() {
        let mut bytes = Vec::new();
        for image in 0..20_usize {
            let class = image % 10;
            bytes.push(class as u8);
            let (top, left) = (3 + 14 * (class / 5), 1 + 6 * (class % 5));
            for channel in 0..3 {
                for pixel in 0..32 * 32 {
                    let (row, column) = (pixel / 32, pixel % 32);
                    let inside =
                        (top..top + 10).contains(&row) && (left..left + 5).contains(&column);
                    let noise = (pixel * 7 + image * 13 + number * 29 + channel * 3) % 40;
                    bytes.push(if inside { 200 + noise } else { 40 * channel + noise } as u8);
                }
            }
        }
        std::fs::write(place.join(file), bytes).unwrap();
    }
}

/// Results of two classes.
pub(super) fn results() -> VqVaeResults {
    let methods: Vec<MethodName> =
        candidates::all(16).unwrap().into_iter().map(|candidate| candidate.name).collect();
    let names = || methods.iter().map(|method| method.name.clone());
    let shares = |value: f64| -> BTreeMap<String, f64> {
        names().chain([REAL, RECONSTRUCTED].map(str::to_owned)).map(|name| (name, value)).collect()
    };
    let kept = KeptSummary {
        mean: 3.5,
        median: 3,
        p90: 6,
        p99: 7,
        max: 8,
        reduction_mean: 0.78125,
        reduction_max: 0.5,
        of_used_mean: 0.5,
        of_used_max: 1.0,
        mass: 0.97,
        missed: 0.02,
        sampled_mean: 3.25,
        sampled_max: 8,
    };
    let picture = |value: u8| Image::rgb(4, vec![value; 48]).unwrap();
    let shown = || [SOFTMAX, SPARSEMAX, EVIDENTIAL].map(str::to_owned);
    let epoch = |held_out: f64| PriorEpoch {
        loss: held_out - 0.1,
        held_out,
        kept: BTreeMap::from([(EVIDENTIAL.to_owned(), 4.0), (SPARSEMAX.to_owned(), 1.5)]),
    };
    VqVaeResults {
        version: VERSION,
        experiment: VqVaeResults::KIND.to_owned(),
        data_set: "miniimagenet".to_owned(),
        image: 8,
        grid: [2, 2],
        classes: vec!["<cat>".to_owned(), "dog".to_owned()],
        samples: 25,
        held_out: 60,
        wall_seconds: 12.5,
        revision: "abc".to_owned(),
        machine: "a machine".to_owned(),
        config: serde_json::json!({ "seed": 0 }),
        accuracy: shares(0.25),
        accuracy_se: shares(0.0625),
        top5: shares(0.5),
        top5_se: shares(0.0625),
        diversity: shares(0.375),
        frechet: names().map(|name| (name, 4.5)).collect(),
        kept: names().map(|name| (name, kept.clone())).collect(),
        codebook: Codebook { codes: 16, used: 7, perplexity: 5.5 },
        trainings: Trainings {
            vqvae: Trained {
                diverged: false,
                wall_seconds: 1.0,
                epochs: vec![
                    VqVaeEpoch {
                        reconstruction: 0.5,
                        quantisation: 0.25,
                        used: 5,
                        perplexity: 3.5,
                    },
                    VqVaeEpoch {
                        reconstruction: 0.25,
                        quantisation: 0.125,
                        used: 7,
                        perplexity: 5.5,
                    },
                ],
            },
            prior: Trained {
                diverged: false,
                wall_seconds: 2.0,
                epochs: vec![epoch(2.5), epoch(2.0)],
            },
            classifier: Trained {
                diverged: false,
                wall_seconds: 3.0,
                epochs: vec![ClassifierEpoch { loss: 1.5, accuracy: 0.5 }],
            },
        },
        maps: shown().map(|name| (name, vec![1.0, 2.0, 3.0, 4.0])).into(),
        pictures: Pictures {
            classes: vec![0, 1],
            samples: shown()
                .map(|name| (name, vec![vec![picture(9); 2], vec![picture(200); 2]]))
                .into(),
            reconstructions: vec![[picture(7), picture(8)]],
        },
        methods,
    }
}
