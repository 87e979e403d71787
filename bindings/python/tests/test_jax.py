"""shafer.jax: values, gradients, and transformations."""

import needs
import numpy as np
import oracle
import pytest

import shafer

jax = needs.module("jax", "torch")
import jax.numpy as jnp  # noqa: E402

from shafer.jax import sparsify  # noqa: E402

METHODS = sorted(oracle.METHODS)
X = 3 * np.random.default_rng(0).standard_normal((4, 5, 6)).astype(np.float32)


@pytest.mark.parametrize("method", METHODS)
def test_values_and_gradients(method):
    x = jnp.asarray(X)
    for axis in (-1, 0, 1):
        p = shafer.sparsify(x, method, axis=axis)
        assert isinstance(p, jax.Array)
        np.testing.assert_allclose(p, oracle.along(method, X, axis), atol=1e-5)
        np.testing.assert_array_equal(jax.jit(lambda x, axis=axis: sparsify(x, method, axis=axis))(x), p)
    g = np.random.default_rng(1).standard_normal(X.shape).astype(np.float32)
    gradient = jax.grad(lambda x: (sparsify(x, method) * g).sum())(x)
    np.testing.assert_allclose(gradient, shafer.vjp(X, shafer.sparsify(X, method), g, method), atol=1e-6)
    batched = jax.vmap(lambda x: sparsify(x, method, axis=0), in_axes=1)(x)
    np.testing.assert_allclose(batched, oracle.along(method, X.transpose(1, 0, 2), 1), atol=1e-5)
    each = jax.vmap(jax.grad(lambda x, g: (sparsify(x, method) * g).sum()))(x, g)
    np.testing.assert_allclose(each, gradient, atol=1e-6)


def test_types_and_masks():
    half = shafer.softmax(jnp.asarray(X, dtype=jnp.bfloat16))
    assert half.dtype == jnp.bfloat16
    mask = jnp.array([True] * 5 + [False])
    p = shafer.softmax(jnp.asarray(X), mask=mask)
    assert (p[..., 5] == 0).all()
    gradient = jax.grad(lambda x: sparsify(x, mask=mask)[..., 0].sum())(jnp.asarray(X))
    assert (gradient[..., 5] == 0).all() and np.isfinite(gradient).all()
    assert shafer.sparsify(jnp.asarray(X), sparse=True).shape == (20, 6)


def test_errors():
    with pytest.raises(ValueError, match="axis 3 does not exist"):
        sparsify(jnp.zeros((2, 2)), axis=3)
    with pytest.raises(ValueError, match="no such method"):
        sparsify(jnp.zeros(2), "softmix")
    with pytest.raises(TypeError, match="mask is of type int32"):
        sparsify(jnp.zeros(2), mask=jnp.ones(2, dtype=jnp.int32))
    with pytest.raises(Exception, match="logit is NaN"):
        sparsify(jnp.array([0.0, jnp.nan]))
