//! The predictor of pedestrians.

use burn::tensor::{Int, Tensor, TensorData};

use super::example::{self, Example, Observation};
use super::metrics::Point;
use super::mixture;
use super::network::{Decoding, Inputs, Network, Seen};
use crate::net::Net;
use crate::random::{Purpose, Random};
use crate::weights::{host, tensor};
use crate::{Error, Result};

/// A trajectory predictor for pedestrians: the pedestrian Trajectron++ of the paper.
///
/// `encode` gives the logits of the latent classes, which are the evidence.
/// `forecast` and `sample` decode the queried joint classes only; the cost
/// is proportional to their number.
///
/// ```
/// use shafer_nets::behaviour::{NetworkConfig, Observation, Predictor, Query, Draw};
///
/// let predictor = Predictor::untrained(&NetworkConfig::default(), 0)?;
/// assert_eq!(predictor.parameters(), 138_482);
/// let standing = Observation::new(&[[0.0; 6]; 3], &[[0.0; 6]; 3])?;
/// let encoded = predictor.encode(&[standing])?;
/// assert_eq!(encoded.logits(0).len(), 10); // Two variables of five classes.
///
/// let forecasts = predictor.forecast(&encoded, &[Query { agent: 0, class: 13 }])?;
/// assert_eq!(forecasts[0].mean.len(), 12);
/// let paths = predictor.sample(&encoded, &[Draw { agent: 0, class: 13, paths: 5 }], 7)?;
/// assert_eq!(paths[0].len(), 5);
/// # Ok::<(), shafer_nets::Error>(())
/// ```
pub type Predictor = Net<Network>;

/// Encoded observations.
#[derive(Clone, Debug, PartialEq)]
pub struct Encoded {
    agents: usize,
    /// The encodings, by agent.
    x: Vec<f32>,
    logits: Vec<f32>,
    /// The present states in the units of the networks.
    present: Vec<f32>,
}

impl Encoded {
    /// The number of pedestrians.
    pub fn len(&self) -> usize {
        self.agents
    }

    /// Whether there are no pedestrians.
    pub fn is_empty(&self) -> bool {
        self.agents == 0
    }

    /// The logits of p(z|x) of one pedestrian: the classes of the first variable, then those of the next.
    pub fn logits(&self, agent: usize) -> &[f32] {
        row(&self.logits, agent, self.agents)
    }

    /// The encoding of one pedestrian, the paper's condition.
    pub fn encoding(&self, agent: usize) -> &[f32] {
        row(&self.x, agent, self.agents)
    }
}

fn row(values: &[f32], row: usize, rows: usize) -> &[f32] {
    let width = values.len() / rows.max(1);
    &values[row * width..][..width]
}

/// One joint class of one pedestrian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The index of the pedestrian among those encoded.
    pub agent: usize,
    /// The joint class: see [`NetworkConfig::split`](super::NetworkConfig::split).
    pub class: usize,
}

/// A number of paths of one joint class of one pedestrian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Draw {
    /// The index of the pedestrian among those encoded.
    pub agent: usize,
    /// The joint class: see [`NetworkConfig::split`](super::NetworkConfig::split).
    pub class: usize,
    /// The number of paths.
    pub paths: usize,
}

/// The predicted path of a pedestrian, given a joint class.
#[derive(Clone, Debug, PartialEq)]
pub struct Forecast {
    /// The positions at all steps, in metres from the present one: integrated means of the mixtures. The
    /// decoder's input at a step is the mean of the previous one.
    pub mean: Vec<Point>,
    /// The covariances of the positions (xx, xy, yy): sums of those of the mixtures, as if steps were
    /// independent.
    pub covariance: Vec<[f64; 3]>,
}

/// Rows in a block: memory does not grow with their number.
const DECODED_AT_ONCE: usize = 192;

