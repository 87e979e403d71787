//! Synthetic trainings for tests, similar to the paper's.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use anyhow::Result;

use super::aggregate::{Evaluation, Meta};
use super::record::{Checkpoint, Judgement, LatentClass, Losses, SeedRecord};
use super::results::{ImageResults, TargetFrom};
use crate::drawing::Image;
use crate::experiments::origin::Origin;

const CLASSES: usize = 10;

/// Pseudo-random numbers in [0, 1).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as f64 / f64::from(1_u32 << 31)
    }
}

pub(crate) fn meta() -> Meta {
    Meta {
        data_set: "mnist".to_owned(),
        queries: ["even", "odd"].map(str::to_owned).into(),
        origin: Origin {
            config: serde_json::json!({ "epochs": 20, "batch": 64, "optimiser": { "sgd": 0.001 } }),
            machine: "a made-up machine, 2 cores".to_owned(),
            revision: "0123456789abcdef".to_owned(),
            wall_seconds: 1234.5,
        },
        target: TargetFrom::LastCheckpoint,
        exemplar: None,
        samples: 25,
    }
}

/// A training whose prior grows from indifference to its modes: even classes answer to the first
/// query, odd ones to the second, and one of them to both.
pub(crate) fn record(seed: u64, fraction: f64, checkpoints: usize) -> SeedRecord {
    let mut numbers = Numbers(seed.wrapping_mul(977).wrapping_add((fraction * 100.0) as u64));
    for _ in 0..5 {
        numbers.next();
    }
    let strength: Vec<[f64; 2]> = (0..CLASSES)
        .map(|class| {
            let mine = class % 2;
            let shared = if class == 4 { 1.5 } else { 0.0 };
            std::array::from_fn(|query| {
                if query == mine {
                    1.0 + 1.6 * numbers.next()
                } else {
                    shared - 1.2 * numbers.next()
                }
            })
        })
        .collect();
    let checkpoints = (0..checkpoints)
        .map(|point| {
            let progress = 1.0 - (-3.0 * fraction * (point as f64) / checkpoints as f64).exp();
            let mut row = |query: usize| {
                let logit = |s: &[f64; 2]| (progress * s[query] + 0.25 * numbers.next()) as f32;
                strength.iter().map(logit).collect()
            };
            Checkpoint { iteration: 100 * point as u64, logits: vec![row(0), row(1)] }
        })
        .collect();
    SeedRecord {
        seed,
        fraction,
        collapsed: false,
        diverged: false,
        steps: 18_760,
        wall_seconds: 41.25,
        losses: Losses { total: Some(141.0), reconstruction: Some(139.5), kl: Some(1.5) },
        checkpoints,
        latents: (fraction == 1.0).then(latents),
    }
}

/// Class k as an image of k + 1 dots on a grey slope.
fn latents() -> Vec<LatentClass> {
    let image = |class: usize| {
        let pixel = |place: usize| {
            let (row, column) = (place / 28, place % 28);
            let dot = (row / 7) * 4 + column / 7;
            let inside = (2..5).contains(&(row % 7)) && (2..5).contains(&(column % 7));
            if dot <= class && inside { 255 } else { (row * 3) as u8 }
        };
        Image::grey(28, (0..784).map(pixel).collect()).unwrap()
    };
    let judged = |class: usize| Some(Judgement { label: class.to_string(), query: class % 2 });
    (0..CLASSES).map(|class| LatentClass { image: image(class), judged: judged(class) }).collect()
}

/// A whole experiment, with a collapsed seed, a diverged one, and reduced data.
pub(crate) fn records() -> Vec<SeedRecord> {
    let mut records: Vec<SeedRecord> = (1..=8).map(|seed| record(seed, 1.0, 40)).collect();
    records[2].collapsed = true;
    for checkpoint in &mut records[2].checkpoints {
        for row in &mut checkpoint.logits {
            row.fill(0.0);
            row[7] = 1.0 + 0.05 * (checkpoint.iteration as f32).sqrt();
        }
    }
    records[5].diverged = true;
    records[5].checkpoints.truncate(3);
    records[5].losses = Losses::default();
    for fraction in [0.1, 0.5, 0.75] {
        records.extend((1..=5).map(|seed| record(seed, fraction, 3)));
    }
    records
}

pub(crate) fn results() -> ImageResults {
    of_records(&meta(), &records()).unwrap()
}

pub(crate) fn of_records(meta: &Meta, records: &[SeedRecord]) -> Result<ImageResults> {
    Evaluation::new(meta, records)?.results()
}
