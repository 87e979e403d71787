//! `shafer predict`: predicts the paths of the pedestrians of a scene.

mod distribution;
mod file;
mod kept_counts;
mod map;
mod page;
mod recording;
mod table;
mod windows;

use std::fmt::Write as _;
use std::path::Path;
use std::str::FromStr;

use anyhow::{Context as _, Result, bail};
use serde::Serialize;
use shafer::Method;
use shafer::calibrate::Calibration;
use shafer_data::dataset::{FRAME_STEP, SECONDS_PER_STEP, Window};
use shafer_nets::behaviour::{Forecast, Point, Predictor, Query};

pub(crate) use self::distribution::JointDistribution;
pub(crate) use self::file::{JsonPredictions, PredictionFile, SVG_MARK};
pub(crate) use self::kept_counts::KeptCounts;
pub(crate) use self::page::{page, shown};
use self::recording::Recording;
pub(crate) use self::recording::{FrameRate, Units};
pub(crate) use self::windows::{observations, window_shape};
use crate::method::Choice;
use crate::words::counted;

/// A network that was tested on ETH: `trainings/eth-seed-00.weights.safetensors` of a run of `shafer reproduce behaviour`.
pub(crate) const WEIGHTS: &[u8] = include_bytes!("../../weights/behaviour.safetensors");

/// The predictions for one frame.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Prediction {
    pub(crate) scene: String,
    /// The present.
    pub(crate) frame: u32,
    /// Of the file's frame numbers.
    pub(crate) frames_per_second: f64,
    /// The unit of the file's coordinates. All lengths below are in metres.
    pub(crate) metres_per_unit: f64,
    pub(crate) seconds_per_step: f64,
    /// The number of joint classes.
    pub(crate) classes: usize,
    /// What suggests that the scene is not what it is taken for.
    pub(crate) warnings: Vec<String>,
    pub(crate) agents: Vec<AgentPrediction>,
}

/// The prediction for one pedestrian.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct AgentPrediction {
    /// The pedestrian's number in the scene.
    pub(crate) agent: u32,
    /// At present.
    pub(crate) position: Point,
    /// The number of consecutive frames up to the present in which the pedestrian was seen, at most those that the network
    /// looks at. If it is 1, there is no velocity yet, and the pedestrian is assumed to stand.
    pub(crate) seen: usize,
    /// The number of neighbours.
    pub(crate) neighbours: usize,
    /// The position at each of these steps; the last is the present.
    pub(crate) past: Vec<Point>,
    /// The path at constant velocity, to compare the modes with.
    pub(crate) constant_velocity: Vec<Point>,
    pub(crate) methods: Vec<MethodModes>,
}

/// The modes that one method keeps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct MethodModes {
    pub(crate) method: String,
    /// The most likely first.
    pub(crate) modes: Vec<Mode>,
}

/// A joint class that is kept.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Mode {
    /// The class of each latent variable.
    pub(crate) class: Vec<usize>,
    /// The modes of a method sum to 1.
    pub(crate) probability: f64,
    /// The mean position after each step.
    pub(crate) mean: Vec<Point>,
    /// xx, xy and yy at each step, in square metres.
    pub(crate) covariance: Vec<[f64; 3]>,
}

/// The frames to predict from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameChoice {
    Last,
    At(u32),
    All,
}

impl FromStr for FrameChoice {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        match text {
            "all" => Ok(Self::All),
            "last" => Ok(Self::Last),
            number => number.parse().map(Self::At).context("a frame's number, `last` or `all`"),
        }
    }
}

/// The arguments of a prediction.
pub(crate) struct Request<'a> {
    pub(crate) scene: &'a Path,
    pub(crate) rate: Option<FrameRate>,
    pub(crate) units: Option<Units>,
    /// Weights of `shafer reproduce behaviour`; the embedded ones by default.
    pub(crate) weights: Option<&'a Path>,
    pub(crate) methods: &'a [Choice],
    /// One more method: a calibration for the classes of a variable.
    pub(crate) calibration: Option<&'a Calibration>,
}

/// A scene with a network, for predictions of single frames.
pub(crate) struct Forecaster {
    recording: Recording,
    predictor: Predictor,
    /// Title, method and temperature.
    methods: Vec<(String, Method, f64)>,
    warnings: Vec<String>,
}

impl Forecaster {
    pub(crate) fn new(request: &Request<'_>) -> Result<Self> {
        let label = request.scene.display().to_string();
        let read = |path: &Path| {
            std::fs::read(path).with_context(|| format!("{}: cannot read", path.display()))
        };
        let text = read(request.scene)?;
        let recording = Recording::parse(&label, &text, request.rate, request.units)?;
        let predictor = match request.weights {
            Some(path) => Predictor::from_safetensors(&read(path)?).with_context(|| {
                format!("{}: is no network of `shafer reproduce behaviour`", path.display())
            })?,
            None => Predictor::from_safetensors(WEIGHTS)?,
        };
        let network = predictor.config();
        if network.seconds_per_step != SECONDS_PER_STEP {
            bail!(
                "the network takes steps of {} s, but those of a scene are {SECONDS_PER_STEP} s",
                network.seconds_per_step
            );
        }
        let classes = network.classes;
        let mut methods = Vec::new();
        for choice in request.methods {
            let (title, method) = choice.method(classes)?;
            methods.push((title, method, 1.0));
        }
        if let Some(calibration) = request.calibration {
            let found = calibration.classes();
            if found != classes {
                bail!(
                    "the calibration is for {found} classes, but each variable of the network has {classes}"
                );
            }
            let (method, temperature) = calibration.method(None)?;
            let title = format!("{} calibrated for {}", calibration.score(), calibration.alpha());
            methods.push((title, method, temperature));
        }
        let warnings = recording.warnings();
        Ok(Self { recording, predictor, methods, warnings })
    }

