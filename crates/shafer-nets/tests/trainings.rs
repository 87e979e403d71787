//! Whole trainings against PyTorch, and properties of trainings.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{Parameter, assert_parameters, parameters};
use serde::Deserialize;
use shafer_nets::{
    Architecture, Classifier, ClassifierConfig, Config, Cvae, DecoderBias, Error, Examples,
    NetworkConfig, Optimiser, Precision, Trainer, TrainingConfig, cpu,
};

#[derive(Deserialize)]
struct Case {
    name: String,
    seed: u64,
    steps: usize,
    config: Config,
    pixels: Vec<u8>,
    labels: Vec<u8>,
    losses: Vec<[f64; 2]>,
    parameters: BTreeMap<String, Parameter>,
}

/// Everything follows from the seed: initial parameters, order, noise, losses, gradients and updates.
#[test]
fn trainings_are_those_of_pytorch() {
    let cases: Vec<Case> = serde_json::from_str(include_str!("fixtures/trainings.json")).unwrap();
    assert_eq!(cases.len(), 6);
    for case in cases {
        let width = case.config.network.pixels();
        let examples = Examples::new(&case.pixels, &case.labels, width).unwrap();
        let mut trainer = Trainer::<Cvae>::new(&case.config, examples, case.seed, &cpu()).unwrap();
        for (number, [reconstruction, kl]) in case.losses.iter().enumerate() {
            let step = trainer.step().unwrap().unwrap();
            let close = |found: f64, expected: f64| (found / expected - 1.0).abs() < 1e-4;
            assert!(
                close(step.losses.reconstruction, *reconstruction) && close(step.losses.kl, *kl),
                "{}, step {number}: {:?}, not {reconstruction} and {kl}",
                case.name,
                step.losses,
            );
        }
        assert_eq!(trainer.batch() + trainer.epoch() * trainer.batches_per_epoch(), case.steps);
        let weights = trainer.model().to_safetensors(Precision::Single).unwrap();
        assert_parameters(&weights, &case.parameters, &case.name);
    }
}

/// Images of one of four stripes; the condition is the half of the image that has it.
fn stripes() -> (Vec<u8>, Vec<u8>) {
    let pixels = (0..90_u32)
        .flat_map(|i| {
            (0..144).map(move |p| if p / 36 == i % 4 { 240 } else { ((i * 7 + p) % 30) as u8 })
        })
        .collect();
    let labels = (0..90).map(|i| u8::from(i % 4 > 1)).collect();
    (pixels, labels)
}

fn config(architecture: Architecture, optimiser: Optimiser) -> Config {
    Config {
        network: NetworkConfig { architecture, image: [12, 12], ..NetworkConfig::default() },
        training: TrainingConfig {
            optimiser,
            batch_size: 16,
            epochs: 3,
            ..TrainingConfig::default()
        },
    }
}

const MLP: Architecture = Architecture::Mlp { hidden: 20 };
const CONVOLUTIONAL: Architecture = Architecture::Convolutional { channels: [3, 4, 5] };

#[test]
fn a_killed_run_resumes_to_the_same_bits() {
    let (pixels, labels) = stripes();
    let examples = Examples::new(&pixels, &labels, 144).unwrap();
    let nesterov = Optimiser::Nesterov { momentum: 0.9, weight_decay: 1e-3 };
    for (architecture, optimiser) in [
        (MLP, Optimiser::Sgd),
        (MLP, nesterov),
        (MLP, Optimiser::Adam),
        (CONVOLUTIONAL, Optimiser::Adam),
    ] {
        let config = config(architecture, optimiser);
        let finish = |mut trainer: Trainer<'_, Cvae>| {
            let mut epochs = Vec::new();
            while let Some(losses) = trainer.run_epoch().unwrap() {
                epochs.push(losses);
            }
            assert!(trainer.is_finished());
            (epochs, trainer.save().unwrap())
        };
        let (losses, end) = finish(Trainer::<Cvae>::new(&config, examples, 5, &cpu()).unwrap());
        assert_eq!(losses.len(), 3);
        // At the start, within an epoch, between epochs, and at the end.
        for steps in [0, 4, 6, 11, 18] {
            let mut killed = Trainer::<Cvae>::new(&config, examples, 5, &cpu()).unwrap();
            for _ in 0..steps {
                killed.step().unwrap();
            }
            let saved = killed.save().unwrap();
            let resumed = Trainer::<Cvae>::resume(&config, examples, 5, &cpu(), &saved).unwrap();
            assert_eq!(resumed.save().unwrap(), saved);
            let (later, resumed_end) = finish(resumed);
            assert_eq!(later, losses[steps / 6..]);
            assert!(resumed_end == end, "{optimiser:?}, killed after {steps} steps");
        }
    }
}

