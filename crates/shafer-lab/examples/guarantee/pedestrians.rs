//! Pedestrians: the network that did not see the scene ETH, calibrated on the ends of the other scenes.

use std::collections::VecDeque;
use std::path::PathBuf;

use rand::SeedableRng as _;
use rand::rngs::ChaCha8Rng;
use rand::seq::SliceRandom as _;
use serde::Serialize;
use shafer::calibrate::{
    AdaptiveThreshold, Calibration, ExchangeabilityTest, Labelled, Losses, Misses, Score, Scores,
};
use shafer::{Logits, Threads};
use shafer_data::dataset::{Scene, Split, Window, WindowShape, set};
use shafer_nets::behaviour::{Example, Observation, Predictor, Query};

use crate::Outcome;
use crate::found::{Found, LEVELS, Rows, Table};
use crate::images::best;

/// The method that is calibrated.
const SCORE: Score = Score::Evidential;

/// A mode is good if it ends this close to where the pedestrian went, in metres.
const NEAR: f64 = 1.0;

/// The miss rate of the calibration that is written.
const SHIPPED: f64 = 0.05;

/// The distance risk of the other calibration that is written.
const SHIPPED_RISK: f64 = 0.3;

/// Steps until the class of a pedestrian is known: those of the future.
const LATE: u32 = 12;

/// The results.
#[derive(Serialize)]
pub(crate) struct Measured {
    /// All rows of the validation split, both latent variables: halves at random.
    validation: Table,
    /// The joint class of both variables: calibrated on half of the validation split, and tested on the other. Pedestrians of
    /// both halves overlap.
    same_scenes: Vec<Joint>,
    /// Calibrated on the validation split of the seven other scenes, and tested on each scene: on ETH all of it, which the network
    /// never saw, on the others their validation split.
    other_scenes: Vec<OtherScene>,
    /// No kept mode ends within a metre of where the pedestrian went.
    distance: Vec<Distance>,
    /// Of the pedestrians of ETH, in how many not even one of all 25 modes does.
    distance_all_kept: (f64, f64),
}

/// The posterior's joint class at a calibrated threshold.
#[derive(Serialize)]
struct Joint {
    miss: f64,
    #[serde(flatten)]
    found: Found,
}

#[derive(Serialize)]
struct OtherScene {
    scene: String,
    calibration_rows: usize,
    /// The paper's rule: no calibration.
    evidential: Found,
    fixed: Vec<Joint>,
    /// The online threshold, which starts with the calibration scores and learns of labels 12 steps late.
    online: Vec<Online>,
    /// The logarithm of the largest capital of the test that the rows are exchangeable with those of calibration; 4.6 is
    /// a level of 1%.
    ln_capital: f64,
}

#[derive(Serialize)]
struct Online {
    miss: f64,
    rate: f64,
    #[serde(flatten)]
    found: Found,
    /// How far above `miss` the share can be, whatever comes.
    bound: f64,
}

#[derive(Serialize)]
struct Distance {
    /// The allowed risk.
    risk: f64,
    /// The threshold on the validation split; missing if none is loose enough.
    threshold: Option<f64>,
    /// On the other half of the validation split, and on ETH: the risk found, and the mean number of kept joint classes.
    same_scenes: Option<(f64, f64)>,
    eth: Option<(f64, f64)>,
}

/// Pedestrians of a scene in the order of time.
struct Agents {
    scene: String,
    /// Logits of the prior, one row for each variable of each pedestrian.
    rows: Rows,
    /// For each pedestrian the frame.
    frames: Vec<u32>,
    /// For each joint class of each pedestrian, the distance of its end from the truth.
    ends: Vec<f64>,
    variables: usize,
    classes: usize,
}

