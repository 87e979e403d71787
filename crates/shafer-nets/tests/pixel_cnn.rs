//! The gated PixelCNN and its sampler: against PyTorch, and against full passes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::collections::BTreeMap;

use common::{Parameter, assert_parameters};
use serde::Deserialize;
use shafer::Method;
use shafer_nets::pixel_cnn::{
    CodeGrids, PixelCnn, PixelCnnConfig, PixelCnnTraining, Sampler, Sampling,
};
use shafer_nets::{Precision, Trainer, cpu};

#[derive(Deserialize)]
struct Case {
    name: String,
    seed: u64,
    config: PixelCnnConfig,
    codes: Vec<u16>,
    classes: Vec<u16>,
    logits: Vec<f32>,
    learning_rate: f64,
    losses: Vec<f64>,
    parameters: BTreeMap<String, Parameter>,
}

fn cases() -> Vec<Case> {
    let cases: Vec<Case> = serde_json::from_str(include_str!("fixtures/pixel_cnn.json")).unwrap();
    assert_eq!(cases.len(), 2);
    cases
}

/// From the seed alone: initial parameters and a pass.
#[test]
fn logits_are_those_of_pytorch() {
    for case in cases() {
        let prior = PixelCnn::untrained(&case.config, case.seed).unwrap();
        let found: Vec<f32> = prior.logits(&case.codes, &case.classes).unwrap().flatten().collect();
        assert_eq!(found.len(), case.logits.len());
        for (found, expected) in found.iter().zip(&case.logits) {
            assert!((found - expected).abs() < 1e-5, "{}: {found}, not {expected}", case.name);
        }
        let loss = prior.negative_log_likelihood(&case.codes, &case.classes).unwrap();
        assert!((loss / case.losses[0] - 1.0).abs() < 1e-5, "{}: {loss}", case.name);
    }
}

/// Losses, gradients and Adam's updates, each step on all grids.
#[test]
fn trainings_are_those_of_pytorch() {
    for case in cases() {
        let training = PixelCnnTraining {
            network: case.config,
            learning_rate: case.learning_rate,
            batch_size: case.classes.len(),
            epochs: case.losses.len(),
        };
        let grids = CodeGrids::new(&case.codes, &case.classes);
        let mut trainer = Trainer::<PixelCnn>::new(&training, grids, case.seed, &cpu()).unwrap();
        for expected in case.losses {
            let found = trainer.step().unwrap().unwrap().losses.cross_entropy;
            assert!((found / expected - 1.0).abs() < 1e-5, "{}: {found}", case.name);
        }
        assert!(trainer.is_finished());
        let bytes = trainer.model().to_safetensors(Precision::Single).unwrap();
        assert_parameters(&bytes, &case.parameters, &case.name);
    }
}

#[test]
fn a_killed_training_resumes_to_the_same_bits() {
    let network = small([3, 4]);
    let codes: Vec<u16> = (0..7 * 12).map(|i| i * 13 % 40).collect();
    let classes = [0, 1, 2, 0, 1, 2, 0];
    let grids = CodeGrids::new(&codes, &classes);
    let training =
        PixelCnnTraining { network, batch_size: 3, epochs: 3, ..PixelCnnTraining::default() };
    let new = || Trainer::<PixelCnn>::new(&training, grids, 1, &cpu()).unwrap();
    let finish = |mut trainer: Trainer<'_, PixelCnn>| {
        while trainer.step().unwrap().is_some() {}
        trainer.save().unwrap()
    };
    let end = finish(new());
    for steps in [0, 2, 3, 8] {
        let mut killed = new();
        (0..steps).for_each(|_| assert!(killed.step().unwrap().is_some()));
        let saved = killed.save().unwrap();
        let resume = |grids| Trainer::<PixelCnn>::resume(&training, grids, 1, &cpu(), &saved);
        assert!(finish(resume(grids).unwrap()) == end, "killed after {steps} steps");
        let mut other = codes.clone();
        other[80] ^= 1;
        let error = resume(CodeGrids::new(&other, &classes)).unwrap_err().to_string();
        assert_eq!(error, "the saved training has other examples");
    }
    // One thread or several: the same bits.
    let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
    assert!(pool.install(|| finish(new())) == end);
    let mut bad = codes.clone();
    bad[13] = 40;
    let error = Trainer::<PixelCnn>::new(&training, CodeGrids::new(&bad, &classes), 1, &cpu());
    assert_eq!(
        error.unwrap_err().to_string(),
        "codes: grid 1 has 40 at position 1, but codes must be below 40",
    );
}

fn small(latent: [usize; 2]) -> PixelCnnConfig {
    PixelCnnConfig { codes: 40, classes: 3, latent, layers: 3, width: 16, head_width: 24 }
}

