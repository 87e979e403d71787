//! Trajectory prediction for pedestrians: the pedestrian Trajectron++ of the paper's section 3.2.
//!
//! A [`Predictor`] encodes an [`Observation`] of a pedestrian: the histories of the pedestrian and of the
//! neighbours. Its prior over two categorical variables of five classes is the distribution that the paper
//! sparsifies. For every queried joint class it gives a mean path with covariances ([`Forecast`]), or sampled
//! paths. [`Trainer`](crate::Trainer) trains it on [`Example`]s. [`Displacement`] and [`kernel_nll`] measure
//! the quality of paths.
//!
//! ```
//! use shafer_nets::behaviour::{Config, Example, Predictor};
//! use shafer_nets::{Trainer, cpu};
//!
//! // Some pedestrians walk to the left, some to the right.
//! let walk = |v: f64, steps: std::ops::RangeInclusive<i32>| -> Vec<[f64; 6]> {
//!     steps.map(|i| [v * 0.4 * f64::from(i), 0.0, v, 0.0, 0.0, 0.0]).collect()
//! };
//! let examples = [-1.0, 1.0, 1.2]
//!     .map(|v| Example::new(&walk(v, -8..=0), &[[0.0; 6]; 9], &walk(v, 1..=12)))
//!     .into_iter()
//!     .collect::<Result<Vec<_>, _>>()?;
//! let mut config = Config::default();
//! config.training.iterations = 2;
//! config.network.decoder_width = 8;
//!
//! let mut trainer = Trainer::<Predictor>::new(&config, &examples, 7, &cpu())?;
//! while let Some(step) = trainer.step()? {
//!     assert!(step.losses.kl >= 0.0);
//! }
//! let saved = trainer.save()?;
//! let resumed = Trainer::<Predictor>::resume(&config, &examples, 7, &cpu(), &saved)?;
//! assert!(resumed.is_finished());
//! assert_eq!(trainer.model().config(), &config.network);
//! # Ok::<(), shafer_nets::Error>(())
//! ```

mod config;
mod example;
mod metrics;
mod mixture;
mod network;
mod predictor;
mod training;

pub use config::{Config, Feedback, Likelihood, NetworkConfig, TrainingConfig};
pub use example::{Example, Observation, State};
pub use metrics::{
    Component, Displacement, LOG_DENSITY_FLOOR, Point, kernel_log_density, kernel_nll,
    mixture_log_density,
};
pub use predictor::{Draw, Encoded, Forecast, Predictor, Query};
pub use training::Losses;
