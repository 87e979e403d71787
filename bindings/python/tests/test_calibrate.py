"""Calibrations against an order statistic in NumPy, the packages of the fixture, and their own promises."""

import copy
import json
import math
import pickle
from pathlib import Path

import needs
import numpy as np
import oracle
import pytest

import shafer
from shafer import _core

FIXTURE = Path(__file__).parents[3] / "crates/shafer/tests/fixtures/calibrate.json"
METHODS = ["evidential", "lac", "min-p", "top-n-sigma", "top-p", "top-k", "sparsemax", "entmax:alpha=1.5"]


def rows(seed, n=300, classes=7, scale=2.0):
    rng = np.random.default_rng(seed)
    logits = scale * rng.standard_normal((n, classes))
    p = oracle.along("softmax", logits)
    y = (p.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
    return logits, y


def scores(method, z):
    """The scores of all classes of rows, from their definitions."""
    p = oracle.along("softmax", z)
    order = np.argsort(-z, axis=1, kind="stable")
    ranks = np.argsort(order, axis=1, kind="stable")
    before = np.take_along_axis(np.cumsum(np.take_along_axis(p, order, 1), 1), ranks, 1) - p
    above = np.maximum(z[:, :, None] - z[:, None, :], 0)
    top = z.max(axis=1, keepdims=True)
    return {
        "evidential": lambda: z.mean(axis=1, keepdims=True) - z,
        "lac": lambda: -np.log(p),
        "min-p": lambda: top - z,
        "top-n-sigma": lambda: (top - z) / z.std(axis=1, keepdims=True),
        "top-p": lambda: before,
        "top-k": lambda: ranks + 1.0,
        "sparsemax": lambda: above.sum(axis=1),
        "entmax:alpha=1.5": lambda: 0.5 * (above**2).sum(axis=1) ** 0.5,
        "aps": lambda: before + p,
        "raps:penalty=0.02,rank=2": lambda: before + p + 0.02 * np.maximum(ranks + 1 - 2, 0),
    }[method]()


def order_statistic(of_labels, alpha):
    rank = math.ceil((len(of_labels) + 1) * (1 - alpha) - 1e-9)
    return np.sort(of_labels)[rank - 1] if rank <= len(of_labels) else np.inf


@pytest.mark.parametrize("method", [*METHODS, "aps", "raps:penalty=0.02,rank=2"])
@pytest.mark.parametrize("alpha", [0.3, 0.1, 0.02, 0.001])
def test_thresholds_are_order_statistics(method, alpha):
    logits, y = rows(1)
    of_labels = scores(method, logits)[np.arange(len(y)), y]
    calibrator = shafer.Calibrator(method, alpha)
    assert calibrator.fit(logits, y) is calibrator
    expected = order_statistic(of_labels, alpha)
    assert calibrator.threshold_ == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(calibrator.scores_, of_labels, rtol=1e-9, atol=1e-9)
    assert calibrator.calibration_.rows == {0: len(y)}
    others, _ = rows(2)
    found = scores(method, others)
    # Scores next to the threshold are decided by rounding.
    clear = np.abs(found - expected) > 1e-9 if np.isfinite(expected) and method != "top-k" else np.ones_like(found, bool)
    np.testing.assert_array_equal(calibrator.predict_set(others)[clear], (found <= expected)[clear])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", ["f8", "f4", "f2"])
def test_distributions_are_those_of_the_method(method, dtype):
    logits, y = rows(3)
    logits = logits.astype(dtype)
    calibrator = shafer.Calibrator(method, 0.1).fit(logits, y)
    dense = calibrator.transform(logits)
    assert dense.dtype == dtype and dense.shape == logits.shape
    np.testing.assert_allclose(dense.astype("f8").sum(axis=1), 1, atol=1e-2 if dtype == "f2" else 1e-6)
    kept = dense > 0
    assert (~kept).sum() > 100
    # At least the set, with the best class and what rounding adds.
    sets = calibrator.predict_set(logits)
    sparse = calibrator.transform(logits, sparse=True)
    holds = np.zeros(kept.shape, bool)
    holds[np.repeat(np.arange(len(y)), np.diff(sparse.indptr)), sparse.indices] = True
    assert (holds >= sets).all() and holds[np.arange(len(y)), logits.argmax(axis=1)].all()
    np.testing.assert_allclose(sparse.toarray(), dense.astype("f8"), atol=1e-3 if dtype == "f2" else 1e-9)
    if method not in ("sparsemax", "entmax:alpha=1.5"):
        z = np.where(holds, logits.astype("f8"), -np.inf)
        np.testing.assert_allclose(dense, oracle.along("softmax", z), atol=1e-3 if dtype == "f2" else 1e-6)
    else:
        temperature = calibrator.threshold_ * (1 + 1e-6)
        name = {"sparsemax": "sparsemax", "entmax:alpha=1.5": "entmax:alpha=1.5"}[method]
        expected = oracle.along(name, logits, temperature=temperature)
        np.testing.assert_allclose(dense, expected, atol=2e-3 if dtype == "f2" else 2e-5)
    # At most as many rows as may be missed.
    missed = ~holds[np.arange(len(y)), y]
    assert missed.sum() <= 0.1 * (len(y) + 1)
    audit = shafer.audit(logits, y, calibrator)
    assert (audit.all.rows, audit.all.missed) == (len(y), missed.sum())
    assert audit.mean_size == pytest.approx(holds.sum() / len(y))


def test_more_axes_are_more_rows():
    logits, y = rows(4)
    calibrator = shafer.Calibrator("lac", 0.1).fit(logits, y)
    cube, labels = logits.reshape(20, 15, 7), y.reshape(20, 15)
    assert shafer.Calibrator("lac", 0.1).fit(cube, labels).threshold_ == calibrator.threshold_
    np.testing.assert_array_equal(calibrator.transform(cube), calibrator.transform(logits).reshape(cube.shape))
    np.testing.assert_array_equal(calibrator.predict_set(cube).reshape(300, 7), calibrator.predict_set(logits))
    np.testing.assert_array_equal(calibrator.predict(cube), cube.argmax(axis=-1))
    assert calibrator.transform(logits[0]).shape == (7,)
    turned = np.asfortranarray(logits)
    np.testing.assert_array_equal(calibrator.transform(turned), calibrator.transform(logits))
    np.testing.assert_array_equal(calibrator.transform(logits.tolist()), calibrator.transform(logits))


def test_groups():
    logits, y = rows(5)
    groups = np.random.default_rng(6).choice([3, 10, 900], 300)
    calibrator = shafer.Calibrator("min-p", 0.1).fit(logits, y, groups)
    of_labels = scores("min-p", logits)[np.arange(300), y]
    for group in (3, 10, 900):
        expected = order_statistic(of_labels[groups == group], 0.1)
        assert calibrator.threshold_[group] == pytest.approx(expected, rel=1e-12)
    sets = calibrator.predict_set(logits, groups)
    limits = np.array([calibrator.threshold_[g] for g in groups])
    np.testing.assert_array_equal(sets, scores("min-p", logits) <= limits[:, None])
    assert ((calibrator.transform(logits, groups) > 0) >= sets).all()
    audit = shafer.audit(logits, y, calibrator, groups=groups)
    assert set(audit.by_group) == {3, 10, 900}
    assert sum(part.missed for part in audit.by_group.values()) == audit.all.missed


def test_classes():
    logits, y = rows(7, n=600)
    y[y == 2] = 3
    calibrator = shafer.Calibrator("evidential", 0.2, by="class").fit(logits, y)
    found = scores("evidential", logits)
    for k in range(7):
        expected = order_statistic(found[y == k, k], 0.2)
        assert calibrator.threshold_[k] == pytest.approx(expected, rel=1e-12)
    assert calibrator.threshold_[2] == np.inf
    limits = np.array([calibrator.threshold_[k] for k in range(7)])
    sets = calibrator.predict_set(logits)
    clear = np.abs(found - limits) > 1e-9
    np.testing.assert_array_equal(sets[clear], (found <= limits)[clear])
    holds = sets.copy()
    holds[np.arange(600), logits.argmax(axis=1)] = True
    expected = oracle.along("softmax", np.where(holds, logits, -np.inf))
    np.testing.assert_allclose(calibrator.transform(logits), expected, atol=1e-12)
    np.testing.assert_allclose(calibrator.transform(logits, sparse=True).toarray(), expected, atol=1e-12)


def test_the_packages_of_the_fixture():
    """Thresholds of MAPIE and TorchCP, in our terms as the core's test has them."""

    def ours(case, theirs):
        if theirs is None:
            return math.inf
        if case["score"] == "lac":
            return -math.log1p(-theirs)
        if case["score"] == "top-k" and case["from"] == "mapie":
            return theirs + 1
        if case["score"].startswith("entmax"):
            return theirs * (float(case["score"].split("=")[1]) - 1)
        return theirs

    data, compared = [], 0
    for case in json.loads(FIXTURE.read_text())["cases"]:
        if case["kind"] == "data":
            data.append((np.array(case["logits"]), np.array(case["labels"], np.uint32)))
        if case["kind"] != "threshold":
            continue
        by = "class" if "by_class" in case else "all"
        uniform = np.array(case["uniform"]) if "uniform" in case else None
        rows_of, labels = data[case["data"]]
        found = _core.calibrate(rows_of, labels, None, case["score"], by, case["alpha"], None, uniform).thresholds
        if uniform is None:
            calibrator = shafer.Calibrator(case["score"], case["alpha"], by="class" if by == "class" else None)
            assert calibrator.fit(rows_of, labels).calibration_.thresholds == found
        theirs = case.get("by_class", [case.get("threshold")])
        assert list(found.values()) == pytest.approx([ours(case, value) for value in theirs], rel=1e-9)
        compared += 1
    assert compared == 165


def test_p_values():
    logits, y = rows(8)
    others, labels = rows(9)
    for by in (None, "class", "group"):
        groups = np.arange(300) % 2 if by == "group" else None
        calibrator = shafer.Calibrator("lac", by=by).fit(logits, y, groups)
        known = scores("lac", logits)[np.arange(300), y]
        found = calibrator.p_values(others, groups)
        assert found.shape == others.shape
        for row in range(0, 300, 17):
            for k in range(7):
                own = {None: known, "class": known[y == k], "group": known[np.arange(300) % 2 == row % 2]}[by]
                value = scores("lac", others)[row, k]
                expected = (1 + (own >= value - 1e-9).sum()) / (len(own) + 1)
                assert found[row, k] == pytest.approx(expected)
    # The set is where the p-value is above alpha.
    calibrator = shafer.Calibrator("lac", 0.1).fit(logits, y)
    np.testing.assert_array_equal(calibrator.predict_set(others), calibrator.p_values(others) > 0.1)
    # Smoothed ones of true classes are uniform.
    smooth = shafer.Calibrator("top-k", random_state=1).fit(logits, y)
    values = np.sort(smooth.p_values(others)[np.arange(300), labels])
    assert np.abs(values - np.linspace(0, 1, 300)).max() < 0.12
    masked = others[:1].copy()
    masked[0, 3] = -np.inf
    assert calibrator.p_values(masked)[0, 3] == 0


def test_weights_are_as_many_rows():
    logits, y = rows(10)
    weights = np.random.default_rng(11).integers(0, 4, 300)
    others, _ = rows(12)
    weighted = shafer.Calibrator("lac", 0.1).fit(logits, y, sample_weight=weights)
    repeated = shafer.Calibrator("lac", 0.1).fit(np.repeat(logits, weights, axis=0), np.repeat(y, weights))
    ones = np.ones(300)
    np.testing.assert_array_equal(weighted.predict_set(others, sample_weight=ones), repeated.predict_set(others))
    np.testing.assert_allclose(weighted.p_values(others, sample_weight=ones), repeated.p_values(others), rtol=1e-12)
    np.testing.assert_allclose(weighted.transform(others, sample_weight=ones), repeated.transform(others), atol=1e-12)
    # A row unlike all of them keeps every class.
    assert weighted.predict_set(others, sample_weight=1e9 * ones).all()
    assert not hasattr(weighted, "calibration_")


def test_confidence_is_a_binomial_tail():
    stats = needs.module("scipy.stats", "scipy")
    logits, y = rows(13, n=1000)
    of_labels = np.sort(scores("lac", logits)[np.arange(1000), y])
    rank = next(k for k in range(1001) if stats.binom.sf(k - 1, 1000, 0.95) <= 0.1)
    calibrator = shafer.Calibrator("lac", 0.05, confidence=0.9).fit(logits, y)
    assert calibrator.threshold_ == pytest.approx(of_labels[rank - 1], rel=1e-12)
    assert calibrator.calibration_.confidence == pytest.approx(0.9)
    low, high = shafer.audit(logits, y, calibrator).all.interval
    found = stats.binomtest(1000 - rank, 1000).proportion_ci(0.95, "exact")
    missed = shafer.audit(logits, y, calibrator).all.missed
    assert missed == 1000 - rank
    assert (low, high) == pytest.approx((found.low, found.high), abs=1e-12)


@pytest.mark.parametrize("randomised", [False, True])
def test_coverage(randomised):
    """Mean coverage over draws is within its limits, 1 - alpha and 1 - alpha + 1 / (n + 1), by five standard errors."""
    n, alpha, hits, total = 60, 0.2, [], 0
    # One generator for all draws: the coverage is one over its numbers, too.
    random_state = np.random.default_rng(0) if randomised else None
    for draw in range(300):
        logits, y = rows(100 + draw, n=n + 60)
        calibrator = shafer.Calibrator("aps", alpha, random_state=random_state).fit(logits[:n], y[:n])
        sets = calibrator.predict_set(logits[n:])
        hits.append(sets[np.arange(60), y[n:]].mean())
        total += 1
    mean, error = np.mean(hits), np.std(hits) / total**0.5
    assert mean > 1 - alpha - 5 * error
    assert mean < 1 - alpha + 1 / (n + 1) + 5 * error


def test_a_calibration_is_text():
    logits, y = rows(14)
    for options in ({}, {"by": "class"}, {"confidence": 0.9}):
        calibration = shafer.Calibrator("lac", 0.1, **options).fit(logits, y).calibration_.with_note("logits.npy")
        text = calibration.to_json()
        assert json.loads(text)["version"] == 1
        for same in (shafer.Calibration.from_json(text), pickle.loads(pickle.dumps(calibration)), copy.copy(calibration)):
            assert same == calibration and same.measured_on == "logits.npy"
            np.testing.assert_array_equal(same.transform(logits), calibration.transform(logits))
    few = shafer.Calibrator(alpha=0.001).fit(logits, y)
    assert few.threshold_ == np.inf
    assert json.loads(few.calibration_.to_json())["thresholds"][0]["threshold"] is None
    assert (few.transform(logits) > 0).all()


def test_conventions_of_scikit_learn():
    calibrator = shafer.Calibrator("lac", 0.1, by="class", random_state=3)
    assert calibrator.get_params() == {
        "method": "lac", "alpha": 0.1, "by": "class", "confidence": None, "random_state": 3
    }
    assert repr(calibrator) == "Calibrator(method='lac', alpha=0.1, by='class', random_state=3)"
    assert calibrator.set_params(alpha=0.2) is calibrator and calibrator.alpha == 0.2
    with pytest.raises(ValueError, match="Calibrator has no parameter level; it has method, alpha"):
        calibrator.set_params(level=0.2)
    logits, y = rows(15)
    before = set(vars(calibrator))
    calibrator.fit(logits, y)
    assert all(name.endswith("_") or name.startswith("_") for name in set(vars(calibrator)) - before)
    np.testing.assert_array_equal(calibrator.classes_, np.arange(7))
    again = pickle.loads(pickle.dumps(calibrator))
    np.testing.assert_array_equal(again.transform(logits), calibrator.transform(logits))
    fresh = shafer.Calibrator("lac", 0.1)
    np.testing.assert_array_equal(fresh.fit_transform(logits, y), fresh.predict_proba(logits))


def test_cloning_by_scikit_learn():
    base = needs.module("sklearn.base", "sklearn")
    calibrator = shafer.Calibrator("lac", 0.1).fit(*rows(16))
    clone = base.clone(calibrator)
    assert clone.get_params() == calibrator.get_params() and not hasattr(clone, "scores_")


def test_risk_control():
    rng = np.random.default_rng(17)
    losses = np.sort(rng.random((50, 9)), axis=1)[:, ::-1] ** 3
    thresholds = np.arange(9.0)
    for alpha in (0.1, 0.3, 0.6):
        holds = 50 / 51 * losses.mean(axis=0) + 1 / 51 <= alpha
        expected = thresholds[holds.argmax()] if holds.any() else np.inf
        assert shafer.control_risk(losses, thresholds, alpha) == expected
    # Every looser threshold passes the binomial test.
    stats = needs.module("scipy.stats", "scipy")
    misses = rng.random((300, 9)) < np.linspace(0.4, 0.0, 9)
    p = stats.binom.cdf(misses.sum(axis=0), 300, 0.1)
    failed = np.flatnonzero(p > 0.05)
    expected = thresholds[failed[-1] + 1] if failed.size else 0.0
    assert shafer.control_risk(misses, thresholds, 0.1, confidence=0.95) == expected


def test_what_is_wrong_is_named():
    logits, y = rows(18, n=40)
    fit = lambda *a, **k: shafer.Calibrator(**k).fit(*a)  # noqa: E731
    fitted = fit(logits, y, alpha=0.1)
    by_group = fit(logits, y, np.arange(40) % 2, alpha=0.1)
    masked, nan = logits.copy(), logits.copy()
    masked[3, y[3]], nan[2, 1] = -np.inf, np.nan
    none = (np.zeros((0, 7)), np.zeros(0, int))
    cases = [
        (lambda: fit(logits, y[1:]), ValueError, r"labels have the shape \[39\], but \[40\] is needed"),
        (lambda: fit(logits, np.full(40, 7)), ValueError, "row 0: label 7 is not a class"),
        (lambda: fit(logits, np.full(40, -1)), ValueError, "row 0: labels are -1 there"),
        (lambda: fit(logits, y + 0.5), TypeError, "labels are of type float64, but must be whole numbers"),
        (lambda: fit(masked, y), ValueError, "row 3: label . is a masked class, which no method can keep"),
        (lambda: fit(nan, y), ValueError, "row 2, column 1: logit is NaN"),
        (lambda: fit(*none), ValueError, "the set of calibration rows is empty"),
        (lambda: fit(logits, y, alpha=0.0), ValueError, "alpha is 0, but must be between 0 and 1"),
        (lambda: fit(logits, y, confidence=1.0), ValueError, "confidence is 1.0, but must be between 0 and 1"),
        (lambda: fit(logits, y, method="softmax"), ValueError, "there is no such score; use evidential, lac"),
        (lambda: fit(logits, y, by="row"), ValueError, 'by is "row", but must be'),
        (lambda: fit(logits, y, by="group"), ValueError, "give fit the group of each row"),
        (lambda: fit(logits, y, np.zeros(40, int), by="class"), ValueError, 'by is "class"; leave out groups'),
        (lambda: fit(logits, y, None, np.full(40, -1.0)), ValueError, "weight is -1, but must be finite and not negative"),
        (lambda: fit(logits, y, None, np.ones(3)), ValueError, "sample_weight has the shape"),
        (lambda: shafer.Calibrator().transform(logits), ValueError, "not fitted; call fit first"),
        (lambda: shafer.Calibrator().predict(logits), ValueError, "not fitted"),
        (lambda: fitted.transform(logits[:, :5]), ValueError, "a row of logits has length 5, but 7 is needed"),
        (lambda: fitted.predict(logits[:, :5]), ValueError, "has length 5, but 7 is needed"),
        (lambda: fitted.transform(nan), ValueError, "row 2, column 1: logit is NaN"),
        (lambda: fitted.transform(logits, sample_weight=y), ValueError, "fit had no sample_weight"),
        (lambda: by_group.transform(logits), ValueError, "groups"),
        (lambda: by_group.transform(logits, np.arange(40)), ValueError, "row 2: group 2 has no threshold"),
        (lambda: by_group.p_values(logits, np.arange(40)), ValueError, "row 2: group 2 did not occur"),
        (lambda: by_group.transform(logits, np.zeros(3, int)), ValueError, r"groups have the shape \[3\]"),
        (lambda: fit(logits, y, method="aps").transform(logits), ValueError, "gives sets of classes, not distributions"),
        (lambda: fit(logits, y, method="sparsemax", by="class").transform(logits), ValueError, "the temperature of a row"),
        (lambda: shafer.Calibration.from_json("{}"), ValueError, "the text is no calibration: missing field"),
        (lambda: shafer.audit(logits, y, fitted, temperature=2.0), ValueError, "leave out temperature"),
        (lambda: shafer.audit(logits, y, "softmix"), ValueError, "there is no such method"),
        (lambda: shafer.audit(*none), ValueError, "there are no rows"),
        (lambda: shafer.audit(logits, y, confidence=1.0), ValueError, "confidence is 1, but must be between"),
        (lambda: shafer.audit(3.0, 1), ValueError, "a single number"),
        (lambda: shafer.control_risk([[0.5, 1.0]], [0, 1], 0.1), ValueError, "loss is 1, but must not be greater"),
        (lambda: shafer.control_risk([[0.5]], [0, 1], 0.1), ValueError, "needs one for each threshold"),
        (lambda: shafer.control_risk([[2.0, 0.0]], [0, 1], 0.1), ValueError, "must be between 0 and the bound"),
        (lambda: shafer.control_risk([[1.0, 0.0]], [1, 0], 0.1), ValueError, "from the tightest to the loosest"),
        (lambda: shafer.rows_needed(1.0), ValueError, "alpha is 1"),
    ]
    for call, kind, message in cases:
        with pytest.raises(kind, match=message) as found:
            call()
        assert type(found.value) is kind and "\n" not in str(found.value)