/// Changing a code never changes the logits of a position before it, or of its own; and it changes those
/// behind it that see it.
#[test]
fn no_logit_depends_on_a_later_code() {
    let config = small([5, 7]);
    let positions = config.positions();
    let prior = PixelCnn::untrained(&config, 1).unwrap();
    let codes: Vec<u16> = (0..positions as u16).map(|i| i * 11 % 40).collect();
    let logits = |codes: &[u16]| prior.logits(codes, &[1]).unwrap().next().unwrap();
    let before = logits(&codes);
    for changed in 0..positions {
        let mut codes = codes.clone();
        codes[changed] = (codes[changed] + 1) % 40;
        let after = logits(&codes);
        let (row, column) = (changed / 7, changed % 7);
        for (position, (before, after)) in
            before.chunks_exact(40).zip(after.chunks_exact(40)).enumerate()
        {
            let same = before == after;
            assert!(same || position > changed, "{changed} changes {position}");
            // The first layer sees three positions in the row, and three rows above, three to each side.
            let (below, right) = (position / 7 - row.min(position / 7), position % 7);
            let seen = if position / 7 == row {
                (1..=3).contains(&(right as isize - column as isize))
            } else {
                position > changed && below <= 3 && right.abs_diff(column) <= 3
            };
            assert!(!same || !seen, "{changed} does not change {position}");
        }
    }
}

#[test]
fn logits_depend_on_the_class_and_on_no_other_grid() {
    let config = small([4, 4]);
    let prior = PixelCnn::untrained(&config, 2).unwrap();
    let codes: Vec<u16> = (0..3 * 16).map(|i| i * 7 % 40).collect();
    let together: Vec<Vec<f32>> = prior.logits(&codes, &[0, 1, 2]).unwrap().collect();
    for (i, codes) in codes.chunks_exact(16).enumerate() {
        let alone: Vec<Vec<f32>> = prior.logits(codes, &[i as u16]).unwrap().collect();
        assert_eq!(alone, [together[i].clone()]);
        let other = prior.logits(codes, &[(i as u16 + 1) % 3]).unwrap().next().unwrap();
        assert!(other.iter().zip(&together[i]).all(|(a, b)| a != b));
    }
}

#[test]
fn the_sampler_draws_the_codes_of_full_passes() {
    let methods = [
        Method::SOFTMAX,
        Method::EVIDENTIAL,
        Method::evidential(2).unwrap(),
        Method::SPARSEMAX,
        Method::sparsegen_lin(0.5).unwrap(),
        Method::sparsegen_hg(0.5).unwrap(),
        Method::entmax(1.5).unwrap(),
        Method::top_k(5).unwrap(),
        Method::top_p(0.9).unwrap(),
        Method::min_p(0.1).unwrap(),
        Method::top_n_sigma(1.0).unwrap(),
    ];
    for (latent, classes) in
        [([8, 8], vec![0, 1, 2, 0, 1]), ([3, 9], vec![2]), ([1, 1], vec![0, 1])]
    {
        let config = small(latent);
        let prior = PixelCnn::untrained(&config, 3).unwrap();
        let sampler = Sampler::new(&prior);
        for method in methods {
            for seed in 0..3 {
                let sampling = Sampling { method, seed, first_image: 7, mask: None };
                let found = sampler.sample(&classes, &sampling).unwrap();
                let expected =
                    prior.sample_by_full_passes(&classes, &sampling, usize::MAX).unwrap();
                assert_eq!(found, expected, "{method:?}, {latent:?}, seed {seed}");
            }
        }
    }
}

#[test]
fn the_sampler_draws_the_codes_of_full_passes_on_16_x_16() {
    let config = PixelCnnConfig { codes: 128, ..small([16, 16]) };
    let prior = PixelCnn::untrained(&config, 4).unwrap();
    let sampler = Sampler::new(&prior);
    for method in [Method::SOFTMAX, Method::EVIDENTIAL] {
        let sampling = Sampling { method, seed: 5, first_image: 0, mask: None };
        let found = sampler.sample(&[0, 2], &sampling).unwrap();
        assert_eq!(found, prior.sample_by_full_passes(&[0, 2], &sampling, 256).unwrap());
        // Images of a few codes would show little.
        let mut codes = found.codes;
        codes.sort_unstable();
        codes.dedup();
        assert!(codes.len() > 50, "{} codes", codes.len());
    }
}

#[test]
fn samples_do_not_depend_on_batches_or_threads() {
    let config = small([6, 5]);
    let sampler = Sampler::new(&PixelCnn::untrained(&config, 5).unwrap());
    let classes: Vec<u16> = (0..70).map(|i| i % 3).collect();
    let sample = |classes: &[u16], first_image| {
        let sampling = Sampling { method: Method::EVIDENTIAL, seed: 9, first_image, mask: None };
        sampler.sample(classes, &sampling).unwrap()
    };
    let all = sample(&classes, 0);
    for threads in [1, 2, 3, 5] {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        assert_eq!(pool.install(|| sample(&classes, 0)), all, "{threads} threads");
    }
    let (first, second) = (sample(&classes[..31], 0), sample(&classes[31..], 31));
    assert_eq!([first.codes, second.codes].concat(), all.codes);
    // Images of a class are not all the same.
    let images: Vec<&[u16]> = all.codes.chunks_exact(30).collect();
    assert!((3..70).all(|i| images[i] != images[i % 3]));
}

