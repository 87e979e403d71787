//! A synthetic scene for `shafer demo`: six pedestrians whose paths cross.

use std::fmt::Write as _;

use anyhow::Result;
use shafer_data::dataset::{FRAME_STEP, SECONDS_PER_STEP, Scene};
use shafer_nets::behaviour::{NetworkConfig, Predictor};

use super::config::Config;
use super::exemplar::Exemplar;
use super::measure::Evaluator;
use super::{BEHAVIOUR, paper};
use crate::experiments::preset;
use crate::method::Choice;
use crate::predict::{WEIGHTS, window_shape};

/// The position of each in metres, as a function of the time in seconds.
const WALKS: [fn(f64) -> [f64; 2]; 6] = [
    |t| [-5.0 + 1.3 * t, 0.2],
    |t| [5.0 - 1.2 * t, -0.5],
    |t| [0.6, -5.0 + 1.1 * t],
    |t| [-4.0 + 1.0 * t, -3.5 + 0.9 * t],
    // Turns to the left.
    |t| [4.0 * (0.3 * t).sin() - 1.5, 5.0 - 4.0 * (1.0 - (0.3 * t).cos()) - 0.4 * t],
    // Slows down.
    |t| [-1.2, 6.0 - 8.0 * (1.0 - (-0.2 * t).exp())],
];

/// The steps of the network's history and future.
fn scene(network: &NetworkConfig) -> Result<Scene> {
    let mut text = String::new();
    for step in 0..=network.history_steps + network.future_steps {
        for (agent, walk) in WALKS.iter().enumerate() {
            let [x, y] = walk(step as f64 * SECONDS_PER_STEP);
            let _ = writeln!(text, "{} {agent} {x} {y}", step * FRAME_STEP as usize);
        }
    }
    Ok(Scene::parse("crossing", text.as_bytes())?)
}

/// The predictions of the embedded network for each pedestrian, with the paper's methods.
pub(crate) fn crossing() -> Result<Vec<Exemplar>> {
    let predictor = &Predictor::from_safetensors(WEIGHTS)?;
    let network = predictor.config();
    let methods = paper::METHODS
        .iter()
        .map(|name| name.parse::<Choice>()?.method(network.classes))
        .collect::<Result<Vec<_>>>()?;
    let present = network.history_steps as u32 * FRAME_STEP;
    let windows =
        scene(network)?.windows_at(&[present], &window_shape(network, 1, network.future_steps))?;
    let config: &Config = &preset::configured(&BEHAVIOUR, "paper", None, &[])?;
    Exemplar::all(&Evaluator { predictor, methods: &methods, config }, &windows)
}
