//! The networks of the experiments, and their training.
//!
//! Tensors in, tensors out: this crate knows no data set and no path. It has the networks of the paper:
//!
//! - conditional variational autoencoders with one categorical latent variable, of section 3.1.1 and
//!   appendices C to G ([`Cvae`]), and a classifier that judges their images ([`Classifier`]);
//! - a VQ-VAE ([`vqvae`]), the gated PixelCNN over its codes ([`pixel_cnn`]) and a wide residual network that
//!   judges the sampled images ([`wide_residual`]), of section 3.1.2;
//! - the trajectory predictor for pedestrians of section 3.2 ([`behaviour`]).
//!
//! One [`Trainer`] trains all of them. They run on burn, on the CPU or on a GPU.
//!
//! # Example
//!
//! A training on two kinds of tiny images, stopped half-way and resumed:
//!
//! ```
//! use shafer_nets::{
//!     Architecture, Config, Cvae, Examples, NetworkConfig, Trainer, TrainingConfig, cpu,
//! };
//!
//! let pixels: Vec<u8> = (0..96).flat_map(|i| [if i % 2 == 1 { 250 } else { 10 }; 16]).collect();
//! let conditions: Vec<u8> = (0..96).map(|i| i % 2).collect();
//! let examples = Examples::new(&pixels, &conditions, 16)?;
//! let config = Config {
//!     network: NetworkConfig {
//!         architecture: Architecture::Mlp { hidden: 8 },
//!         image: [4, 4],
//!         latent_classes: 3,
//!         ..NetworkConfig::default()
//!     },
//!     training: TrainingConfig { batch_size: 32, epochs: 2, ..TrainingConfig::default() },
//! };
//!
//! let mut trainer = Trainer::<Cvae>::new(&config, examples, 7, &cpu())?;
//! while let Some(step) = trainer.step()? {
//!     if config.training.checkpoints.is_at(step.epoch, step.batch, trainer.batches_per_epoch()) {
//!         let prior = trainer.model().prior(); // W, b and phi of every condition.
//!         assert_eq!(prior.logits(0)?.len(), 3);
//!     }
//!     if step.iteration == 1 {
//!         break; // Stopped,
//!     }
//! }
//! let saved = trainer.save()?;
//! let mut trainer = Trainer::<Cvae>::resume(&config, examples, 7, &cpu(), &saved)?; // and resumed.
//! while let Some(losses) = trainer.run_epoch()? {
//!     assert!(losses.reconstruction > 0.0);
//! }
//!
//! let cvae = trainer.model();
//! assert_eq!(cvae.decode().len(), 3 * 16); // The image of every latent class.
//! let diagnosis = cvae.diagnose(examples)?;
//! assert!(diagnosis.information <= diagnosis.kl + 1e-6);
//! # Ok::<(), shafer_nets::Error>(())
//! ```
//!
//! # Contents
//!
//! | for | items |
//! |---|---|
//! | autoencoders | [`Cvae`], [`Losses`], [`PriorSnapshot`]: the paper's linear layer and its features; [`Diagnosis`] of posterior collapse |
//! | their configuration | [`Config`]: [`NetworkConfig`] ([`Architecture`]) and [`TrainingConfig`] ([`DecoderBias`], [`Objective`], [`Optimiser`], [`Checkpoints`]) |
//! | judging images | [`Classifier`], [`ClassifierConfig`] |
//! | images as grids of codes | [`vqvae`]; [`ColourImages`], [`ByteImages`] |
//! | judging such images | [`wide_residual`] |
//! | pedestrians | [`behaviour`]: a predictor and its metrics |
//! | grids of codes | [`pixel_cnn`]: a gated PixelCNN and its sampler |
//! | data | [`Examples`]: images of bytes with labels, borrowed |
//! | training | [`Trainer`], [`Step`]; [`training::Model`] for a network of your own |
//! | devices | [`device()`], [`cpu`], [`Device`] |
//! | files | [`Net`]: a network that is written to a file, with the [`Precision`] of its weights |
//! | errors | [`Error`], [`Result`] |
//!
//! # Reproducibility
//!
//! On the CPU, the same seed gives the same bits. Every random number is a function of the seed, its
//! purpose and its position (the layer, the epoch or the iteration), so there is no generator whose state
//! could be lost. Small networks are trained on one thread, and many trainings can run side by side, one for
//! each core. Networks of convolutions ([`vqvae`], [`wide_residual`]) use the threads of the current rayon
//! pool: `ThreadPool::install` limits them. The number of threads changes no result. Another processor may
//! round differently. [`device()`] says what holds on a GPU.
//!
//! # Speed
//!
//! `bench/training/run` times a training step beside PyTorch's. About two thirds of it are matrix
//! products. The loss, the recurrent cells and the optimisers are fused: one loop over memory each instead
//! of a chain of tensor operations. A program that trains should use an allocator that keeps its memory,
//! such as mimalloc, since every step allocates and frees tensors.
//!
//! # Features
//!
//! `gpu` adds the device `gpu`: burn's wgpu backend on Vulkan. It is experimental and off by default: 110
//! more crates, and 25 minutes of CPU time to compile. `cargo xtask gpu` compares it with the CPU.

pub mod behaviour;
pub mod pixel_cnn;
pub mod training;
pub mod vqvae;
pub mod wide_residual;

mod batch_norm;
mod channels_last;
mod classifier;
mod colour_images;
mod config;
mod convolution;
mod cvae;
mod device;
mod diagnosis;
mod error;
mod examples;
mod fused;
mod layers;
mod net;
mod network;
mod optimiser;
mod prior;
mod random;
mod recurrent;
mod schedule;
mod weights;

pub use burn::tensor::Device;
pub use classifier::{Classifier, ClassifierConfig};
pub use colour_images::{ByteImages, ColourImages};
pub use config::{
    Architecture, Checkpoints, Config, DecoderBias, NetworkConfig, Objective, Optimiser, Setup,
    TrainingConfig,
};
pub use cvae::{Cvae, Losses};
pub use device::{cpu, device};
pub use diagnosis::Diagnosis;
pub use error::{Error, Result};
pub use examples::Examples;
pub use net::{Net, Parameters};
pub use prior::PriorSnapshot;
pub use training::{Step, Trainer};
pub use weights::Precision;
