//! Writes synthetic multimodal logits, to try the tool on.
//!
//! `cargo run -p shafer-lab --example multimodal -- logits.npy` writes 2,000 rows of 32 classes, the same on every run.
//! Each row has a sharp mode and up to three weaker ones, each a class with its neighbours, over random noise.

use std::error::Error;
use std::path::PathBuf;

use shafer_data::{Dtype, NpyWriter, RowWriter as _, ValuesRef};

const ROWS: usize = 2000;
const CLASSES: usize = 32;

fn main() -> Result<(), Box<dyn Error>> {
    let Some(path) = std::env::args_os().nth(1).map(PathBuf::from) else {
        return Err("no output; run: cargo run --example multimodal -- logits.npy".into());
    };
    let mut random = Random(1);
    let rows: Vec<f32> = (0..ROWS).flat_map(|_| row(&mut random)).collect();
    let mut writer = Box::new(NpyWriter::create(&path, CLASSES, Dtype::F32)?);
    writer.write_dense(ValuesRef::F32(&rows))?;
    writer.finish()?;
    Ok(())
}

fn row(random: &mut Random) -> Vec<f32> {
    let mut row: Vec<f64> = (0..CLASSES).map(|_| 0.6 * random.normal()).collect();
    let modes = 1 + random.below(4);
    for mode in 0..modes {
        let middle = random.below(CLASSES) as f64;
        // The first mode is the strongest; the height of the others is random.
        let height = if mode == 0 { 5.0 } else { 2.0 + 2.5 * random.uniform() };
        let width = 0.6 + 0.8 * random.uniform();
        for (class, logit) in row.iter_mut().enumerate() {
            let distance = (class as f64 - middle) / width;
            *logit += height / (1.0 + distance * distance * distance * distance);
        }
    }
    row.into_iter().map(|logit| logit as f32).collect()
}

/// `SplitMix64`, reproducible on every platform.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Uniform in [0, 1).
    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// Approximately normal: the sum of twelve uniform numbers, without functions that round differently on other
    /// platforms.
    fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0
    }
}