/// Only the last biases of the decoder differ from a random start, and they are trained, too.
#[test]
fn a_decoder_can_start_from_the_mean_image() {
    let (mut pixels, labels) = stripes();
    // One pixel is always 0, and one always 1.
    for image in pixels.chunks_exact_mut(144) {
        (image[0], image[143]) = (0, 255);
    }
    let examples = Examples::new(&pixels, &labels, 144).unwrap();
    let mut config = config(MLP, Optimiser::Adam);
    let random = Cvae::untrained(&config.network, 3).unwrap();
    let random = parameters(&random.to_safetensors(Precision::Single).unwrap());
    config.training.decoder_bias = DecoderBias::MeanImage;
    let mut trainer = Trainer::<Cvae>::new(&config, examples, 3, &cpu()).unwrap();
    let weights = |trainer: &Trainer<'_, Cvae>| {
        parameters(&trainer.model().to_safetensors(Precision::Single).unwrap())
    };
    let start = weights(&trainer);
    let bias = "decoder.output.bias";
    for (name, values) in &random {
        assert_eq!(start[name] == *values, name != bias, "{name}");
    }
    let bound = 999_f64.ln();
    for (pixel, &found) in start[bias].1.iter().enumerate() {
        let of_images = pixels.iter().skip(pixel).step_by(144).map(|&value| f64::from(value));
        let on = of_images.sum::<f64>();
        let expected = (on.ln() - (90.0 * 255.0 - on).ln()).clamp(-bound, bound);
        assert!((f64::from(found) - expected).abs() < 1e-5, "{pixel}: {found}, not {expected}");
    }
    trainer.step().unwrap();
    let stepped = weights(&trainer);
    for (name, (_, values)) in &start {
        assert_ne!(stepped[name].1, *values, "{name}");
    }
    // The last biases of a resumed training are the trained ones, not the initial ones.
    let resumed =
        Trainer::<Cvae>::resume(&config, examples, 3, &cpu(), &trainer.save().unwrap()).unwrap();
    assert_eq!(weights(&resumed), stepped);
}

#[test]
fn threads_do_not_change_a_training() {
    let (pixels, labels) = stripes();
    let examples = Examples::new(&pixels, &labels, 144).unwrap();
    let run = || {
        let mut trainer =
            Trainer::<Cvae>::new(&config(MLP, Optimiser::Adam), examples, 1, &cpu()).unwrap();
        while trainer.run_epoch().unwrap().is_some() {}
        trainer.save().unwrap()
    };
    let alone = run();
    std::thread::scope(|scope| {
        let runs: Vec<_> = (0..3).map(|_| scope.spawn(run)).collect();
        for other in runs {
            assert!(other.join().unwrap() == alone);
        }
    });
}

#[test]
fn what_was_saved_must_fit() {
    let (pixels, mut labels) = stripes();
    let config = config(MLP, Optimiser::Adam);
    let saved = {
        let examples = Examples::new(&pixels, &labels, 144).unwrap();
        let mut trainer = Trainer::<Cvae>::new(&config, examples, 5, &cpu()).unwrap();
        trainer.step().unwrap();
        trainer.save().unwrap()
    };
    let resume = |config: &Config, labels: &[u8], seed, bytes: &[u8]| {
        let examples = Examples::new(&pixels, labels, 144).unwrap();
        Trainer::<Cvae>::resume(config, examples, seed, &cpu(), bytes).unwrap_err().to_string()
    };
    let mut other = config.clone();
    other.training.learning_rate = 0.5;
    assert_eq!(resume(&other, &labels, 5, &saved), "the saved training has another configuration",);
    assert_eq!(resume(&config, &labels, 6, &saved), "the saved training has another seed");
    let weights = Cvae::untrained(&config.network, 0).unwrap();
    let weights = weights.to_safetensors(Precision::Single).unwrap();
    assert!(
        resume(&config, &labels, 5, &weights)
            .starts_with("the file is of another kind or version than expected: "),
    );
    // A truncated file is an error, not a panic.
    for length in (0..saved.len()).step_by(997) {
        resume(&config, &labels, 5, &saved[..length]);
    }
    labels[3] ^= 1;
    assert_eq!(resume(&config, &labels, 5, &saved), "the saved training has other examples");
}

#[test]
fn a_training_that_diverges_is_an_error_and_keeps_its_last_numbers() {
    let (pixels, labels) = stripes();
    let examples = Examples::new(&pixels, &labels, 144).unwrap();
    let mut config = config(MLP, Optimiser::Sgd);
    config.training.learning_rate = 1e30;
    let mut trainer = Trainer::<Cvae>::new(&config, examples, 0, &cpu()).unwrap();
    let error = loop {
        match trainer.step() {
            Ok(step) => assert!(step.is_some(), "it did not diverge"),
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Diverged { epoch: 0, .. }), "{error}");
    // The next step gives the same error.
    assert_eq!(trainer.step().unwrap_err().to_string(), error.to_string());
}

