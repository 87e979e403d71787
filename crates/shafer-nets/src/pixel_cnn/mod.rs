//! The prior over a grid of codes: a class-conditional gated PixelCNN, and a sampler that computes every
//! position once.

mod composed;
mod config;
mod cpu;
mod draw;
mod model;
mod network;
mod ops;
mod plain;
mod product;
mod sampler;
mod training;
mod window;

pub use config::PixelCnnConfig;
pub use draw::{Samples, Sampling};
pub use model::PixelCnn;
pub use sampler::Sampler;
pub use training::{CodeGrids, PixelCnnTraining};
