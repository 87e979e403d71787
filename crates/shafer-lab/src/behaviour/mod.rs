//! Where pedestrians go: the paper's experiment of section 3.2, and predictions for scenes of one's own.
//!
//! A network gives logits over joint latent classes for each pedestrian. Each method makes a distribution of
//! them; how well the paths of the classes foretell the truth is measured by [`reproduce`], and a [`Forecaster`]
//! decodes the classes that are kept.

mod aggregate;
mod config;
mod demo;
mod distribution;
mod evaluation;
mod exemplar;
mod folds;
mod html;
mod kept_counts;
mod paper;
mod predict;
mod prediction_file;
mod prediction_page;
mod prediction_table;
mod recording;
mod results;
mod run;
#[cfg(test)]
pub(crate) mod synthetic;
mod table;
#[cfg(test)]
mod tests;
mod text;
mod training;

pub(crate) use config::SceneChoice;
pub(crate) use demo::crossing;
pub(crate) use exemplar::Exemplar;
pub(crate) use folds::PAPER_SCENE;
pub(crate) use kept_counts::KeptCounts;
pub(crate) use paper::{KEPT as PAPER_KEPT, KEPT_MOST_OFTEN as PAPER_KEPT_MOST_OFTEN};
pub(crate) use predict::{AgentPrediction, Forecaster, FrameChoice, Mode, Prediction, Request};
pub(crate) use prediction_file::{JsonPredictions, PredictionFile, SVG_MARK};
pub(crate) use prediction_page::{page as prediction_page, shown as shown_frames};
pub(crate) use recording::{FrameRate, Units};
pub(crate) use results::{BehaviourResults, SceneResults};
pub(crate) use run::reproduce;
