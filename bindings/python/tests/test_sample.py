"""Draws: frequencies, seeds, and that dense and compressed rows draw the same."""

import numpy as np
import pytest
import scipy.sparse

import shafer

ROWS = np.array([[0.0, 0.25, 0.0, 0.75], [0.5, 0.1, 0.4, 0.0]])


def test_frequencies():
    for draws in (
        shafer.sample(ROWS, rng=1, size=40_000),
        shafer.sample(np.repeat(ROWS, 40_000, 0), rng=2).reshape(2, -1),
    ):
        assert draws.shape == (2, 40_000) and draws.dtype == np.int64
        for row, drawn in zip(ROWS, draws):
            counts = np.bincount(drawn, minlength=4)
            assert (counts[row == 0] == 0).all()
            # Four standard deviations; the seed is fixed.
            slack = 4 * np.sqrt(row * (1 - row) * 40_000)
            assert (abs(counts - 40_000 * row) <= slack).all()


def test_generators_and_seeds():
    a = shafer.sample(ROWS, rng=np.random.default_rng(5), size=9)
    np.testing.assert_array_equal(a, shafer.sample(ROWS, rng=5, size=9))
    generator = np.random.default_rng(5)
    first, second = (shafer.sample(ROWS, rng=generator, size=50) for _ in range(2))
    assert (first != second).any()
    assert isinstance(shafer.sample(ROWS[0], rng=1), int)
    assert shafer.sample(ROWS[0], size=3).shape == (3,)
    assert shafer.sample(ROWS, rng=1, size=0).shape == (2, 0)
    assert shafer.sample(ROWS.reshape(2, 1, 4), rng=1).shape == (2, 1)
    assert shafer.sample(np.zeros((0, 4)), rng=1).shape == (0,)


@pytest.mark.parametrize("size", [None, 7])
def test_compressed_rows(size):
    csr = scipy.sparse.csr_array(ROWS)
    np.testing.assert_array_equal(shafer.sample(csr, rng=3, size=size), shafer.sample(ROWS, rng=3, size=size))
    logits = np.random.default_rng(0).standard_normal((50, 30)).astype(np.float32)
    rows = shafer.sparsify(logits, sparse=True)
    np.testing.assert_array_equal(shafer.sample(rows, rng=3, size=size), shafer.sample(rows.toarray(), rng=3, size=size))
