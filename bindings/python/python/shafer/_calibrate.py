"""Guarantees for what is dropped: `Calibrator`, with the conventions of scikit-learn, `audit` and `control_risk`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from shafer import _convert, _core
from shafer._core import Calibration

_Floats = NDArray[np.float64]


def _rows(logits: Any) -> np.ndarray[Any, Any]:
    """Logits in C order, with the classes along the last axis."""
    if _convert._is(logits, "torch", "Tensor"):
        logits = _convert._torch_array(logits)
    result = np.ascontiguousarray(_convert.array(logits))
    if np.ndim(logits) == 0:
        raise ValueError("the logits are a single number, but must have at least one axis")
    return result


def _integers(values: Any, what: str, shape: tuple[int, ...]) -> NDArray[np.uint32]:
    """Labels or groups, one for each row."""
    if _convert._is(values, "torch", "Tensor"):
        values = values.detach().cpu().numpy()
    found = np.asarray(values)
    if found.shape != shape:
        raise ValueError(f"{what} have the shape {list(found.shape)}, but {list(shape)} is needed: one for each row")
    if found.dtype.kind == "f" and np.all(np.mod(found, 1) == 0):
        found = found.astype(np.int64)
    if found.dtype.kind not in "iu" and found.size:
        raise TypeError(f"{what} are of type {found.dtype}, but must be whole numbers")
    if found.size and (found.min() < 0 or found.max() >= 2**32):
        row = int(np.argmax((found.ravel() < 0) | (found.ravel() >= 2**32)))
        raise ValueError(f"row {row}: {what} are {found.ravel()[row]} there, but must be from 0 to 4294967295")
    return np.ascontiguousarray(found.ravel(), dtype=np.uint32)


def _groups(groups: Any, logits: np.ndarray[Any, Any]) -> NDArray[np.uint32] | None:
    return None if groups is None else _integers(groups, "groups", logits.shape[:-1])


def _weights(weights: Any, shape: tuple[int, ...]) -> _Floats:
    found = np.asarray(weights, dtype=np.float64)
    if found.shape != shape:
        raise ValueError(f"sample_weight has the shape {list(found.shape)}, but {list(shape)} is needed: one for each row")
    return np.ascontiguousarray(found.ravel())


def transform(calibration: Calibration, logits: Any, groups: Any, sparse: bool, threads: int | None) -> Any:
    rows = _rows(logits)
    return calibration._transform(rows, _groups(groups, rows), sparse, threads)


def predict_set(calibration: Calibration, logits: Any, groups: Any, uniform: _Floats | None = None) -> NDArray[np.bool_]:
    rows = _rows(logits)
    kept = calibration._sets(rows, _groups(groups, rows), uniform)
    return kept.reshape(rows.shape)


class Calibrator:
    """Finds the threshold that keeps the true class with a guaranteed probability.

    Split conformal prediction: if rows to come are exchangeable with the rows of `fit`, whose true classes are known,
    their true class is dropped with probability at most `alpha`, whatever the network. The rows of `fit` must not have
    been used to train it.

    Parameters
    ----------
    method : str
        What has the threshold: ``"evidential"`` (the weight of evidence), ``"lac"`` (the probability), ``"min-p"``,
        ``"top-p"``, ``"top-k"``, ``"top-n-sigma"``; for ``"sparsemax"`` and ``"entmax:alpha=1.5"`` it is the
        temperature. ``"aps"`` and ``"raps:penalty=0.01,rank=5"`` have sets of classes only.
    alpha : float
        The probability of dropping the true class that is allowed.
    by : {"class", "group"}, optional
        A threshold for each true class, or for each group of rows, so that the guarantee holds within each of them
        (Mondrian). With `groups` in `fit`, it is ``"group"``.
    confidence : float, optional
        Hold with this probability over the calibration rows, not only on average over them; needs more rows.
    random_state : int or numpy.random.Generator, optional
        Randomises the sets of APS and RAPS, and ties of p-values, which makes their coverage exact; without it, it is
        at least as high.

    Attributes
    ----------
    calibration_ : Calibration
        What `transform` applies. Not with `sample_weight`, where each row has a threshold of its own.
    threshold_ : float or dict
        The score up to which classes are kept; for each group or class, if they have their own. Infinite where there
        were too few rows: then all classes are kept.
    scores_ : numpy.ndarray
        The scores of the true classes of the calibration rows.
    classes_ : numpy.ndarray
        The numbers of the classes.
    n_features_in_ : int
        The number of classes.

    Examples
    --------
    >>> import numpy as np, shafer
    >>> rng = np.random.default_rng(0)
    >>> logits = 2 * rng.standard_normal((500, 10))
    >>> y = shafer.sample(shafer.softmax(logits), rng=1)
    >>> calibrator = shafer.Calibrator("lac", alpha=0.1).fit(logits[:400], y[:400])
    >>> round(float(calibrator.threshold_), 3)
    2.561
    >>> calibrator.transform(logits[400:], sparse=True).shape
    (100, 10)
    >>> sets = calibrator.predict_set(logits[400:])
    >>> float(sets[np.arange(100), y[400:]].mean()), round(float(sets.sum(axis=1).mean()), 1)
    (0.93, 3.2)
    """

    def __init__(
        self,
        method: str = "evidential",
        alpha: float = 0.05,
        *,
        by: str | None = None,
        confidence: float | None = None,
        random_state: Any = None,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.by = by
        self.confidence = confidence
        self.random_state = random_state

    def fit(self, logits: Any, y: Any, groups: Any = None, sample_weight: Any = None) -> Calibrator:
        """Calibrates on rows whose true classes are known; returns the object itself.

        Parameters
        ----------
        logits : array_like
            Rows along the last axis. -inf masks a class.
        y : array_like of int
            The true class of each row, counted from 0.
        groups : array_like of int, optional
            The group of each row, with any numbers.
        sample_weight : array_like of float, optional
            For rows to come that are distributed differently in a known way: how much more frequent rows like it will
            be, up to a factor. Each row to come then needs its weight, too.
        """
        rows = _rows(logits)
        labels = _integers(y, "labels", rows.shape[:-1])
        of_rows = _groups(groups, rows)
        by = self.by or ("all" if groups is None else "group")
        if groups is None and by == "group":
            raise ValueError('by is "group"; give fit the group of each row as groups')
        if groups is not None and by != "group":
            raise ValueError(f'by is "{by}"; leave out groups')
        if self.confidence is not None and not 0 < self.confidence < 1:
            raise ValueError(f"confidence is {self.confidence}, but must be between 0 and 1, both excluded")
        delta = None if self.confidence is None else 1 - self.confidence
        random = None if self.random_state is None else np.random.default_rng(self.random_state)
        uniform = None if random is None else random.random(len(labels))
        if sample_weight is None:
            calibration = _core.calibrate(rows, labels, of_rows, self.method, by, self.alpha, delta, uniform)
            thresholds = calibration.thresholds
            self.calibration_ = calibration
            self.threshold_: Any = thresholds[0] if by == "all" else thresholds
            self._weights: _Floats | None = None
        else:
            if by != "all" or delta is not None:
                raise ValueError("sample_weight is for one threshold without confidence; leave out by, groups and confidence")
            self._weights = _weights(sample_weight, rows.shape[:-1])
            self.__dict__.pop("calibration_", None)
            self.__dict__.pop("threshold_", None)
        self.scores_ = _core.label_scores(rows, labels, self.method, uniform)
        if self._weights is not None:
            # Refuses weights and an alpha out of range.
            _core.weighted_thresholds(self.scores_, self._weights, self.alpha, np.ones(1))
        self._strata = {"all": None, "group": of_rows, "class": labels}[by]
        self._random = random
        self.classes_ = np.arange(rows.shape[-1])
        self.n_features_in_ = rows.shape[-1]
        return self

    def transform(
        self, logits: Any, groups: Any = None, *, sample_weight: Any = None, sparse: bool = False, threads: int | None = None
    ) -> Any:
        """The calibrated distributions: the kept classes with the method's probabilities. The most probable class is
        always kept.

        With `sparse`, a ``scipy.sparse.csr_array``. Rows need their `groups` if the calibration is by group, and their
        `sample_weight` if it has weights.
        """
        self._check_fitted()
        if self._weights is None:
            self._refuse_weight(sample_weight)
            return self.calibration_.transform(logits, groups, sparse=sparse, threads=threads)
        rows = self._checked(logits)
        kept = self.predict_set(rows, groups, sample_weight=sample_weight)
        if self.method.replace("_", "-").split(":")[0] in ("aps", "raps", "sparsemax", "entmax"):
            raise ValueError(f"with sample_weight, {self.method} has sets only; use predict_set")
        best = np.argmax(rows, axis=-1, keepdims=True)
        np.put_along_axis(kept, best, True, axis=-1)
        return _core.softmax(rows, mask=kept, sparse=sparse, threads=threads)

    def fit_transform(self, logits: Any, y: Any, groups: Any = None) -> Any:
        """`fit`, and the distributions of the same rows, which have no guarantee themselves."""
        return self.fit(logits, y, groups).transform(logits, groups)

    def predict(self, logits: Any) -> NDArray[np.int64]:
        """The most probable class of each row; of equal ones the first."""
        self._check_fitted()
        return np.asarray(np.argmax(self._checked(logits), axis=-1))

    def predict_proba(self, logits: Any, groups: Any = None) -> Any:
        """As `transform`, dense."""
        return self.transform(logits, groups)

    def predict_set(self, logits: Any, groups: Any = None, *, sample_weight: Any = None) -> NDArray[np.bool_]:
        """The set of classes whose scores are at most the threshold, as booleans of the shape of the logits. A set can be
        empty."""
        self._check_fitted()
        rows = self._checked(logits)
        uniform = self._uniform(rows.shape[:-1])
        if self._weights is None:
            self._refuse_weight(sample_weight)
            return predict_set(self.calibration_, rows, groups, uniform)
        self._refuse_groups(groups)
        weights = self._needed_weight(sample_weight, rows)
        thresholds = _core.weighted_thresholds(self.scores_, self._weights, self.alpha, weights)
        scores = _core.class_scores(rows, self.method, uniform).reshape(rows.shape)
        kept: NDArray[np.bool_] = scores <= thresholds.reshape(*rows.shape[:-1], 1)
        return kept & (rows > -np.inf)

    def p_values(self, logits: Any, groups: Any = None, *, sample_weight: Any = None) -> _Floats:
        """The conformal p-value of every class of each row: the share of calibration rows, itself included, whose true
        class fits at most as well. That of the true class is at most `u` with probability at most `u`. Masked classes
        have 0.

        >>> import shafer
        >>> calibrator = shafer.Calibrator("min-p").fit([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]], [0, 1, 1])
        >>> calibrator.p_values([[0.0, 0.3]])
        array([[0.5, 1. ]])
        """
        self._check_fitted()
        rows = self._checked(logits)
        scores = _core.class_scores(rows, self.method, self._uniform(rows.shape[:-1]))
        if self._weights is not None:
            self._refuse_groups(groups)
            weights = np.repeat(self._needed_weight(sample_weight, rows), rows.shape[-1])
            values = _core.weighted_p_values(self.scores_, self._weights, scores, weights)
        else:
            self._refuse_weight(sample_weight)
            values = self._by_stratum(scores, rows, groups)
        return np.where(rows > -np.inf, values.reshape(rows.shape), 0.0)

    def _by_stratum(self, scores: _Floats, rows: np.ndarray[Any, Any], groups: Any) -> _Floats:
        """P-values among the calibration rows of the own group or class."""
        classes = rows.shape[-1]
        uniform = None if self._random is None else self._random.random(scores.size)
        if self._strata is None:
            self._refuse_groups(groups)
            return _core.p_values(self.scores_, scores, uniform)
        if self.calibration_.by == "class":
            self._refuse_groups(groups)
            strata = np.tile(np.arange(classes), scores.size // classes)
        else:
            if groups is None:
                raise ValueError("the calibration is by group; give the group of each row as groups")
            strata = np.repeat(_integers(groups, "groups", rows.shape[:-1]), classes)
        values = np.empty(scores.size)
        for stratum in np.unique(strata):
            chosen = strata == stratum
            known = self.scores_[self._strata == stratum]
            if not known.size and self.calibration_.by == "group":
                row = int(np.argmax(chosen)) // classes
                raise ValueError(f"row {row}: group {stratum} did not occur in calibration")
            values[chosen] = _core.p_values(known, scores[chosen], None if uniform is None else uniform[chosen])
        return values

    def ln_capital(self, logits: Any, y: Any) -> float:
        """A test that rows to come are still exchangeable with those of `fit`, without which there is no guarantee.

        It bets against it, row after row: the capital reaches `c` with probability at most `1 / c` while it is true.
        Returns the natural logarithm of the largest capital; 4.6 is a level of 1%.

        >>> import numpy as np, shafer
        >>> logits = np.random.default_rng(0).standard_normal((600, 3))
        >>> calibrator = shafer.Calibrator("lac").fit(logits[:300], logits[:300].argmax(axis=1))
        >>> calibrator.ln_capital(logits[300:], logits[300:].argmax(axis=1)) < 4.6
        True
        >>> calibrator.ln_capital(logits[300:], logits[300:].argmin(axis=1)) > 4.6
        True
        """
        self._check_fitted()
        rows = self._checked(logits)
        labels = _integers(y, "labels", rows.shape[:-1])
        random = np.random.default_rng(self.random_state)
        uniform = None if self._random is None else random.random(len(labels))
        scores = np.concatenate([self.scores_, _core.label_scores(rows, labels, self.method, uniform)])
        return _core.ln_capital(scores, random.random(scores.size))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters, as scikit-learn asks for them.

        >>> import shafer
        >>> shafer.Calibrator("lac", alpha=0.2).get_params()["alpha"]
        0.2
        """
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self, **parameters: Any) -> Calibrator:
        """Sets parameters; returns the object itself.

        >>> import shafer
        >>> shafer.Calibrator().set_params(alpha=0.2)
        Calibrator(alpha=0.2)
        """
        for name, value in parameters.items():
            if name not in self._names():
                raise ValueError(f"Calibrator has no parameter {name}; it has {', '.join(self._names())}")
            setattr(self, name, value)
        return self

    @classmethod
    def _names(cls) -> list[str]:
        """The names of the parameters."""
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def __repr__(self) -> str:
        signature = inspect.signature(type(self).__init__).parameters
        changed = [f"{name}={value!r}" for name, value in self.get_params().items() if value != signature[name].default]
        return f"Calibrator({', '.join(changed)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "scores_")

    def _check_fitted(self) -> None:
        """Fails before `fit`."""
        if not hasattr(self, "scores_"):
            raise ValueError("this Calibrator is not fitted; call fit first")

    def _checked(self, logits: Any) -> np.ndarray[Any, Any]:
        """Rows of as many classes as those of `fit`."""
        rows = _rows(logits)
        if rows.shape[-1] != self.n_features_in_:
            raise ValueError(f"a row of logits has length {rows.shape[-1]}, but {self.n_features_in_} is needed")
        return rows

    def _uniform(self, shape: tuple[int, ...]) -> _Floats | None:
        """A uniform number for each row, if there is a generator."""
        return None if self._random is None else self._random.random(int(np.prod(shape)))

    def _refuse_weight(self, sample_weight: Any) -> None:
        """Fails if there are weights, which `fit` did not have."""
        if sample_weight is not None:
            raise ValueError("fit had no sample_weight; leave it out")

    def _refuse_groups(self, groups: Any) -> None:
        """Fails if there are groups, which `fit` did not have."""
        if groups is not None:
            raise ValueError("the calibration is not by group; leave out groups")

    def _needed_weight(self, sample_weight: Any, rows: np.ndarray[Any, Any]) -> _Floats:
        """The weights of rows to come, which `fit` made necessary."""
        if sample_weight is None:
            raise ValueError("fit had sample_weight; give the weight of each row as sample_weight")
        return _weights(sample_weight, rows.shape[:-1])


