//! `shafer predict`: where the pedestrians of a scene go.

use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use shafer::Transform;
use shafer_data::dataset::{SECONDS_PER_STEP, Scene, Window};
use shafer_data::{Column, write_table};
use shafer_nets::behaviour::{Forecast, Point, Predictor, Query};

use super::config::shape;
use super::demo::WEIGHTS;
use super::distribution::JointDistribution;
use super::folds::observations;
use crate::method::Choice;
use crate::report;

/// Where everybody goes who is there at one frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Prediction {
    scene: String,
    /// The present.
    frame: u32,
    seconds_per_step: f64,
    /// The number of joint classes of which modes are.
    classes: usize,
    agents: Vec<AgentPrediction>,
}

/// Where one pedestrian goes.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct AgentPrediction {
    /// The pedestrian's number in the scene.
    agent: u32,
    /// At present.
    position: Point,
    /// In how many frames in a row up to the present the pedestrian was seen, as far as the network looks. If
    /// it is 1 there is no velocity yet, and the pedestrian is taken to stand.
    seen: usize,
    /// How many others are near.
    neighbours: usize,
    methods: Vec<MethodModes>,
}

/// What one method keeps.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct MethodModes {
    method: String,
    /// The most likely first.
    modes: Vec<Mode>,
}

/// A joint class that is kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
struct Mode {
    /// The class of each latent variable.
    class: Vec<usize>,
    /// All modes of a method add up to 1.
    probability: f64,
    /// Where the pedestrian is after each step, in the scene's coordinates.
    mean: Vec<Point>,
    /// Of x, of x and y, and of y, at each step, in square metres.
    covariance: Vec<[f64; 3]>,
}

/// Predicts for a file, with the weights of another or those that are part of the program.
pub(crate) fn predict(
    path: &Path,
    frame: Option<u32>,
    weights: Option<&Path>,
    methods: &[Choice],
) -> Result<Prediction> {
    let label = path.display().to_string();
    let read = |path: &Path| {
        std::fs::read(path).with_context(|| format!("{}: cannot read", path.display()))
    };
    let scene = Scene::parse(&label, &read(path)?)?;
    let predictor = match weights {
        Some(path) => Predictor::from_safetensors(&read(path)?).with_context(|| {
            format!("{}: is no network of `shafer reproduce behaviour`", path.display())
        })?,
        None => Predictor::from_safetensors(WEIGHTS)?,
    };
    let methods = methods
        .iter()
        .map(|choice| choice.transform(predictor.config().classes))
        .collect::<Result<Vec<_>>>()?;
    of_scene(&scene, frame, &predictor, &methods).with_context(|| label)
}

/// Predicts for a scene.
fn of_scene(
    scene: &Scene,
    frame: Option<u32>,
    predictor: &Predictor,
    methods: &[(String, Box<dyn Transform>)],
) -> Result<Prediction> {
    let network = predictor.config();
    if network.seconds_per_step != SECONDS_PER_STEP {
        bail!(
            "the network takes steps of {} s, but those of a scene are {SECONDS_PER_STEP} s",
            network.seconds_per_step
        );
    }
    let frames = || scene.tracks.iter().flat_map(|track| &track.frames).copied();
    let last = frames().max().context("has no positions")?;
    let frame = frame.unwrap_or(last);
    let windows = scene.windows_at(&[frame], &shape(network, 0, 0))?;
    if windows.is_empty() {
        let first = frames().min().unwrap_or(last);
        bail!("nobody is there at frame {frame}; its frames go from {first} to {last}");
    }
    let encoded = predictor.encode(&observations(&windows)?)?;
    let distributions = (0..windows.len())
        .map(|agent| JointDistribution::all(methods, encoded.logits(agent), network))
        .collect::<Result<Vec<_>>>()?;
    // What any method keeps is decoded once, and nothing else, all in one batch.
    let classes = network.joint_classes();
    let mut kept = vec![false; windows.len() * classes];
    for (agent, distributions) in distributions.iter().enumerate() {
        for &class in distributions.iter().flat_map(|distribution| &distribution.ranked) {
            kept[agent * classes + class] = true;
        }
    }
    let queries: Vec<Query> = (0..kept.len())
        .filter(|&place| kept[place])
        .map(|place| Query { agent: place / classes, class: place % classes })
        .collect();
    let mut forecasts: Vec<Option<Forecast>> = vec![None; kept.len()];
    for (query, forecast) in queries.iter().zip(predictor.forecast(&encoded, &queries)?) {
        forecasts[query.agent * classes + query.class] = Some(forecast);
    }
    let agents = windows.iter().zip(&distributions).enumerate().map(|(agent, (window, made))| {
        let modes = |distribution: &JointDistribution| {
            let mode = |&class: &usize| {
                let forecast = forecasts[agent * classes + class].as_ref()?;
                let probability = distribution.probabilities[class];
                Some(Mode::new(network.split(class), probability, forecast, window))
            };
            distribution.ranked.iter().filter_map(mode).collect()
        };
        AgentPrediction {
            agent: window.agent,
            position: window.origin,
            seen: window.history.len(),
            neighbours: window.neighbour_count,
            methods: methods
                .iter()
                .zip(made)
                .map(|((title, _), made)| MethodModes { method: title.clone(), modes: modes(made) })
                .collect(),
        }
    });
    Ok(Prediction {
        scene: scene.name.clone(),
        frame,
        seconds_per_step: SECONDS_PER_STEP,
        classes,
        agents: agents.collect(),
    })
}

