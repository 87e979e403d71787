"""Functions of tensors."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from shafer.torch import _operator

# Their probabilities do not have the ratios of softmax.
_PROJECTIONS = ("sparsemax", "sparsegen", "entmax")


def sparsify(
    logits: Tensor,
    method: str = "evidential",
    *,
    dim: int = -1,
    temperature: float = 1.0,
    mask: Tensor | None = None,
) -> Tensor:
    """Distributions of logits, with gradients.

    `method` is a text, as in `shafer.sparsify`. `mask` is a tensor of bool that broadcasts to the logits, or has an entry for
    each class: where it is False, a class has probability 0.

    >>> import torch
    >>> from shafer.torch import sparsify
    >>> logits = torch.tensor([0.5, 0.0, -3.0], requires_grad=True)
    >>> p = sparsify(logits, "sparsemax")
    >>> p[0].backward()
    >>> logits.grad
    tensor([ 0.5000, -0.5000,  0.0000])
    """
    if not isinstance(logits, Tensor):
        raise TypeError(f"logits are a {type(logits).__name__}, but must be a tensor")
    if not logits.is_floating_point() or logits.layout != torch.strided:
        raise TypeError(
            f"logits are {logits.dtype} of layout {logits.layout}, but must be a dense tensor of floating-point type"
        )
    if mask is not None and mask.dtype != torch.bool:
        raise TypeError(f"mask is {mask.dtype}, but must be torch.bool")
    result: Tensor = _operator.sparsify(logits, method, dim, temperature, mask)
    return result


def sparse_logits(
    logits: Tensor,
    method: str = "evidential",
    *,
    dim: int = -1,
    temperature: float = 1.0,
    mask: Tensor | None = None,
) -> Tensor:
    """Logits whose softmax is the sparse distribution: -inf for the classes that the method drops.

    For code that goes on with logits, such as ``torch.distributions.Categorical(logits=...)``.

    >>> import torch
    >>> from shafer.torch import sparse_logits
    >>> sparse_logits(torch.tensor([4.0, 3.5, 0.0]))
    tensor([4.0000, 3.5000,   -inf])
    """
    p = sparsify(logits, method, dim=dim, temperature=temperature, mask=mask)
    kept = p > 0
    if method.startswith(_PROJECTIONS):
        # The inner where keeps infinite derivatives of the logarithm out of the gradient.
        return torch.where(kept, torch.where(kept, p, 1.0).log(), -math.inf)
    scaled = logits if temperature == 1.0 else logits / temperature
    return torch.where(kept, scaled.to(p.dtype), -math.inf)