/// The results, and calibrations on the validation split with the names of their files: of the joint class, and of the
/// distance risk.
pub(crate) fn measure(
    folders: &[PathBuf],
) -> Outcome<(Measured, Vec<(&'static str, Calibration)>)> {
    let set = set("ethucy")?;
    let predictor =
        Predictor::from_safetensors(include_bytes!("../../weights/behaviour.safetensors"))?;
    let validation: Vec<Agents> = set
        .scenes("eth", Split::Val, folders)?
        .into_iter()
        .map(|scene| Agents::new(&predictor, &scene))
        .collect::<Outcome<_>>()?;
    let eth: Vec<Agents> = set
        .scenes("eth", Split::Test, folders)?
        .into_iter()
        .map(|scene| Agents::new(&predictor, &scene))
        .collect::<Outcome<_>>()?;
    let all = Agents::together(validation.iter());
    let (first, second) = all.halves();
    let scores = Scores::new(first.scores()?)?;
    let same_scenes = LEVELS
        .iter()
        .map(|&miss| {
            let threshold = scores.threshold(miss)?;
            Ok(Joint { miss, found: second.at(|_| threshold)? })
        })
        .collect::<Outcome<_>>()?;
    let mut other_scenes = Vec::new();
    for test in eth.iter().chain(&validation) {
        let others = validation.iter().filter(|agents| !test.scene.starts_with(&agents.scene));
        other_scenes.push(OtherScene::new(&Agents::together(others), test)?);
    }
    let eth = Agents::together(eth.iter());
    // One threshold for both variables: the joint class is kept with this probability.
    let threshold = Scores::new(all.scores()?)?.threshold(SHIPPED)?;
    let calibration = Calibration::of_threshold(SCORE, all.classes, SHIPPED, threshold)?
        .measured_on(format!(
            "ETH/UCY, validation split of the fold eth: the joint class of both variables, {} windows",
            all.len()
        ));
    let threshold = near_threshold(&all, SHIPPED_RISK)?.ok_or("no threshold is loose enough")?;
    let near = Calibration::of_threshold(SCORE, all.classes, SHIPPED_RISK, threshold)?.measured_on(
        format!(
            "ETH/UCY, validation split of the fold eth: the risk that no kept mode ends within {NEAR} m, {} windows",
            all.len()
        ),
    );
    let calibrations = vec![
        ("behaviour-calibration.json", calibration),
        ("behaviour-distance-calibration.json", near),
    ];
    let measured = Measured {
        validation: all.rows.table()?,
        same_scenes,
        other_scenes,
        distance: [0.2, 0.3, 0.4, 0.5]
            .iter()
            .map(|&risk| Distance::new(risk, &first, &second, &eth))
            .collect::<Outcome<_>>()?,
        distance_all_kept: (second.risk(f64::INFINITY)?.0, eth.risk(f64::INFINITY)?.0),
    };
    Ok((measured, calibrations))
}

impl Agents {
    /// All pedestrians with a whole future, at every time step.
    fn new(predictor: &Predictor, scene: &Scene) -> Outcome<Self> {
        let network = predictor.config();
        let shape = WindowShape {
            history: network.history_steps,
            future: network.future_steps,
            least_future: network.future_steps,
            radius: network.position_scale,
            ..WindowShape::PUBLISHED
        };
        let windows: Vec<Window> = scene.windows(&shape)?;
        let observation = |w: &Window| Observation::new(&w.history, &w.neighbours);
        let observations = windows.iter().map(observation).collect::<Result<Vec<_>, _>>()?;
        let example = |w: &Window| Example::new(&w.history, &w.neighbours, &w.future);
        let examples = windows.iter().map(example).collect::<Result<Vec<_>, _>>()?;
        let encoded = predictor.encode(&observations)?;
        let logits = (0..encoded.len()).flat_map(|agent| encoded.logits(agent).to_vec()).collect();
        let posterior = predictor.posterior(&examples)?;
        let joint = network.joint_classes();
        let queries: Vec<Query> = (0..windows.len() * joint)
            .map(|place| Query { agent: place / joint, class: place % joint })
            .collect();
        let ends = predictor.forecast(&encoded, &queries)?;
        let distance = |(place, forecast): (usize, &shafer_nets::behaviour::Forecast)| {
            let truth = windows[place / joint].truth();
            let (Some([x, y]), Some([u, v])) = (forecast.mean.last(), truth.last()) else {
                return f64::INFINITY;
            };
            (x - u).hypot(y - v)
        };
        Ok(Self {
            scene: scene.name.trim_end_matches("_val").to_owned(),
            rows: Rows {
                logits,
                labels: posterior.chunks_exact(network.classes).map(best).collect(),
            },
            frames: windows.iter().map(|window| window.frame).collect(),
            ends: ends.iter().enumerate().map(distance).collect(),
            variables: network.variables,
            classes: network.classes,
        })
    }

    fn together<'a>(parts: impl Iterator<Item = &'a Self>) -> Self {
        let mut all = Self {
            scene: String::new(),
            rows: Rows { logits: Vec::new(), labels: Vec::new() },
            frames: Vec::new(),
            ends: Vec::new(),
            variables: 1,
            classes: 1,
        };
        for part in parts {
            all.rows.logits.extend(&part.rows.logits);
            all.rows.labels.extend(&part.rows.labels);
            all.frames.extend(&part.frames);
            all.ends.extend(&part.ends);
            (all.variables, all.classes) = (part.variables, part.classes);
        }
        all
    }

    fn len(&self) -> usize {
        self.frames.len()
    }

    /// Two random halves of the pedestrians.
    fn halves(&self) -> (Self, Self) {
        let parity = |odd: usize| {
            // A hash of the position: neighbours in time are in either half.
            let chosen: Vec<usize> = (0..self.len())
                .filter(|&i| (i.wrapping_mul(0x9e37_79b9) >> 16) % 2 == odd)
                .collect();
            let (wide, joint) = (self.variables * self.classes, self.ends.len() / self.len());
            let take = |i: &usize| self.rows.logits[i * wide..][..wide].iter().copied();
            let label = |i: &usize| {
                self.rows.labels[i * self.variables..][..self.variables].iter().copied()
            };
            Self {
                scene: self.scene.clone(),
                rows: Rows {
                    logits: chosen.iter().flat_map(take).collect(),
                    labels: chosen.iter().flat_map(label).collect(),
                },
                frames: chosen.iter().map(|&i| self.frames[i]).collect(),
                ends: chosen
                    .iter()
                    .flat_map(|i| self.ends[i * joint..][..joint].iter().copied())
                    .collect(),
                variables: self.variables,
                classes: self.classes,
            }
        };
        (parity(0), parity(1))
    }

    /// For each pedestrian the score of the posterior's joint class: the larger one of the variables, as a joint class
    /// is kept if both parts are.
    fn scores(&self) -> Outcome<Vec<f64>> {
        let scores = SCORE.of_labels(&self.labelled()?)?;
        let most = |part: &[f64]| part.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        Ok(scores.chunks_exact(self.variables).map(most).collect())
    }

    fn labelled(&self) -> shafer::Result<Labelled<'_, f32>> {
        Labelled::new(Logits::rows(&self.rows.logits, self.classes)?, &self.rows.labels)
    }

    /// The classes that are kept of each variable of a pedestrian.
    fn kept(&self, agent: usize, threshold: f64) -> Outcome<Vec<Vec<u32>>> {
        let calibration = Calibration::of_threshold(SCORE, self.classes, 0.5, threshold)?;
        let wide = self.variables * self.classes;
        let logits = &self.rows.logits[agent * wide..][..wide];
        let rows = calibration.csr(&Logits::rows(logits, self.classes)?, None, Threads::One)?;
        Ok(rows.iter().map(|(classes, _)| classes.to_vec()).collect())
    }

    /// Misses of the joint class, and kept joint classes, with a threshold for each pedestrian.
    fn at(&self, threshold: impl Fn(usize) -> f64) -> Outcome<Found> {
        let (mut misses, mut size) = (Misses::default(), 0.0);
        for agent in 0..self.len() {
            let kept = self.kept(agent, threshold(agent))?;
            let labels = &self.rows.labels[agent * self.variables..][..self.variables];
            let whole = kept.iter().zip(labels).all(|(kept, label)| kept.contains(label));
            misses.rows += 1;
            misses.missed += u64::from(!whole);
            size += kept.iter().map(|kept| kept.len() as f64).product::<f64>();
        }
        Found::new(misses, Some(size / self.len() as f64))
    }

    /// Whether no kept joint class ends near the truth, and the number of kept joint classes.
    fn far(&self, agent: usize, threshold: f64) -> Outcome<(bool, usize)> {
        let kept = self.kept(agent, threshold)?;
        let joint = self.ends.len() / self.len();
        let ends = &self.ends[agent * joint..][..joint];
        let near = (0..joint).filter(|class| {
            let mut rest = *class;
            // The first variable has the largest stride.
            kept.iter().rev().all(|kept| {
                let part = rest % self.classes;
                rest /= self.classes;
                kept.contains(&(part as u32))
            }) && ends[*class] <= NEAR
        });
        Ok((near.count() == 0, kept.iter().map(Vec::len).product()))
    }

    /// The share of pedestrians without a near mode, and the mean number of kept joint classes.
    fn risk(&self, threshold: f64) -> Outcome<(f64, f64)> {
        let (mut far, mut size) = (0.0, 0.0);
        for agent in 0..self.len() {
            let (is_far, kept) = self.far(agent, threshold)?;
            far += f64::from(u8::from(is_far));
            size += kept as f64;
        }
        Ok((far / self.len() as f64, size / self.len() as f64))
    }
}