impl Mode {
    fn new(class: Vec<usize>, probability: f64, forecast: &Forecast, window: &Window) -> Self {
        let [x, y] = window.origin;
        let mean = forecast.mean.iter().map(|[dx, dy]| [x + dx, y + dy]).collect();
        Self { class, probability, mean, covariance: forecast.covariance.clone() }
    }
}

impl Prediction {
    /// Writes the prediction in the format of the file's ending.
    pub(crate) fn write(&self, path: &Path) -> Result<()> {
        let ends_in = |wanted| path.extension().is_some_and(|e| e.eq_ignore_ascii_case(wanted));
        if ends_in("json") {
            report::write_json(path, self)
        } else if ends_in("parquet") {
            Ok(write_table(path, &self.table())?)
        } else {
            bail!("{}: a prediction is written as .json or .parquet", path.display())
        }
    }

    /// A row for each step of each mode.
    fn table(&self) -> Vec<(&'static str, Column)> {
        let [mut agents, mut ranks, mut steps] = [const { Vec::new() }; 3];
        let [mut methods, mut classes] = [const { Vec::new() }; 2];
        let mut numbers: [Vec<f64>; 7] = [const { Vec::new() }; 7];
        for agent in &self.agents {
            for MethodModes { method, modes } in &agent.methods {
                for (rank, mode) in modes.iter().enumerate() {
                    let class: Vec<String> = mode.class.iter().map(usize::to_string).collect();
                    let class = class.join(",");
                    for (step, ([x, y], [xx, xy, yy])) in
                        mode.mean.iter().zip(&mode.covariance).enumerate()
                    {
                        agents.push(i64::from(agent.agent));
                        methods.push(method.clone());
                        ranks.push(rank as i64);
                        classes.push(class.clone());
                        steps.push(step as i64 + 1);
                        let seconds = (step + 1) as f64 * self.seconds_per_step;
                        let row = [mode.probability, seconds, *x, *y, *xx, *xy, *yy];
                        for (column, value) in numbers.iter_mut().zip(row) {
                            column.push(value);
                        }
                    }
                }
            }
        }
        let mut columns = vec![
            ("agent", Column::Integers(agents)),
            ("method", Column::Words(methods)),
            ("mode", Column::Integers(ranks)),
            ("class", Column::Words(classes)),
            ("step", Column::Integers(steps)),
        ];
        let names = ["probability", "seconds", "x", "y", "xx", "xy", "yy"];
        columns.extend(names.into_iter().zip(numbers.map(Column::Numbers)));
        columns
    }

    /// For people: the likeliest modes of each pedestrian, and where they end.
    pub(crate) fn text(&self) -> String {
        const SHOWN: usize = 5;
        let people = if self.agents.len() == 1 { "pedestrian" } else { "pedestrians" };
        let mut text =
            format!("{}, frame {}: {} {people}\n", self.scene, self.frame, self.agents.len());
        for agent in &self.agents {
            let [x, y] = agent.position;
            let _ = write!(text, "\npedestrian {} at ({x:.2}, {y:.2})", agent.agent);
            if agent.seen == 1 {
                text.push_str(", has just appeared: taken to stand");
            }
            text.push('\n');
            for MethodModes { method, modes } in &agent.methods {
                let _ = writeln!(text, "  {method} keeps {} of {}", modes.len(), self.classes);
                for mode in modes.iter().take(SHOWN) {
                    let Some(([x, y], [xx, _, yy])) = mode.mean.last().zip(mode.covariance.last())
                    else {
                        continue;
                    };
                    let seconds = mode.mean.len() as f64 * self.seconds_per_step;
                    let spread = (xx + yy).sqrt();
                    let _ = writeln!(
                        text,
                        "    {:.3}  at ({x:.2}, {y:.2}) ± {spread:.2} m after {seconds:.1} s",
                        mode.probability
                    );
                }
                if modes.len() > SHOWN {
                    let _ = writeln!(text, "    and {} more", modes.len() - SHOWN);
                }
            }
        }
        text
    }
}
