"""Distances against SciPy and their definitions."""

import math

import numpy as np
import pytest
import scipy.spatial.distance
import scipy.stats

import shafer
from shafer import distance


def pairs(count, classes, seed=0):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.full(classes, 0.4), count), rng.dirichlet(np.full(classes, 0.4), count)


def test_against_scipy():
    p, q = pairs(20, 9)
    x = np.sort(np.random.default_rng(1).standard_normal(9))
    js = [scipy.spatial.distance.jensenshannon(a, b) ** 2 for a, b in zip(p, q)]
    w = [scipy.stats.wasserstein_distance(x, x, a, b) for a, b in zip(p, q)]
    unit = np.linspace(0, 1, 9)
    w_unit = [scipy.stats.wasserstein_distance(unit, unit, a, b) for a, b in zip(p, q)]
    np.testing.assert_allclose(distance.jensen_shannon(p, q), js, atol=1e-12)
    np.testing.assert_allclose(distance.wasserstein_1(p, q, x), w, atol=1e-12)
    np.testing.assert_allclose(distance.wasserstein_1(p, q), w_unit, atol=1e-12)
    np.testing.assert_allclose(distance.total_variation(p, q), abs(p - q).sum(-1) / 2, atol=1e-12)
    np.testing.assert_allclose(distance.bhattacharyya(p, q), -np.log(np.sqrt(p * q).sum(-1)), atol=1e-12)


def test_shapes():
    p, q = pairs(6, 4)
    whole = distance.total_variation(p, q)
    assert isinstance(distance.total_variation(p[0], q[0]), float)
    np.testing.assert_array_equal(distance.total_variation(p.reshape(2, 3, 4), q.reshape(2, 3, 4)), whole.reshape(2, 3))
    one = [distance.total_variation(row, q[0]) for row in p]
    np.testing.assert_array_equal(distance.total_variation(p, q[0]), one)
    assert distance.total_variation(p[:0], q[:0]).shape == (0,)
    np.testing.assert_allclose(distance.total_variation(p.astype(np.float32), q), whole, atol=1e-6)


def test_target():
    p, q = pairs(1, 9)
    keep = np.where(p[0] >= q[0], p[0], 0)
    np.testing.assert_allclose(shafer.target_distribution(p[0], q[0]), keep / keep.sum())
    assert distance.bhattacharyya([1.0, 0.0], [0.0, 1.0]) == math.inf
    with pytest.raises(ValueError):
        distance.wasserstein_1([1.0], [1.0], positions=[math.nan])
