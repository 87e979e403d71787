"""Functions of JAX arrays, with gradients: the kernels as a callback on the host.

>>> import jax, jax.numpy as jnp
>>> from shafer.jax import sparsify
>>> sparsify(jnp.array([1.0, 1.0, 0.0]))
Array([0.5, 0.5, 0. ], dtype=float32)
>>> jax.grad(lambda x: sparsify(x, "sparsemax")[0])(jnp.array([0.5, 0.0, -3.0]))
Array([ 0.5, -0.5,  0. ], dtype=float32)

Works under ``jax.jit``, ``jax.vmap`` and ``jax.grad``; not in forward mode, and not for second derivatives.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from shafer import _core

__all__ = ["sparsify"]


def sparsify(
    logits: Any,
    method: str = "evidential",
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
) -> Any:
    """Distributions of logits, as `shafer.sparsify`. `mask` broadcasts to them, or has an entry for each class."""
    logits = jnp.asarray(logits)
    if not jnp.issubdtype(logits.dtype, jnp.floating):
        logits = logits.astype(float)
    if logits.ndim == 0:
        raise ValueError("the logits are a single number, but must have at least one axis")
    if not -logits.ndim <= axis < logits.ndim:
        raise ValueError(f"axis {axis} does not exist: the array has {logits.ndim}")
    if mask is not None:
        # A masked class is one with a logit of -inf; the gradient of where is 0 there.
        mask = jnp.asarray(mask)
        if mask.dtype != jnp.bool_:
            raise TypeError(f"mask is of type {mask.dtype}, but must be bool")
        if mask.shape == (logits.shape[axis],):
            sizes = [1] * logits.ndim
            sizes[axis] = -1
            mask = mask.reshape(sizes)
        logits = jnp.where(mask, logits, -jnp.inf)
    # From the end, so that jax.vmap can add axes in front.
    axis = axis if axis < 0 else axis - logits.ndim
    return _sparsify(logits, _core.parse(method)[0], axis, float(temperature))


@partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _sparsify(logits: Any, method: str, axis: int, temperature: float) -> Any:
    def compute(logits: Any) -> Any:
        return _core.sparsify(np.asarray(logits), method, axis, temperature)

    result = jax.ShapeDtypeStruct(logits.shape, logits.dtype)
    return jax.pure_callback(compute, result, logits, vmap_method="expand_dims")


def _forward(logits: Any, method: str, axis: int, temperature: float) -> Any:
    p = _sparsify(logits, method, axis, temperature)
    return p, (logits, p)


def _backward(method: str, axis: int, temperature: float, saved: Any, upstream: Any) -> Any:
    def compute(logits: Any, p: Any, upstream: Any) -> Any:
        return _core.vjp(logits, np.asarray(p), np.asarray(upstream), method, axis, temperature)

    logits, p = saved
    result = jax.ShapeDtypeStruct(logits.shape, logits.dtype)
    return (jax.pure_callback(compute, result, logits, p, upstream, vmap_method="broadcast_all"),)


_sparsify.defvjp(_forward, _backward)
