//! Codes of images: the prior's distributions of the experiment `vqvae` on held-out grids. The true class is the code
//! that the image has there.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rand::rngs::ChaCha8Rng;
use rand::seq::index::sample;
use rand::{Rng, SeedableRng as _};
use serde::{Deserialize, Serialize};
use shafer::calibrate::{Audit, Labelled};
use shafer::{Logits, Method, Threads};
use shafer_data::dataset::{Split, set, stratified};
use shafer_nets::pixel_cnn::PixelCnn;

use crate::Outcome;
use crate::found::{Found, Rows, Table};

/// Rows of the table: all positions of all grids would be gigabytes of logits.
const ROWS: usize = 20_000;

/// The results.
#[derive(Serialize)]
pub(crate) struct Measured {
    data_set: String,
    codes: usize,
    grids: usize,
    /// Positions of each grid that the table has, chosen at random.
    positions_per_grid: usize,
    /// The paper's rule at all positions of all grids. Those of a grid depend on each other, so the interval is too
    /// narrow.
    all_positions: Found,
    table: Table,
}

/// What is read of `run.json`.
#[derive(Deserialize)]
struct RunFile {
    config: Config,
}

#[derive(Deserialize)]
struct Config {
    data_set: String,
    share: f64,
    seed: u64,
}

/// Measures the run of `shafer reproduce vqvae` in a folder.
pub(crate) fn measure(run: &Path, folders: &[PathBuf]) -> Outcome<Measured> {
    let Config { data_set, share, seed } =
        serde_json::from_slice::<RunFile>(&read(&run.join("run.json"))?)?.config;
    let trainings = run.join("trainings");
    let prior = PixelCnn::from_safetensors(&read(&trainings.join("prior.weights.safetensors"))?)?;
    let (width, positions) = (prior.config().codes, prior.config().positions());
    let codes = held_out_codes(&trainings)?;
    // As the experiment has it.
    let split = if data_set == "cifar10" { Split::Test } else { Split::Val };
    let mut labels = set(&data_set)?.colour_images(split, folders, None)?.labels;
    if share != 1.0 {
        let chosen = stratified(&labels, share, &mut ChaCha8Rng::seed_from_u64(seed))?;
        labels = chosen.into_iter().map(|image| labels[image]).collect();
    }
    if codes.len() != labels.len() * positions {
        let found = codes.len() / positions;
        return Err(format!("{found} grids of codes, but {} held-out images", labels.len()).into());
    }
    let positions_per_grid = (ROWS / labels.len()).clamp(1, positions);
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut rows = Rows { logits: Vec::new(), labels: Vec::new() };
    let mut all = Audit::default();
    for (logits, truth) in prior.logits(&codes, &labels)?.zip(codes.chunks_exact(positions)) {
        let truth: Vec<u32> = truth.iter().copied().map(u32::from).collect();
        let labelled = Labelled::new(Logits::rows(&logits, width)?, &truth)?;
        all.add(Method::EVIDENTIAL, &labelled, Threads::One)?;
        rows.extend(&logits, &truth, positions_per_grid, &mut random);
    }
    Ok(Measured {
        data_set,
        codes: width,
        grids: labels.len(),
        positions_per_grid,
        all_positions: Found::new(all.all(), all.mean_size())?,
        table: rows.table()?,
    })
}

impl Rows {
    /// Adds some random rows of these.
    fn extend(&mut self, logits: &[f32], labels: &[u32], count: usize, random: &mut impl Rng) {
        let width = logits.len() / labels.len();
        for row in sample(random, labels.len(), count) {
            self.logits.extend_from_slice(&logits[row * width..][..width]);
            self.labels.push(labels[row]);
        }
    }
}

/// The codes of the held-out images: base64 of little-endian numbers, in the files of several jobs.
fn held_out_codes(trainings: &Path) -> Outcome<Vec<u16>> {
    let mut codes = Vec::new();
    for part in 0.. {
        let path = trainings.join(format!("codes.held-out.0.{part:03}.json"));
        if part > 0 && !path.exists() {
            break;
        }
        let bytes = STANDARD.decode(serde_json::from_slice::<String>(&read(&path)?)?)?;
        codes.extend(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])));
    }
    Ok(codes)
}

fn read(path: &Path) -> Outcome<Vec<u8>> {
    fs::read(path).map_err(|error| format!("{}: {error}", path.display()).into())
}