#[test]
fn a_killed_classifier_resumes_to_the_same_bits() {
    let (pixels, labels) = stripes();
    let examples = Examples::new(&pixels, &labels, 144).unwrap();
    let config = ClassifierConfig {
        pixels: 144,
        hidden: 8,
        classes: 2,
        batch_size: 16,
        epochs: 2,
        ..ClassifierConfig::default()
    };
    let new = || Trainer::<Classifier>::new(&config, examples, 5, &cpu()).unwrap();
    let mut whole = new();
    let mut losses = Vec::new();
    while let Some(loss) = whole.run_epoch().unwrap() {
        losses.push(loss);
    }
    assert!(losses[1].cross_entropy < losses[0].cross_entropy);
    let mut killed = new();
    for _ in 0..8 {
        killed.step().unwrap();
    }
    let saved = killed.save().unwrap();
    let mut resumed = Trainer::<Classifier>::resume(&config, examples, 5, &cpu(), &saved).unwrap();
    assert_eq!((resumed.epoch(), resumed.batch(), resumed.iterations()), (1, 2, 12));
    assert_eq!(resumed.run_epoch().unwrap(), Some(losses[1]));
    assert!(resumed.is_finished());
    assert!(resumed.save().unwrap() == whole.save().unwrap());
    // The state of another network's training is an error.
    let error =
        Trainer::<Cvae>::resume(&self::config(MLP, Optimiser::Sgd), examples, 5, &cpu(), &saved);
    assert!(error.unwrap_err().to_string().starts_with("the file is of another kind or version"));
}

#[test]
fn weights_come_back_as_they_were() {
    for architecture in [MLP, CONVOLUTIONAL] {
        let config = config(architecture, Optimiser::Sgd).network;
        let cvae = Cvae::untrained(&config, 3).unwrap();
        let bytes = cvae.to_safetensors(Precision::Single).unwrap();
        let again = Cvae::from_safetensors(&bytes).unwrap();
        assert_eq!(again.decode(), cvae.decode());
        assert_eq!(again.prior(), cvae.prior());
        assert_eq!(again.to_safetensors(Precision::Single).unwrap(), bytes);
        // Half precision: a relative error of at most 2^-11.
        let half = Cvae::from_safetensors(&cvae.to_safetensors(Precision::Half).unwrap()).unwrap();
        for (a, b) in half.prior().weights.iter().zip(cvae.prior().weights) {
            assert!((a - b).abs() <= b.abs() / 2048.0 + 1e-7);
        }
    }
}

#[test]
fn a_file_cannot_ask_for_more_than_it_has() {
    let bytes = Cvae::untrained(&NetworkConfig::default(), 3).unwrap();
    let mut bytes = bytes.to_safetensors(Precision::Half).unwrap();
    let refused = |bytes: &[u8]| Cvae::from_safetensors(bytes).unwrap_err().to_string();
    // The description is in the header, as JSON in JSON.
    let from = br#"\"hidden\":256"#;
    let place = bytes.windows(from.len()).position(|window| window == from).unwrap();
    bytes[place + from.len() - 3..][..3].copy_from_slice(b"999");
    assert_eq!(refused(&bytes), "the file has 408746 parameters, but its description says 1591602",);
    bytes[place + from.len() - 3..][..3].copy_from_slice(b"1e9");
    assert!(refused(&bytes).starts_with("the file is of another kind or version"));
    for length in (0..bytes.len()).step_by(9973) {
        refused(&bytes[..length]);
    }
}

/// Uniform within `1 / sqrt(fan_in)`: the mean is 0 and the variance a third of the bound's square.
#[test]
fn initial_parameters_are_uniform_within_their_bound() {
    let config = NetworkConfig::default();
    let bytes = Cvae::untrained(&config, 11).unwrap().to_safetensors(Precision::Single).unwrap();
    let fan_in = BTreeMap::from([
        ("posterior.hidden", 786.0_f64),
        ("posterior.output", 256.0),
        ("prior.hidden", 2.0),
        ("prior.output", 30.0),
        ("decoder.hidden", 10.0),
        ("decoder.output", 256.0),
    ]);
    let found = parameters(&bytes);
    assert_eq!(found.len(), 12);
    for (name, (_, values)) in found {
        let layer = name.rsplit_once('.').unwrap().0;
        let bound = 1.0 / fan_in[layer].sqrt();
        let scaled: Vec<f64> = values.iter().map(|&x| f64::from(x) / bound).collect();
        assert!(scaled.iter().all(|x| x.abs() <= 1.0), "{name}");
        let n = scaled.len() as f64;
        let mean = scaled.iter().sum::<f64>() / n;
        let variance = scaled.iter().map(|x| x * x).sum::<f64>() / n;
        // Five standard deviations of each estimate.
        assert!(mean.abs() < 5.0 * (1.0 / 3.0_f64).sqrt() / n.sqrt(), "{name}: {mean}");
        assert!((variance - 1.0 / 3.0).abs() < 5.0 * 0.3 / n.sqrt(), "{name}: {variance}");
    }
    assert_ne!(
        Cvae::untrained(&config, 12).unwrap().to_safetensors(Precision::Single).unwrap(),
        bytes,
    );
}

