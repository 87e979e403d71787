//! The gradient of an operation, for the graph that burn keeps of a forward pass.

use std::fmt::Debug;

use burn::backend::autodiff::checkpoint::base::Checkpointer;
use burn::backend::autodiff::checkpoint::strategy::CheckpointStrategy;
use burn::backend::autodiff::grads::Gradients;
use burn::backend::autodiff::ops::{Backward, NodeGuard, Ops, OpsKind};
use burn::backend::tensor::FloatTensor;
use burn::backend::{Autodiff, Backend};

/// From the gradient with respect to the result, what the forward pass kept, and which inputs need a
/// gradient: the gradients with respect to the inputs. Gradients that are not needed may be `None`.
type Function<B, S, const N: usize> =
    fn(FloatTensor<B>, S, [bool; N]) -> [Option<FloatTensor<B>>; N];

/// Adds an operation to the graph: its result, with the gradients of its inputs. `kept` is dropped if no
/// input needs one.
pub(crate) fn differentiable<B, C, S, const N: usize>(
    inputs: [NodeGuard; N],
    result: FloatTensor<B>,
    kept: S,
    gradients: Function<B, S, N>,
) -> FloatTensor<Autodiff<B, C>>
where
    B: Backend,
    C: CheckpointStrategy,
    S: Clone + Send + Debug + 'static,
{
    match Operation(gradients).prepare::<C>(inputs).compute_bound().stateful() {
        OpsKind::Tracked(prep) => prep.finish(kept, result),
        OpsKind::UnTracked(prep) => prep.finish(result),
    }
}

struct Operation<B: Backend, S, const N: usize>(Function<B, S, N>);

impl<B: Backend, S, const N: usize> Debug for Operation<B, S, N> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Operation")
    }
}

impl<B, S, const N: usize> Backward<B, N> for Operation<B, S, N>
where
    B: Backend,
    S: Clone + Send + Debug + 'static,
{
    type State = S;

    fn backward(self, ops: Ops<S, N>, grads: &mut Gradients, _: &mut Checkpointer) {
        let gradient = grads.consume::<B>(&ops.node);
        let needed = ops.parents.each_ref().map(Option::is_some);
        let gradients = (self.0)(gradient, ops.state, needed);
        for (input, gradient) in ops.parents.into_iter().zip(gradients) {
            if let Some((input, gradient)) = input.zip(gradient) {
                grads.register::<B>(input.id, gradient);
            }
        }
    }
}
