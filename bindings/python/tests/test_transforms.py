"""The methods against loops in double precision, over types, axes, strides, masks and sizes."""

import ml_dtypes
import numpy as np
import oracle
import pytest
import scipy.sparse
import scipy.special

import shafer

TYPES = {
    np.dtype(np.float64): 1e-9,
    np.dtype(np.float32): 1e-5,
    np.dtype(np.float16): 2e-3,
    np.dtype(ml_dtypes.bfloat16): 1e-2,
}
METHODS = sorted(oracle.METHODS)


def logits(*shape, dtype=np.float64, seed=0):
    # Multiples of 1/8 of small size are exact in every type, and ties are frequent.
    rng = np.random.default_rng(seed)
    return (rng.integers(-40, 40, size=shape) / 8).astype(dtype)


def smooth(*shape, dtype=np.float64, seed=0):
    return (3 * np.random.default_rng(seed).standard_normal(shape)).astype(dtype)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_types(method, dtype):
    for classes in (3, 10, 33, 300):
        x = smooth(7, classes, dtype=dtype)
        p = shafer.sparsify(x, method)
        assert p.dtype == dtype and p.shape == x.shape
        expected = oracle.along(method, x)
        np.testing.assert_allclose(p.astype(np.float64), expected, atol=TYPES[dtype], rtol=0)
        # The same classes, where no probability is too small for the type.
        clear = (expected > 1e-4) | (expected == 0)
        assert ((p.astype(np.float64) > 0) == (expected > 0))[clear].all()


@pytest.mark.parametrize("method", METHODS)
def test_axes_and_strides(method):
    base = logits(4, 5, 6, 7, seed=1)
    views = [
        base,
        base.transpose(2, 0, 3, 1),
        np.asfortranarray(base),
        base[::2, ::-1, 1:, ::-2],
        base[:, :, ::-1][1:3],
        np.broadcast_to(base[0, 0], (3, 6, 7)),
        base.astype(">f8"),
    ]
    for x in views:
        for axis in range(-x.ndim, x.ndim):
            before = x.copy()
            if x.shape[axis] < 3:
                continue
            p = shafer.sparsify(x, method, axis=axis)
            np.testing.assert_allclose(p, oracle.along(method, before, axis), atol=1e-9)
            assert p.flags.c_contiguous and p.dtype == np.float64
            np.testing.assert_array_equal(x, before)


def test_unaligned_memory_is_copied():
    raw = np.zeros(8 * 10 + 1, dtype=np.uint8)
    x = raw[1:].view(np.float64)
    x[:] = logits(10)
    assert not x.flags.aligned
    np.testing.assert_allclose(shafer.softmax(x), scipy.special.softmax(x))
    # A field of a record: its stride is no multiple of the element.
    records = np.zeros(6, dtype=[("x", "f4"), ("y", "i1")])
    records["x"] = [1, 1, 0, -1, -1, -1]
    packed = records["x"].copy()
    np.testing.assert_array_equal(shafer.evidential(records["x"]), shafer.evidential(packed))


@pytest.mark.parametrize("method", METHODS)
def test_temperature(method):
    x = smooth(5, 12)
    for temperature in (0.1, 1.0, 3.5):
        p = shafer.sparsify(x, method, temperature=temperature)
        np.testing.assert_allclose(p, oracle.along(method, x, -1, temperature), atol=1e-9)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_masks(method, axis):
    x = smooth(5, 6, 7)
    rng = np.random.default_rng(3)
    full = rng.random(x.shape) < 0.7
    # At least three of each row are left.
    np.moveaxis(full, axis, -1)[..., :3] = True
    by_class = np.moveaxis(full, axis, -1)[0, 0]
    broadcast = full[:1]
    shape = [1, 1, 1]
    shape[axis] = -1
    cases = [(full, full), (by_class, by_class.reshape(shape))]
    if axis != 0:
        cases.append((broadcast, broadcast))
    for mask, spread in cases:
        hidden = np.where(spread, x, np.nan)
        expected = oracle.along(method, np.where(spread, x, -np.inf), axis)
        p = shafer.sparsify(hidden, method, axis=axis, mask=mask)
        np.testing.assert_allclose(p, expected, atol=1e-9)
        strided = np.asfortranarray(mask)
        np.testing.assert_array_equal(shafer.sparsify(hidden, method, axis=axis, mask=strided), p)


@pytest.mark.parametrize("dtype", TYPES, ids=str)
@pytest.mark.parametrize("method", METHODS)
def test_compressed_rows(method, dtype):
    x = smooth(3, 4, 21, dtype=dtype)
    rows = shafer.sparsify(x, method, axis=1, sparse=True)
    assert isinstance(rows, scipy.sparse.csr_array)
    assert rows.shape == (63, 4)
    assert rows.dtype == (np.float64 if dtype == np.float64 else np.float32)
    rows.check_format(full_check=True)
    dense = np.moveaxis(shafer.sparsify(x, method, axis=1), 1, -1).reshape(63, 4)
    np.testing.assert_allclose(rows.toarray(), dense.astype(np.float64), rtol=1e-6 if dtype.itemsize > 2 else 1e-2)
    one = shafer.sparsify(x[0, :, 0].copy(), method, sparse=True)
    assert one.shape == (1, 4)


