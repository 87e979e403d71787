//! Times training steps of a network of the paper at full size, the preset `paper` on miniImageNet.
//!
//! `bench/training/run paper` runs it and measures its memory. Arguments: `vqvae`, `prior` or `classifier`, and the
//! number of steps. It prints one line of JSON: the seconds of each step, the loss after each and the threads.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Instant;

use shafer_nets::pixel_cnn::{CodeGrids, PixelCnn, PixelCnnTraining};
use shafer_nets::training::{Losses, Model};
use shafer_nets::vqvae::{self, VqVae};
use shafer_nets::wide_residual::{self, WideResidual};
use shafer_nets::{ByteImages, Trainer, cpu};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let usage = "arguments: vqvae | prior | classifier, STEPS";
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [stage, steps] = arguments.as_slice() else { return Err(usage.into()) };
    let steps: usize = steps.parse()?;
    // Whole batches only: each epoch is one step.
    match stage.as_str() {
        "vqvae" => {
            let mut config = vqvae::Config::default();
            config.training.epochs = steps;
            let (pixels, labels) = pixels(config.network.image, config.training.batch_size);
            let images = ByteImages::new(&pixels, &labels, config.network.image)?;
            time::<VqVae>(&config, &images)
        }
        "prior" => {
            let config = PixelCnnTraining { epochs: steps, ..PixelCnnTraining::default() };
            let network = &config.network;
            let count = config.batch_size * network.positions();
            let codes: Vec<u16> = (0..count).map(|i| (i * 7919 % network.codes) as u16).collect();
            let classes: Vec<u16> =
                (0..config.batch_size).map(|i| (i % network.classes) as u16).collect();
            time::<PixelCnn>(&config, CodeGrids::new(&codes, &classes))
        }
        "classifier" => {
            let mut config = wide_residual::Config::default();
            config.training.epochs = steps;
            let (pixels, labels) = pixels(config.network.image, config.training.batch_size);
            let images = ByteImages::new(&pixels, &labels, config.network.image)?;
            time::<WideResidual>(&config, &images)
        }
        _ => Err(usage.into()),
    }
}

/// Made-up images of 64 classes.
fn pixels([rows, columns]: [usize; 2], count: usize) -> (Vec<u8>, Vec<u16>) {
    let pixels = (0..count * rows * columns * 3).map(|i| (i * 7919 % 256) as u8).collect();
    (pixels, (0..count as u16).map(|i| i % 64).collect())
}

/// Trains to the end.
fn time<M: Model>(
    config: &M::Config,
    examples: M::Examples<'_>,
) -> Result<(), Box<dyn std::error::Error>> {
    let mut trainer = Trainer::<M>::new(config, examples, 0, &cpu())?;
    let (mut seconds, mut losses) = (Vec::new(), Vec::new());
    loop {
        let start = Instant::now();
        let Some(step) = trainer.step()? else { break };
        seconds.push(start.elapsed().as_secs_f64());
        losses.push(step.losses.total());
    }
    let threads = rayon::current_num_threads();
    println!("{}", serde_json::json!({ "seconds": seconds, "losses": losses, "threads": threads }));
    Ok(())
}
