//! Convolutions composed of burn's, which have the channels outermost.

use burn::backend::tensor::FloatTensor;
use burn::backend::{Backend, TensorMetadata};
use burn::tensor::Shape;

use super::Window;

/// From channels innermost to channels outermost.
fn outermost<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    B::float_permute(tensor, &[0, 3, 1, 2])
}

fn innermost<B: Backend>(tensor: FloatTensor<B>) -> FloatTensor<B> {
    B::float_permute(tensor, &[0, 2, 3, 1])
}

pub(super) fn convolve<B: Backend>(
    images: FloatTensor<B>,
    weight: FloatTensor<B>,
    window: Window,
) -> FloatTensor<B> {
    innermost::<B>(B::conv2d(outermost::<B>(images), weight, None, window.options()))
}

pub(super) fn convolve_transposed<B: Backend>(
    grids: FloatTensor<B>,
    weight: FloatTensor<B>,
    image: [usize; 2],
    window: Window,
) -> FloatTensor<B> {
    // burn reads the shape of the images from a tensor of them; their values have no part in this gradient.
    let shape = Shape::new([grids.shape()[0], weight.shape()[1], image[0], image[1]]);
    let images = B::float_zeros(shape, &grids.device(), grids.dtype().into());
    let images = B::conv2d_x_backward(images, weight, outermost::<B>(grids), window.options());
    innermost::<B>(images)
}

pub(super) fn convolve_weight<B: Backend>(
    images: FloatTensor<B>,
    grids: FloatTensor<B>,
    window: Window,
) -> FloatTensor<B> {
    let [rows, columns] = window.kernel;
    let shape = Shape::new([grids.shape()[3], images.shape()[3], rows, columns]);
    let weight = B::float_zeros(shape, &images.device(), images.dtype().into());
    B::conv2d_weight_backward(
        outermost::<B>(images),
        weight,
        outermost::<B>(grids),
        window.options(),
    )
}