def test_out():
    x = smooth(6, 9, dtype=np.float32)
    expected = shafer.evidential(x)
    out = np.full_like(x, 7)
    assert shafer.evidential(x, out=out) is out
    np.testing.assert_array_equal(out, expected)
    # Any strides.
    wide = np.full((6, 18), 7, dtype=np.float32)
    assert (shafer.evidential(x, out=wide[:, ::2]) == expected).all()
    assert (wide[:, 1::2] == 7).all() and (wide[:, ::2] == expected).all()
    # In place, and into memory that overlaps.
    same = x.copy()
    shafer.evidential(same, out=same)
    np.testing.assert_array_equal(same, expected)
    memory = np.zeros(6 * 9 + 5, dtype=np.float32)
    source = memory[: 6 * 9].reshape(6, 9)
    source[:] = x
    shafer.evidential(source, out=memory[5:].reshape(6, 9))
    np.testing.assert_array_equal(memory[5:].reshape(6, 9), expected)


def test_empty():
    assert shafer.softmax(np.zeros((0, 5))).shape == (0, 5)
    assert shafer.softmax(np.zeros((5, 0, 3)), axis=0).shape == (5, 0, 3)
    assert shafer.sparsify(np.zeros((0, 5)), sparse=True).shape == (0, 5)
    assert shafer.support_size(np.zeros((2, 0, 5))).shape == (2, 0)
    with pytest.raises(ValueError, match="a row of logits is empty"):
        shafer.softmax(np.zeros((5, 0)))


def test_huge_rows():
    x = smooth(2, 300_000, dtype=np.float32)
    for method in METHODS:
        p = shafer.sparsify(x, method)
        np.testing.assert_allclose(p, oracle.along(method, x), atol=1e-6)
    # More elements than memory has, by strides of 0: an error, not a crash.
    giant = np.broadcast_to(np.float32(1), (1 << 50, 4))
    with pytest.raises(MemoryError):
        shafer.softmax(giant)
    with pytest.raises(MemoryError):
        shafer.sparsify(giant, sparse=True)


def test_the_number_of_threads_changes_nothing():
    x = smooth(4000, 64, dtype=np.float32)
    for method in METHODS:
        one = shafer.sparsify(x, method, threads=1)
        for threads in (2, 7, None):
            np.testing.assert_array_equal(shafer.sparsify(x, method, threads=threads), one)


def test_kinds_of_input():
    expected = shafer.softmax(np.array([1.0, 2.0, 4.0]))
    for value in ([1, 2, 4], (1.0, 2.0, 4.0), np.array([1, 2, 4]), np.array([1, 2, 4], dtype=np.uint8)):
        result = shafer.softmax(value)
        assert type(result) is np.ndarray and result.dtype == np.float64
        np.testing.assert_array_equal(result, expected)

    class Array:
        def __array__(self, dtype=None, copy=None):
            return np.array([1.0, 2.0, 4.0])

    np.testing.assert_array_equal(shafer.softmax(Array()), expected)

    class Exchange:
        """An array of another library that speaks DLPack and the array API."""

        def __init__(self, value):
            self.value = value

        def __dlpack__(self, **arguments):
            return self.value.__dlpack__(**arguments)

        def __dlpack_device__(self):
            return self.value.__dlpack_device__()

        def __array_namespace__(self):
            return Library

    class Library:
        @staticmethod
        def from_dlpack(array):
            return Exchange(array)

    result = shafer.softmax(Exchange(np.array([1.0, 2.0, 4.0])))
    assert type(result) is Exchange
    np.testing.assert_array_equal(result.value, expected)


def test_support_size():
    x = smooth(5, 6, 7)
    for axis in (0, 1, -1):
        for method in METHODS:
            sizes = shafer.support_size(x, method, axis=axis)
            np.testing.assert_array_equal(sizes, (oracle.along(method, x, axis) > 0).sum(axis))


@pytest.mark.parametrize("method", METHODS)
def test_vector_jacobian_products(method):
    x = smooth(4, 9, seed=5)
    rng = np.random.default_rng(6)
    upstream = rng.standard_normal(x.shape)
    p = shafer.sparsify(x, method)
    gradient = shafer.vjp(x, p, upstream, method)
    step = 1e-6
    for index in np.ndindex(*x.shape):
        high, low = x.copy(), x.copy()
        high[index] += step
        low[index] -= step
        up, down = (oracle.along(method, z) for z in (high, low))
        numeric = ((up - down) * upstream).sum() / (2 * step)
        assert abs(gradient[index] - numeric) < 2e-4


def test_functions_are_their_methods():
    x = smooth(4, 9)
    pairs = [
        (shafer.evidential(x, 2), "evidential:rounds=2"),
        (shafer.softmax(x), "softmax"),
        (shafer.sparsemax(x), "sparsemax"),
        (shafer.sparsegen_lin(x, 0.3), "sparsegen-lin:lambda=0.3"),
        (shafer.sparsegen_hg(x, 0.7), "sparsegen-hg:q=0.7"),
        (shafer.entmax(x, 1.3), "entmax:alpha=1.3"),
        (shafer.top_k(x, 3), "top_k:k=3"),
        (shafer.top_p(x, 0.8), "top-p:p=0.8"),
        (shafer.min_p(x, 0.1), "min-p:p=0.1"),
        (shafer.top_n_sigma(x, 1.0), "top-n-sigma:n=1"),
        (shafer.min_evidence(x, 0.6), "min-evidence:w=0.6"),
        (shafer.min_probability(x, 0.07), "min-probability:p=0.07"),
    ]
    for result, method in pairs:
        np.testing.assert_array_equal(result, shafer.sparsify(x, method))
