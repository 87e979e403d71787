//! Configuration of the predictor and its training.
//!
//! The defaults are those of the paper (section 3.2 and its appendix), or of Trajectron++ where the paper has
//! none. Unknown keys are errors.

use serde::{Deserialize, Serialize};

use crate::config::{Setup, finite_positive, positive, size};
use crate::schedule::Annealed;
use crate::{Error, Result};

/// Configuration of a [`Predictor`](super::Predictor) and its training.
///
/// ```
/// use shafer_nets::behaviour::{Config, Feedback};
///
/// let config: Config = serde_json::from_str(r#"{ "training": { "iterations": 50 } }"#)?;
/// assert_eq!(config.network.joint_classes(), 25);
/// assert_eq!(config.training.feedback, Feedback::Sample);
/// assert!(serde_json::from_str::<Config>(r#"{ "training": { "epochs": 50 } }"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
pub type Config = Setup<NetworkConfig, TrainingConfig>;

/// Shapes and units of the networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct NetworkConfig {
    /// The number of steps of the history, without the present.
    pub history_steps: usize,
    /// The number of predicted steps.
    pub future_steps: usize,
    /// The time between two steps.
    pub seconds_per_step: f64,
    /// Positions, in metres, are divided by this in the inputs of networks. It is also the radius of the
    /// neighbourhood.
    pub position_scale: f64,
    /// Velocities, in metres a second, are divided by this.
    pub velocity_scale: f64,
    /// Accelerations, in metres a second squared, are divided by this.
    pub acceleration_scale: f64,
    /// The width of the recurrent network over the pedestrian's history.
    pub history_width: usize,
    /// The width of the recurrent network over the future, in each direction; used in training only.
    pub future_width: usize,
    /// The width of the recurrent network over the neighbours' histories.
    pub edge_width: usize,
    /// The number of hidden units of the prior.
    pub prior_hidden: usize,
    /// The number of categorical latent variables.
    pub variables: usize,
    /// The number of classes of each.
    pub classes: usize,
    /// The width of the recurrent decoder.
    pub decoder_width: usize,
    /// The number of Gaussians in the mixture of a step.
    pub components: usize,
}

impl Default for NetworkConfig {
    fn default() -> Self {
        Self {
            history_steps: 8,
            future_steps: 12,
            seconds_per_step: 0.4,
            position_scale: 3.0,
            velocity_scale: 2.0,
            acceleration_scale: 1.0,
            history_width: 32,
            future_width: 32,
            edge_width: 8,
            prior_hidden: 32,
            variables: 2,
            classes: 5,
            decoder_width: 128,
            components: 16,
        }
    }
}

impl NetworkConfig {
    /// The number of joint classes: one class of each variable.
    pub fn joint_classes(&self) -> usize {
        self.classes.pow(self.variables as u32)
    }

    /// The number of logits: one for each class of each variable.
    pub fn logits(&self) -> usize {
        self.variables * self.classes
    }

    /// The class of each variable in a joint class. The last variable varies fastest.
    ///
    /// ```
    /// let config = shafer_nets::behaviour::NetworkConfig::default();
    /// assert_eq!(config.split(13), [2, 3]);
    /// ```
    pub fn split(&self, joint: usize) -> Vec<usize> {
        let mut rest = joint;
        let mut parts: Vec<usize> = (0..self.variables)
            .map(|_| {
                let part = rest % self.classes;
                rest /= self.classes;
                part
            })
            .collect();
        parts.reverse();
        parts
    }

    /// The joint class of one class of each variable: the inverse of [`split`](Self::split).
    ///
    /// ```
    /// let config = shafer_nets::behaviour::NetworkConfig::default();
    /// assert_eq!(config.join(&[2, 3]), 13);
    /// ```
    pub fn join(&self, parts: &[usize]) -> usize {
        parts.iter().fold(0, |joint, part| joint * self.classes + part)
    }

    /// Checks all values.
    pub fn check(&self) -> Result<()> {
        for (key, value) in [
            ("future_steps", self.future_steps),
            ("history_width", self.history_width),
            ("future_width", self.future_width),
            ("edge_width", self.edge_width),
            ("prior_hidden", self.prior_hidden),
            ("variables", self.variables),
            ("classes", self.classes),
            ("decoder_width", self.decoder_width),
            ("components", self.components),
        ] {
            size(key, value)?;
        }
        if self.history_steps > 1 << 16 {
            return Err(Error::config("history_steps", "must be at most 65536"));
        }
        if self.classes.checked_pow(self.variables as u32).is_none_or(|joint| joint > 1 << 16) {
            return Err(Error::config("variables", "must have at most 65536 joint classes"));
        }
        for (key, value) in [
            ("seconds_per_step", self.seconds_per_step),
            ("position_scale", self.position_scale),
            ("velocity_scale", self.velocity_scale),
            ("acceleration_scale", self.acceleration_scale),
        ] {
            finite_positive(key, value)?;
        }
        Ok(())
    }
}

