//! What a classifier says of images: whether they show their class, how different they are, how near to real ones.

use anyhow::Result;
use serde::{Deserialize, Serialize};
use shafer_nets::vqvae::VqVae;
use shafer_nets::wide_residual::WideResidual;

use super::codes::Grids;
use super::frechet::Moments;
use super::pictures::Pictures;
use super::results::{REAL, RECONSTRUCTED};
use super::samples::Sampled;
use crate::experiments::methods::MethodName;
use crate::experiments::{Handle, Run, Task};
use crate::interrupt;

/// Images of all classes, judged.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Judged {
    pub(super) classes: Vec<JudgedClass>,
    /// Of the classifier's features over all images; missing for fewer than two images.
    pub(super) moments: Option<Moments>,
}

/// The images of one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JudgedClass {
    pub(super) images: u64,
    /// The number of images whose class is the most probable one.
    pub(super) top1: u64,
    /// The number of images whose class is among the five most probable ones.
    pub(super) top5: u64,
    /// The mean distance between two images; missing for fewer than two.
    pub(super) diversity: Option<f64>,
}

/// A share of images, and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    pub(super) share: f64,
    pub(super) se: f64,
}

/// Images that are judged.
enum Source<'a> {
    /// Held-out images.
    Real,
    /// Held-out images, encoded and decoded.
    Reconstructed,
    Sampled(&'a Sampled),
}

/// The stage that judges images.
pub(super) struct Judge<'a> {
    pub(super) classifier: &'a WideResidual,
    pub(super) vqvae: &'a VqVae,
    pub(super) held_out: &'a Pictures,
    pub(super) grids: &'a Grids,
    /// The rows of the held-out images of each class.
    pub(super) by_class: &'a [Vec<u32>],
    /// The images of each class whose distances are measured.
    pub(super) compared: usize,
}

impl Judge<'_> {
    /// Judges the real images, then those that each method sampled.
    pub(super) fn judge(
        &self,
        methods: &[MethodName],
        sampled: &[Sampled],
        run: &Run<'_>,
    ) -> Result<Vec<(String, Judged)>> {
        let mut sources = vec![(REAL, Source::Real), (RECONSTRUCTED, Source::Reconstructed)];
        let of_methods = sampled.iter().map(Source::Sampled);
        sources.extend(methods.iter().map(|method| method.name.as_str()).zip(of_methods));
        let mut tasks = Vec::new();
        for (name, source) in &sources {
            let judge = move |handle: &Handle<'_>| self.judge_all(source, handle);
            let size = match source {
                Source::Real | Source::Reconstructed => self.held_out.len(),
                Source::Sampled(sampled) => sampled.images(self.grids.positions()),
            };
            tasks.push(Task { name: format!("judged.{name}"), size: size as u64, run: judge });
        }
        let judged = run.sequential("judging images", "images", &tasks)?;
        Ok(sources.iter().map(|(name, _)| (*name).to_owned()).zip(judged).collect())
    }

    fn judge_all(&self, source: &Source<'_>, handle: &Handle<'_>) -> Result<Judged> {
        let classifier = self.classifier.clone().to(handle.device());
        let vqvae = self.vqvae.clone().to(handle.device());
        let [rows, columns] = classifier.config().image;
        let (mut features, mut classes) = (Vec::new(), Vec::new());
        for (class, held_out) in self.by_class.iter().enumerate() {
            interrupt::check()?;
            let images = match source {
                Source::Real => self.held_out.pixels(0, held_out),
                Source::Reconstructed => vqvae.decode(&self.grids.of_rows(held_out))?,
                Source::Sampled(sampled) => vqvae.decode(sampled.codes(class))?,
            };
            let judged = classifier.judge(&images)?;
            let labels = vec![class as u16; judged.len()];
            let hits = |top| -> Result<u64> {
                Ok(judged.hits(&labels, top)?.into_iter().filter(|&hit| hit).count() as u64)
            };
            classes.push(JudgedClass {
                images: judged.len() as u64,
                top1: hits(1)?,
                top5: hits(5)?,
                diversity: diversity(&images, 3 * rows * columns, self.compared),
            });
            features.extend_from_slice(judged.features());
            handle.advance(judged.len() as u64);
        }
        let moments = Moments::of(&features, classifier.config().features());
        Ok(Judged { classes, moments })
    }
}

impl Judged {
    pub(super) fn top1(&self) -> Share {
        self.share(|class| class.top1)
    }

    pub(super) fn top5(&self) -> Share {
        self.share(|class| class.top5)
    }

    fn share(&self, hits: impl Fn(&JudgedClass) -> u64) -> Share {
        let images = self.classes.iter().map(|class| class.images).sum::<u64>() as f64;
        let share = self.classes.iter().map(hits).sum::<u64>() as f64 / images;
        Share { share, se: (share * (1.0 - share) / images).sqrt() }
    }

    /// The mean over the classes.
    pub(super) fn diversity(&self) -> Option<f64> {
        let values: Vec<f64> = self.classes.iter().filter_map(|class| class.diversity).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    }
}

/// The mean distance over all pairs of the first images: the root of the mean squared difference of a pixel's
/// channel, from -1 to 1.
fn diversity(images: &[f32], size: usize, compared: usize) -> Option<f64> {
    let images: Vec<&[f32]> = images.chunks_exact(size).take(compared).collect();
    let (mut sum, mut pairs) = (0.0, 0_u64);
    for (place, a) in images.iter().enumerate() {
        for b in &images[..place] {
            let squares: f64 = a.iter().zip(*b).map(|(x, y)| f64::from(x - y).powi(2)).sum();
            sum += (squares / size as f64).sqrt();
            pairs += 1;
        }
    }
    (pairs > 0).then(|| sum / pairs as f64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn diversity_by_hand() {
        // Distances 1, 2 and sqrt((9 + 1) / 2).
        let images = [0.0, 0.0, 1.0, 1.0, -2.0, 2.0, 9.0, 9.0];
        let pairs = [1.0, 2.0, 5.0_f64.sqrt()];
        let mean = pairs.iter().sum::<f64>() / 3.0;
        assert!((diversity(&images, 2, 3).unwrap() - mean).abs() < 1e-12);
        assert_eq!(diversity(&images, 2, 1), None);
        assert_eq!(diversity(&images[..4].repeat(2)[..4], 4, 9), None);
        assert_eq!(diversity(&[0.5; 8], 4, 9), Some(0.0));
    }

    #[test]
    fn shares_are_over_all_images() {
        let class = |images, top1, top5, diversity| JudgedClass { images, top1, top5, diversity };
        let classes = vec![class(10, 4, 8, Some(0.5)), class(30, 6, 20, None)];
        let judged = Judged { classes, moments: None };
        assert_eq!(judged.top1().share, 0.25);
        assert!((judged.top1().se - (0.25 * 0.75 / 40.0_f64).sqrt()).abs() < 1e-15);
        assert_eq!(judged.top5().share, 0.7);
        assert_eq!(judged.diversity(), Some(0.5));
    }
}
