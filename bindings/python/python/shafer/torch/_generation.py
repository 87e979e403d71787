"""Generation with Hugging Face transformers."""

from __future__ import annotations

from collections.abc import Sequence

import transformers
from torch import Tensor

from shafer import _core
from shafer.torch._functional import sparse_logits


class LogitsProcessor(transformers.LogitsProcessor):
    """Drops tokens by a method, or by several one after the other, each among the survivors of the one before.

    >>> import torch, shafer.torch
    >>> processor = shafer.torch.LogitsProcessor(["evidential", "min-p:p=0.5"])
    >>> processor(None, torch.tensor([[4.0, 3.5, 2.0, -9.0]]))
    tensor([[4.0000, 3.5000,   -inf,   -inf]])

    ``model.generate(..., do_sample=True, logits_processor=[processor])`` draws from what is left.
    """

    def __init__(self, methods: str | Sequence[str] = "evidential", temperature: float = 1.0) -> None:
        texts = [methods] if isinstance(methods, str) else list(methods)
        if not texts:
            raise ValueError("methods are empty, but must name at least one")
        self.methods = [_core.parse(text)[0] for text in texts]
        self.temperature = float(temperature)

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        temperature = self.temperature
        for method in self.methods:
            scores = sparse_logits(scores, method, temperature=temperature)
            # The scores that come out are divided by it.
            temperature = 1.0
        return scores

    def __repr__(self) -> str:
        return f"LogitsProcessor({self.methods!r}, temperature={self.temperature})"