impl OtherScene {
    fn new(calibration: &Agents, test: &Agents) -> Outcome<Self> {
        let known = calibration.scores()?;
        let scores = Scores::new(known.clone())?;
        let fixed = LEVELS.iter().map(|&miss| {
            let threshold = scores.threshold(miss)?;
            Ok(Joint { miss, found: test.at(|_| threshold)? })
        });
        let online = [0.05, 0.1].iter().map(|&miss| Online::new(miss, &known, test));
        // In random order, the rows of the calibration are exchangeable among themselves.
        let mut shuffled = known.clone();
        shuffled.shuffle(&mut ChaCha8Rng::seed_from_u64(1));
        let mut exchangeable = ExchangeabilityTest::new();
        for (i, score) in shuffled.iter().chain(&test.scores()?).enumerate() {
            // Fixed numbers in place of random ones: scores have hardly any ties.
            exchangeable.add(*score, (i as f64 * 0.618_033_988_749).fract())?;
        }
        Ok(Self {
            scene: test.scene.clone(),
            calibration_rows: known.len(),
            // Just above 0: the paper's rule is strict.
            evidential: test.at(|_| -1e-9)?,
            fixed: fixed.collect::<Outcome<_>>()?,
            online: online.collect::<Outcome<_>>()?,
            ln_capital: exchangeable.ln_most(),
        })
    }
}

