//! Sampling with a pass over the whole grid for every position: the reference of [`Sampler`](super::Sampler).

use shafer::CsrRows;

use super::draw::{Samples, Sampling, draw};
use super::model::PixelCnn;
use crate::Result;

impl PixelCnn {
    /// Samples one image for each class as most public code does: a full pass of the network for every
    /// position, of which the logits of that position are used.
    ///
    /// [`Sampler`](super::Sampler) draws the same codes with one pass worth of work; this is what it is tested
    /// and timed against. Only the first `positions` positions are drawn, the others have code 0.
    pub fn sample_by_full_passes(
        &self,
        classes: &[u16],
        sampling: &Sampling<'_>,
        positions: usize,
    ) -> Result<Samples> {
        let config = self.config();
        config.check_classes(classes)?;
        let (all, codes) = (config.positions(), config.codes);
        let mut samples = Samples::with_positions(classes.len() * all);
        if classes.is_empty() {
            return Ok(samples);
        }
        let mut compressed = CsrRows::new();
        for position in 0..positions.min(all) {
            let logits = self.pass(&samples.codes, classes);
            let at_position: Vec<f32> = logits
                .chunks_exact(all * codes)
                .flat_map(|grid| &grid[position * codes..][..codes])
                .copied()
                .collect();
            draw(sampling, &at_position, codes, position, &mut compressed, &mut samples)?;
        }
        Ok(samples)
    }
}
