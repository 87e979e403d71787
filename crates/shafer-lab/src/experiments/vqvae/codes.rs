//! The grids of codes of images.

use anyhow::{Result, ensure};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use shafer_nets::vqvae::{CodeUsage, VqVae};

use super::config::Config;
use super::pictures::Pictures;
use super::train::VQVAE;
use crate::experiments::{Handle, Run, Task};
use crate::interrupt;

/// Codes of a record; in JSON, their little-endian bytes as base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub(super) struct Codes(pub(super) Vec<u16>);

impl From<Codes> for String {
    fn from(Codes(codes): Codes) -> Self {
        let bytes: Vec<u8> = codes.into_iter().flat_map(u16::to_le_bytes).collect();
        STANDARD.encode(bytes)
    }
}

impl TryFrom<String> for Codes {
    type Error = anyhow::Error;

    fn try_from(text: String) -> Result<Self> {
        let bytes = STANDARD.decode(text)?;
        ensure!(
            bytes.len().is_multiple_of(2),
            "{} bytes are not codes of two bytes each",
            bytes.len()
        );
        Ok(Self(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()))
    }
}

/// Grids of codes, one after the other, and the class of each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grids {
    pub(super) codes: Vec<u16>,
    pub(super) classes: Vec<u16>,
}

impl Grids {
    pub(super) fn positions(&self) -> usize {
        self.codes.len() / self.classes.len().max(1)
    }

    /// At most this number of grids, evenly spaced.
    pub(super) fn spaced(&self, most: usize) -> Self {
        let count = self.classes.len();
        let chosen = most.min(count);
        let rows: Vec<u32> = (0..chosen).map(|place| (place * count / chosen) as u32).collect();
        let classes = rows.iter().map(|&row| self.classes[row as usize]).collect();
        Self { codes: self.of_rows(&rows), classes }
    }

    /// The codes of these grids.
    pub(super) fn of_rows(&self, rows: &[u32]) -> Vec<u16> {
        let positions = self.positions();
        rows.iter()
            .flat_map(|&row| &self.codes[row as usize * positions..][..positions])
            .copied()
            .collect()
    }

    pub(super) fn usage(&self, codes: usize) -> CodeUsage {
        let mut usage = CodeUsage::new(codes);
        usage.count(&self.codes);
        usage
    }
}

/// The images that a job encodes.
const IMAGES_PER_JOB: usize = 2048;

/// Encodes the images of a split, once for each epoch of their transform.
pub(super) fn encode(
    split: &str,
    images: &Pictures,
    epochs: std::ops::Range<usize>,
    vqvae: &VqVae,
    run: &Run<'_>,
) -> Result<Grids> {
    let mut tasks = Vec::new();
    let mut grids = Grids::default();
    let rows: Vec<u32> = (0..images.len() as u32).collect();
    for epoch in epochs {
        for (part, rows) in rows.chunks(IMAGES_PER_JOB).enumerate() {
            let run = move |handle: &Handle<'_>| -> Result<Codes> {
                let vqvae = vqvae.clone().to(handle.device());
                let mut codes = Vec::new();
                for rows in rows.chunks(256) {
                    interrupt::check()?;
                    codes.extend(vqvae.encode(&images.pixels(epoch, rows))?);
                    handle.advance(rows.len() as u64);
                }
                Ok(Codes(codes))
            };
            let name = format!("codes.{split}.{epoch}.{part:03}");
            tasks.push(Task { name, size: rows.len() as u64, run });
        }
        grids.classes.extend_from_slice(images.labels());
    }
    for Codes(codes) in run.sequential(&format!("codes of {split} images"), "images", &tasks)? {
        grids.codes.extend(codes);
    }
    Ok(grids)
}

/// The grids of the training images: of whole ones, and of as many random crops as the configuration has.
pub(super) fn of_training(
    config: &Config,
    whole: &Pictures,
    crops: &Pictures,
    vqvae: &VqVae,
    run: &Run<'_>,
) -> Result<Grids> {
    let mut grids = encode("train", whole, 0..1, vqvae, run)?;
    let more = encode("crops", crops, 1..config.views, vqvae, run)?;
    grids.codes.extend(more.codes);
    grids.classes.extend(more.classes);
    Ok(grids)
}

/// The trained VQ-VAE of a run.
pub(super) fn vqvae(run: &Run<'_>) -> Result<VqVae> {
    run.weights(VQVAE, VqVae::from_safetensors)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn codes_survive_json() {
        let codes = Codes(vec![0, 511, 65535, 258]);
        let text = serde_json::to_string(&codes).unwrap();
        assert_eq!(text, r#""AAD/Af//AgE=""#);
        assert_eq!(serde_json::from_str::<Codes>(&text).unwrap(), codes);
        let error = serde_json::from_str::<Codes>(r#""AAD/""#).unwrap_err().to_string();
        assert!(error.contains("3 bytes are not codes"), "{error}");
    }

    #[test]
    fn spaced_grids() {
        let codes = (0..10).collect();
        let grids = Grids { codes, classes: vec![0, 1, 2, 3, 4] };
        let two = Grids { codes: vec![0, 1, 4, 5], classes: vec![0, 2] };
        assert_eq!(grids.spaced(2), two);
        assert_eq!(grids.spaced(9), grids);
    }
}