impl Online {
    fn new(miss: f64, known: &[f64], test: &Agents) -> Outcome<Self> {
        const RATE: f64 = 0.005;
        let mut online = AdaptiveThreshold::new(miss, RATE, 500)?.start_with(known)?;
        let scores = test.scores()?;
        let mut waiting: VecDeque<(u32, f64, f64)> = VecDeque::new();
        let mut thresholds = Vec::with_capacity(test.len());
        for (&frame, &score) in test.frames.iter().zip(&scores) {
            while let Some(&(since, threshold, score)) = waiting.front() {
                if since + LATE * shafer_data::dataset::FRAME_STEP > frame {
                    break;
                }
                online.observe(threshold, score)?;
                waiting.pop_front();
            }
            let threshold = online.threshold();
            thresholds.push(threshold);
            waiting.push_back((frame, threshold, score));
        }
        for (_, threshold, score) in waiting {
            online.observe(threshold, score)?;
        }
        let found = test.at(|agent| thresholds[agent])?;
        Ok(Self { miss, rate: RATE, found, bound: online.bound() })
    }
}

/// The tightest threshold at which the risk that no kept mode ends near the truth is controlled.
fn near_threshold(agents: &Agents, risk: f64) -> Outcome<Option<f64>> {
    // From tight to loose.
    let thresholds: Vec<f64> = (-40..=80).map(|i| f64::from(i) / 20.0).collect();
    let mut table = Vec::with_capacity(agents.len() * thresholds.len());
    for agent in 0..agents.len() {
        for &threshold in &thresholds {
            table.push(f64::from(u8::from(agents.far(agent, threshold)?.0)));
        }
    }
    let chosen = Losses::new(&table, thresholds.len(), 1.0)?.control_risk(risk)?;
    Ok(chosen.map(|column| thresholds[column]))
}

impl Distance {
    fn new(risk: f64, first: &Agents, second: &Agents, eth: &Agents) -> Outcome<Self> {
        let threshold = near_threshold(first, risk)?;
        Ok(Self {
            risk,
            threshold,
            same_scenes: threshold.map(|threshold| second.risk(threshold)).transpose()?,
            eth: threshold.map(|threshold| eth.risk(threshold)).transpose()?,
        })
    }
}
