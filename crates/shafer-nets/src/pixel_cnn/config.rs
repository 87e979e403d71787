//! The shape of a gated PixelCNN.

use serde::{Deserialize, Serialize};

use crate::config::size;
use crate::{Error, Result};

/// A class-conditional gated PixelCNN over a grid of codes.
///
/// The defaults are the paper's: 32 x 32 positions of 512 codes, 64 classes, 20 layers of width 128.
///
/// ```
/// use shafer_nets::pixel_cnn::PixelCnnConfig;
///
/// let config: PixelCnnConfig = serde_json::from_str(r#"{ "latent": [8, 8], "layers": 15, "width": 64 }"#)?;
/// assert_eq!((config.positions(), config.codes), (64, 512));
/// assert!(serde_json::from_str::<PixelCnnConfig>(r#"{ "depth": 15 }"#).is_err());
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PixelCnnConfig {
    /// The number of codes, `K`: every position has one of `0..codes`.
    pub codes: usize,
    /// The number of classes that the network is conditioned on.
    pub classes: usize,
    /// Rows and columns of the grid.
    pub latent: [usize; 2],
    /// The number of gated layers.
    pub layers: usize,
    /// The channels of both stacks.
    pub width: usize,
    /// The hidden channels of the head: `J`, the inputs of the linear layer that is sparsified.
    pub head_width: usize,
}

impl Default for PixelCnnConfig {
    fn default() -> Self {
        Self { codes: 512, classes: 64, latent: [32, 32], layers: 20, width: 128, head_width: 512 }
    }
}

impl PixelCnnConfig {
    /// The number of positions of a grid.
    pub fn positions(&self) -> usize {
        self.latent[0] * self.latent[1]
    }

    /// Whether such a network can be made.
    pub fn check(&self) -> Result<()> {
        size("codes", self.codes)?;
        size("classes", self.classes)?;
        size("layers", self.layers)?;
        if self.layers > 1024 {
            let problem = format!("must be at most 1024, but is {}", self.layers);
            return Err(Error::config("layers", problem));
        }
        size("width", self.width)?;
        size("head_width", self.head_width)?;
        for side in self.latent {
            if !(1..=1024).contains(&side) {
                let problem = format!("must have sides from 1 to 1024, but has {side}");
                return Err(Error::config("latent", problem));
            }
        }
        Ok(())
    }

    /// Whether these are grids of codes, each with a class.
    pub(crate) fn check_grids(&self, codes: &[u16], classes: &[u16]) -> Result<()> {
        self.check_classes(classes)?;
        let expected = classes.len() * self.positions();
        if codes.len() != expected {
            let [rows, columns] = self.latent;
            let problem = format!(
                "{expected} are expected ({} classes x {rows} rows x {columns} columns), but there are {}",
                classes.len(),
                codes.len(),
            );
            return Err(Error::data("codes", problem));
        }
        match codes.iter().position(|&code| usize::from(code) >= self.codes) {
            None => Ok(()),
            Some(at) => {
                let (grid, position) = (at / self.positions(), at % self.positions());
                let problem = format!(
                    "grid {grid} has {} at position {position}, but codes must be below {}",
                    codes[at], self.codes,
                );
                Err(Error::data("codes", problem))
            }
        }
    }

    /// Whether the network is conditioned on these classes.
    pub(crate) fn check_classes(&self, classes: &[u16]) -> Result<()> {
        match classes.iter().position(|&class| usize::from(class) >= self.classes) {
            None => Ok(()),
            Some(at) => {
                let (class, bound) = (classes[at], self.classes);
                let problem = format!("that of grid {at} is {class}, but must be below {bound}");
                Err(Error::data("classes", problem))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_named() {
        let config =
            PixelCnnConfig { codes: 5, classes: 2, latent: [1, 3], ..PixelCnnConfig::default() };
        assert!(config.check_grids(&[0, 1, 4, 4, 0, 0], &[0, 1]).is_ok());
        let message = |codes: &[u16], classes: &[u16]| {
            config.check_grids(codes, classes).unwrap_err().to_string()
        };
        assert_eq!(
            message(&[0; 5], &[0, 1]),
            "codes: 6 are expected (2 classes x 1 rows x 3 columns), but there are 5",
        );
        assert_eq!(
            message(&[0, 0, 0, 0, 5, 0], &[0, 1]),
            "codes: grid 1 has 5 at position 1, but codes must be below 5",
        );
        assert_eq!(message(&[0; 6], &[1, 2]), "classes: that of grid 1 is 2, but must be below 2",);
        let wide = PixelCnnConfig { latent: [8, 4096], ..config };
        assert_eq!(
            wide.check().unwrap_err().to_string(),
            "latent must have sides from 1 to 1024, but has 4096",
        );
    }
}
