//! Times a training step of the gated PixelCNN.
//!
//! `bench/training/run codes` runs it in turns with PyTorch. Arguments: the side of the grids, layers, width,
//! the batch size, the number of steps and of threads. It prints one line of JSON: the median in milliseconds.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Instant;

use shafer_nets::pixel_cnn::{CodeGrids, PixelCnn, PixelCnnConfig, PixelCnnTraining};
use shafer_nets::{Trainer, cpu};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WARM_UP: usize = 2;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let &[side, layers, width, batch_size, steps, threads] = arguments.as_slice() else {
        return Err("arguments: SIDE LAYERS WIDTH BATCH_SIZE STEPS THREADS".into());
    };
    let network = PixelCnnConfig {
        latent: [side, side],
        layers,
        width,
        classes: 10,
        ..PixelCnnConfig::default()
    };
    let codes: Vec<u16> =
        (0..batch_size * side * side).map(|i| (i * 7919 % network.codes) as u16).collect();
    let classes: Vec<u16> = (0..batch_size).map(|i| (i % 10) as u16).collect();
    let training = PixelCnnTraining {
        network,
        batch_size,
        epochs: WARM_UP + steps,
        ..PixelCnnTraining::default()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    let median = pool.install(|| -> Result<f64, shafer_nets::Error> {
        let grids = CodeGrids::new(&codes, &classes);
        let mut trainer = Trainer::<PixelCnn>::new(&training, grids, 0, &cpu())?;
        let mut times = Vec::new();
        loop {
            let start = Instant::now();
            if trainer.step()?.is_none() {
                break;
            }
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
        let mut times = times.split_off(WARM_UP);
        times.sort_by(f64::total_cmp);
        Ok(times[times.len() / 2])
    })?;
    println!(r#"{{"milliseconds": {median:.3}}}"#);
    Ok(())
}
