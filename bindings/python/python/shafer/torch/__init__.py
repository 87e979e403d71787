"""Modules of PyTorch with exact gradients, and one line that makes the head of a trained model sparse.

>>> import torch, shafer.torch
>>> module = shafer.torch.Evidential()
>>> module(torch.tensor([1.0, 1.0, 0.0]))
tensor([0.5000, 0.5000, 0.0000])

- `sparsify`, `sparse_logits`: functions of tensors.
- `Evidential`, `Softmax`, `Sparsemax`, `SparsegenLin`, `SparsegenHg`, `Entmax`, `TopK`, `TopP`, `MinP`, `TopNSigma`,
  `MinProbability`, `MinEvidence`: modules.
- `sparsify_head`: makes a layer of a trained model sparse, and undoes it.
- `LogitsProcessor`: for the generation of Hugging Face transformers. It needs transformers, and only it.

Tensors on the CPU are computed by shafer's own kernels on ``torch.get_num_threads()`` threads, tensors on other devices
by operations of PyTorch. Both are one custom operator, so that ``torch.compile`` keeps a whole graph. Gradients hold the
choice of classes fixed, and can be differentiated again. Under ``torch.autocast`` the operator computes in float32, as
softmax does.
"""

from __future__ import annotations

from typing import Any

from shafer.torch._functional import sparse_logits, sparsify
from shafer.torch._head import SparseHead, sparsify_head
from shafer.torch._modules import (
    Entmax,
    Evidential,
    MinEvidence,
    MinP,
    MinProbability,
    Softmax,
    SparsegenHg,
    SparsegenLin,
    Sparsemax,
    Sparsify,
    TopK,
    TopNSigma,
    TopP,
)

__all__ = [
    "Entmax",
    "Evidential",
    "LogitsProcessor",
    "MinEvidence",
    "MinP",
    "MinProbability",
    "Softmax",
    "SparseHead",
    "SparsegenHg",
    "SparsegenLin",
    "Sparsemax",
    "Sparsify",
    "TopK",
    "TopNSigma",
    "TopP",
    "sparse_logits",
    "sparsify",
    "sparsify_head",
]


def __getattr__(name: str) -> Any:
    if name == "LogitsProcessor":
        from shafer.torch._generation import LogitsProcessor

        return LogitsProcessor
    raise AttributeError(f"module 'shafer.torch' has no attribute {name!r}")
