//! The errors of a network and each method on single pedestrians.

use std::ops::Range;
use std::time::Instant;

use anyhow::{Context as _, Result};
use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use shafer::sample_dense;
use shafer_data::dataset::Window;
use shafer_nets::behaviour::{Displacement, Draw, Encoded, Point, Predictor, Query, kernel_nll};

use super::config::Config;
use crate::experiments::methods::Method;
use crate::interrupt;
use crate::method::EVIDENTIAL;
use crate::predict::{JointDistribution, observations};

/// The evaluation of pedestrians of a scene with the network of one seed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Evaluation {
    pub(super) seed: u64,
    pub(super) agents: Vec<AgentRecord>,
    /// Decoding times of some of them.
    pub(super) decodings: Vec<Decoding>,
}

/// The evaluation of one pedestrian.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AgentRecord {
    /// The pedestrian's number in the scene.
    pub(super) agent: u32,
    pub(super) frame: u32,
    /// The number of known future steps.
    pub(super) steps: usize,
    /// In the order of the methods.
    pub(super) methods: Vec<MethodRecord>,
}

/// The evaluation of one method on one pedestrian.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MethodRecord {
    /// The number of joint classes that are kept.
    pub(super) kept: usize,
    /// Of paths drawn from its distribution.
    pub(super) direct: Errors,
    /// The expected best of 20 of them, each error by itself.
    pub(super) best20: BestOf,
    /// The best of its most likely joint classes, each error by itself.
    pub(super) top: Errors,
    /// The distance in metres from the true end to the nearest mean path of a kept class.
    pub(super) nearest: f64,
}

/// Errors of predictions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Errors {
    /// The negative log-density of the truth.
    pub(super) nll: f64,
    /// The distance, averaged over the steps.
    pub(super) ade: f64,
    /// The distance at the last step.
    pub(super) fde: f64,
}

/// Displacement errors of the best of several predictions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct BestOf {
    pub(super) ade: f64,
    pub(super) fde: f64,
}

/// Published results of Trajectron++ are the best of this number of paths.
const BEST_OF: usize = 20;

impl Errors {
    const WORST: Self = Self { nll: f64::INFINITY, ade: f64::INFINITY, fde: f64::INFINITY };

    /// The smaller of each.
    fn best(self, other: Self) -> Self {
        Self {
            nll: self.nll.min(other.nll),
            ade: self.ade.min(other.ade),
            fde: self.fde.min(other.fde),
        }
    }
}

/// The time to decode the mean paths of one pedestrian, on one thread: of the classes that evidential keeps, and of all.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Decoding {
    pub(super) seconds_kept: f64,
    pub(super) seconds_all: f64,
}

pub(super) struct Evaluator<'a> {
    pub(super) predictor: &'a Predictor,
    pub(super) methods: &'a [Method],
    pub(super) config: &'a Config,
}

