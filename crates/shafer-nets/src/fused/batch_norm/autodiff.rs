//! The gradient of batch normalisation.

use burn::backend::Autodiff;
use burn::backend::AutodiffBackend;
use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;

use super::{Activation, Normalisation};

impl<B: Normalisation, C: CheckpointStrategy> Normalisation for Autodiff<B, C> {
    fn normalise_batch(
        x: FloatTensor<Self>,
        scale: FloatTensor<Self>,
        shift: FloatTensor<Self>,
        activation: Activation,
    ) -> (FloatTensor<Self>, FloatTensor<Self>) {
        let parents = [x.node(), scale.node(), shift.node()];
        let [x, scale, shift] = [x, scale, shift].map(|tensor| tensor.primitive().clone());
        let (y, statistics) =
            B::normalise_batch(x.clone(), scale.clone(), shift.clone(), activation);
        let kept = Kept { x, statistics: statistics.clone(), scale, shift, activation };
        let y = match BatchNorm.prepare::<C>(parents).compute_bound().stateful() {
            OpsKind::Tracked(prep) => prep.finish(kept, y),
            OpsKind::UnTracked(prep) => prep.finish(y),
        };
        (y, Self::from_inner(statistics))
    }
}

/// What the gradient is computed from.
#[derive(Clone, Debug)]
struct Kept<T> {
    x: T,
    statistics: T,
    scale: T,
    shift: T,
    activation: Activation,
}

#[derive(Debug)]
struct BatchNorm;

impl<B: Normalisation> Backward<B, 3> for BatchNorm {
    type State = Kept<FloatTensor<B>>;

    fn backward(
        self,
        ops: Ops<Self::State, 3>,
        grads: &mut Gradients,
        _checkpointer: &mut Checkpointer,
    ) {
        let gradient = grads.consume::<B>(&ops.node);
        let Kept { x, statistics, scale, shift, activation } = ops.state;
        let (x, scale, shift) =
            B::normalise_backward(gradient, x, statistics, scale, shift, activation);
        for (parent, gradient) in ops.parents.into_iter().zip([x, scale, shift]) {
            if let Some(parent) = parent {
                grads.register::<B>(parent.id, gradient);
            }
        }
    }
}
