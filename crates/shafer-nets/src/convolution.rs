//! The convolutional posterior and decoder of the paper's `NotMNIST` experiment (figure 9).

use burn::module::Module;
use burn::tensor::Tensor;
use burn::tensor::activation::relu;

use crate::layers::{Convolution, Initialiser, Linear, Window};
use crate::{Error, Result};

/// The three kernels of the encoder, in reverse for the decoder.
const WINDOWS: [Window; 3] = [
    Window { side: 6, stride: 2, padding: 0 },
    Window { side: 4, stride: 2, padding: 1 },
    Window { side: 2, stride: 2, padding: 1 },
];

/// The side of an image after the three convolutions, if the transposed ones restore it.
fn reduced(side: usize) -> Option<usize> {
    let small = WINDOWS.iter().try_fold(side, |side, window| {
        let room = (side + 2 * window.padding).checked_sub(window.side)?;
        Some(room / window.stride + 1)
    })?;
    let restored = WINDOWS.iter().rev().try_fold(small, |side, window| {
        ((side - 1) * window.stride + window.side).checked_sub(2 * window.padding)
    })?;
    (restored == side).then_some(small)
}

/// Checks that the decoder restores this side of an image.
pub(crate) fn check_side(side: usize) -> Result<()> {
    match reduced(side) {
        Some(_) => Ok(()),
        None => Err(Error::config(
            "image",
            format!("must have sides that the decoder restores, such as 28, but has {side}"),
        )),
    }
}

/// From an image with channels to the logits of the latent classes.
#[derive(Module, Debug)]
pub(crate) struct Encoder {
    convolutions: Vec<Convolution>,
    output: Linear,
}

impl Encoder {
    pub(crate) fn new(
        init: &mut Initialiser,
        image: [usize; 2],
        inputs: usize,
        channels: [usize; 3],
        classes: usize,
    ) -> Self {
        let before = [inputs, channels[0], channels[1]];
        let convolutions =
            (0..3).map(|i| Convolution::new(init, before[i], channels[i], WINDOWS[i])).collect();
        let output = Linear::new(init, small_size(image, channels[2]), classes);
        Self { convolutions, output }
    }

    pub(crate) fn forward(&self, x: Tensor<4>) -> Tensor<2> {
        let hidden = self.convolutions.iter().fold(x, |x, layer| relu(layer.forward(x)));
        self.output.forward(hidden.flatten(1, 3))
    }
}

/// From a latent class to the logits of the pixels.
#[derive(Module, Debug)]
pub(crate) struct Decoder {
    input: Linear,
    deconvolutions: Vec<Convolution>,
    #[module(skip)]
    small: [usize; 3],
}

impl Decoder {
    pub(crate) fn new(
        init: &mut Initialiser,
        image: [usize; 2],
        channels: [usize; 3],
        classes: usize,
    ) -> Self {
        let [rows, columns] = image.map(|side| reduced(side).unwrap_or(1));
        let after = [1, channels[0], channels[1]];
        let input = Linear::new(init, classes, small_size(image, channels[2]));
        let deconvolutions = (0..3)
            .rev()
            .map(|i| Convolution::transposed(init, channels[i], after[i], WINDOWS[i]))
            .collect();
        Self { input, deconvolutions, small: [channels[2], rows, columns] }
    }

    pub(crate) fn forward(&self, z: Tensor<2>) -> Tensor<2> {
        let [examples, _] = z.dims();
        let [channels, rows, columns] = self.small;
        let mut x = self.input.forward(z).reshape([examples, channels, rows, columns]);
        for (i, layer) in self.deconvolutions.iter().enumerate() {
            x = layer.forward(if i == 0 { x } else { relu(x) });
        }
        x.flatten(1, 3)
    }
}

/// The number of values after the convolutions.
fn small_size(image: [usize; 2], channels: usize) -> usize {
    image.iter().map(|&side| reduced(side).unwrap_or(1)).product::<usize>() * channels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sides_that_the_decoder_restores() {
        assert_eq!(reduced(28), Some(4));
        assert_eq!(reduced(12), Some(2));
        assert_eq!(reduced(27), None);
        assert_eq!(reduced(3), None);
        assert!(check_side(28).is_ok());
        assert_eq!(
            check_side(27).unwrap_err().to_string(),
            "image must have sides that the decoder restores, such as 28, but has 27",
        );
    }
}
