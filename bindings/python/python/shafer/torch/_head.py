"""The head of a trained model, sparse in place."""

from __future__ import annotations

from types import TracebackType
from typing import Any

import torch
from torch import Tensor, nn

from shafer import _core
from shafer.torch._functional import sparse_logits, sparsify


class _Hook:
    """What is done to the output of the layer. A class, so that models with it can be copied and pickled."""

    def __init__(self, method: str, dim: int, groups: tuple[int, ...] | None, output: str) -> None:
        self.method = method
        self.dim = dim
        self.groups = groups
        self.output = output

    def __call__(self, module: nn.Module, arguments: Any, logits: Tensor) -> Tensor:
        function = sparse_logits if self.output == "logits" else sparsify
        if self.groups is None:
            return function(logits, self.method, dim=self.dim)
        if sum(self.groups) != logits.shape[self.dim]:
            raise ValueError(
                f"groups are {self.groups}, but must sum to the {logits.shape[self.dim]} outputs of the layer"
            )
        parts = torch.split(logits, list(self.groups), self.dim)
        return torch.cat([function(part, self.method, dim=self.dim) for part in parts], self.dim)


class SparseHead:
    """A layer that has been made sparse, until `restore`. As a context manager, until the end of the block."""

    def __init__(self, layer: nn.Module, name: str, hook: _Hook) -> None:
        self.layer = layer
        self.name = name
        self.method = hook.method
        self._handle = layer.register_forward_hook(hook)

    def restore(self) -> None:
        """Undoes it. Once more does nothing."""
        self._handle.remove()

    def __enter__(self) -> SparseHead:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.restore()

    def __repr__(self) -> str:
        return f"<SparseHead: {self.name}, {self.method}>"


def sparsify_head(
    model: nn.Module,
    name: str,
    method: str = "evidential",
    *,
    dim: int = -1,
    groups: list[int] | tuple[int, ...] | None = None,
    output: str = "logits",
) -> SparseHead:
    """Makes the outputs of a layer sparse, in place, without changing its parameters or the model's code.

    Parameters
    ----------
    model : torch.nn.Module
        A trained model.
    name : str
        The layer whose outputs are the logits, as in ``model.named_modules()``.
    method : str
        A method as in `shafer.sparsify`.
    dim : int
        The dimension of the classes in the layer's output.
    groups : list of int, optional
        The numbers of classes of several variables whose logits lie next to each other, such as ``[5, 5]``.
    output : str
        ``"logits"``: the layer returns -inf for the classes that are dropped, and logits whose softmax is the sparse
        distribution for the others, so that the rest of the model goes on as before. ``"probabilities"``: it returns the
        distribution.

    Returns
    -------
    SparseHead
        With a method ``restore``; also a context manager.

    Examples
    --------
    >>> import torch, shafer.torch
    >>> model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    >>> with torch.no_grad():
    ...     _ = model[0].weight.copy_(torch.tensor([[2.0, 0.0], [1.5, 0.0], [-1.0, 0.0]]))
    ...     _ = model[0].bias.zero_()
    >>> x = torch.tensor([1.0, 0.0])
    >>> with torch.no_grad(), shafer.torch.sparsify_head(model, "0"):
    ...     model(x)
    tensor([2.0000, 1.5000,   -inf])
    >>> model(x).detach()
    tensor([ 2.0000,  1.5000, -1.0000])
    """
    if output not in ("logits", "probabilities"):
        raise ValueError(f'output is {output!r}, but must be "logits" or "probabilities"')
    layers = dict(model.named_modules())
    if name not in layers:
        linear = [known for known, layer in layers.items() if isinstance(layer, nn.Linear)]
        known = ", ".join(linear) or "none"
        raise ValueError(f"the model has no layer {name!r}; its linear layers are: {known}")
    layer = layers[name]
    if any(isinstance(hook, _Hook) for hook in layer._forward_hooks.values()):
        raise ValueError(f"the layer {name!r} is sparse already; restore it first")
    hook = _Hook(_core.parse(method)[0], dim, None if groups is None else tuple(groups), output)
    return SparseHead(layer, name, hook)