@dataclass(frozen=True)
class Misses:
    """How many of some rows lost their true class, with the exact (Clopper-Pearson) interval of the share."""

    rows: int
    missed: int
    interval: tuple[float, float]

    @property
    def share(self) -> float:
        """The share of rows whose true class was dropped."""
        return self.missed / self.rows


@dataclass(frozen=True)
class Audit:
    """How often the true class is dropped: in all rows, by group, and by the number of kept classes."""

    all: Misses
    by_group: Mapping[int, Misses]
    by_size: Mapping[int, Misses]

    @property
    def mean_size(self) -> float:
        """The mean number of kept classes."""
        return sum(size * misses.rows for size, misses in self.by_size.items()) / self.all.rows


def audit(
    logits: Any,
    y: Any,
    method: str | Calibration | Calibrator = "evidential",
    *,
    groups: Any = None,
    temperature: float = 1.0,
    confidence: float = 0.95,
    threads: int | None = None,
) -> Audit:
    """How often a method, or a calibration, drops the true class.

    Parameters
    ----------
    logits : array_like
        Rows along the last axis. -inf masks a class.
    y : array_like of int
        The true class of each row, counted from 0.
    method : str, Calibration or Calibrator
        As for `sparsify`, or what `Calibrator.fit` found.
    groups : array_like of int, optional
        The group of each row: counts by group, and is needed for a calibration by group.
    temperature : float
        Divides the logits; 1 for a calibration.
    confidence : float
        Of the intervals, which take rows to be independent.

    Examples
    --------
    >>> import shafer
    >>> found = shafer.audit([[2.0, 1.0, 0.0], [3.0, 0.0, 0.0]], [1, 0], groups=[4, 9])
    >>> found.all.missed, found.all.share, found.mean_size
    (1, 0.5, 1.0)
    >>> found.by_group[9]
    Misses(rows=1, missed=0, interval=(0.0, 0.975))
    """
    how: Any = method
    if isinstance(how, Calibrator):
        how._check_fitted()
        if not hasattr(how, "calibration_"):
            raise ValueError("with sample_weight there is no calibration to audit; use predict_set")
        how = how.calibration_
    if isinstance(how, Calibration) and temperature != 1:
        raise ValueError("a calibration is for the logits as they are; leave out temperature")
    rows = _rows(logits)
    labels = _integers(y, "labels", rows.shape[:-1])
    if not labels.size:
        raise ValueError("there are no rows")
    counted = _core.count_misses(rows, labels, _groups(groups, rows), how, temperature, threads)

    def misses(counts: tuple[int, int]) -> Misses:
        total, missed = counts
        return Misses(total, missed, _core.exact_interval(missed, total, confidence))

    everything, by_group, by_size = counted
    parts = [{value: misses(counts) for value, counts in part.items()} for part in (by_group, by_size)]
    return Audit(misses(everything), *parts)


