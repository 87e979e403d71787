//! Training steps on a GPU against those on the CPU: `cargo xtask gpu`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the differences are of interest")]

mod common;

use common::parameters;
use shafer_nets::behaviour::{self, Example, Predictor};
use shafer_nets::training::Model;
use shafer_nets::{
    Architecture, Classifier, ClassifierConfig, Config, Cvae, Device, Examples, NetworkConfig,
    Optimiser, Trainer, TrainingConfig, cpu, device,
};

/// Trains for three steps on both devices, and compares losses, parameters and the optimiser's state after
/// each: to within 1e-3 of the largest value of a tensor.
fn compare<'a, M: Model>(name: &str, config: &M::Config, examples: impl Fn() -> M::Examples<'a>) {
    let gpu = device("gpu").unwrap();
    let start = |device: &Device| Trainer::<M>::new(config, examples(), 3, device).unwrap();
    let (mut here, mut there) = (start(&cpu()), start(&gpu));
    let mut worst = 0.0_f32;
    for step in 0..3 {
        use shafer_nets::training::Losses as _;
        let total = |trainer: &mut Trainer<'a, M>| trainer.step().unwrap().unwrap().losses.total();
        let (expected, found) = (total(&mut here), total(&mut there));
        assert!((found / expected - 1.0).abs() < 1e-3, "{name}: {found}, not {expected}");
        let (expected, found) = (here.save().unwrap(), there.save().unwrap());
        let (expected, found) = (parameters(&expected), parameters(&found));
        assert!(found.keys().eq(expected.keys()));
        for (tensor, (shape, expected)) in &expected {
            assert_eq!(&found[tensor].0, shape);
            let size = expected.iter().fold(1e-12_f32, |size, x| size.max(x.abs()));
            for (found, expected) in found[tensor].1.iter().zip(expected) {
                let error = (found - expected).abs() / size;
                assert!(error < 1e-3, "{name}, step {step}, {tensor}: {found}, not {expected}",);
                worst = worst.max(error);
            }
        }
    }
    // A training that was saved on one device goes on on the other.
    let saved = there.save().unwrap();
    let mut resumed = Trainer::<M>::resume(config, examples(), 3, &cpu(), &saved).unwrap();
    assert_eq!(resumed.save().unwrap(), saved);
    resumed.step().unwrap();
    println!("{name}: the largest difference is {worst:.1e} of a tensor's largest value");
}

fn stripes() -> (Vec<u8>, Vec<u8>) {
    let pixels = (0..90_u32)
        .flat_map(|i| (0..144).map(move |p| if p / 36 == i % 4 { 240 } else { (p % 30) as u8 }))
        .collect();
    (pixels, (0..90).map(|i| u8::from(i % 4 > 1)).collect())
}

#[test]
fn autoencoders_train_as_on_the_cpu() {
    let (pixels, labels) = stripes();
    let mlp = Architecture::Mlp { hidden: 20 };
    let convolutional = Architecture::Convolutional { channels: [3, 4, 5] };
    let momentum = Optimiser::Nesterov { momentum: 0.9, weight_decay: 0.01 };
    for (architecture, optimiser) in [
        (mlp.clone(), Optimiser::Sgd),
        (mlp.clone(), momentum),
        (mlp, Optimiser::Adam),
        (convolutional, Optimiser::Adam),
    ] {
        let name = format!("{architecture:?}, {optimiser:?}");
        let config = Config {
            network: NetworkConfig { architecture, image: [12, 12], ..NetworkConfig::default() },
            training: TrainingConfig { optimiser, batch_size: 16, ..TrainingConfig::default() },
        };
        compare::<Cvae>(&name, &config, || Examples::new(&pixels, &labels, 144).unwrap());
    }
}

#[test]
fn classifiers_train_as_on_the_cpu() {
    let (pixels, labels) = stripes();
    let config = ClassifierConfig { pixels: 144, hidden: 16, ..ClassifierConfig::default() };
    compare::<Classifier>("classifier", &config, || Examples::new(&pixels, &labels, 144).unwrap());
}

#[test]
fn predictors_train_as_on_the_cpu() {
    let walk = |speed: f64, steps: std::ops::RangeInclusive<i32>| -> Vec<[f64; 6]> {
        let state = |i| [speed * 0.4 * f64::from(i), 0.1 * f64::from(i), speed, 0.25, 0.0, 0.0];
        steps.map(state).collect()
    };
    let examples: Vec<Example> = (0..16)
        .map(|i| {
            let (speed, first) = (0.5 + 0.1 * f64::from(i), -(i % 8) - 1);
            let history = walk(speed, first..=0);
            let neighbours = vec![[1.0, -0.5, 0.3, 0.0, 0.0, 0.0]; history.len()];
            Example::new(&history, &neighbours, &walk(speed, 1..=12)).unwrap()
        })
        .collect();
    let mut config = behaviour::Config::default();
    config.network.decoder_width = 24;
    config.network.components = 4;
    config.training.batch_size = 8;
    compare::<Predictor>("predictor", &config, || &examples[..]);
}
