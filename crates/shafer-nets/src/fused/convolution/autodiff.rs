//! The gradients of convolutions.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, TensorMetadata};

use super::{Convolutions, Window};
use crate::fused::differentiable;

impl<B: Convolutions, C: CheckpointStrategy> Convolutions for Autodiff<B, C> {
    fn convolve(
        images: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self> {
        let inputs = [images.node(), weight.node()];
        let kept = (images.into_primitive(), weight.into_primitive(), window);
        let grids = B::convolve(kept.0.clone(), kept.1.clone(), window);
        differentiable::<B, C, _, 2>(inputs, grids, kept, |gradient, kept, needed| {
            let (images, weight, window) = kept;
            let shape = images.shape();
            let image = [shape[1], shape[2]];
            let to_images = || B::convolve_transposed(gradient.clone(), weight, image, window);
            let to_images = needed[0].then(to_images);
            let to_weight = needed[1].then(|| B::convolve_weight(images, gradient, window));
            [to_images, to_weight]
        })
    }

    fn convolve_transposed(
        grids: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        image: [usize; 2],
        window: Window,
    ) -> FloatTensor<Self> {
        let inputs = [grids.node(), weight.node()];
        let kept = (grids.into_primitive(), weight.into_primitive(), window);
        let images = B::convolve_transposed(kept.0.clone(), kept.1.clone(), image, window);
        differentiable::<B, C, _, 2>(inputs, images, kept, |gradient, kept, needed| {
            let (grids, weight, window) = kept;
            let to_grids = needed[0].then(|| B::convolve(gradient.clone(), weight, window));
            let to_weight = needed[1].then(|| B::convolve_weight(gradient, grids, window));
            [to_grids, to_weight]
        })
    }
}