    /// What suggests that the scene is not what it is taken for.
    pub(crate) fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// The number of pedestrians in the file.
    pub(crate) fn pedestrians(&self) -> usize {
        self.recording.pedestrians()
    }

    /// The frames of a choice: at least one, each with a pedestrian.
    pub(crate) fn frames(&self, choice: FrameChoice) -> Result<Vec<u32>> {
        let all = || self.recording.frames();
        let (Some(first), Some(last)) = (all().next(), all().next_back()) else {
            bail!("{}: has no positions", self.recording.name);
        };
        match choice {
            FrameChoice::All => Ok(all().collect()),
            FrameChoice::Last => Ok(vec![last]),
            FrameChoice::At(frame) if all().any(|known| known == frame) => Ok(vec![frame]),
            FrameChoice::At(frame) => bail!(
                "{}: nobody is there at frame {frame}; its frames go from {first} to {last}",
                self.recording.name
            ),
        }
    }

    /// Predicts for every pedestrian of a frame.
    pub(crate) fn at(&self, frame: u32) -> Result<Prediction> {
        self.predict(frame).with_context(|| self.recording.name.clone())
    }

    fn predict(&self, frame: u32) -> Result<Prediction> {
        let Self { recording, predictor, methods, .. } = self;
        let network = predictor.config();
        // The first state that the network sees has a velocity and an acceleration: two steps more.
        let steps = network.history_steps + 2;
        let present = steps as u32 * FRAME_STEP;
        let windows =
            recording.at(frame, steps).windows_at(&[present], &window_shape(network, 0, 0))?;
        let encoded = predictor.encode(&observations(&windows)?)?;
        let distributions = (0..windows.len())
            .map(|agent| {
                let logits = encoded.logits(agent);
                let of = |(title, method, temperature): &(String, Method, f64)| {
                    let made = JointDistribution::at(*method, *temperature, logits, network);
                    made.with_context(|| title.clone())
                };
                methods.iter().map(of).collect::<Result<Vec<_>>>()
            })
            .collect::<Result<Vec<_>>>()?;
        // Only classes that a method keeps are decoded, each once, in one batch.
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
        let agents =
            windows.iter().zip(&distributions).enumerate().map(|(agent, (window, made))| {
                let modes = |distribution: &JointDistribution| {
                    let mode = |&class: &usize| {
                        let forecast = forecasts[agent * classes + class].as_ref()?;
                        let probability = distribution.probabilities[class];
                        Some(Mode::new(network.split(class), probability, forecast, window))
                    };
                    distribution.ranked.iter().filter_map(mode).collect()
                };
                let [x, y] = window.origin;
                let past = window.history.iter().map(|&[dx, dy, ..]| [x + dx, y + dy]);
                AgentPrediction {
                    agent: window.agent,
                    position: window.origin,
                    seen: window.history.len(),
                    neighbours: window.neighbour_count,
                    past: past.collect(),
                    constant_velocity: constant_velocity(window, network.future_steps),
                    methods: methods
                        .iter()
                        .zip(made)
                        .map(|((title, ..), made)| MethodModes {
                            method: title.clone(),
                            modes: modes(made),
                        })
                        .collect(),
                }
            });
        Ok(Prediction {
            scene: recording.name.clone(),
            frame,
            frames_per_second: recording.frames_per_second,
            metres_per_unit: recording.metres_per_unit,
            seconds_per_step: SECONDS_PER_STEP,
            classes,
            warnings: self.warnings.clone(),
            agents: agents.collect(),
        })
    }
}

fn constant_velocity(window: &Window, steps: usize) -> Vec<Point> {
    let [x, y] = window.origin;
    let [.., u, v, _, _] = window.history.last().copied().unwrap_or_default();
    let seconds = (1..=steps).map(|step| step as f64 * SECONDS_PER_STEP);
    seconds.map(|t| [x + u * t, y + v * t]).collect()
}

impl Mode {
    fn new(class: Vec<usize>, probability: f64, forecast: &Forecast, window: &Window) -> Self {
        let [x, y] = window.origin;
        let mean = forecast.mean.iter().map(|[dx, dy]| [x + dx, y + dy]).collect();
        Self { class, probability, mean, covariance: forecast.covariance.clone() }
    }
}

impl Prediction {
    /// For the terminal: the likeliest modes of each pedestrian, and where they end.
    pub(crate) fn text(&self) -> String {
        const SHOWN: usize = 5;
        let people = counted(self.agents.len(), "pedestrian");
        let mut text = format!("{}, frame {}: {people}\n", self.scene, self.frame);
        for agent in &self.agents {
            let [x, y] = agent.position;
            let _ = write!(text, "\npedestrian {} at ({x:.2}, {y:.2})", agent.agent);
            if agent.seen == 1 {
                text.push_str(", has just appeared: taken to stand");
            }
            text.push('\n');
            if let Some([x, y]) = agent.constant_velocity.last() {
                let seconds = agent.constant_velocity.len() as f64 * self.seconds_per_step;
                let _ =
                    writeln!(text, "  constant velocity: at ({x:.2}, {y:.2}) after {seconds:.1} s");
            }
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
