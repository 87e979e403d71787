"""Evidence and belief against Dempster's rule on the power set, written down here a second time."""

import itertools
import math
import pickle
from copy import deepcopy

import numpy as np
import pytest

import shafer


def subsets(classes):
    for size in range(classes + 1):
        yield from map(frozenset, itertools.combinations(range(classes), size))


def combine(a, b):
    """Dempster's rule on dictionaries; also the conflict."""
    products = {}
    for (x, p), (y, q) in itertools.product(a.items(), b.items()):
        products[x & y] = products.get(x & y, 0.0) + p * q
    conflict = products.pop(frozenset(), 0.0)
    return {s: p / (1 - conflict) for s, p in products.items()}, conflict


def mass_of(positive, negative):
    classes = range(len(positive))
    frame = frozenset(classes)
    total = {frame: 1.0}
    for k in classes:
        for w, focal in ((positive[k], frozenset({k})), (negative[k], frame - {k})):
            total, _ = combine(total, {focal: -math.expm1(-w), frame: math.exp(-w)})
    return total


def test_belief_is_dempsters_rule():
    rng = np.random.default_rng(0)
    for classes in (2, 3, 4, 5):
        for _ in range(5):
            w = rng.exponential(1, (2, classes)) * (rng.random((2, classes)) < 0.7)
            belief = shafer.Belief(shafer.Evidence(*w))
            masses = mass_of(*w)
            for s in subsets(classes):
                assert belief.mass(s) == pytest.approx(masses.get(s, 0.0), abs=1e-12)
                bel = sum(m for t, m in masses.items() if t <= s)
                pl = sum(m for t, m in masses.items() if t & s)
                assert belief.belief(s) == pytest.approx(bel, abs=1e-12)
                assert belief.plausibility(list(s)) == pytest.approx(pl, abs=1e-12)
            contour = [sum(m for t, m in masses.items() if k in t) for k in range(classes)]
            np.testing.assert_allclose(belief.contour(), contour, atol=1e-12)
            singles = [masses.get(frozenset({k}), 0.0) for k in range(classes)]
            np.testing.assert_allclose(belief.singletons(), singles, atol=1e-12)
            assert belief.ignorance() == pytest.approx(masses.get(frozenset(range(classes)), 0.0), abs=1e-12)


def test_evidence_of_logits():
    z = np.random.default_rng(1).standard_normal(40)
    evidence = shafer.Evidence.from_logits(z.astype(np.float32))
    w = z.astype(np.float32).astype(float)
    w -= math.fsum(w) / 40
    np.testing.assert_allclose(evidence.positive, np.maximum(w, 0), atol=1e-15)
    np.testing.assert_allclose(evidence.negative, np.maximum(-w, 0), atol=1e-15)
    assert evidence.support() == list(np.flatnonzero(shafer.evidential(z)))
    belief = shafer.Belief(evidence)
    np.testing.assert_allclose(belief.plausibility_transform(), shafer.softmax(z), atol=1e-7)
    for k in range(40):
        assert evidence.supports(k) == (k in evidence.support())


def test_heads():
    rng = np.random.default_rng(2)
    weight, bias, mean = rng.standard_normal((4, 3)), rng.standard_normal(4), rng.standard_normal(3)
    head = shafer.Head(weight, bias)
    assert (head.features, head.classes) == (3, 4)
    np.testing.assert_array_equal(head.weight, weight)
    np.testing.assert_array_equal(head.bias, bias)
    phi = rng.standard_normal(3)
    np.testing.assert_allclose(head.logits(phi), weight @ phi + bias)
    direct = shafer.Evidence.from_head(weight, bias, phi)
    w = weight @ phi + bias
    np.testing.assert_allclose(direct.positive, np.maximum(w - w.mean(), 0), atol=1e-14)
    # Equations 3, 8 and 9 of the paper, with the mean features in alpha.
    beta, beta0 = weight - weight.mean(0), bias - bias.mean()
    alpha = ((beta0 + beta @ mean) / 3)[:, None] - beta * mean
    wjk = beta * phi + alpha
    least = head.evidence(phi, "least_commitment", mean=mean)
    np.testing.assert_allclose(least.positive, np.maximum(wjk, 0).sum(1), atol=1e-14)
    np.testing.assert_allclose(least.negative, np.maximum(-wjk, 0).sum(1), atol=1e-14)
    assert shafer.Head(weight).bias.tolist() == [0.0] * 4


