//! Where pedestrians go: the pedestrian Trajectron++ of the paper's section 3.2.
//!
//! A [`Predictor`] looks at what is known of a pedestrian ([`Observation`]): the own history and that of the
//! neighbours. Its prior over two categorical variables of five classes is the distribution that the
//! paper sparsifies. For each joint class that is asked for it gives a mean path with covariances
//! ([`Forecast`]), or random paths. [`Trainer`] trains one on [`Example`]s. How good the paths are say
//! [`Displacement`] and [`kernel_nll`].

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
