//! Small grey images, as decoders make them.

use anyhow::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Rows of grey pixels from black (0) to white (255), from the top. In JSON the pixels are base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub(crate) struct GreyImage {
    width: usize,
    pixels: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    width: usize,
    height: usize,
    pixels: String,
}

impl GreyImage {
    /// An image of rows of `width` pixels each.
    pub(crate) fn new(width: usize, pixels: Vec<u8>) -> Result<Self> {
        if width == 0 || pixels.is_empty() || !pixels.len().is_multiple_of(width) {
            bail!("{} pixels are no image of rows of {width}", pixels.len());
        }
        Ok(Self { width, pixels })
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn height(&self) -> usize {
        self.pixels.len() / self.width
    }

    pub(crate) fn pixels(&self) -> &[u8] {
        &self.pixels
    }
}

impl From<GreyImage> for Encoded {
    fn from(image: GreyImage) -> Self {
        let (width, height) = (image.width, image.height());
        Self { width, height, pixels: STANDARD.encode(image.pixels) }
    }
}

impl TryFrom<Encoded> for GreyImage {
    type Error = anyhow::Error;

    fn try_from(encoded: Encoded) -> Result<Self> {
        let Encoded { width, height, pixels } = encoded;
        let pixels = STANDARD.decode(pixels)?;
        if width.checked_mul(height) != Some(pixels.len()) {
            bail!("{} pixels are no image of {width} by {height}", pixels.len());
        }
        Self::new(width, pixels)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn images_come_back_and_broken_ones_do_not() {
        let image = GreyImage::new(2, vec![0, 255, 7, 9, 1, 2]).unwrap();
        let text = serde_json::to_string(&image).unwrap();
        assert_eq!(text, r#"{"width":2,"height":3,"pixels":"AP8HCQEC"}"#);
        assert_eq!(serde_json::from_str::<GreyImage>(&text).unwrap(), image);
        for broken in [
            r#"{"width":2,"height":2,"pixels":"AP8HCQEC"}"#,
            r#"{"width":0,"height":0,"pixels":""}"#,
            r#"{"width":2,"height":3,"pixels":"AP8HCQE!"}"#,
        ] {
            assert!(serde_json::from_str::<GreyImage>(broken).is_err(), "{broken}");
        }
        assert!(GreyImage::new(4, vec![0; 6]).is_err());
    }
}
