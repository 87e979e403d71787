//! VQ-VAEs and wide residual networks, against `PyTorch`, `NumPy` and themselves.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{Parameter, assert_parameters};
use serde::Deserialize;
use shafer_nets::training::Model;
use shafer_nets::vqvae::{self, Codebook, VqVae};
use shafer_nets::wide_residual::{self, WideResidual};
use shafer_nets::{ByteImages, ColourImages, Error, Precision, Trainer, cpu};

#[derive(Deserialize)]
struct Fixture {
    vqvae: Vec<VqVaeCase>,
    wide_residual: Vec<WideResidualCase>,
}

#[derive(Deserialize)]
struct VqVaeCase {
    name: String,
    seed: u64,
    config: vqvae::Config,
    pixels: Vec<u8>,
    /// Reconstruction and commitment of each step.
    losses: Vec<[f64; 2]>,
    parameters: BTreeMap<String, Parameter>,
    /// Of the first two images, after the training.
    codes: Vec<u16>,
    decoded: Vec<f32>,
}

#[derive(Deserialize)]
struct WideResidualCase {
    name: String,
    seed: u64,
    config: wide_residual::Config,
    pixels: Vec<u8>,
    labels: Vec<u16>,
    losses: Vec<f64>,
    parameters: BTreeMap<String, Parameter>,
    features: Vec<f32>,
    logits: Vec<f32>,
}

fn fixture() -> Fixture {
    serde_json::from_str(include_str!("fixtures/vqvae.json")).unwrap()
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[f32]) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (found - expected).abs();
        assert!(error <= 1e-4 * expected.abs().max(1.0), "{i}: {found}, not {expected}");
    }
}

fn all(images: &ByteImages<'_>) -> Vec<f32> {
    let rows: Vec<u32> = (0..images.labels().len() as u32).collect();
    images.pixels(0, 0, &rows).unwrap()
}

/// From the seed alone: initial parameters, order, losses, gradients through codes and batch
/// normalisation, Adam, moving averages of codes, running statistics; then the trained network.
#[test]
fn vqvaes_are_those_of_pytorch() {
    let cases = fixture().vqvae;
    assert_eq!(cases.len(), 2);
    for case in cases {
        let network = &case.config.network;
        let labels = vec![0; case.pixels.len() / network.image_size()];
        let images = ByteImages::new(&case.pixels, &labels, network.image).unwrap();
        let mut trainer = Trainer::<VqVae>::new(&case.config, &images, case.seed, &cpu()).unwrap();
        let mut epoch_used = 0;
        for (number, [reconstruction, commitment]) in case.losses.iter().enumerate() {
            let step = trainer.step().unwrap().unwrap();
            let losses = step.losses;
            let name = &case.name;
            for (found, expected) in
                [(losses.reconstruction, reconstruction), (losses.quantisation, commitment)]
            {
                let error = (found - expected).abs();
                assert!(error < 1e-5, "{name}, step {number}: {found}, not {expected}");
            }
            let positions: u64 = losses.usage.counts().iter().sum();
            epoch_used += positions;
            if let Some(epoch) = step.epoch_losses {
                let counted: u64 = epoch.usage.counts().iter().sum();
                assert_eq!(counted, epoch_used);
                assert_eq!(counted, (labels.len() * network.positions()) as u64);
                epoch_used = 0;
            }
        }
        assert!(trainer.step().unwrap().is_none());
        let vqvae = trainer.model();
        let weights = vqvae.to_safetensors(Precision::Single).unwrap();
        assert_parameters(&weights, &case.parameters, &case.name);

        let first = images.pixels(0, 0, &[0, 1]).unwrap();
        let codes = vqvae.encode(&first).unwrap();
        assert_eq!(codes, case.codes);
        let decoded = vqvae.decode(&codes).unwrap();
        assert_close(&decoded, &case.decoded);
        let read = VqVae::from_safetensors(&weights).unwrap();
        assert_eq!(read.decode(&codes).unwrap(), decoded);
        assert_eq!(read.encode(&first).unwrap(), codes);
    }
}

#[test]
fn wide_residual_networks_are_those_of_pytorch() {
    let cases = fixture().wide_residual;
    assert_eq!(cases.len(), 2);
    for case in cases {
        let images =
            ByteImages::new(&case.pixels, &case.labels, case.config.network.image).unwrap();
        let mut trainer =
            Trainer::<WideResidual>::new(&case.config, &images, case.seed, &cpu()).unwrap();
        for (number, expected) in case.losses.iter().enumerate() {
            let found = trainer.step().unwrap().unwrap().losses.cross_entropy;
            let error = (found - expected).abs();
            assert!(error < 1e-4, "{}, step {number}: {found}, not {expected}", case.name);
        }
        assert!(trainer.step().unwrap().is_none());
        let network = trainer.model();
        let weights = network.to_safetensors(Precision::Single).unwrap();
        assert_parameters(&weights, &case.parameters, &case.name);
        let judged = network.judge(&all(&images)).unwrap();
        assert_close(judged.features(), &case.features);
        assert_close(judged.logits(), &case.logits);
        let read = WideResidual::from_safetensors(&weights).unwrap();
        assert_eq!(read.judge(&all(&images)).unwrap(), judged);
    }
}

