//! The gradients of convolutions.

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, TensorMetadata};

use super::{Convolutions, Window};

impl<B: Convolutions, C: CheckpointStrategy> Convolutions for Autodiff<B, C> {
    fn convolve(
        images: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        window: Window,
    ) -> FloatTensor<Self> {
        let inputs = (images.primitive().clone(), weight.primitive().clone());
        let grids = B::convolve(inputs.0.clone(), inputs.1.clone(), window);
        let parents = [images.node(), weight.node()];
        match Convolve.prepare::<C>(parents).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((inputs, window), grids),
            OpsKind::UnTracked(prep) => prep.finish(grids),
        }
    }

    fn convolve_transposed(
        grids: FloatTensor<Self>,
        weight: FloatTensor<Self>,
        image: [usize; 2],
        window: Window,
    ) -> FloatTensor<Self> {
        let inputs = (grids.primitive().clone(), weight.primitive().clone());
        let images = B::convolve_transposed(inputs.0.clone(), inputs.1.clone(), image, window);
        let parents = [grids.node(), weight.node()];
        match ConvolveTransposed.prepare::<C>(parents).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish((inputs, window), images),
            OpsKind::UnTracked(prep) => prep.finish(images),
        }
    }
}

/// The input and the weight of a convolution, and its window.
type State<B> = ((FloatTensor<B>, FloatTensor<B>), Window);

#[derive(Debug)]
struct Convolve;

impl<B: Convolutions> Backward<B, 2> for Convolve {
    type State = State<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<B>(&ops.node);
        let ((images, weight), window) = ops.state;
        let [to_images, to_weight] = ops.parents;
        if let Some(parent) = to_images {
            let shape = images.shape();
            let image = [shape[1], shape[2]];
            let images = B::convolve_transposed(gradient.clone(), weight, image, window);
            grads.register::<B>(parent.id, images);
        }
        if let Some(parent) = to_weight {
            grads.register::<B>(parent.id, B::convolve_weight(images, gradient, window));
        }
    }
}

#[derive(Debug)]
struct ConvolveTransposed;

impl<B: Convolutions> Backward<B, 2> for ConvolveTransposed {
    type State = State<B>;

    fn backward(
        self,
        ops: Ops<Self::State, 2>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<B>(&ops.node);
        let ((grids, weight), window) = ops.state;
        let [to_grids, to_weight] = ops.parents;
        if let Some(parent) = to_grids {
            grads.register::<B>(parent.id, B::convolve(gradient.clone(), weight, window));
        }
        if let Some(parent) = to_weight {
            grads.register::<B>(parent.id, B::convolve_weight(gradient, grids, window));
        }
    }
}