#[test]
fn a_training_lowers_the_loss_and_uses_the_latent_classes() {
    let (pixels, labels) = stripes();
    let examples = Examples::new(&pixels, &labels, 144).unwrap();
    let mut config = config(MLP, Optimiser::Adam);
    config.training.epochs = 40;
    config.training.learning_rate = 0.01;
    // The loss of the best constant image, the mean.
    let blind: f64 = (0..144)
        .map(|p| {
            pixels.iter().skip(p).step_by(144).map(|&x| f64::from(x)).sum::<f64>() / 90.0 / 255.0
        })
        .map(|mean| -mean * mean.ln() - (1.0 - mean) * (1.0 - mean).ln())
        .sum();
    let trained: Vec<_> = (0..8)
        .map(|seed| {
            let mut trainer = Trainer::<Cvae>::new(&config, examples, seed, &cpu()).unwrap();
            let mut last = trainer.run_epoch().unwrap().unwrap();
            while let Some(epoch) = trainer.run_epoch().unwrap() {
                last = epoch;
            }
            (trainer, last)
        })
        .collect();
    // Every seed learns to distinguish some stripes, and some seeds more of them; which seeds depends on
    // the rounding of the processor.
    for (seed, (_, last)) in trained.iter().enumerate() {
        let loss = last.reconstruction;
        assert!(loss < 0.85 * blind, "seed {seed}: {loss}, not below most of {blind}");
    }
    let best = trained.into_iter().find(|(_, last)| last.reconstruction < 0.6 * blind);
    let (trainer, _) = best.expect("no seed learns more than some");
    let diagnosis = trainer.model().diagnose(examples).unwrap();
    assert!(!diagnosis.collapsed(), "{diagnosis:?}");
    assert!((diagnosis.shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
}

/// The logits of the snapshot's layer and features are those of the network, in double precision.
#[test]
fn a_snapshot_has_the_logits_of_the_prior() {
    let config = NetworkConfig { conditions: 3, ..NetworkConfig::default() };
    let cvae = Cvae::untrained(&config, 4).unwrap();
    let stored = parameters(&cvae.to_safetensors(Precision::Single).unwrap());
    let [w1, b1, w2, b2] =
        ["hidden.weight", "hidden.bias", "output.weight", "output.bias"].map(|name| {
            stored[&format!("prior.{name}")].1.iter().map(|&x| f64::from(x)).collect::<Vec<_>>()
        });
    let prior = cvae.prior();
    assert_eq!(prior.conditions(), 3);
    for y in 0..3 {
        let phi: Vec<f64> = (0..30).map(|j| (w1[j * 3 + y] + b1[j]).max(0.0)).collect();
        for (k, found) in prior.logits(y).unwrap().into_iter().enumerate() {
            let expected = b2[k] + (0..30).map(|j| w2[k * 30 + j] * phi[j]).sum::<f64>();
            assert!((found - expected).abs() < 1e-6);
        }
    }
    assert_eq!(prior.logits(3).unwrap_err().to_string(), "condition: must be below 3, but is 3",);
}

#[test]
fn invalid_configurations_are_refused_by_name() {
    let refused = |change: fn(&mut Config)| {
        let mut config = Config::default();
        change(&mut config);
        config.check().unwrap_err().to_string()
    };
    assert_eq!(refused(|c| c.training.batch_size = 0), "batch_size must be at least 1, but is 0");
    assert_eq!(
        refused(|c| c.training.learning_rate = f64::NAN),
        "learning_rate must be a number greater than 0, but is NaN",
    );
    assert_eq!(
        refused(|c| {
            c.network.architecture = CONVOLUTIONAL;
            c.network.image = [28, 30];
        }),
        "image must have sides that the decoder restores, such as 28, but has 30",
    );
    assert_eq!(
        refused(|c| {
            c.network.architecture = CONVOLUTIONAL;
            c.training.decoder_bias = DecoderBias::MeanImage;
        }),
        "decoder_bias must be random: a convolutional decoder has no bias for each pixel",
    );
    assert!(
        serde_json::from_str::<Config>(
            r#"{"network": {"architecture": {"kind": "mlp", "hidden": 8, "depth": 2}}}"#
        )
        .is_err()
    );
}
