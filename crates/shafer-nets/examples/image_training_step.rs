//! Times a training step of a VQ-VAE and of a wide residual network.
//!
//! `bench/training/run images` runs it in turns with PyTorch. Arguments: the side of the images, the width of
//! the VQ-VAE, the batch size, the number of steps and of threads. It prints one line of JSON: medians in
//! milliseconds.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Instant;

use shafer_nets::training::Model;
use shafer_nets::vqvae::{self, VqVae};
use shafer_nets::wide_residual::{self, WideResidual};
use shafer_nets::{ByteImages, ColourImages, Trainer, cpu};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WARM_UP: usize = 2;
const CLASSES: u16 = 10;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<usize> =
        std::env::args().skip(1).map(|argument| argument.parse()).collect::<Result<_, _>>()?;
    let &[side, width, batch_size, steps, threads] = arguments.as_slice() else {
        return Err("arguments: SIDE WIDTH BATCH_SIZE STEPS THREADS".into());
    };
    let pixels: Vec<u8> =
        (0..batch_size * side * side * 3).map(|i| (i * 7919 % 256) as u8).collect();
    let labels: Vec<u16> = (0..batch_size).map(|i| (i % usize::from(CLASSES)) as u16).collect();
    let images = ByteImages::new(&pixels, &labels, [side, side])?;
    let epochs = WARM_UP + steps;
    let vqvae = vqvae::Config {
        network: vqvae::NetworkConfig { image: [side, side], width, ..Default::default() },
        training: vqvae::TrainingConfig { batch_size, epochs, ..Default::default() },
    };
    let wide_residual = wide_residual::Config {
        network: wide_residual::NetworkConfig::small([side, side], CLASSES.into()),
        training: wide_residual::TrainingConfig { batch_size, epochs, ..Default::default() },
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
    pool.install(|| -> Result<(), shafer_nets::Error> {
        let vqvae = median::<VqVae>(&vqvae, &images)?;
        let wide_residual = median::<WideResidual>(&wide_residual, &images)?;
        println!(r#"{{"vqvae": {vqvae:.3}, "wide_residual": {wide_residual:.3}}}"#);
        Ok(())
    })?;
    Ok(())
}

/// The median time of a step after the first few, in milliseconds.
fn median<M>(config: &M::Config, images: &ByteImages<'_>) -> Result<f64, shafer_nets::Error>
where
    M: for<'a> Model<Examples<'a> = &'a dyn ColourImages>,
{
    let mut trainer = Trainer::<M>::new(config, images, 0, &cpu())?;
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
}
