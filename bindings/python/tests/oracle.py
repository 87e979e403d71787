"""The methods as plain loops over rows of float64, from their definitions."""

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Row = NDArray[np.float64]


def exponentials(z: Row, keep: NDArray[np.bool_]) -> Row:
    e = np.where(keep, np.exp(z - z.max()), 0.0)
    return e / e.sum()


def evidential(z: Row, rounds: int) -> Row:
    alive = np.isfinite(z)
    for _ in range(rounds):
        values = [float(x) for x in z[alive]]
        if min(values) == max(values):
            break
        mean = math.fsum(values) / len(values)
        alive = alive & (z > mean)
    return exponentials(z, alive)


def top_k(z: Row, k: int) -> Row:
    order = sorted(range(len(z)), key=lambda i: (-z[i], i))[:k]
    keep = np.zeros(len(z), dtype=bool)
    keep[order] = True
    return exponentials(z, keep & np.isfinite(z))


def top_p(z: Row, p: float) -> Row:
    softmax = exponentials(z, np.isfinite(z))
    keep = np.zeros(len(z), dtype=bool)
    total = 0.0
    for i in sorted(range(len(z)), key=lambda i: (-z[i], i)):
        if total >= p and keep.any():
            break
        keep[i] = True
        total += softmax[i]
    return exponentials(z, keep & np.isfinite(z))


def projection(z: Row, alpha: float) -> Row:
    """By bisection on the threshold."""
    y = (alpha - 1) * (z - z.max())
    exponent = 1 / (alpha - 1)
    low, high = -1.0, 0.0
    for _ in range(60):
        tau = (low + high) / 2
        if (np.maximum(y - tau, 0) ** exponent).sum() >= 1:
            low = tau
        else:
            high = tau
    p = np.maximum(y - low, 0) ** exponent
    return p / p.sum()


def hourglass(z: Row, q: float) -> Row:
    alive = z[np.isfinite(z)]
    gain = (1 + len(alive) * q) / (abs(alive.sum()) + len(alive) * q)
    return projection(gain * z, 2.0)


def min_p(z: Row, p: float) -> Row:
    return exponentials(z, np.exp(z - z.max()) >= p)


def top_n_sigma(z: Row, n: float) -> Row:
    return exponentials(z, z >= z.max() - n * z[np.isfinite(z)].std())


def min_evidence(z: Row, w: float) -> Row:
    alive = z[np.isfinite(z)]
    return exponentials(z, (z - math.fsum(alive) / len(alive) >= w) | (z == z.max()))


def min_probability(z: Row, p: float) -> Row:
    softmax = exponentials(z, np.isfinite(z))
    return exponentials(z, (softmax >= p) | (z == z.max()))


METHODS: dict[str, Callable[[Row], Row]] = {
    "evidential": lambda z: evidential(z, 1),
    "evidential:rounds=2": lambda z: evidential(z, 2),
    "softmax": lambda z: exponentials(z, np.isfinite(z)),
    "sparsemax": lambda z: projection(z, 2.0),
    "sparsegen-lin:lambda=0.3": lambda z: projection(z / 0.7, 2.0),
    "sparsegen-hg:q=0.7": lambda z: hourglass(z, 0.7),
    "entmax:alpha=1.5": lambda z: projection(z, 1.5),
    "entmax:alpha=1.3": lambda z: projection(z, 1.3),
    "top-k:k=3": lambda z: top_k(z, 3),
    "top-p:p=0.8": lambda z: top_p(z, 0.8),
    "min-p:p=0.1": lambda z: min_p(z, 0.1),
    "top-n-sigma:n=1": lambda z: top_n_sigma(z, 1.0),
    "min-evidence:w=0.6": lambda z: min_evidence(z, 0.6),
    "min-probability:p=0.07": lambda z: min_probability(z, 0.07),
}


def along(method: str, logits: NDArray[np.floating], axis: int = -1, temperature: float = 1.0) -> NDArray[np.float64]:
    """The distributions along an axis."""
    z = np.asarray(logits, dtype=np.float64) / temperature
    with np.errstate(invalid="ignore"):
        return np.apply_along_axis(METHODS[method], axis, z)
