//! From the evaluations of pedestrians to the results of a scene.

use super::exemplar::Exemplar;
use super::measure::{AgentRecord, BestOf, Decoding, Errors, Evaluation, MethodRecord};
use super::results::{
    ByMethod, DecodingSummary, Distances, ErrorMetrics, Metric, Reach, SceneResults,
};
use crate::experiments::methods::MethodName;
use crate::experiments::statistics::{Curve, Summary};
use crate::method::EVIDENTIAL;
use crate::summary::SizeCounts;

/// The range of distances that a curve is drawn over: to 3 m, in steps of 10 cm.
const REACH_STEPS: usize = 30;
const REACH_METRES: f64 = 3.0;

/// The input of the results of a scene.
pub(super) struct Scene<'a> {
    pub(super) fold: &'a str,
    pub(super) methods: &'a [MethodName],
    pub(super) classes: usize,
    pub(super) distances: &'a [f64],
    /// The same pedestrians with each seed.
    pub(super) evaluations: &'a [Evaluation],
}

impl Scene<'_> {
    pub(super) fn results(&self, exemplars: Vec<Exemplar>) -> SceneResults {
        let methods = || self.methods.iter().enumerate().map(|(place, m)| (place, &m.name));
        let errors = |part: fn(&MethodRecord) -> Errors| -> ByMethod<ErrorMetrics> {
            let metrics = |(method, name): (usize, &String)| {
                let metric = |error: fn(Errors) -> f64| {
                    self.metric(|agent| error(part(&agent.methods[method])))
                };
                let metrics = ErrorMetrics {
                    nll: metric(|errors| errors.nll),
                    ade: metric(|errors| errors.ade),
                    fde: metric(|errors| errors.fde),
                };
                (name.clone(), metrics)
            };
            methods().map(metrics).collect()
        };
        let distances = |(method, name): (usize, &String)| {
            let metric =
                |error: fn(BestOf) -> f64| self.metric(|agent| error(agent.methods[method].best20));
            (name.clone(), Distances { ade: metric(|best| best.ade), fde: metric(|best| best.fde) })
        };
        let mut kept = vec![0; self.classes + 1];
        let mut kept_by_method = ByMethod::new();
        let mut within = ByMethod::new();
        let reach_distances: Vec<f64> =
            (0..=REACH_STEPS).map(|i| i as f64 * REACH_METRES / REACH_STEPS as f64).collect();
        let mut shares = ByMethod::new();
        for (method, name) in methods() {
            let mut counts = SizeCounts::new(self.classes);
            for size in self.agents().map(|agent| agent.methods[method].kept) {
                counts.add(&[size as u32]);
                if name == EVIDENTIAL {
                    kept[size] += 1;
                }
            }
            kept_by_method.extend(counts.summary().map(|summary| (name.clone(), summary)));
            let share = |distance: &f64| {
                self.metric(|agent| f64::from(agent.methods[method].nearest <= *distance))
            };
            within.insert(name.clone(), self.distances.iter().map(share).collect());
            let curve = Curve::of(reach_distances.iter().map(|distance| share(distance).summary()));
            shares.insert(name.clone(), curve);
        }
        let decoding = self.decoding(&kept);
        SceneResults {
            fold: self.fold.to_owned(),
            agents: self.evaluations.first().map_or(0, |evaluation| evaluation.agents.len()),
            seeds: self.evaluations.iter().map(|evaluation| evaluation.seed).collect(),
            direct: errors(|method| method.direct),
            best20: methods().map(distances).collect(),
            top5: errors(|method| method.top),
            kept,
            kept_by_method,
            within,
            reach: Reach { distances: reach_distances, shares },
            decoding,
            exemplars,
        }
    }

    fn agents(&self) -> impl Iterator<Item = &AgentRecord> {
        self.evaluations.iter().flat_map(|evaluation| &evaluation.agents)
    }

    /// The mean over the seeds for each pedestrian, then over the pedestrians.
    fn metric(&self, value: impl Fn(&AgentRecord) -> f64) -> Metric {
        let values: Vec<Vec<f64>> = self
            .evaluations
            .iter()
            .map(|evaluation| evaluation.agents.iter().map(&value).collect())
            .collect();
        let seeds = values.len() as f64;
        let agents = values.first().map_or(0, Vec::len);
        let over_seeds =
            (0..agents).map(|agent| values.iter().map(|seed| seed[agent]).sum::<f64>() / seeds);
        let Summary { mean, se, n, .. } = Summary::of(over_seeds);
        let by_seed = values.iter().map(|v| v.iter().sum::<f64>() / v.len() as f64).collect();
        Metric { mean, se, n, by_seed }
    }

    /// `kept` is the histogram of evidential.
    fn decoding(&self, kept: &[u64]) -> DecodingSummary {
        let calls: u64 = kept.iter().zip(0..).map(|(agents, size)| agents * size).sum();
        let all: Vec<&Decoding> =
            self.evaluations.iter().flat_map(|evaluation| &evaluation.decodings).collect();
        let of = |value: fn(&Decoding) -> f64| median(all.iter().map(|d| value(d)).collect());
        DecodingSummary {
            calls_kept: calls as f64 / kept.iter().sum::<u64>() as f64,
            calls_all: self.classes,
            milliseconds_kept: 1e3 * of(|d| d.seconds_kept),
            milliseconds_all: 1e3 * of(|d| d.seconds_all),
            speedup: of(|d| d.seconds_all / d.seconds_kept),
        }
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}