impl Evaluator<'_> {
    /// Runs the encoder.
    pub(super) fn encode(&self, agents: &[Window]) -> Result<Encoded> {
        Ok(self.predictor.encode(&observations(agents)?)?)
    }

    /// Evaluates some of the encoded pedestrians in parallel. The random numbers of each depend on its place.
    pub(super) fn agents(
        &self,
        encoded: &Encoded,
        agents: &[Window],
        places: Range<usize>,
        progress: &(dyn Fn() + Sync),
    ) -> Result<Vec<AgentRecord>> {
        places
            .into_par_iter()
            .map(|place| {
                interrupt::check()?;
                let window = &agents[place];
                let record = self.agent(encoded, place, window).with_context(|| {
                    format!("pedestrian {}, frame {}", window.agent, window.frame)
                })?;
                progress();
                Ok(record)
            })
            .collect()
    }

    fn agent(&self, encoded: &Encoded, place: usize, window: &Window) -> Result<AgentRecord> {
        let truth = window.truth();
        let end = *truth.last().context("nothing is known of the future")?;
        let distributions = self.distributions(encoded, place)?;
        let counts = distributions
            .iter()
            .map(|distribution| self.counts(distribution, place))
            .collect::<Result<Vec<_>>>()?;
        let paths = self.paths(encoded, place, &distributions, &counts)?;
        let errors = |path: &Vec<Point>| Displacement::of(path, &truth);
        let displacements = paths
            .iter()
            .map(|paths| paths.iter().map(errors).collect())
            .collect::<Result<Vec<Vec<Displacement>>, _>>()?;
        let top = |class: usize| self.class_mean(&paths[class], &truth);
        let mut of_class: Vec<Option<Errors>> = vec![None; paths.len()];
        let ends: Vec<f64> = self
            .all_means(encoded, place)?
            .iter()
            .map(|mean| distance(mean[truth.len() - 1], end))
            .collect();
        let mut methods: Vec<MethodRecord> = Vec::with_capacity(distributions.len());
        for (method, distribution) in distributions.iter().enumerate() {
            // Methods often agree; then their paths are the same, too.
            let same = counts[..method].iter().position(|other| *other == counts[method]);
            let (direct, best20) = match same {
                Some(other) => (methods[other].direct, methods[other].best20),
                None => direct(&paths, &displacements, &counts[method], &truth)?,
            };
            let mut best = Errors::WORST;
            for &class in distribution.best(self.config.top) {
                let errors = match of_class[class] {
                    Some(errors) => errors,
                    None => *of_class[class].insert(top(class)?),
                };
                best = best.best(errors);
            }
            let nearest = distribution.ranked.iter().map(|&class| ends[class]);
            methods.push(MethodRecord {
                kept: distribution.ranked.len(),
                direct,
                best20,
                top: best,
                nearest: nearest.fold(f64::INFINITY, f64::min),
            });
        }
        let Window { agent, frame, .. } = *window;
        Ok(AgentRecord { agent, frame, steps: truth.len(), methods })
    }

    /// The distribution of each method.
    pub(super) fn distributions(
        &self,
        encoded: &Encoded,
        place: usize,
    ) -> Result<Vec<JointDistribution>> {
        let (logits, network) = (encoded.logits(place), self.predictor.config());
        let of = |(title, method): &Method| {
            JointDistribution::at(*method, 1.0, logits, network).with_context(|| title.clone())
        };
        self.methods.iter().map(of).collect()
    }

    /// How often each joint class is drawn, with the same random numbers for each method.
    pub(super) fn counts(
        &self,
        distribution: &JointDistribution,
        place: usize,
    ) -> Result<Vec<usize>> {
        let mut random = ChaCha8Rng::seed_from_u64(self.config.evaluation_seed);
        random.set_stream(place as u64);
        let mut counts = vec![0; distribution.probabilities.len()];
        for _ in 0..self.config.samples {
            counts[sample_dense(&distribution.probabilities, &mut random)?] += 1;
        }
        Ok(counts)
    }

    /// For each joint class, the largest number of paths that a method needs; a method that needs fewer takes the first.
    fn paths(
        &self,
        encoded: &Encoded,
        place: usize,
        distributions: &[JointDistribution],
        counts: &[Vec<usize>],
    ) -> Result<Vec<Vec<Vec<Point>>>> {
        let mut needed = vec![0; self.predictor.config().joint_classes()];
        for counts in counts {
            for (needed, count) in needed.iter_mut().zip(counts) {
                *needed = (*needed).max(*count);
            }
        }
        for distribution in distributions {
            for &class in distribution.best(self.config.top) {
                needed[class] = needed[class].max(self.config.class_samples);
            }
        }
        let draws: Vec<Draw> = needed
            .iter()
            .enumerate()
            .filter(|(_, paths)| **paths > 0)
            .map(|(class, &paths)| Draw { agent: place, class, paths })
            .collect();
        let mut drawn =
            self.predictor.sample(encoded, &draws, self.config.evaluation_seed)?.into_iter();
        let paths = |needed: usize| if needed > 0 { drawn.next() } else { None };
        Ok(needed.into_iter().map(paths).map(Option::unwrap_or_default).collect())
    }

    /// The displacement errors of the mean of a class's paths, and the density of all of them.
    fn class_mean(&self, paths: &[Vec<Point>], truth: &[Point]) -> Result<Errors> {
        let paths = &paths[..self.config.class_samples];
        let mean: Vec<Point> = (0..truth.len())
            .map(|step| {
                [0, 1].map(|axis| {
                    paths.iter().map(|path| path[step][axis]).sum::<f64>() / paths.len() as f64
                })
            })
            .collect();
        let Displacement { average: ade, last: fde } = Displacement::of(&mean, truth)?;
        Ok(Errors { nll: kernel_nll(paths, truth)?, ade, fde })
    }

    /// The mean paths of all joint classes of one pedestrian.
    pub(super) fn all_means(&self, encoded: &Encoded, place: usize) -> Result<Vec<Vec<Point>>> {
        let all: Vec<usize> = (0..self.predictor.config().joint_classes()).collect();
        self.forecast(encoded, place, &all)
    }

    /// The mean paths of joint classes of one pedestrian.
    fn forecast(
        &self,
        encoded: &Encoded,
        place: usize,
        classes: &[usize],
    ) -> Result<Vec<Vec<Point>>> {
        let query = |&class: &usize| Query { agent: place, class };
        let queries: Vec<Query> = classes.iter().map(query).collect();
        let forecasts = self.predictor.forecast(encoded, &queries)?;
        Ok(forecasts.into_iter().map(|forecast| forecast.mean).collect())
    }

    /// Times the decoding of single pedestrians.
    pub(super) fn decodings(
        &self,
        encoded: &Encoded,
        places: Range<usize>,
    ) -> Result<Vec<Decoding>> {
        const REPEATS: usize = 3;
        let ours = self.methods.iter().position(|(_, method)| method.name() == EVIDENTIAL);
        let ours = ours.context("evidential is not among the methods")?;
        let all: Vec<usize> = (0..self.predictor.config().joint_classes()).collect();
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        one_thread.install(|| {
            let decoding = |place: usize| {
                let distributions = self.distributions(encoded, place)?;
                let kept = &distributions[ours].ranked;
                let seconds = |classes: &[usize]| -> Result<f64> {
                    let start = Instant::now();
                    self.forecast(encoded, place, classes)?;
                    Ok(start.elapsed().as_secs_f64())
                };
                let mut fastest = [f64::INFINITY; 2];
                for _ in 0..REPEATS {
                    fastest[0] = fastest[0].min(seconds(kept)?);
                    fastest[1] = fastest[1].min(seconds(&all)?);
                }
                let [seconds_kept, seconds_all] = fastest;
                Ok(Decoding { seconds_kept, seconds_all })
            };
            places.map(decoding).collect()
        })
    }
}