def test_mass_functions():
    a = shafer.MassFunction(3, {(0,): 0.2, (0, 1): 0.3, (1, 2): 0.5})
    b = shafer.MassFunction(3, [({2}, 0.4), ((0, 2), 0.35), (1, 0.25)])
    combined = a.combine(b)
    expected, conflict = combine(a.focal_sets(), b.focal_sets())
    assert combined.conflict == pytest.approx(conflict)
    found = combined.mass.focal_sets()
    assert found.keys() == expected.keys()
    for s, m in expected.items():
        assert found[s] == pytest.approx(m)
        assert combined.mass.mass(s) == pytest.approx(m)
        assert combined.mass.commonality(s) == pytest.approx(sum(p for t, p in expected.items() if t >= s))
    assert shafer.MassFunction.simple_from_weight(2, 0, math.log(2)).mass(0) == pytest.approx(0.5)
    np.testing.assert_allclose(shafer.MassFunction.vacuous(2).plausibility_transform(), [0.5, 0.5])


def test_products():
    rows = [[0.5, 0.25, 0.25], [0.0, 0.75, 0.25], [0.6, 0.4]]
    product = shafer.Product(rows)
    expected = {}
    for joint in itertools.product(*(range(len(row)) for row in rows)):
        p = math.prod(row[k] for row, k in zip(rows, joint))
        if p:
            expected[joint] = p
    assert product.support_size() == len(expected)
    order = sorted(expected, key=lambda joint: (-expected[joint], joint))
    assert [joint.classes for joint in product] == order
    assert [joint.classes for joint in product.best(5)] == order[:5]
    for joint, p in expected.items():
        assert product.contains(joint)
        assert product.probability(joint) == pytest.approx(p)
        assert product.ln_probability(joint) == pytest.approx(math.log(p))
    assert shafer.Product([[0.5, 0.5]] * 130).support_size() == 2**128 - 1
    many = shafer.Product([[0.1] * 10] * 4)
    assert len(list(itertools.islice(many, 1000))) == 1000


def test_copies_and_pickles():
    evidence = shafer.Evidence.from_logits([1.0, -np.inf, 0.0])
    objects = [evidence, shafer.Head([[1.0, 2.0]], [0.5]), shafer.MassFunction.simple(2, 1, 0.25)]
    for thing in objects:
        assert deepcopy(thing) == thing
        assert pickle.loads(pickle.dumps(thing)) == thing
    belief = pickle.loads(pickle.dumps(shafer.Belief(evidence)))
    assert belief.evidence == evidence


def test_displays():
    z = np.linspace(3, -3, 30)
    for thing in (shafer.Evidence.from_logits(z), shafer.Belief.from_logits(z)):
        page = thing._repr_html_()
        assert page.count("<tr>") == 22 and "and 10 more classes" in page
        assert "evidential keeps 15 of 30 classes" in page
    assert "dropped</td>" in shafer.Evidence.from_logits([1.0, 0.0])._repr_html_()
    # Evidence that supports no class, a single class, a masked one.
    assert "keeps 0 of 3" in shafer.Evidence([0.0] * 3, [0.0, 0.0, 1.0])._repr_html_()
    assert "keeps 1 of 1" in shafer.Evidence.from_logits([1.0])._repr_html_()
    assert "keeps 1 of 2" in shafer.Evidence.from_logits([1.0, -np.inf])._repr_html_()
    assert repr(shafer.Evidence.from_logits([1.0, 0.0])) == "<Evidence: 2 classes, 1 supported>"
    assert repr(shafer.Product([[0.5, 0.5]])) == "<Product: 1 variables, 2 joint classes>"