impl Predictor {
    /// Encodes observations.
    pub fn encode(&self, observations: &[Observation]) -> Result<Encoded> {
        let mut encoded = Encoded {
            agents: observations.len(),
            x: Vec::new(),
            logits: Vec::new(),
            present: Vec::new(),
        };
        for part in observations.chunks(DECODED_AT_ONCE) {
            let seen = Seen::of(&part.iter().collect::<Vec<_>>(), &self.config, &self.device);
            let x = self.network.encode(&seen, &self.config);
            encoded.logits.extend(host(self.network.prior(x.clone())));
            encoded.x.extend(host(x));
            encoded.present.extend(host(seen.present));
        }
        Ok(encoded)
    }

    /// The logits of q(z|x,y), which sees the future: for each example the classes of the first variable, then those
    /// of the next.
    ///
    /// ```
    /// use shafer_nets::behaviour::{Example, NetworkConfig, Predictor};
    ///
    /// let predictor = Predictor::untrained(&NetworkConfig::default(), 0)?;
    /// let standing = Example::new(&[[0.0; 6]; 3], &[[0.0; 6]; 3], &[[0.0; 6]; 12])?;
    /// assert_eq!(predictor.posterior(&[standing])?.len(), 10);
    /// # Ok::<(), shafer_nets::Error>(())
    /// ```
    ///
    /// # Errors
    /// The future of an example is shorter than a prediction.
    pub fn posterior(&self, examples: &[Example]) -> Result<Vec<f32>> {
        example::check(examples, &self.config)?;
        let block = |examples: &[Example]| {
            let inputs = Inputs::gather(examples, &self.config, &self.device);
            host(self.network.posterior_of(&inputs, &self.config))
        };
        Ok(examples.chunks(DECODED_AT_ONCE).flat_map(block).collect())
    }

    /// The mean paths of joint classes, in the order of the queries.
    pub fn forecast(&self, encoded: &Encoded, queries: &[Query]) -> Result<Vec<Forecast>> {
        let mut forecasts = Vec::with_capacity(queries.len());
        for queries in queries.chunks(DECODED_AT_ONCE) {
            let mut decoding = self.start(encoded, queries)?;
            let mut part =
                vec![Forecast { mean: Vec::new(), covariance: Vec::new() }; queries.len()];
            for _ in 0..self.config.future_steps {
                let raw = host(self.network.step(&mut decoding));
                let width = raw.len() / queries.len();
                let mut action = Vec::with_capacity(2 * queries.len());
                for (forecast, raw) in part.iter_mut().zip(raw.chunks_exact(width)) {
                    let (velocity, covariance) = mixture::moments(raw);
                    action.extend(velocity.map(|v| v as f32));
                    forecast.go(velocity, covariance, self.config.seconds_per_step);
                }
                decoding.act(tensor(action, [queries.len(), 2], &self.device));
            }
            forecasts.extend(part);
        }
        Ok(forecasts)
    }

