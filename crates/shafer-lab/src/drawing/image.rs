//! Small images, such as decoders make.

use anyhow::{Result, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Rows of pixels from the top, a byte each for grey images and three (red, green, blue) for colour images. In JSON
/// the bytes are base64.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Encoded", into = "Encoded")]
pub(crate) struct Image {
    width: usize,
    channels: usize,
    bytes: Vec<u8>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Encoded {
    width: usize,
    height: usize,
    /// Left out for grey images.
    #[serde(default = "grey", skip_serializing_if = "is_grey")]
    channels: usize,
    pixels: String,
}

fn grey() -> usize {
    1
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_grey(channels: &usize) -> bool {
    *channels == grey()
}

impl Image {
    /// A grey image of rows of `width` pixels.
    pub(crate) fn grey(width: usize, bytes: Vec<u8>) -> Result<Self> {
        Self::new(width, grey(), bytes)
    }

    /// A colour image of rows of `width` pixels.
    pub(crate) fn rgb(width: usize, bytes: Vec<u8>) -> Result<Self> {
        Self::new(width, 3, bytes)
    }

    fn new(width: usize, channels: usize, bytes: Vec<u8>) -> Result<Self> {
        let row = width.saturating_mul(channels);
        if !matches!(channels, 1 | 3)
            || row == 0
            || bytes.is_empty()
            || !bytes.len().is_multiple_of(row)
        {
            bail!("{} bytes are not rows of {width} pixels of {channels} channels", bytes.len());
        }
        Ok(Self { width, channels, bytes })
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn height(&self) -> usize {
        self.bytes.len() / self.channels / self.width
    }

    /// Four bytes a pixel; all pixels are opaque.
    pub(crate) fn rgba(&self) -> Vec<u8> {
        let pixels = self.bytes.chunks_exact(self.channels);
        pixels
            .flat_map(|pixel| [pixel[0], pixel[self.channels / 2], pixel[self.channels - 1], 255])
            .collect()
    }

    /// The bytes of a PNG file.
    pub(crate) fn png(&self) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, self.width as u32, self.height() as u32);
        let grey = is_grey(&self.channels);
        encoder.set_color(if grey { png::ColorType::Grayscale } else { png::ColorType::Rgb });
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header()?;
        writer.write_image_data(&self.bytes)?;
        writer.finish()?;
        Ok(bytes)
    }
}

impl From<Image> for Encoded {
    fn from(image: Image) -> Self {
        let (width, height, channels) = (image.width, image.height(), image.channels);
        Self { width, height, channels, pixels: STANDARD.encode(image.bytes) }
    }
}

impl TryFrom<Encoded> for Image {
    type Error = anyhow::Error;

    fn try_from(encoded: Encoded) -> Result<Self> {
        let Encoded { width, height, channels, pixels } = encoded;
        let image = Self::new(width, channels, STANDARD.decode(pixels)?)?;
        if image.height() != height {
            bail!("the image has {} rows, not {height}", image.height());
        }
        Ok(image)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn is_read_back(image: &Image, text: &str) {
        assert_eq!(serde_json::to_string(image).unwrap(), text);
        assert_eq!(serde_json::from_str::<Image>(text).unwrap(), *image);
    }

    fn decoded(png: &[u8]) -> (png::ColorType, Vec<u8>) {
        let mut reader = png::Decoder::new(std::io::Cursor::new(png)).read_info().unwrap();
        let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut pixels).unwrap();
        (info.color_type, pixels)
    }

    #[test]
    fn images_survive_json_and_png() {
        let grey = Image::grey(2, vec![0, 255, 7, 9, 1, 2]).unwrap();
        is_read_back(&grey, r#"{"width":2,"height":3,"pixels":"AP8HCQEC"}"#);
        assert_eq!(
            decoded(&grey.png().unwrap()),
            (png::ColorType::Grayscale, vec![0, 255, 7, 9, 1, 2])
        );
        assert_eq!(grey.rgba()[4..12], [255, 255, 255, 255, 7, 7, 7, 255]);
        let colour = Image::rgb(1, vec![0, 255, 7, 9, 1, 2]).unwrap();
        is_read_back(&colour, r#"{"width":1,"height":2,"channels":3,"pixels":"AP8HCQEC"}"#);
        assert_eq!(
            decoded(&colour.png().unwrap()),
            (png::ColorType::Rgb, vec![0, 255, 7, 9, 1, 2])
        );
        assert_eq!(colour.rgba(), [0, 255, 7, 255, 9, 1, 2, 255]);
    }

    #[test]
    fn broken_images_are_refused() {
        for broken in [
            r#"{"width":2,"height":2,"pixels":"AP8HCQEC"}"#,
            r#"{"width":0,"height":0,"pixels":""}"#,
            r#"{"width":2,"height":3,"pixels":"AP8HCQE!"}"#,
            r#"{"width":2,"height":1,"channels":2,"pixels":"AP8HCQEC"}"#,
            r#"{"width":18446744073709551615,"height":1,"channels":3,"pixels":"AP8HCQEC"}"#,
        ] {
            assert!(serde_json::from_str::<Image>(broken).is_err(), "{broken}");
        }
        assert!(Image::grey(4, vec![0; 6]).is_err());
    }
}
