"""A module for each method, in place of ``torch.nn.Softmax``."""

from __future__ import annotations

from torch import Tensor, nn

from shafer import _core
from shafer.torch._functional import sparsify


class Sparsify(nn.Module):
    """Distributions of logits by a method given as text.

    >>> import torch, shafer.torch
    >>> shafer.torch.Sparsify("top-k:k=1")(torch.tensor([0.0, 1.0]))
    tensor([0., 1.])
    """

    def __init__(self, method: str = "evidential", dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__()
        self.method: str = _core.parse(method)[0]
        self.dim = dim
        self.temperature = float(temperature)

    def forward(self, logits: Tensor, mask: Tensor | None = None) -> Tensor:
        return sparsify(
            logits, self.method, dim=self.dim, temperature=self.temperature, mask=mask
        )

    def extra_repr(self) -> str:
        return f"{self.method!r}, dim={self.dim}, temperature={self.temperature}"


class Evidential(Sparsify):
    """Keeps the classes with direct evidence, those above the mean logit; see `shafer.evidential`."""

    def __init__(self, rounds: int = 1, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"evidential:rounds={rounds}", dim, temperature)


class Softmax(Sparsify):
    """Keeps all classes."""

    def __init__(self, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__("softmax", dim, temperature)


class Sparsemax(Sparsify):
    """The Euclidean projection onto the simplex; see `shafer.sparsemax`."""

    def __init__(self, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__("sparsemax", dim, temperature)


class SparsegenLin(Sparsify):
    """Sparsemax with a regularisation; see `shafer.sparsegen_lin`."""

    def __init__(self, lam: float = 0.5, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"sparsegen-lin:lambda={lam}", dim, temperature)


class SparsegenHg(Sparsify):
    """Sparsehourglass; see `shafer.sparsegen_hg`."""

    def __init__(self, q: float = 1.0, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"sparsegen-hg:q={q}", dim, temperature)


class Entmax(Sparsify):
    """Between softmax and sparsemax; see `shafer.entmax`."""

    def __init__(self, alpha: float = 1.5, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"entmax:alpha={alpha}", dim, temperature)


class TopK(Sparsify):
    """The largest logits; see `shafer.top_k`."""

    def __init__(self, k: int = 5, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"top-k:k={k}", dim, temperature)


class TopP(Sparsify):
    """The fewest classes that cover a probability; see `shafer.top_p`."""

    def __init__(self, p: float = 0.9, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"top-p:p={p}", dim, temperature)


class MinP(Sparsify):
    """The classes near the best in probability; see `shafer.min_p`."""

    def __init__(self, p: float = 0.05, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"min-p:p={p}", dim, temperature)


class MinProbability(Sparsify):
    """The classes that are probable enough; see `shafer.min_probability`."""

    def __init__(self, p: float = 0.01, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"min-probability:p={p}", dim, temperature)


class MinEvidence(Sparsify):
    """The classes with enough evidence; see `shafer.min_evidence`."""

    def __init__(self, w: float = 0.0, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"min-evidence:w={w}", dim, temperature)


class TopNSigma(Sparsify):
    """The logits within some standard deviations of the largest; see `shafer.top_n_sigma`."""

    def __init__(self, n: float = 1.0, dim: int = -1, temperature: float = 1.0) -> None:
        super().__init__(f"top-n-sigma:n={n}", dim, temperature)