/// The errors of `counts` paths of each class: over all of them, and of the best of a few.
fn direct(
    paths: &[Vec<Vec<Point>>],
    displacements: &[Vec<Displacement>],
    counts: &[usize],
    truth: &[Point],
) -> Result<(Errors, BestOf)> {
    let mut drawn: Vec<&[Point]> = Vec::new();
    let (mut averages, mut lasts) = (Vec::new(), Vec::new());
    for ((paths, displacements), &count) in paths.iter().zip(displacements).zip(counts) {
        drawn.extend(paths[..count].iter().map(Vec::as_slice));
        averages.extend(displacements[..count].iter().map(|errors| errors.average));
        lasts.extend(displacements[..count].iter().map(|errors| errors.last));
    }
    let mean = |errors: &[f64]| errors.iter().sum::<f64>() / errors.len() as f64;
    let (ade, fde) = (mean(&averages), mean(&lasts));
    let errors = Errors { nll: kernel_nll(&drawn, truth)?, ade, fde };
    let best = BestOf { ade: best_of(BEST_OF, averages), fde: best_of(BEST_OF, lasts) };
    Ok((errors, best))
}

/// The expectation of the smallest of `few` errors that are chosen at random, in closed form.
pub(super) fn best_of(few: usize, mut errors: Vec<f64>) -> f64 {
    errors.sort_by(f64::total_cmp);
    let few = few.min(errors.len());
    // Of C(n, few) choices, those in which the i-th smallest is the best are C(n - i, few - 1).
    let mut share = few as f64 / errors.len() as f64;
    let mut best = 0.0;
    for (larger, error) in (0..errors.len()).rev().zip(errors) {
        best += share * error;
        share *= (larger + 1).saturating_sub(few) as f64 / larger as f64;
    }
    best
}

fn distance(a: Point, b: Point) -> f64 {
    (a[0] - b[0]).hypot(a[1] - b[1])
}
