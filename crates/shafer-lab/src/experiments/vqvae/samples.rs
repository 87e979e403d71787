//! Images sampled from the prior by each method.

use anyhow::{Context as _, Result};
use serde::{Deserialize, Serialize};
use shafer_nets::pixel_cnn::{PixelCnn, Sampler};
use shafer_nets::vqvae::VqVae;

use super::candidates::Candidate;
use super::codes::{Codes, Grids};
use super::config::Config;
use super::pictures::Pictures;
use super::results;
use crate::drawing::Image;
use crate::experiments::methods::MethodName;
use crate::experiments::{Handle, Run, Task};
use crate::interrupt;
use crate::method::{EVIDENTIAL, SOFTMAX, SPARSEMAX};

/// The samples of a method for one class.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct SampledClass {
    codes: Codes,
    /// The sum of kept codes over all positions of all images.
    kept: u64,
    most_kept: u32,
}

/// The samples of a method, class by class.
pub(super) struct Sampled(Vec<SampledClass>);

impl Sampled {
    /// The grids of a class.
    pub(super) fn codes(&self, class: usize) -> &[u16] {
        &self.0[class].codes.0
    }

    /// The number of all images, whose grids have this number of positions.
    pub(super) fn images(&self, positions: usize) -> usize {
        self.0.iter().map(|class| class.codes.0.len()).sum::<usize>() / positions
    }

    pub(super) fn kept_mean(&self) -> f64 {
        let positions: usize = self.0.iter().map(|class| class.codes.0.len()).sum();
        self.0.iter().map(|class| class.kept).sum::<u64>() as f64 / positions as f64
    }

    pub(super) fn kept_max(&self) -> usize {
        self.0.iter().map(|class| class.most_kept as usize).max().unwrap_or(0)
    }
}

/// Samples the images of every class by each method, with the same random numbers.
pub(super) fn sample(
    config: &Config,
    classes: usize,
    prior: &PixelCnn,
    candidates: &[Candidate],
    seen: &[bool],
    run: &Run<'_>,
) -> Result<Vec<Sampled>> {
    let sampler = &Sampler::new(prior);
    let mut tasks = Vec::new();
    for candidate in candidates {
        for class in 0..classes {
            let sampling = candidate.sampling(config.seed, (class * config.samples) as u32, seen);
            let sample = move |_: &Handle<'_>| -> Result<SampledClass> {
                interrupt::check()?;
                let samples = sampler.sample(&vec![class as u16; config.samples], &sampling)?;
                Ok(SampledClass {
                    codes: Codes(samples.codes),
                    kept: samples.kept.iter().copied().map(u64::from).sum(),
                    most_kept: samples.kept.into_iter().max().unwrap_or(0),
                })
            };
            let name = format!("samples.{}.{class:03}", candidate.name.name);
            tasks.push(Task { name, size: config.samples as u64, run: sample });
        }
    }
    let mut records = run.sequential("sampling", "images", &tasks)?.into_iter();
    Ok(candidates.iter().map(|_| Sampled(records.by_ref().take(classes).collect())).collect())
}

/// The bytes of all embedded images: as base64 in JSON they take a third more.
const MOST_BYTES: usize = 600_000;
const MOST_CLASSES: usize = 10;
const MOST_SAMPLES: usize = 5;
const MOST_RECONSTRUCTIONS: usize = 6;

/// How many images are embedded, so that the results file stays small: reconstructions, classes, and samples of each
/// class and method.
fn embedded(bytes_per_image: usize) -> [usize; 3] {
    let images = MOST_BYTES / bytes_per_image;
    let reconstructions = (images / 8).clamp(1, MOST_RECONSTRUCTIONS);
    let left = images.saturating_sub(2 * reconstructions);
    // At least two samples of a class, each by three methods.
    let classes = (left / 6).clamp(1, MOST_CLASSES);
    [reconstructions, classes, (left / (3 * classes)).clamp(1, MOST_SAMPLES)]
}

/// A few samples of the paper's methods, and a few reconstructions.
pub(super) fn pictures(
    config: &Config,
    held_out: &Pictures,
    held_out_grids: &Grids,
    vqvae: &VqVae,
    methods: &[MethodName],
    sampled: &[Sampled],
) -> Result<results::Pictures> {
    let [reconstructions, most_classes, most_samples] = embedded(3 * config.image * config.image);
    let classes = sampled.first().context("there is no method")?.0.len();
    let shown = most_classes.min(classes);
    let chosen: Vec<usize> = (0..shown).map(|place| place * classes / shown).collect();
    let positions = held_out_grids.positions();
    let decoded = |codes: &[u16], most: usize| -> Result<Vec<Image>> {
        let codes = &codes[..codes.len().min(most * positions)];
        images(&vqvae.decode(codes)?, config.image)
    };
    let mut samples = results::ByMethod::new();
    for (MethodName { name, .. }, sampled) in methods.iter().zip(sampled) {
        if [SOFTMAX, SPARSEMAX, EVIDENTIAL].contains(&name.as_str()) {
            let of_class = |&class: &usize| decoded(sampled.codes(class), most_samples);
            samples.insert(name.clone(), chosen.iter().map(of_class).collect::<Result<_>>()?);
        }
    }
    let count = reconstructions.min(held_out.len());
    let rows: Vec<u32> = (0..count).map(|place| (place * held_out.len() / count) as u32).collect();
    let real = images(&held_out.pixels(0, &rows), config.image)?;
    let codes = held_out_grids.of_rows(&rows);
    let reconstructions = real.into_iter().zip(decoded(&codes, count)?);
    Ok(results::Pictures {
        classes: chosen,
        samples,
        reconstructions: reconstructions.map(<[Image; 2]>::from).collect(),
    })
}

/// From images x 3 x side x side, from -1 to 1, to bytes.
fn images(values: &[f32], side: usize) -> Result<Vec<Image>> {
    let area = side * side;
    let image = |values: &[f32]| {
        let byte = |at: usize| ((values[at] + 1.0) * 127.5).round() as u8;
        let bytes =
            (0..area).flat_map(|pixel| [0, 1, 2].map(|channel| byte(channel * area + pixel)));
        Image::rgb(side, bytes.collect())
    };
    values.chunks_exact(3 * area).map(image).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn embedded_images_are_few() {
        assert_eq!(embedded(3 * 32 * 32), [6, 10, 5]);
        for side in [4, 32, 64, 128, 256, 1024] {
            let [reconstructions, classes, samples] = embedded(3 * side * side);
            let images = 2 * reconstructions + 3 * classes * samples;
            assert!(images <= 5.max(MOST_BYTES / (3 * side * side)), "{side}: {images}");
        }
    }

    #[test]
    fn pixels_are_bytes() {
        let values =
            [-1.0, 0.0, 1.0, 2.0, /* */ 1.0, 1.0, 1.0, 1.0, /* */ -1.0, -1.0, -1.0, -9.0];
        let expected = [0, 255, 0, 128, 255, 0, 255, 255, 0, 255, 255, 0];
        assert_eq!(images(&values, 2).unwrap(), [Image::rgb(2, expected.to_vec()).unwrap()]);
    }
}
