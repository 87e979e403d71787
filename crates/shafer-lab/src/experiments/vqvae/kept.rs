//! What methods keep of the prior's distributions on real grids: by teacher forcing, so that all methods see the same
//! logits.

use anyhow::{Context as _, Result};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use shafer::CsrRows;
use shafer_nets::pixel_cnn::PixelCnn;

use super::candidates::Candidate;
use super::codes::Grids;
use crate::experiments::{Handle, Run, Task};
use crate::interrupt;
use crate::summary::quantile;

/// What a method kept on a number of grids.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    /// The number of positions at which 0, 1, 2... codes are kept.
    histogram: Vec<u64>,
    /// The sum over all positions of the kept probability under softmax.
    mass: f64,
    /// The number of positions whose true code is dropped.
    missed: u64,
    /// The sum over all positions of kept codes that occur in the training set, and the largest of these numbers.
    in_use: u64,
    most_in_use: u64,
    /// For each position of the grid: the sum of kept codes over all grids.
    by_position: Vec<u64>,
}

impl Kept {
    fn new(codes: usize, positions: usize) -> Self {
        let (histogram, by_position) = (vec![0; codes + 1], vec![0; positions]);
        Self { histogram, mass: 0.0, missed: 0, in_use: 0, most_in_use: 0, by_position }
    }

    fn add(&mut self, other: &Self) {
        for (sum, &count) in self.histogram.iter_mut().zip(&other.histogram) {
            *sum += count;
        }
        for (sum, &count) in self.by_position.iter_mut().zip(&other.by_position) {
            *sum += count;
        }
        self.mass += other.mass;
        self.missed += other.missed;
        self.in_use += other.in_use;
        self.most_in_use = self.most_in_use.max(other.most_in_use);
    }

    fn rows(&self) -> u64 {
        self.histogram.iter().sum()
    }

    /// The mean number of kept codes.
    pub(super) fn mean(&self) -> f64 {
        self.by_position.iter().sum::<u64>() as f64 / self.rows() as f64
    }

    /// The smallest number of codes that at least this share of the positions does not exceed.
    pub(super) fn quantile(&self, share: f64) -> usize {
        quantile(&self.histogram, self.rows(), share)
    }

    /// The mean probability of the kept codes under softmax.
    pub(super) fn mass(&self) -> f64 {
        self.mass / self.rows() as f64
    }

    /// The share of positions whose true code is dropped.
    pub(super) fn missed(&self) -> f64 {
        self.missed as f64 / self.rows() as f64
    }

    /// The mean number of kept codes that occur in the training set.
    pub(super) fn mean_in_use(&self) -> f64 {
        self.in_use as f64 / self.rows() as f64
    }

    /// The largest number of kept codes that occur in the training set.
    pub(super) fn most_in_use(&self) -> u64 {
        self.most_in_use
    }

    /// The mean number of kept codes at each position.
    pub(super) fn map(&self) -> Vec<f32> {
        let grids = self.rows() / self.by_position.len() as u64;
        self.by_position.iter().map(|&sum| (sum as f64 / grids as f64) as f32).collect()
    }

    /// The rows of one grid: kept codes, softmax of all codes, the true codes.
    fn count(&mut self, rows: &CsrRows<f32>, softmax: &[f64], truth: &[u16], seen: &[bool]) {
        let codes = self.histogram.len() - 1;
        let positions = rows.iter().zip(softmax.chunks_exact(codes)).zip(truth).enumerate();
        for (position, (((kept, _), softmax), &truth)) in positions {
            self.histogram[kept.len()] += 1;
            self.by_position[position] += kept.len() as u64;
            self.mass += kept.iter().map(|&code| softmax[code as usize]).sum::<f64>();
            self.missed += u64::from(!kept.contains(&truth.into()));
            let in_use = kept.iter().filter(|&&code| seen[code as usize]).count() as u64;
            self.in_use += in_use;
            self.most_in_use = self.most_in_use.max(in_use);
        }
    }
}

/// Softmax in double precision, row by row.
fn softmax(logits: &[f32], codes: usize) -> Vec<f64> {
    let mut probabilities = Vec::with_capacity(logits.len());
    for row in logits.chunks_exact(codes) {
        let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let weights: Vec<f64> = row.iter().map(|&l| f64::from(l - largest).exp()).collect();
        let total: f64 = weights.iter().sum();
        probabilities.extend(weights.into_iter().map(|weight| weight / total));
    }
    probabilities
}

