//! The networks of the experiments, and their training.
//!
//! Tensors in, tensors out: this crate knows no data set and no path. It has the conditional
//! variational autoencoders of the paper's section 3.1.1 and appendices C to G ([`Cvae`]: perceptrons or
//! convolutions around one categorical latent variable), their training ([`Trainer`]), and a classifier
//! that judges what they generate ([`Classifier`]); and the predictor of pedestrians of section 3.2
//! ([`behaviour`]). They run on burn, on the CPU.
//!
//! # Example
//!
//! A training on two kinds of tiny images, killed half-way and resumed:
//!
//! ```
//! use shafer_nets::{Architecture, Config, Examples, NetworkConfig, TrainingConfig, Trainer};
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
//! let mut trainer = Trainer::new(&config, examples, 7)?;
//! while let Some(step) = trainer.step()? {
//!     if step.checkpoint {
//!         let prior = trainer.prior_snapshot(); // W, b and phi of every condition.
//!         assert_eq!(prior.logits(0)?.len(), 3);
//!     }
//!     if step.epoch == 0 && step.batch == 1 {
//!         break; // Killed,
//!     }
//! }
//! let saved = trainer.save()?;
//! let mut trainer = Trainer::resume(&config, examples, 7, &saved)?; // and resumed.
//! while let Some(epoch) = trainer.run_epoch()? {
//!     assert!(epoch.losses.reconstruction > 0.0);
//! }
//!
//! let cvae = trainer.cvae();
//! assert_eq!(cvae.decode().len(), 3 * 16); // The image of every latent class.
//! let diagnosis = cvae.diagnose(examples)?;
//! assert!(diagnosis.information <= diagnosis.kl + 1e-6);
//! # Ok::<(), shafer_nets::Error>(())
//! ```
//!
//! # What is here
//!
//! | for | items |
//! |---|---|
//! | configuration | [`Config`]: [`NetworkConfig`] ([`Architecture`]) and [`TrainingConfig`] ([`DecoderBias`], [`Objective`], [`Optimiser`], [`Checkpoints`]) |
//! | data | [`Examples`]: images of bytes with labels, borrowed |
//! | training | [`Trainer`]; [`Step`], [`Epoch`], [`Losses`], [`Checkpoint`] |
//! | what was trained | [`Cvae`]; [`PriorSnapshot`]: the paper's linear layer and its features; [`Precision`] of stored weights |
//! | posterior collapse | [`Diagnosis`] |
//! | judging images | [`Classifier`], [`ClassifierConfig`] |
//! | where pedestrians go | [`behaviour`]: a predictor, its training and its metrics |
//! | grids of codes | [`pixel_cnn`]: a gated PixelCNN and its sampler |
//! | what can go wrong | [`Error`], [`Result`] |
//!
//! # Same seed, same bits
//!
//! Every random number is a function of the seed, its purpose and its position (the layer, the epoch
//! or the iteration), so there is no generator whose state could be lost. A training uses one thread.
//! Many of them can run side by side, on as many threads as there are cores: that is the faster use of a
//! machine at these sizes, and it changes no result. Another processor may round otherwise.
//!
//! # Speed
//!
//! `bench/training/run` times a training step beside PyTorch's. About two thirds of it are matrix
//! products. The loss, the recurrent cells and the optimisers are fused: one loop over memory each, in `fused/`, instead of
//! a chain of tensor operations. A program that trains should use an allocator that keeps its memory,
//! such as mimalloc: tensors come and go in every step.

pub mod behaviour;
pub mod pixel_cnn;

mod classifier;
mod config;
mod convolution;
mod cvae;
mod diagnosis;
mod error;
mod examples;
mod fused;
mod layers;
mod network;
mod optimiser;
mod prior;
mod random;
mod recurrent;
mod trainer;
mod weights;

pub use classifier::{Classifier, ClassifierConfig};
pub use config::{
    Architecture, Checkpoints, Config, DecoderBias, NetworkConfig, Objective, Optimiser,
    TrainingConfig,
};
pub use cvae::Cvae;
pub use diagnosis::Diagnosis;
pub use error::{Error, Result};
pub use examples::Examples;
pub use prior::PriorSnapshot;
pub use trainer::{Checkpoint, Epoch, Losses, Step, Trainer};
pub use weights::Precision;
