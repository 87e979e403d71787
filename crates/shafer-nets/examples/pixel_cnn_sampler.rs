//! Times the sampler of the gated PixelCNN beside full passes, at the size of the paper.
//!
//! `bench/sampler/run` runs it beside PyTorch. It writes the weights to the file that is its argument, and
//! prints one line of JSON; times are in seconds, minima over the turns.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Instant;

use rayon::prelude::*;
use shafer::Method;
use shafer_nets::Precision;
use shafer_nets::pixel_cnn::{PixelCnn, PixelCnnConfig, Sampler, Samples, Sampling};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const IMAGES: usize = 25;

/// The side and the number of the grids that full passes draw to the end.
const COMPLETE: usize = 8;
const COMPLETE_IMAGES: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let weights = arguments.next().ok_or("usage: pixel_cnn_sampler WEIGHTS [TURNS] [POSITIONS]")?;
    let turns: usize = arguments.next().map_or(Ok(3), |n| n.parse())?;
    let positions: usize = arguments.next().map_or(Ok(4), |n| n.parse())?;

    let config = PixelCnnConfig::default();
    let prior = PixelCnn::untrained(&config, 0)?;
    std::fs::write(&weights, prior.to_safetensors(Precision::Single)?)?;
    let sampler = Sampler::new(&prior);
    let sampling = Sampling { method: Method::EVIDENTIAL, seed: 1, first_image: 0, mask: None };
    let classes: Vec<u16> = (0..IMAGES as u16).collect();

    let (mut fast, mut full, mut samples) = (f64::MAX, f64::MAX, Samples::default());
    for _ in 0..turns {
        let start = Instant::now();
        samples = sampler.sample(&classes, &sampling)?;
        fast = fast.min(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let plain = by_full_passes(&prior, &classes, sampling, positions)?;
        full = full.min(start.elapsed().as_secs_f64());
        let all = config.positions();
        let grids = plain.chunks_exact(all).zip(samples.codes.chunks_exact(all));
        for (plain, codes) in grids {
            assert_eq!(plain[..positions], codes[..positions], "the codes differ");
        }
    }
    let complete = assert_complete_grids_agree(&config, &classes[..COMPLETE_IMAGES], sampling)?;
    let result = serde_json::json!({
        "images": IMAGES,
        "complete_side": COMPLETE,
        "complete_codes": complete,
        "positions": config.positions(),
        "layers": config.layers,
        "width": config.width,
        "threads": rayon::current_num_threads(),
        "turns": turns,
        "sampler_seconds": fast,
        "full_pass_positions": positions,
        "full_pass_seconds": full / positions as f64,
        "classes": classes,
        // For the other side to compare: the first image, and its first and last logits.
        "codes": samples.codes[..config.positions()],
        "logits": ends(&prior, &samples.codes[..config.positions()])?,
    });
    println!("{result}");
    Ok(())
}

/// A share of the images on each thread.
fn by_full_passes(
    prior: &PixelCnn,
    classes: &[u16],
    sampling: Sampling<'_>,
    positions: usize,
) -> Result<Vec<u16>, shafer_nets::Error> {
    let share = classes.len().div_ceil(rayon::current_num_threads());
    let shares = classes.par_chunks(share).enumerate().map(|(i, classes)| {
        let sampling = Sampling { first_image: (i * share) as u32, ..sampling };
        prior.sample_by_full_passes(classes, &sampling, positions).map(|samples| samples.codes)
    });
    Ok(shares.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Smaller grids with the same layers, drawn to the end by both. Returns the number of codes.
fn assert_complete_grids_agree(
    config: &PixelCnnConfig,
    classes: &[u16],
    sampling: Sampling<'_>,
) -> Result<usize, shafer_nets::Error> {
    let config = PixelCnnConfig { latent: [COMPLETE; 2], ..config.clone() };
    let prior = PixelCnn::untrained(&config, 0)?;
    let fast = Sampler::new(&prior).sample(classes, &sampling)?.codes;
    let plain = by_full_passes(&prior, classes, sampling, config.positions())?;
    assert_eq!(fast, plain, "the codes differ");
    Ok(fast.len())
}

fn ends(prior: &PixelCnn, codes: &[u16]) -> Result<[Vec<f32>; 2], shafer_nets::Error> {
    let all: Vec<f32> = prior.logits(codes, &[0])?.flatten().collect();
    let size = prior.config().codes;
    Ok([all[..size].to_vec(), all[all.len() - size..].to_vec()])
}
