//! A gated PixelCNN with its weights.

use super::network::{Grids, Network};
use crate::weights::host;
use crate::{Error, Net, Result};

/// A distribution over grids of codes, given a class.
///
/// ```
/// use shafer_nets::pixel_cnn::{PixelCnn, PixelCnnConfig};
///
/// let config = PixelCnnConfig {
///     codes: 5,
///     classes: 2,
///     latent: [3, 4],
///     layers: 2,
///     width: 8,
///     head_width: 16,
/// };
/// let prior = PixelCnn::untrained(&config, 7)?;
/// let logits = prior.logits(&[0; 12], &[1])?.next().unwrap();
/// assert_eq!(logits.len(), 12 * 5);
/// # Ok::<(), shafer_nets::Error>(())
/// ```
pub type PixelCnn = Net<Network>;

/// The positions of a pass: memory does not grow with the number of grids.
const POSITIONS_AT_ONCE: usize = 2048;

impl PixelCnn {
    /// The logits of the code at every position, given its class and the codes before it: an item a grid,
    /// `positions x codes`.
    ///
    /// `codes` are grids one after the other, row by row; each has its class. A few grids are computed at
    /// a time, whatever their number.
    pub fn logits<'a>(
        &'a self,
        codes: &'a [u16],
        classes: &'a [u16],
    ) -> Result<impl Iterator<Item = Vec<f32>> + 'a> {
        self.config.check_grids(codes, classes)?;
        let positions = self.config.positions();
        let grids = (POSITIONS_AT_ONCE / positions).max(1);
        let batches = codes.chunks(grids * positions).zip(classes.chunks(grids));
        Ok(batches.flat_map(move |(codes, classes)| {
            let logits = self.pass(codes, classes);
            let size = positions * self.config.codes;
            logits.chunks_exact(size).map(<[f32]>::to_vec).collect::<Vec<_>>()
        }))
    }

    /// The negative log-likelihood of grids of codes given their classes, in nats: the mean over all
    /// positions.
    pub fn negative_log_likelihood(&self, codes: &[u16], classes: &[u16]) -> Result<f64> {
        if classes.is_empty() {
            return Err(Error::data("codes", "there is not a single grid"));
        }
        let mut sum = 0.0;
        let grids = codes.chunks_exact(self.config.positions());
        for (logits, codes) in self.logits(codes, classes)?.zip(grids) {
            for (logits, &code) in logits.chunks_exact(self.config.codes).zip(codes) {
                let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                let total: f64 = logits.iter().map(|l| f64::from(l - largest).exp()).sum();
                sum += total.ln() - f64::from(logits[usize::from(code)] - largest);
            }
        }
        Ok(sum / codes.len() as f64)
    }

    /// The logits of checked grids, all in one pass.
    pub(super) fn pass(&self, codes: &[u16], classes: &[u16]) -> Vec<f32> {
        let grids = Grids::new(&self.config, codes, classes, &self.device);
        host(self.network.logits(&grids))
    }

    pub(super) fn network(&self) -> &Network {
        &self.network
    }
}
