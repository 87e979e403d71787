"""The custom operators: distributions, and vector-Jacobian products.

PyTorch derives the schema from the annotations, which must not be strings.
"""

from typing import Any, Optional, Tuple

import torch
from torch import Tensor

from shafer import _core
from shafer.torch import _composed


def _array(tensor: Tensor) -> Any:
    """The memory of a tensor as an array. NumPy has no bfloat16: it is passed as int16."""
    tensor = tensor.detach().resolve_neg()
    if tensor.dtype == torch.bfloat16:
        tensor = tensor.view(torch.int16)
    return tensor.numpy()


def _spread(mask: Optional[Tensor], shape: torch.Size, dim: int) -> Optional[Tensor]:
    """A mask with an entry for each class, along their dimension."""
    if mask is None or mask.dim() != 1 or not -len(shape) <= dim < len(shape) or mask.shape[0] != shape[dim]:
        return mask
    sizes = [1] * len(shape)
    sizes[dim] = -1
    return mask.reshape(sizes)


def _mask(mask: Optional[Tensor], logits: Tensor, dim: int) -> Any:
    """A mask of the logits' shape."""
    mask = _spread(mask, logits.shape, dim)
    if mask is None:
        return None
    try:
        return mask.to(logits.device).expand(logits.shape)
    except RuntimeError:
        shape, needed = list(mask.shape), list(logits.shape)
        raise ValueError(f"mask has the shape {shape}, which does not broadcast to the logits' {needed}") from None


@torch.library.custom_op("shafer::sparsify", mutates_args=())
def sparsify(
    logits: Tensor, method: str, dim: int, temperature: float, mask: Optional[Tensor]
) -> Tensor:
    mask = _mask(mask, logits, dim)
    if logits.device.type != "cpu":
        return _composed.sparsify(logits, method, dim, temperature, mask)
    out = torch.empty(logits.shape, dtype=logits.dtype)
    kept = None if mask is None else mask.numpy()
    threads = torch.get_num_threads()
    _core.dense_into(_array(logits), method, dim, temperature, kept, _array(out), threads)
    return out


@torch.library.custom_op("shafer::sparsify_vjp", mutates_args=())
def sparsify_vjp(
    logits: Tensor,
    probabilities: Tensor,
    upstream: Tensor,
    method: str,
    dim: int,
    temperature: float,
    mask: Optional[Tensor],
) -> Tensor:
    mask = _mask(mask, logits, dim)
    if logits.device.type != "cpu":
        return _composed.vjp(logits, probabilities, upstream, method, dim, temperature, mask)
    out = torch.empty(logits.shape, dtype=logits.dtype)
    p = _array(probabilities.contiguous())
    gradient = _array(upstream.to(logits.dtype).contiguous())
    kept = None if mask is None else mask.numpy()
    threads = torch.get_num_threads()
    _core.vjp_into(_array(logits), p, gradient, method, dim, temperature, kept, _array(out), threads)
    return out


@sparsify.register_fake
def _(
    logits: Tensor, method: str, dim: int, temperature: float, mask: Optional[Tensor]
) -> Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


@sparsify_vjp.register_fake
def _(
    logits: Tensor,
    probabilities: Tensor,
    upstream: Tensor,
    method: str,
    dim: int,
    temperature: float,
    mask: Optional[Tensor],
) -> Tensor:
    return torch.empty_like(logits, memory_format=torch.contiguous_format)


def _setup_context(ctx: Any, inputs: Tuple[Any, ...], output: Tensor) -> None:
    logits, ctx.method, ctx.dim, ctx.temperature, mask = inputs
    ctx.save_for_backward(logits, output, mask)


def _backward(ctx: Any, upstream: Tensor) -> Tuple[Optional[Tensor], ...]:
    logits, probabilities, mask = ctx.saved_tensors
    arguments = (ctx.method, ctx.dim, ctx.temperature)
    # With create_graph, the gradient is to be differentiated again: operations of PyTorch can be.
    if torch.is_grad_enabled():
        mask = _mask(mask, logits, ctx.dim)
        gradient = _composed.vjp(logits, probabilities, upstream, *arguments, mask)
    else:
        gradient = sparsify_vjp(logits, probabilities, upstream, *arguments, mask)
    return gradient, None, None, None, None


sparsify.register_autograd(_backward, setup_context=_setup_context)

# As softmax: sums of 16-bit numbers are not computed in 16 bits, and the result is float32.
for _device in ("cpu", "cuda"):
    sparsify.register_autocast(_device, torch.float32)


def _batched(tensor: Optional[Tensor], dim: Optional[int], size: int) -> Optional[Tensor]:
    """The batch dimension in front, also of a tensor that has none."""
    if tensor is None:
        return None
    return tensor.movedim(dim, 0) if dim is not None else tensor.expand(size, *tensor.shape)


def _inner(dim: int) -> int:
    return dim if dim < 0 else dim + 1


@sparsify.register_vmap
def _(
    info: Any,
    in_dims: Tuple[Optional[int], ...],
    logits: Tensor,
    method: str,
    dim: int,
    temperature: float,
    mask: Optional[Tensor],
) -> Tuple[Tensor, int]:
    batch = _batched(logits, in_dims[0], info.batch_size)
    assert batch is not None
    if mask is not None:
        if in_dims[4] is None:
            mask = _spread(mask, batch.shape[1:], dim)
        mask = _batched(mask, in_dims[4], info.batch_size)
        assert mask is not None
        mask = mask.reshape(mask.shape[0], *[1] * (batch.dim() - mask.dim()), *mask.shape[1:])
    return sparsify(batch, method, _inner(dim), temperature, mask), 0