#[test]
fn kept_codes_and_their_mass_are_those_of_the_logits() {
    let config = small([4, 4]);
    let prior = PixelCnn::untrained(&config, 6).unwrap();
    let sampling = Sampling { method: Method::EVIDENTIAL, seed: 1, first_image: 0, mask: None };
    let samples = Sampler::new(&prior).sample(&[2, 1], &sampling).unwrap();
    let logits: Vec<f32> = prior.logits(&samples.codes, &[2, 1]).unwrap().flatten().collect();
    for (position, logits) in logits.chunks_exact(40).enumerate() {
        let logits: Vec<f64> = logits.iter().copied().map(f64::from).collect();
        let mean = logits.iter().sum::<f64>() / 40.0;
        let kept: Vec<f64> = logits.iter().copied().filter(|&l| l > mean).collect();
        assert_eq!(samples.kept[position] as usize, kept.len());
        let sum = |logits: &[f64]| logits.iter().map(|l| l.exp()).sum::<f64>();
        let expected = sum(&kept) / sum(&logits);
        assert!((f64::from(samples.mass[position]) - expected).abs() < 1e-5);
        assert!(logits[usize::from(samples.codes[position])] > mean);
    }
}

#[test]
fn no_image_at_all() {
    let prior = PixelCnn::untrained(&small([2, 2]), 0).unwrap();
    let sampling = Sampling { method: Method::SOFTMAX, seed: 0, first_image: 0, mask: None };
    assert!(Sampler::new(&prior).sample(&[], &sampling).unwrap().codes.is_empty());
    assert!(prior.sample_by_full_passes(&[], &sampling, 4).unwrap().codes.is_empty());
    assert_eq!(prior.logits(&[], &[]).unwrap().count(), 0);
    assert!(prior.negative_log_likelihood(&[], &[]).is_err());
    let far = Sampling { first_image: u32::MAX, ..sampling };
    assert!(Sampler::new(&prior).sample(&[0, 0], &far).is_err());
    let error = Sampler::new(&prior).sample(&[0, 3], &sampling).unwrap_err();
    assert_eq!(error.to_string(), "classes: that of grid 1 is 3, but must be below 3");
}

#[test]
fn files_come_back_and_bad_ones_are_errors() {
    let config = small([4, 4]);
    let prior = PixelCnn::untrained(&config, 8).unwrap();
    let bytes = prior.to_safetensors(Precision::Single).unwrap();
    let again = PixelCnn::from_safetensors(&bytes).unwrap();
    assert_eq!(again.config(), &config);
    let logits = |prior: &PixelCnn| prior.logits(&[3; 16], &[2]).unwrap().next().unwrap();
    assert_eq!(logits(&again), logits(&prior));
    assert!(prior.to_safetensors(Precision::Half).unwrap().len() < bytes.len() / 2 + 4096);

    let message = |bytes: &[u8]| PixelCnn::from_safetensors(bytes).unwrap_err().to_string();
    assert!(message(&bytes[..bytes.len() / 2]).contains("not a safetensors file"));
    let replaced = |from: &str, to: &str| {
        let text = bytes.iter().map(|&byte| char::from(byte)).collect::<String>();
        let text = text.replacen(from, to, 1);
        text.chars().map(|c| c as u8).collect::<Vec<u8>>()
    };
    let other = message(&replaced(r#"\"layers\":3"#, r#"\"layers\":4"#));
    assert!(other.contains("its description says"), "{other}");
    let other = message(&replaced(r#"\"width\":16"#, r#"\"width\":00"#));
    assert!(!other.is_empty());
    let prior = PixelCnn::untrained(&PixelCnnConfig { layers: 0, ..config }, 0);
    assert_eq!(prior.unwrap_err().to_string(), "layers must be from 1 to 65536, but is 0");
}

#[test]
fn masked_codes_are_never_drawn() {
    let config = small([4, 4]);
    let sampler = Sampler::new(&PixelCnn::untrained(&config, 6).unwrap());
    let mask: Vec<bool> = (0..40).map(|code| code % 5 == 3).collect();
    let sampling = Sampling { method: Method::SOFTMAX, seed: 1, first_image: 0, mask: Some(&mask) };
    let classes: Vec<u16> = (0..30).map(|i| i % 3).collect();
    let samples = sampler.sample(&classes, &sampling).unwrap();
    assert!(samples.codes.iter().all(|code| code % 5 == 3));
    assert!(samples.kept.iter().all(|&kept| kept == 8));
    assert!(samples.mass.iter().all(|&mass| mass < 0.5));
    let fewer =
        sampler.sample(&classes, &Sampling { method: Method::EVIDENTIAL, ..sampling }).unwrap();
    assert!(fewer.kept.iter().all(|&kept| kept < 8));
    for mask in [&[true; 39][..], &[false; 40]] {
        let error = sampler.sample(&[0], &Sampling { mask: Some(mask), ..sampling }).unwrap_err();
        assert!(
            error.to_string().starts_with("mask: must have 40 values, at least one"),
            "{error}"
        );
    }
}
