//! Files of calibrations.

use std::io::Read as _;
use std::path::Path;

use anyhow::{Context as _, Result, bail};
use shafer::calibrate::Calibration;

use crate::atomic;

/// A calibration has a few numbers; with a threshold for each of a million groups it is this long.
const MOST_BYTES: u64 = 100 << 20;

/// Reads a calibration.
pub(crate) fn read(path: &Path) -> Result<Calibration> {
    let label = path.display();
    let mut text = String::new();
    let file = std::fs::File::open(path).with_context(|| format!("{label}: cannot open"))?;
    let read = file.take(MOST_BYTES).read_to_string(&mut text);
    read.with_context(|| format!("{label}: cannot read the calibration"))?;
    match serde_json::from_str(&text) {
        Ok(calibration) => Ok(calibration),
        Err(error) => {
            bail!("{label}: is no calibration of shafer calibrate: {error}")
        }
    }
}

/// Writes a calibration, one that can be read.
pub(super) fn write(path: &Path, calibration: &Calibration) -> Result<()> {
    let mut text = serde_json::to_string_pretty(calibration)?;
    text.push('\n');
    atomic::write(path, text.as_bytes())
}
