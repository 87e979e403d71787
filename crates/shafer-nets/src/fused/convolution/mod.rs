//! Convolutions of images whose channels are innermost: images x rows x columns x channels.
//!
//! In this layout the pixels under a window are runs of consecutive numbers, a window of 1 x 1 is a plain
//! matrix product, and the positions of a latent grid are the rows of a matrix. Weights have PyTorch's
//! layout: outputs x inputs x rows x columns.
//!
//! The gradients of a convolution are a transposed convolution and [`Convolutions::convolve_weight`]; those
//! of a transposed convolution are a convolution and the same function with its arguments swapped.

mod autodiff;
mod composed;
mod cpu;

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, Dispatch, backend_extension};
use burn::tensor::Tensor;
use burn::tensor::ops::ConvOptions;

/// A window and how it moves over images.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    /// Its rows and columns.
    pub(crate) kernel: [usize; 2],
    pub(crate) stride: usize,
    /// Rows of zeros above and below an image.
    pub(crate) rows: [usize; 2],
    /// Columns of zeros to its left and right.
    pub(crate) columns: [usize; 2],
}

impl Window {
    /// A square window, with the same padding on each side.
    pub(crate) const fn square(side: usize, stride: usize, padding: usize) -> Self {
        let padding = [padding; 2];
        Self { kernel: [side; 2], stride, rows: padding, columns: padding }
    }

    /// The number of positions that it takes on an image: rows and columns.
    pub(crate) fn positions(self, image: [usize; 2]) -> [usize; 2] {
        let count = |side: usize, kernel: usize, padding: [usize; 2]| {
            let padded = side + padding[0] + padding[1];
            padded.checked_sub(kernel).map_or(0, |rest| rest / self.stride + 1)
        };
        [count(image[0], self.kernel[0], self.rows), count(image[1], self.kernel[1], self.columns)]
    }

    /// The image on which it takes this many positions and which ends with the last of them.
    pub(crate) fn image(self, positions: [usize; 2]) -> [usize; 2] {
        let side = |count: usize, kernel: usize, padding: [usize; 2]| {
            ((count - 1) * self.stride + kernel).saturating_sub(padding[0] + padding[1])
        };
        [
            side(positions[0], self.kernel[0], self.rows),
            side(positions[1], self.kernel[1], self.columns),
        ]
    }

    fn options(self) -> ConvOptions<2> {
        let padding = [self.rows, self.columns].map(|[before, after]| (before, after));
        ConvOptions::new_with_padding([self.stride; 2], padding, [1, 1], 1)
    }
}

/// Convolutions on the tensors of one backend.
#[backend_extension(Flex, Cube: cfg(feature = "gpu"), Autodiff)]
pub(crate) trait Convolutions: Backend {
    /// See [`convolve`].
    fn convolve(
        images: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self> {
        composed::convolve::<Self>(images, weight, window)
    }

    /// See [`convolve_transposed`].
    fn convolve_transposed(
        grids: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        image: [usize; 2],
        window: Window,
    ) -> FloatTensor<Self> {
        composed::convolve_transposed::<Self>(grids, weight, image, window)
    }

    /// The gradient of [`convolve`](Self::convolve) with respect to its weight, from its images and the
    /// gradient with respect to its result.
    fn convolve_weight(
        images: FloatTensor<Self>,
        grids: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self> {
        composed::convolve_weight::<Self>(images, grids, window)
    }
}

#[cfg(feature = "gpu")]
impl Convolutions for burn::backend::Cube {}

/// The products of a weight with what is under its window, at every position.
pub(crate) fn convolve(images: Tensor<4>, weight: Tensor<4>, window: Window) -> Tensor<4> {
    let (images, weight) = (images.into_dispatch(), weight.into_dispatch());
    Tensor::from_dispatch(<Dispatch as Convolutions>::convolve(images, weight, window))
}

/// The transpose of the linear map from images of these rows and columns that [`convolve`] is for a
/// fixed weight: PyTorch's `conv_transpose2d`.
pub(crate) fn convolve_transposed(
    grids: Tensor<4>,
    weight: Tensor<4>,
    image: [usize; 2],
    window: Window,
) -> Tensor<4> {
    let (grids, weight) = (grids.into_dispatch(), weight.into_dispatch());
    let images = <Dispatch as Convolutions>::convolve_transposed(grids, weight, image, window);
    Tensor::from_dispatch(images)
}