    /// Sampled paths of joint classes, in the order of `draws`: positions in metres from the present one. At
    /// each step a velocity is drawn from the mixture, and is the decoder's input at the next.
    ///
    /// The paths of a joint class of a pedestrian are a function of the seed, the index of the pedestrian
    /// and the class; more paths begin with the fewer. At most 2^24 paths of a class and 2^24 pedestrians
    /// are possible.
    pub fn sample(
        &self,
        encoded: &Encoded,
        draws: &[Draw],
        seed: u64,
    ) -> Result<Vec<Vec<Vec<Point>>>> {
        let too_many = draws.iter().any(|draw| draw.paths > 1 << 24 || draw.agent >= 1 << 24);
        if too_many {
            return Err(Error::data(
                "paths",
                "must be at most 2^24 of a class, for at most 2^24 pedestrians",
            ));
        }
        let mut paths: Vec<Vec<Vec<Point>>> =
            draws.iter().map(|draw| Vec::with_capacity(draw.paths)).collect();
        let rows: Vec<(usize, usize)> = draws
            .iter()
            .enumerate()
            .flat_map(|(place, draw)| (0..draw.paths).map(move |path| (place, path)))
            .collect();
        for rows in rows.chunks(DECODED_AT_ONCE) {
            // The rows of a draw are contiguous, so a block of rows is a range of draws.
            let first = rows.first().map_or(0, |row| row.0);
            let last = rows.last().map_or(0, |row| row.0);
            let queries: Vec<Query> = draws[first..=last]
                .iter()
                .map(|draw| Query { agent: draw.agent, class: draw.class })
                .collect();
            let select: Vec<i64> = rows.iter().map(|row| (row.0 - first) as i64).collect();
            let select = TensorData::new(select, [rows.len()]);
            let select = Tensor::<1, Int>::from_data(select, &self.device);
            // All paths of a class have the same mixture at the first step.
            let mut decoding = self.start(encoded, &queries)?;
            let raw = self.network.step(&mut decoding).select(0, select.clone());
            let (mut raw, mut decoding) = (host(raw), decoding.rows(&select));
            let mut streams: Vec<Random> = rows
                .iter()
                .map(|&(place, path)| {
                    let Draw { agent, class, .. } = draws[place];
                    // 24 bits for the pedestrian, 16 for the class, 24 for the path.
                    let position = (agent as u64) << 40 | (class as u64) << 24 | path as u64;
                    Random::new(seed, Purpose::Path, position)
                })
                .collect();
            let mut part: Vec<Vec<Point>> =
                vec![Vec::with_capacity(self.config.future_steps); rows.len()];
            let mut weights = Vec::new();
            for step in 1..=self.config.future_steps {
                let width = raw.len() / rows.len();
                let mut action = Vec::with_capacity(2 * rows.len());
                let each = part.iter_mut().zip(&mut streams);
                for ((path, random), raw) in each.zip(raw.chunks_exact(width)) {
                    let velocity = mixture::sample_row(raw, mixture::draw(random), &mut weights);
                    action.extend(velocity);
                    path.push(onward(path, velocity.map(f64::from), self.config.seconds_per_step));
                }
                if step < self.config.future_steps {
                    decoding.act(tensor(action, [rows.len(), 2], &self.device));
                    raw = host(self.network.step(&mut decoding));
                }
            }
            for (&(place, _), path) in rows.iter().zip(part) {
                paths[place].push(path);
            }
        }
        Ok(paths)
    }

    fn start(&self, encoded: &Encoded, queries: &[Query]) -> Result<Decoding> {
        let (classes, logits) = (self.config.joint_classes(), self.config.logits());
        let width = self.config.history_width + self.config.edge_width;
        if encoded.x.len() != encoded.agents * width {
            return Err(Error::data("encoded", "was encoded by a predictor of another shape"));
        }
        let rows = queries.len();
        let mut z = vec![0.0; rows * logits];
        let (mut x, mut present) = (Vec::with_capacity(rows * width), Vec::with_capacity(rows * 6));
        for (query, z) in queries.iter().zip(z.chunks_exact_mut(logits)) {
            let Query { agent, class } = *query;
            if agent >= encoded.agents {
                let problem = format!("must be below {}, but is {agent}", encoded.agents);
                return Err(Error::data("agent", problem));
            }
            if class >= classes {
                let problem = format!("must be below {classes}, but is {class}");
                return Err(Error::data("class", problem));
            }
            for (variable, part) in self.config.split(class).into_iter().enumerate() {
                z[variable * self.config.classes + part] = 1.0;
            }
            x.extend_from_slice(encoded.encoding(agent));
            present.extend_from_slice(row(&encoded.present, agent, encoded.agents));
        }
        Ok(self.network.start(
            tensor(z, [rows, logits], &self.device),
            tensor(x, [rows, width], &self.device),
            tensor(present, [rows, 6], &self.device),
        ))
    }
}

impl Forecast {
    fn go(&mut self, velocity: Point, covariance: [f64; 3], seconds: f64) {
        self.mean.push(onward(&self.mean, velocity, seconds));
        let mut sum = self.covariance.last().copied().unwrap_or_default();
        for (sum, added) in sum.iter_mut().zip(covariance) {
            *sum += added * seconds * seconds;
        }
        self.covariance.push(sum);
    }
}

/// The position a step after the last of a path.
fn onward(path: &[Point], velocity: Point, seconds: f64) -> Point {
    let [x, y] = path.last().copied().unwrap_or_default();
    [x + velocity[0] * seconds, y + velocity[1] * seconds]
}
