//! What one training comes to: distances, supports and evidence at every checkpoint.

use anyhow::{Context as _, Result};
use shafer::{
    Belief, Evidence, Logits, Softmax, Transform, TransformExt as _, bhattacharyya, target,
    wasserstein_1_unit,
};

use super::results::TargetFrom;
use super::seed_record::{Checkpoint, LatentClass, SeedRecord};

/// One number at every checkpoint of a training.
pub(super) type Series = Vec<f64>;
/// For both queries and every method.
pub(super) type PerMethod = [Vec<Series>; 2];

/// What was measured of one training.
pub(super) struct Measured<'a> {
    pub(super) record: &'a SeedRecord,
    pub(super) bhattacharyya: PerMethod,
    pub(super) wasserstein: PerMethod,
    pub(super) kept: PerMethod,
    pub(super) ignorance: [Series; 2],
    pub(super) internal_conflict: [Series; 2],
    /// At the last checkpoint, if a classifier judged the latent classes.
    pub(super) wrong: Option<[Vec<f64>; 2]>,
    /// Of the last checkpoint.
    pub(super) last: [Distributions; 2],
}

/// One of the things that were measured.
pub(super) type Part<T> = for<'s, 'r> fn(&'s Measured<'r>) -> &'s T;

/// What a checkpoint comes to for one query.
#[derive(Clone, Default)]
pub(super) struct Distributions {
    pub(super) target: Vec<f64>,
    /// For each method.
    pub(super) rows: Vec<Vec<f64>>,
}

impl<'a> Measured<'a> {
    /// Measures a training of which every checkpoint has been checked.
    pub(super) fn of(
        record: &'a SeedRecord,
        methods: &[(String, Box<dyn Transform>)],
        queries: &[String; 2],
        target: TargetFrom,
    ) -> Result<Self> {
        let empty = || std::array::from_fn(|_| vec![Series::new(); methods.len()]);
        let mut measured = Self {
            record,
            bhattacharyya: empty(),
            wasserstein: empty(),
            kept: empty(),
            ignorance: [const { Series::new() }; 2],
            internal_conflict: [const { Series::new() }; 2],
            wrong: None,
            last: [Distributions::default(), Distributions::default()],
        };
        let last = record.checkpoints.last().context("there is no checkpoint")?;
        let last_targets = targets(last)?;
        for checkpoint in &record.checkpoints {
            let targets = match target {
                TargetFrom::LastCheckpoint => last_targets.clone(),
                TargetFrom::EachCheckpoint => targets(checkpoint)?,
            };
            for (query, target) in targets.into_iter().enumerate() {
                let logits = wide(&checkpoint.logits[query]);
                let belief = Belief::new(&Evidence::from_logits(&logits)?);
                measured.ignorance[query].push(belief.ignorance());
                measured.internal_conflict[query].push(belief.internal_conflict());
                let mut rows = Vec::with_capacity(methods.len());
                for (place, (title, method)) in methods.iter().enumerate() {
                    let (row, kept) = distribution(&**method, &logits).with_context(|| {
                        let query = &queries[query];
                        format!("iteration {}, {query}, {title}", checkpoint.iteration)
                    })?;
                    let measure = [
                        (&mut measured.bhattacharyya, bhattacharyya(&row, &target)?),
                        (&mut measured.wasserstein, wasserstein_1_unit(&row, &target)?),
                        (&mut measured.kept, kept as f64),
                    ];
                    for (series, value) in measure {
                        series[query][place].push(value);
                    }
                    rows.push(row);
                }
                measured.last[query] = Distributions { target, rows };
            }
        }
        measured.wrong = record.latents.as_deref().and_then(judged).map(|queries| {
            std::array::from_fn(|query| {
                let wrong = |row: &Vec<f64>| {
                    row.iter().zip(&queries).filter(|(_, q)| **q != query).map(|(p, _)| p).sum()
                };
                measured.last[query].rows.iter().map(wrong).collect()
            })
        });
        Ok(measured)
    }

    pub(super) fn iterations(&self) -> impl Iterator<Item = u64> + '_ {
        self.record.checkpoints.iter().map(|checkpoint| checkpoint.iteration)
    }
}

/// The queries that a classifier takes the latent classes for.
pub(super) fn judged(latents: &[LatentClass]) -> Option<Vec<usize>> {
    latents.iter().map(|latent| Some(latent.judged.as_ref()?.query)).collect()
}

fn wide(logits: &[f32]) -> Vec<f64> {
    logits.iter().copied().map(f64::from).collect()
}

/// The target distribution of each query.
fn targets(checkpoint: &Checkpoint) -> Result<[Vec<f64>; 2]> {
    let [even, odd] = [0, 1].map(|query| Softmax.row(&wide(&checkpoint.logits[query])));
    let (even, odd) = (even?, odd?);
    Ok([target(&even, &odd)?, target(&odd, &even)?])
}

/// A method's distribution, and how many classes it keeps: those with a place in the sparse row,
/// however small their probability.
fn distribution(method: &dyn Transform, logits: &[f64]) -> Result<(Vec<f64>, usize)> {
    let rows = method.compressed(&Logits::row(logits)?)?;
    let (classes, values) = rows.row(0).unwrap_or_default();
    let mut row = vec![0.0; logits.len()];
    for (class, value) in classes.iter().zip(values) {
        row[*class as usize] = *value;
    }
    Ok((row, classes.len()))
}
