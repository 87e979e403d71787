//! The gradient of batch normalisation.

use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, AutodiffBackend};

use super::{Activation, Normalisation};
use crate::fused::differentiable;

impl<B: Normalisation, C: CheckpointStrategy> Normalisation for Autodiff<B, C> {
    fn normalise_batch(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let inputs = [x.node(), scale.node(), shift.node()];
        let (x, scale, shift) =
            (x.into_primitive(), scale.into_primitive(), shift.into_primitive());
        let (y, statistics) =
            B::normalise_batch(x.clone(), scale.clone(), shift.clone(), activation);
        let kept = ([x, statistics.clone(), scale, shift], activation);
        let y = differentiable::<B, C, _, 3>(inputs, y, kept, |gradient, kept, _| {
            let ([x, statistics, scale, shift], activation) = kept;
            let (x, scale, shift) =
                B::normalise_backward(gradient, x, statistics, scale, shift, activation);
            [x, scale, shift].map(Some)
        });
        (y, Self::from_inner(statistics))
    }
}
