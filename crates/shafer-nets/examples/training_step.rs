//! Times a training step of the perceptron autoencoder and its matrix products.
//!
//! `bench/training/run` alternates it with PyTorch. It prints one line of JSON: medians in milliseconds.
#![allow(clippy::print_stdout, reason = "a program for the terminal")]

use std::time::Instant;

use burn::tensor::{Distribution, Tensor};
use shafer_nets::{Config, Cvae, Examples, Optimiser, Trainer, cpu};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const BATCH: usize = 64;
const PIXELS: usize = 784;
const WARM_UP: usize = 100;

fn main() -> Result<(), shafer_nets::Error> {
    let steps = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(300);
    let pixels: Vec<u8> = (0..BATCH * PIXELS).map(|i| (i * 7919 % 256) as u8).collect();
    let labels: Vec<u8> = (0..BATCH as u8).map(|i| i % 2).collect();
    let examples = Examples::new(&pixels, &labels, PIXELS)?;
    let step = |optimiser| {
        let mut config = Config::default();
        config.training.optimiser = optimiser;
        config.training.epochs = WARM_UP + steps;
        let mut trainer = Trainer::<Cvae>::new(&config, examples, 0, &cpu())?;
        median(steps, || trainer.step().map(|_| ()))
    };
    let (sgd, adam) = (step(Optimiser::Sgd)?, step(Optimiser::Adam)?);
    println!(r#"{{"sgd": {sgd:.4}, "adam": {adam:.4}, "products": {:.4}}}"#, products(steps)?);
    Ok(())
}

/// The median time of a call, in milliseconds.
fn median(
    calls: usize,
    mut call: impl FnMut() -> Result<(), shafer_nets::Error>,
) -> Result<f64, shafer_nets::Error> {
    for _ in 0..WARM_UP {
        call()?;
    }
    let mut times = Vec::with_capacity(calls);
    for _ in 0..calls {
        let start = Instant::now();
        call()?;
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    times.sort_by(f64::total_cmp);
    Ok(times[calls / 2])
}

/// The time of all matrix products of a step: for each layer the forward product, the gradient of the
/// weights, and the gradient of the input if it has one.
fn products(calls: usize) -> Result<f64, shafer_nets::Error> {
    let layers = [
        (PIXELS + 2, 256, false),
        (256, 10, true),
        (2, 30, false),
        (30, 10, true),
        (10, 256, true),
        (256, PIXELS, true),
    ];
    let mut total = 0.0;
    for (inputs, outputs, input_gradient) in layers {
        let random = |shape: [usize; 2]| Tensor::<2>::random(shape, Distribution::Default, &cpu());
        let x = random([BATCH, inputs]);
        let weight = random([inputs, outputs]);
        let gradient = random([BATCH, outputs]);
        total += median(calls, || {
            std::hint::black_box(x.clone().matmul(weight.clone()));
            std::hint::black_box(x.clone().transpose().matmul(gradient.clone()));
            if input_gradient {
                std::hint::black_box(gradient.clone().matmul(weight.clone().transpose()));
            }
            Ok(())
        })?;
    }
    Ok(total)
}
