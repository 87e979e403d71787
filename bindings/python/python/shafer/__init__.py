"""Sparse categorical distributions that keep their modes.

>>> import numpy as np, shafer
>>> logits = np.array([-0.4, 1.7, -0.9, 0.7, -0.1, 2.0, -1.3, 1.2, -0.5, 1.0])
>>> shafer.sparsemax(logits).nonzero()[0]
array([1, 5])
>>> shafer.evidential(logits).nonzero()[0]
array([1, 3, 5, 7, 9])

Distributions: `sparsify`, and `evidential`, `softmax`, `sparsemax`, `sparsegen_lin`, `sparsegen_hg`, `entmax`, `top_k`,
`top_p`, `min_p`, `top_n_sigma`, `min_probability`, `min_evidence`; `support_size` and `vjp`; `sample`.

Guarantees for what is dropped: `Calibrator` with scikit-learn's conventions, `Calibration`, `audit`, `control_risk`,
`rows_needed`.

Theory: `Head`, `Evidence`, `Belief`, `MassFunction`, `Product`, `target_distribution`, and the module `distance`.

Files: `open` for arrays, `heads` and `load_head` for models.

`shafer.torch` has modules, and `shafer.jax` functions, with gradients; neither is imported before it is used.
"""

from __future__ import annotations

import importlib
from types import ModuleType

from shafer import distance
from shafer._calibrate import Audit, Calibrator, Misses, audit, control_risk
from shafer._core import (
    ArrayReader,
    Belief,
    Calibration,
    Combination,
    Evidence,
    Head,
    HeadCandidate,
    Joint,
    MassFunction,
    Product,
    entmax,
    evidential,
    heads,
    load_head,
    min_evidence,
    min_p,
    min_probability,
    open,
    rows_needed,
    softmax,
    sparsegen_hg,
    sparsegen_lin,
    sparsemax,
    sparsify,
    support_size,
    target_distribution,
    top_k,
    top_n_sigma,
    top_p,
    vjp,
)
from shafer._sample import sample

__all__ = [
    "ArrayReader",
    "Audit",
    "Belief",
    "Calibration",
    "Calibrator",
    "Combination",
    "Evidence",
    "Head",
    "HeadCandidate",
    "Joint",
    "MassFunction",
    "Misses",
    "Product",
    "audit",
    "control_risk",
    "distance",
    "entmax",
    "evidential",
    "heads",
    "load_head",
    "min_evidence",
    "min_p",
    "min_probability",
    "open",
    "rows_needed",
    "sample",
    "softmax",
    "sparsegen_hg",
    "sparsegen_lin",
    "sparsemax",
    "sparsify",
    "support_size",
    "target_distribution",
    "top_k",
    "top_n_sigma",
    "top_p",
    "vjp",
]


def __getattr__(name: str) -> ModuleType:
    # Only when they are used: importing torch takes seconds.
    if name in ("jax", "torch"):
        return importlib.import_module(f"shafer.{name}")
    raise AttributeError(f"module 'shafer' has no attribute {name!r}")