/// Configuration of the training: Adam on the negative of
///
/// ```text
/// ln p(y|x,z)  -  beta max(KL(q(z|x,y) || p(z|x)), floor)  +  w I(z; x)
/// ```
///
/// averaged over a batch, where `z` is drawn from the Gumbel-Softmax distribution of `q`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TrainingConfig {
    /// The number of batches.
    pub iterations: usize,
    /// Examples in a batch; the last batch of an epoch may have fewer.
    pub batch_size: usize,
    /// The learning rate.
    pub learning_rate: Annealed,
    /// Clips the global gradient norm to this.
    pub gradient_norm: f64,
    /// The temperature of the Gumbel-Softmax distribution.
    pub temperature: Annealed,
    /// The final weight of KL, beta.
    pub kl_weight: f64,
    /// The iteration at which beta has half its final value.
    pub kl_centre: f64,
    /// The width of the sigmoid, in iterations: beta is `kl_weight / (1 + e^(-(it - centre) / width))`.
    pub kl_width: f64,
    /// The lower bound of a variable's mean KL over a batch in the objective ("free bits").
    pub kl_floor: f64,
    /// The weight `w` of the mutual information of latent variables and condition under the prior: the
    /// entropy of the batch's mean of `p(z|x)`, minus the mean entropy.
    pub information_weight: f64,
    /// The upper bound of a step's log-density in the objective: otherwise standing pedestrians dominate it.
    pub density_ceiling: f64,
    /// The variable of the density.
    pub likelihood: Likelihood,
    /// The decoder's input from the previous step.
    pub feedback: Feedback,
    /// Rotates every example by a random angle each time, as in Trajectron++.
    pub rotate: bool,
    /// Scales every example by a random factor each time, between `1 / stretch` and `stretch`, with a uniform
    /// logarithm; 1 disables it. The predictor then generalises to pedestrians who walk faster than those of
    /// the training set, as in the scene ETH.
    pub stretch: f64,
}

/// The variable of a future's density at each step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Likelihood {
    /// The position, as in Trajectron++: means and covariances of each component are cumulated over the
    /// steps.
    Positions,
    /// The velocity.
    Velocities,
}

/// The decoder's input from the previous step in training. In prediction it is always its own output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Feedback {
    /// A velocity sampled from its own output, as in Trajectron++.
    Sample,
    /// The true velocity (teacher forcing).
    Truth,
}

impl Default for TrainingConfig {
    fn default() -> Self {
        Self {
            iterations: 2000,
            batch_size: 256,
            learning_rate: Annealed { start: 1e-3, decay: 0.9999, floor: 1e-5 },
            gradient_norm: 1.0,
            temperature: Annealed { start: 2.0, decay: 0.997, floor: 0.05 },
            kl_weight: 2.5,
            kl_centre: 400.0,
            kl_width: 100.0,
            kl_floor: 0.07,
            information_weight: 1.0,
            density_ceiling: 6.0,
            likelihood: Likelihood::Positions,
            feedback: Feedback::Sample,
            rotate: true,
            stretch: 2.5,
        }
    }
}

impl TrainingConfig {
    /// The weight of KL at an iteration, counted from 0.
    pub fn kl_weight_at(&self, iteration: u64) -> f64 {
        self.kl_weight / (1.0 + ((self.kl_centre - iteration as f64) / self.kl_width).exp())
    }

    /// Checks all values.
    pub fn check(&self) -> Result<()> {
        positive("iterations", self.iterations)?;
        positive("batch_size", self.batch_size)?;
        self.learning_rate.check("learning_rate")?;
        self.temperature.check("temperature")?;
        finite_positive("gradient_norm", self.gradient_norm)?;
        finite_positive("kl_width", self.kl_width)?;
        for (key, value) in [
            ("kl_weight", self.kl_weight),
            ("kl_centre", self.kl_centre),
            ("kl_floor", self.kl_floor),
            ("information_weight", self.information_weight),
        ] {
            if !(value.is_finite() && value >= 0.0) {
                let problem = format!("must be a number of at least 0, but is {value}");
                return Err(Error::config(key, problem));
            }
        }
        if !(self.stretch.is_finite() && self.stretch >= 1.0) {
            let problem = format!("must be a number of at least 1, but is {}", self.stretch);
            return Err(Error::config("stretch", problem));
        }
        if self.density_ceiling.is_nan() {
            return Err(Error::config("density_ceiling", "must be a number, but is NaN"));
        }
        Ok(())
    }
}

impl Config {
    /// Checks all values.
    pub fn check(&self) -> Result<()> {
        self.network.check()?;
        self.training.check()
    }
}
