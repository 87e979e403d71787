"""Drawing classes from distributions."""

from __future__ import annotations

from typing import Any

import numpy as np

from shafer import _core


def sample(probabilities: Any, rng: Any = None, size: int | None = None) -> Any:
    """Draws a class from each distribution.

    Parameters
    ----------
    probabilities : array_like or scipy.sparse array
        Rows of weights along the last axis, dense or compressed. They need not sum to 1; a class of weight 0 is never
        drawn.
    rng : numpy.random.Generator or int, optional
        A generator, or the seed of one. Without it, the seed is fresh from the operating system.
    size : int, optional
        The number of draws from each distribution, as a last axis.

    Returns
    -------
    int or numpy.ndarray of int64
        The shape of the probabilities without their last axis, and with `size` after it. The same generator gives the
        same classes on any machine.

    Examples
    --------
    >>> import shafer
    >>> shafer.sample([[0.0, 1.0, 0.0], [0.5, 0.0, 0.5]], rng=7)
    array([1, 2])
    >>> shafer.sample([0.25, 0.75], rng=7, size=8)
    array([1, 1, 1, 0, 1, 1, 0, 1])
    """
    generator = np.random.default_rng(rng)
    if size is not None and size < 0:
        raise ValueError(f"size is {size}, but must be at least 0")
    draws = 1 if size is None else size

    def words(rows: int) -> np.ndarray[Any, np.dtype[np.uint64]]:
        return generator.integers(0, 2**64, size=rows * draws, dtype=np.uint64)

    if hasattr(probabilities, "tocsr"):
        csr = probabilities.tocsr().sorted_indices()
        rows, classes = csr.shape
        outer: tuple[int, ...] = (rows,)
        drawn = _core.draw_csr(
            classes,
            csr.indptr.astype(np.int64),
            csr.indices.astype(np.uint32),
            csr.data.astype(np.float64),
            words(rows),
        )
    else:
        weights = np.ascontiguousarray(probabilities, dtype=np.float64)
        *leading, classes = weights.shape
        outer = tuple(leading)
        if classes == 0:
            raise ValueError("a row of probabilities is empty, but must hold at least one element")
        drawn = _core.draw_dense(weights.reshape(-1), classes, words(weights.size // classes))
    if size is None:
        return drawn.reshape(outer) if outer else int(drawn[0])
    return drawn.reshape(*outer, size)
