//! Distances, supports and evidence at every checkpoint of one training.

use anyhow::{Context as _, Result, bail};
use shafer::{
    Belief, Evidence, Logits, Threads, bhattacharyya, target_distribution, wasserstein_1_unit,
};

use super::record::{Checkpoint, LatentClass, SeedRecord};
use super::results::TargetFrom;
use crate::experiments::methods::Method;

/// One number at every checkpoint.
pub(super) type Series = Vec<f64>;
/// By query.
pub(super) type PerQuery = Vec<Series>;
/// By query, then by method.
pub(super) type PerMethod = Vec<Vec<Series>>;

/// The measurements of one training.
pub(super) struct Measured<'a> {
    pub(super) record: &'a SeedRecord,
    pub(super) bhattacharyya: PerMethod,
    pub(super) wasserstein: PerMethod,
    pub(super) kept: PerMethod,
    pub(super) ignorance: PerQuery,
    pub(super) internal_conflict: PerQuery,
    /// The probability of a sample of another query, by query and method, at the last checkpoint; if a classifier
    /// labelled the latent classes.
    pub(super) wrong: Option<Vec<Vec<f64>>>,
    /// By query, at the last checkpoint.
    pub(super) last: Vec<Distributions>,
}

/// The distributions of a checkpoint for one query.
#[derive(Clone, Default)]
pub(super) struct Distributions {
    pub(super) target: Vec<f64>,
    /// By method.
    pub(super) rows: Vec<Vec<f64>>,
}

impl<'a> Measured<'a> {
    /// Measures a training whose record was checked.
    pub(super) fn of(
        record: &'a SeedRecord,
        methods: &[Method],
        queries: &[String],
        target: TargetFrom,
    ) -> Result<Self> {
        let empty = || vec![vec![Series::new(); methods.len()]; queries.len()];
        let mut measured = Self {
            record,
            bhattacharyya: empty(),
            wasserstein: empty(),
            kept: empty(),
            ignorance: vec![Series::new(); queries.len()],
            internal_conflict: vec![Series::new(); queries.len()],
            wrong: None,
            last: vec![Distributions::default(); queries.len()],
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
                    let (row, kept) = distribution(*method, &logits).with_context(|| {
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
            let wrong = |query: usize, row: &[f64]| {
                row.iter().zip(&queries).filter(|(_, q)| **q != query).map(|(p, _)| p).sum()
            };
            let last = measured.last.iter().enumerate();
            last.map(|(query, last)| last.rows.iter().map(|row| wrong(query, row)).collect())
                .collect()
        });
        Ok(measured)
    }

    pub(super) fn iterations(&self) -> impl Iterator<Item = u64> + '_ {
        self.record.checkpoints.iter().map(|checkpoint| checkpoint.iteration)
    }
}

/// The query of each latent class, as labelled by the classifier.
pub(super) fn judged(latents: &[LatentClass]) -> Option<Vec<usize>> {
    latents.iter().map(|latent| Some(latent.judged.as_ref()?.query)).collect()
}

fn wide(logits: &[f32]) -> Vec<f64> {
    logits.iter().copied().map(f64::from).collect()
}

/// The target distribution of each query. The paper defines it for a pair of complementary queries.
fn targets(checkpoint: &Checkpoint) -> Result<Vec<Vec<f64>>> {
    let [first, second] = &checkpoint.logits[..] else {
        bail!("the target is defined for two queries, not for {}", checkpoint.logits.len());
    };
    let (first, second) =
        (shafer::Method::SOFTMAX.row(&wide(first))?, shafer::Method::SOFTMAX.row(&wide(second))?);
    Ok(vec![target_distribution(&first, &second)?, target_distribution(&second, &first)?])
}

/// A method's distribution, and the number of classes it keeps: those in the sparse row, however small their
/// probability.
fn distribution(method: shafer::Method, logits: &[f64]) -> Result<(Vec<f64>, usize)> {
    let rows = method.csr(&Logits::row(logits)?, Threads::One)?;
    let (classes, values) = rows.row(0).unwrap_or_default();
    let mut row = vec![0.0; logits.len()];
    for (class, value) in classes.iter().zip(values) {
        row[*class as usize] = *value;
    }
    Ok((row, classes.len()))
}