/// What each method keeps on these grids. `seen` tells which codes occur in the training set.
pub(super) fn measure(
    prior: &PixelCnn,
    grids: &Grids,
    candidates: &[&Candidate],
    seen: &[bool],
) -> Result<Vec<Kept>> {
    let (codes, positions) = (seen.len(), grids.positions());
    let mut kept = vec![Kept::new(codes, positions); candidates.len()];
    let logits = prior.logits(&grids.codes, &grids.classes)?;
    for (logits, truth) in logits.zip(grids.codes.chunks_exact(positions)) {
        let softmax = softmax(&logits, codes);
        kept.par_iter_mut().zip(candidates).try_for_each(|(kept, candidate)| {
            let mut rows = CsrRows::new();
            candidate
                .csr_into(&logits, seen, &mut rows)
                .with_context(|| format!("{}: the prior's logits", candidate.name.title))?;
            kept.count(&rows, &softmax, truth, seen);
            anyhow::Ok(())
        })?;
    }
    Ok(kept)
}

/// The grids that a job measures.
const GRIDS_PER_JOB: usize = 256;

/// What each method keeps on held-out grids.
pub(super) fn on_held_out(
    prior: &PixelCnn,
    grids: &Grids,
    candidates: &[&Candidate],
    seen: &[bool],
    run: &Run<'_>,
) -> Result<Vec<Kept>> {
    let positions = grids.positions();
    let parts = grids.codes.chunks(GRIDS_PER_JOB * positions);
    let parts = parts.zip(grids.classes.chunks(GRIDS_PER_JOB)).enumerate();
    let task = |(part, (codes, classes)): (usize, (&[u16], &[u16]))| {
        let grids = Grids { codes: codes.to_vec(), classes: classes.to_vec() };
        Task {
            name: format!("kept.{part:03}"),
            size: classes.len() as u64,
            run: move |handle: &Handle<'_>| -> Result<Vec<Kept>> {
                interrupt::check()?;
                let prior = prior.clone().to(handle.device());
                measure(&prior, &grids, candidates, seen)
            },
        }
    };
    let tasks: Vec<_> = parts.map(task).collect();
    let records = run.sequential("kept codes of held-out images", "grids", &tasks)?;
    let mut sums = vec![Kept::new(seen.len(), positions); candidates.len()];
    for record in &records {
        for (sum, part) in sums.iter_mut().zip(record) {
            sum.add(part);
        }
    }
    Ok(sums)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;
    use crate::experiments::vqvae::candidates::{SEEN, all, named};
    use shafer_nets::pixel_cnn::PixelCnnConfig;

    /// Against loops over the logits of an untrained network.
    #[test]
    fn kept_codes_against_plain_loops() {
        let (codes, positions) = (20, 6);
        let config = PixelCnnConfig {
            codes,
            classes: 2,
            latent: [2, 3],
            layers: 2,
            width: 8,
            head_width: 16,
        };
        let prior = PixelCnn::untrained(&config, 3).unwrap();
        let truth = (0..5 * positions as u16).map(|i| i * 7 % 20).collect();
        let grids = Grids { codes: truth, classes: vec![0, 1, 1, 0, 1] };
        let candidates = all(codes).unwrap();
        let chosen = named(&candidates, &["evidential", "softmax", SEEN]);
        let seen: Vec<bool> = (0..codes).map(|code| code % 3 == 0).collect();
        let kept = measure(&prior, &grids, &chosen, &seen).unwrap();
        let logits: Vec<f32> =
            prior.logits(&grids.codes, &grids.classes).unwrap().flatten().collect();
        for (name, kept) in chosen.iter().map(|c| c.name.name.as_str()).zip(&kept) {
            let (mut sizes, mut mass, mut missed) = (Vec::new(), 0.0, 0);
            let mut in_use = Vec::new();
            for (row, logits) in logits.chunks_exact(codes).enumerate() {
                let logits: Vec<f64> = logits.iter().map(|&l| l.into()).collect();
                let mean = logits.iter().sum::<f64>() / codes as f64;
                let keeps = |code: usize| match name {
                    "evidential" => logits[code] > mean,
                    "softmax" => true,
                    _ => seen[code],
                };
                let total: f64 = logits.iter().map(|l| l.exp()).sum();
                let which: Vec<usize> = (0..codes).filter(|&code| keeps(code)).collect();
                mass += which.iter().map(|&code| logits[code].exp() / total).sum::<f64>();
                missed += usize::from(!keeps(grids.codes[row].into()));
                in_use.push(which.iter().filter(|&&code| code % 3 == 0).count());
                sizes.push(which.len());
            }
            let rows = sizes.len() as f64;
            let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{name}: {a} and {b}");
            close(kept.mean(), sizes.iter().sum::<usize>() as f64 / rows);
            close(kept.mass(), mass / rows);
            close(kept.missed(), missed as f64 / rows);
            assert_eq!(kept.quantile(1.0), *sizes.iter().max().unwrap());
            close(kept.mean_in_use(), in_use.iter().sum::<usize>() as f64 / rows);
            assert_eq!(kept.most_in_use(), *in_use.iter().max().unwrap() as u64);
            let third = (0..5).map(|grid| sizes[grid * positions + 2]).sum::<usize>();
            close(kept.map()[2].into(), third as f64 / 5.0);
        }
    }
}
