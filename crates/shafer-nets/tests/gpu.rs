//! Training steps on a GPU against those on the CPU: `cargo xtask gpu`.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(clippy::print_stdout, reason = "the differences are of interest")]

mod common;

use common::parameters;
use shafer_nets::behaviour::{self, Example, Predictor};
use shafer_nets::pixel_cnn::{CodeGrids, PixelCnn, PixelCnnConfig, PixelCnnTraining};
use shafer_nets::training::{Losses as _, Model};
use shafer_nets::vqvae::{self, Codebook, VqVae};
use shafer_nets::wide_residual::{self, WideResidual};
use shafer_nets::{
    Architecture, ByteImages, Classifier, ClassifierConfig, ColourImages, Config, Cvae, Device,
    Examples, NetworkConfig, Optimiser, Trainer, TrainingConfig, cpu, device,
};

/// Trains for three steps on both devices, and compares losses, parameters and the optimiser's state after
/// each: to within 1e-3 of the largest value of a tensor. The optimiser's moments are sums of gradients that can
/// cancel: what is left of them below 1e-5 of the largest moment is rounding.
fn compare<'a, M: Model>(name: &str, config: &M::Config, examples: impl Fn() -> M::Examples<'a>) {
    let gpu = device("gpu").unwrap();
    let start = |device: &Device| Trainer::<M>::new(config, examples(), 3, device).unwrap();
    let (mut here, mut there) = (start(&cpu()), start(&gpu));
    let mut worst = 0.0_f32;
    for step in 0..3 {
        let total = |trainer: &mut Trainer<'a, M>| trainer.step().unwrap().unwrap().losses.total();
        let (expected, found) = (total(&mut here), total(&mut there));
        assert!((found / expected - 1.0).abs() < 1e-3, "{name}: {found}, not {expected}");
        let (expected, found) = (here.save().unwrap(), there.save().unwrap());
        let (expected, found) = (parameters(&expected), parameters(&found));
        assert!(found.keys().eq(expected.keys()));
        let largest = |values: &[f32]| values.iter().fold(1e-12_f32, |size, x| size.max(x.abs()));
        let moments = expected.iter().filter(|(tensor, _)| tensor.starts_with("adam.first"));
        let moments = moments.map(|(_, (_, values))| largest(values)).fold(0.0, f32::max);
        for (tensor, (shape, expected)) in &expected {
            assert_eq!(&found[tensor].0, shape);
            let rounding = if tensor.starts_with("adam.first") { 1e-5 * moments } else { 0.0 };
            let size = largest(expected).max(rounding);
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
fn priors_of_codes_train_as_on_the_cpu() {
    let network = PixelCnnConfig {
        codes: 11,
        classes: 3,
        latent: [4, 5],
        layers: 2,
        width: 6,
        head_width: 8,
    };
    let codes: Vec<u16> = (0..8 * 20).map(|i| i * 7 % 11).collect();
    let training = PixelCnnTraining { network, batch_size: 4, ..PixelCnnTraining::default() };
    compare::<PixelCnn>("gated PixelCNN", &training, || {
        CodeGrids::new(&codes, &[0, 1, 2, 0, 1, 2, 0, 1])
    });
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

/// Eight images of 16 x 16 in three channels, and their labels.
fn images() -> (Vec<u8>, Vec<u16>) {
    let pixels = (0..8 * 16 * 16 * 3_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8);
    (pixels.collect(), (0..8).map(|i| i % 3).collect())
}

#[test]
fn vqvaes_train_as_on_the_cpu() {
    let (pixels, labels) = images();
    let images = ByteImages::new(&pixels, &labels, [16, 16]).unwrap();
    for codebook in [Codebook::Plain, Codebook::LIVE] {
        let config = vqvae::Config {
            network: vqvae::NetworkConfig {
                image: [16, 16],
                width: 8,
                codes: 16,
                codebook,
                ..vqvae::NetworkConfig::default()
            },
            training: vqvae::TrainingConfig { batch_size: 4, ..vqvae::TrainingConfig::default() },
        };
        let name = format!("vqvae, {codebook:?}");
        compare::<VqVae>(&name, &config, || &images as &dyn ColourImages);
    }
}

#[test]
fn wide_residual_networks_train_as_on_the_cpu() {
    let (pixels, labels) = images();
    let images = ByteImages::new(&pixels, &labels, [16, 16]).unwrap();
    let config = wide_residual::Config {
        network: wide_residual::NetworkConfig::small([16, 16], 3),
        training: wide_residual::TrainingConfig {
            batch_size: 4,
            ..wide_residual::TrainingConfig::default()
        },
    };
    compare::<WideResidual>("wide residual network", &config, || &images as &dyn ColourImages);
}

#[test]
fn pixel_cnns_train_as_on_the_cpu() {
    let classes: Vec<u16> = (0..8).map(|i| i % 3).collect();
    let codes: Vec<u16> = (0..8 * 16_u16).map(|i| i * 7 % 11 % 5).collect();
    let config = PixelCnnTraining {
        network: PixelCnnConfig {
            codes: 5,
            classes: 3,
            latent: [4, 4],
            layers: 3,
            width: 8,
            head_width: 16,
        },
        batch_size: 4,
        ..PixelCnnTraining::default()
    };
    compare::<PixelCnn>("PixelCNN", &config, || CodeGrids::new(&codes, &classes));
}