/// Trains to the end in one go, and killed and resumed after each step.
#[track_caller]
fn assert_resumable<'a, M>(config: &M::Config, images: M::Examples<'a>)
where
    M: Model,
    M::Examples<'a>: Copy,
{
    let mut through = Trainer::<M>::new(config, images, 3, &cpu()).unwrap();
    let mut killed = Trainer::<M>::new(config, images, 3, &cpu()).unwrap();
    loop {
        let saved = killed.save().unwrap();
        killed = Trainer::<M>::resume(config, images, 3, &cpu(), &saved).unwrap();
        let (a, b) = (through.step().unwrap(), killed.step().unwrap());
        assert_eq!(
            serde_json::to_string(&a.as_ref().map(|step| &step.losses)).unwrap(),
            serde_json::to_string(&b.as_ref().map(|step| &step.losses)).unwrap()
        );
        let epochs = [&a, &b].map(|step| {
            serde_json::to_string(&step.as_ref().and_then(|step| step.epoch_losses.clone()))
                .unwrap()
        });
        assert_eq!(epochs[0], epochs[1]);
        if a.is_none() {
            break;
        }
    }
    let weights =
        |trainer: &Trainer<'_, M>| trainer.model().to_safetensors(Precision::Single).unwrap();
    assert!(weights(&through) == weights(&killed), "the weights differ");
}

#[test]
fn trainings_resume_to_the_same_bits() {
    let fixture = fixture();
    for case in fixture.vqvae {
        let labels = vec![0; case.pixels.len() / case.config.network.image_size()];
        let images = ByteImages::new(&case.pixels, &labels, case.config.network.image).unwrap();
        assert_resumable::<VqVae>(&case.config, &images);
    }
    for case in fixture.wide_residual {
        let images =
            ByteImages::new(&case.pixels, &case.labels, case.config.network.image).unwrap();
        assert_resumable::<WideResidual>(&case.config, &images);
    }
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let case = fixture().vqvae.remove(1);
    let labels = vec![0; case.pixels.len() / case.config.network.image_size()];
    let images = ByteImages::new(&case.pixels, &labels, case.config.network.image).unwrap();
    let train = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let mut trainer = Trainer::<VqVae>::new(&case.config, &images, 3, &cpu()).unwrap();
            while trainer.step().unwrap().is_some() {}
            trainer.model().to_safetensors(Precision::Single).unwrap()
        })
    };
    let alone = train(1);
    assert!(alone == train(2) && alone == train(3), "the weights differ");
}

fn small() -> vqvae::NetworkConfig {
    vqvae::NetworkConfig {
        image: [8, 8],
        width: 4,
        codes: 16,
        residual_blocks: 1,
        ..vqvae::NetworkConfig::default()
    }
}

/// A VQ-VAE that was not trained.
fn untrained(network: vqvae::NetworkConfig) -> VqVae {
    let [rows, columns] = network.image;
    let pixels = vec![100; 3 * rows * columns];
    let images = ByteImages::new(&pixels, &[0], network.image).unwrap();
    let config = vqvae::Config { network, ..vqvae::Config::default() };
    Trainer::<VqVae>::new(&config, &images, 0, &cpu()).unwrap().model()
}

#[track_caller]
fn assert_error<T: std::fmt::Debug>(result: Result<T, Error>, expected: &str) {
    assert_eq!(result.unwrap_err().to_string(), expected);
}

#[test]
fn values_that_do_not_fit_are_named() {
    let vqvae = untrained(small());
    assert_error(
        vqvae.encode(&[0.0; 200]),
        "pixels: there are 200, which is no multiple of 3 x 8 x 8 = 192",
    );
    let mut pixels = vec![0.5; 2 * 192];
    pixels[197] = f32::NAN;
    assert_error(vqvae.encode(&pixels), "pixels: value 5 of image 1 is NaN");
    assert_error(vqvae.decode(&[0; 6]), "codes: there are 6, which is no multiple of 2 x 2");
    assert_error(
        vqvae.decode(&[0, 1, 2, 3, 0, 16, 0, 0]),
        "codes: that of position 1 of image 1 is 16, but must be below 16",
    );
    assert!(vqvae.encode(&[]).unwrap().is_empty() && vqvae.decode(&[]).unwrap().is_empty());

    let images = ByteImages::new(&[0; 192], &[0], [8, 8]).unwrap();
    let config = vqvae::Config::default();
    assert_error(
        Trainer::<VqVae>::new(&config, &images, 0, &cpu()),
        "images: are 8 x 8, but the network takes 128 x 128",
    );
    let network = wide_residual::NetworkConfig::small([8, 8], 4);
    let config = wide_residual::Config { network, ..wide_residual::Config::default() };
    let labelled = ByteImages::new(&[0; 384], &[0, 4], [8, 8]).unwrap();
    assert_error(
        Trainer::<WideResidual>::new(&config, &labelled, 0, &cpu()),
        "labels: that of image 1 is 4, but must be below 4",
    );
    assert_error(
        ByteImages::new(&[0; 100], &[0], [8, 8]),
        "pixels: 1 labels need 1 images of 8 x 8 x 3 bytes, but there are 100 bytes",
    );
}