def control_risk(
    losses: ArrayLike, thresholds: ArrayLike, alpha: float, *, bound: float = 1.0, confidence: float | None = None
) -> float:
    """The tightest threshold at which the expected loss of a new row is at most `alpha`; infinite if there is none.

    Conformal risk control (Angelopoulos and others, 2024), for a loss other than dropping the true class, such as that
    no kept mode ends near the truth. With `confidence`, Learn-then-Test: the risk at the threshold is at most `alpha`
    with this probability over the rows, which must be independent; the loss need not be monotone then.

    Parameters
    ----------
    losses : array_like
        A row for each calibration row, and a column for each threshold, from 0 to `bound`.
    thresholds : array_like
        From the tightest to the loosest.

    Examples
    --------
    >>> import numpy as np, shafer
    >>> losses = np.array([[i % 2, i == 1, 0] for i in range(20)])
    >>> shafer.control_risk(losses, [0.0, 1.0, 2.0], alpha=0.1)
    1.0
    >>> shafer.control_risk(losses, [0.0, 1.0, 2.0], alpha=0.04)
    inf
    """
    table = np.ascontiguousarray(losses, dtype=np.float64)
    columns = np.asarray(thresholds, dtype=np.float64)
    if table.ndim != 2 or columns.shape != table.shape[1:]:
        message = f"losses have the shape {list(table.shape)}, and thresholds {list(columns.shape)}"
        raise ValueError(f"{message}, but a row of losses needs one for each threshold")
    if np.isnan(columns).any() or (np.diff(columns) < 0).any():
        raise ValueError("thresholds must be in order, from the tightest to the loosest")
    if confidence is not None and not 0 < confidence < 1:
        raise ValueError(f"confidence is {confidence}, but must be between 0 and 1, both excluded")
    delta = None if confidence is None else 1 - confidence
    column = _core.risk_column(table.ravel(), columns.size, bound, alpha, delta)
    return float("inf") if column is None else float(columns[column])
