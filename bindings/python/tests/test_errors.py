"""Errors: their class, and a message that says what is wrong, where, and what to do."""

import numpy as np
import pytest

import shafer

X = np.array([[0.5, 1.0], [2.0, 0.0]])
READ_ONLY = X.copy()
READ_ONLY.flags.writeable = False

CASES = [
    (lambda: shafer.softmax(np.array([[0.0, 1.0], [0.0, np.nan]])), ValueError, "row 1, column 1: logit is NaN, but must be finite, or -inf for a masked class"),
    (lambda: shafer.softmax(np.array([0.0, np.inf])), ValueError, "row 0, column 1: logit is inf"),
    (lambda: shafer.softmax(np.full(3, -np.inf)), ValueError, "row 0: every class is masked"),
    (lambda: shafer.softmax(3.0), ValueError, "a single number, but must have at least one axis"),
    (lambda: shafer.softmax(X, axis=2), ValueError, "axis 2 does not exist: the array has 2 axes"),
    (lambda: shafer.softmax(X, axis=-3), ValueError, "axis -3 does not exist"),
    (lambda: shafer.softmax(X, temperature=0.0), ValueError, "temperature is 0, but must be positive, from 1e-30 to 1e30"),
    (lambda: shafer.softmax(X, temperature=float("nan")), ValueError, "temperature is NaN"),
    (lambda: shafer.softmax(X, threads=0), ValueError, "threads is 0, but must be at least 1"),
    (lambda: shafer.softmax(X, threads=-1), OverflowError, "negative"),
    (lambda: shafer.top_k(X, 3), ValueError, "k is 3, but must not be greater than the number of classes"),
    (lambda: shafer.top_k(X, 0), ValueError, "k is 0, but must be at least 1"),
    (lambda: shafer.entmax(X, 0.5), ValueError, "alpha is 0.5, but"),
    (lambda: shafer.evidential(X, 0), ValueError, "rounds is 0, but must be at least 1"),
    (lambda: shafer.sparsify(X, "softmix"), ValueError, "method `softmix`: there is no such method; use evidential"),
    (lambda: shafer.sparsify(X, "top-k:n=2"), ValueError, "method `top-k:n=2`"),
    (lambda: shafer.softmax(np.array([1j])), TypeError, "the logits are of type complex128, but must be float16"),
    (lambda: shafer.softmax(np.array(["a"])), TypeError, "the logits are of type <U1"),
    (lambda: shafer.softmax(np.array([None])), TypeError, "the logits are of type object"),
    (lambda: shafer.softmax(np.array([True])), TypeError, "the logits are of type bool"),
    (lambda: shafer.softmax(np.ma.masked_array([1.0], [True])), TypeError, "pass mask=~x.mask"),
    (lambda: shafer.softmax(X, mask=np.array([True] * 3)), ValueError, "mask has the shape [3], but the logits have [2, 2]; it needs their shape, or an entry for each of the 2 classes"),
    (lambda: shafer.softmax(X, mask=np.array([1, 0])), TypeError, "mask is of type int64, but must be bool"),
    (lambda: shafer.softmax(X, mask=np.array([False, False])), ValueError, "every class is masked"),
    (lambda: shafer.softmax(X, out=np.zeros((2, 3))), ValueError, "out has the shape [2, 3], but [2, 2] is needed"),
    (lambda: shafer.softmax(X, out=np.zeros((2, 2), np.float32)), TypeError, "out is an array of float32, but must be a NumPy array of float64, as the logits are"),
    (lambda: shafer.softmax(X, out=[0.0]), TypeError, "out is a list, but must be a NumPy array of float64"),
    (lambda: shafer.softmax(X, out=READ_ONLY), ValueError, "out is read-only"),
    (lambda: shafer.sparsify(X, sparse=True, out=X), ValueError, "out is for dense results"),
    (lambda: shafer.vjp(X, X, X[0]), ValueError, "upstream have the shape [2], but [2, 2] is needed"),
    (lambda: shafer.Evidence([1.0, -0.5], [0.0, 0.0]), ValueError, "row 0, column 1: positive weight is -0.5"),
    (lambda: shafer.Evidence.from_logits([[1.0]]), ValueError, "the logits have 2 axes, but must be one row"),
    (lambda: shafer.Evidence.from_logits([]), ValueError, "the row of logits is empty"),
    (lambda: shafer.Evidence.from_logits(["a"]), TypeError, "the logits: could not convert"),
    (lambda: shafer.Evidence.from_head([[1.0]], [0.0], [1.0], "fair"), ValueError, 'there is no construction "fair"; use "direct" or "least-commitment"'),
    (lambda: shafer.Evidence.from_head([[1.0]], [0.0], [1.0], "least-commitment"), ValueError, "needs mean"),
    (lambda: shafer.Head([1.0], [0.0]), ValueError, "the weights have 1 axes, but must be classes x features"),
    (lambda: shafer.Head([[1.0]], [0.0, 1.0]), ValueError, "the bias has length 2, but 1 is needed"),
    (lambda: shafer.Belief.from_logits([1.0]).belief([1]), ValueError, "class 1 does not exist: there are 1, counted from 0"),
    (lambda: shafer.Belief.from_logits([1.0]).belief([-1]), ValueError, "class -1 does not exist"),
    (lambda: shafer.Belief.from_logits([1.0]).belief("a"), TypeError, "str"),
    (lambda: shafer.MassFunction(2, {(0,): 0.5}), ValueError, "the sum of the masses is 0.5, but must be 1 within 1e-9"),
    (lambda: shafer.MassFunction.vacuous(65), ValueError, "class 64 does not exist: there are 64"),
    (lambda: shafer.MassFunction.simple(2, 0, 1.0).combine(shafer.MassFunction.simple(2, 1, 1.0)), ValueError, "total conflict"),
    (lambda: shafer.Product([]), ValueError, "rows is empty"),
    (lambda: shafer.Product([[0.5, 0.4]]), ValueError, "row 0"),
    (lambda: shafer.Product([[0.5, 0.5]]).probability([2]), ValueError, "class 2 does not exist"),
    (lambda: shafer.distance.total_variation([1.0], [0.5, 0.5]), ValueError, "q has length 2, but 1 is needed"),
    (lambda: shafer.distance.total_variation([[1.0], [1.0]], [[1.0], [0.2]]), ValueError, "distribution 1: row 1"),
    (lambda: shafer.sample([0.0, 0.0], rng=1), ValueError, "distribution 0: row 0: at least one weight must be positive"),
    (lambda: shafer.sample([1.0], rng=1, size=-1), ValueError, "size is -1, but must be at least 0"),
    (lambda: shafer.open("absent.npy"), FileNotFoundError, "absent.npy: cannot open"),
    (lambda: shafer.open("-"), ValueError, "standard input"),
    (lambda: shafer.heads("absent.pt"), FileNotFoundError, "absent.pt"),
    (lambda: shafer.load_head("absent.pt", layout="x"), ValueError, "there is no layout"),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_messages(number):
    call, kind, message = CASES[number]
    with pytest.raises(Exception) as found:
        call()
    assert type(found.value) is kind, found.value
    assert message in str(found.value)
    assert "\n" not in str(found.value)


def test_an_output_after_an_error_can_be_used_again():
    out = np.zeros_like(X)
    with pytest.raises(ValueError):
        shafer.softmax(np.array([[0.0, np.nan], [0.0, 1.0]]), out=out)
    np.testing.assert_array_equal(shafer.softmax(X, out=out), shafer.softmax(X))


def test_unknown_attributes():
    with pytest.raises(AttributeError, match="no attribute 'tensorflow'"):
        shafer.tensorflow