#[test]
fn configurations_that_cannot_be_are_named() {
    let with = |change: &dyn Fn(&mut vqvae::NetworkConfig)| {
        let mut network = small();
        change(&mut network);
        network.check()
    };
    assert!(with(&|_| ()).is_ok());
    assert_error(
        with(&|network| network.image = [8, 10]),
        "image must have sides that are multiples of 4, but has 10",
    );
    assert_error(with(&|network| network.codes = 0), "codes must be from 1 to 65536, but is 0");
    assert_error(
        with(&|network| network.codes = 65_537),
        "codes must be from 1 to 65536, but is 65537",
    );
    assert_error(
        with(&|network| {
            network.codebook = Codebook::Live { decay: 1.0, revive_below: 0.1 };
        }),
        "decay must be at least 0 and below 1, but is 1",
    );
    let with = |change: &dyn Fn(&mut wide_residual::NetworkConfig)| {
        let mut network = wide_residual::NetworkConfig::small([32, 32], 10);
        change(&mut network);
        network.check()
    };
    assert!(with(&|_| ()).is_ok());
    assert_error(with(&|n| n.blocks = vec![]), "blocks must be 1 to 6 stages, but are 0");
    assert_error(
        with(&|n| n.blocks = vec![2, 0]),
        "blocks must be from 1 to 64 in each stage, but are 0",
    );
    assert!(with(&|n| (n.width, n.widening) = (1 << 16, 1 << 16)).is_err());
}

#[test]
fn files_of_other_networks_are_refused() {
    let plain = untrained(small()).to_safetensors(Precision::Single).unwrap();
    let live = untrained(vqvae::NetworkConfig { codebook: Codebook::LIVE, ..small() });
    let live = live.to_safetensors(Precision::Single).unwrap();
    assert!(VqVae::from_safetensors(&plain).is_ok() && VqVae::from_safetensors(&live).is_ok());
    assert!(WideResidual::from_safetensors(&plain).is_err());
    // Cut off, damaged, and with a description that asks for another network.
    for length in 0..plain.len().min(4000) {
        assert!(VqVae::from_safetensors(&plain[..length]).is_err());
    }
    let described = |from: &str, to: &str| {
        assert_eq!(from.len(), to.len());
        let place = plain.windows(from.len()).position(|part| part == from.as_bytes()).unwrap();
        let mut other = plain.clone();
        other[place..][..to.len()].copy_from_slice(to.as_bytes());
        VqVae::from_safetensors(&other)
    };
    assert!(described(r#"\"codes\":16"#, r#"\"codes\":16"#).is_ok());
    assert!(described(r#"\"codes\":16"#, r#"\"codes\":17"#).is_err());
    assert!(described(r#"\"codes\":16"#, r#"\"codes\":99"#).is_err());
    assert!(described(r#"\"width\":4"#, r#"\"width\":9"#).is_err());
    assert!(described(r#"\"image\":[8,8]"#, r#"\"image\":[9,8]"#).is_err());

    let half = untrained(small()).to_safetensors(Precision::Half).unwrap();
    assert!(half.len() < plain.len());
    assert!(VqVae::from_safetensors(&half).is_ok());
}

/// A plain codebook that starts within 1 / K of 0 uses few codes on images that hardly differ; a live one
/// replaces those that are not used.
#[test]
fn live_codebooks_use_more_codes() {
    let pixels: Vec<u8> =
        (0..24 * 192_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    let labels = [0; 24];
    let images = ByteImages::new(&pixels, &labels, [8, 8]).unwrap();
    let used = |codebook: Codebook| {
        let network = vqvae::NetworkConfig { codebook, codes: 32, ..small() };
        let training =
            vqvae::TrainingConfig { batch_size: 8, epochs: 20, ..vqvae::TrainingConfig::default() };
        let config = vqvae::Config { network, training };
        let mut trainer = Trainer::<VqVae>::new(&config, &images, 1, &cpu()).unwrap();
        let mut last = None;
        while let Some(losses) = trainer.run_epoch().unwrap() {
            last = Some(losses.usage);
        }
        let usage = last.unwrap();
        (usage.used(), usage.perplexity())
    };
    let (plain, live) = (used(Codebook::Plain), used(Codebook::LIVE));
    assert!(live.0 > plain.0 && live.1 > plain.1, "{plain:?}, {live:?}");
    assert!(live.0 >= 24, "{live:?}");
}
