from collections.abc import Iterable, Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = [
    "ArrayReader",
    "Belief",
    "BestJoints",
    "Calibration",
    "Combination",
    "Evidence",
    "Head",
    "HeadCandidate",
    "Joint",
    "MassFunction",
    "Product",
    "arrow_addresses",
    "bhattacharyya",
    "calibrate",
    "class_scores",
    "count_misses",
    "dense_into",
    "draw_csr",
    "draw_dense",
    "entmax",
    "evidential",
    "exact_interval",
    "heads",
    "jensen_shannon",
    "label_scores",
    "ln_capital",
    "load_head",
    "min_evidence",
    "min_p",
    "min_probability",
    "open",
    "p_values",
    "parse",
    "risk_column",
    "rows_needed",
    "softmax",
    "sparsegen_hg",
    "sparsegen_lin",
    "sparsemax",
    "sparsify",
    "sparsify_arrow",
    "support_size",
    "target_distribution",
    "top_k",
    "top_n_sigma",
    "top_p",
    "total_variation",
    "vjp",
    "vjp_into",
    "wasserstein_1",
    "weighted_p_values",
    "weighted_thresholds",
]

_Set = int | Iterable[int]
_Masses = Mapping[Any, float] | Iterable[tuple[_Set, float]]

def sparsify(
    logits: Any,
    method: str = "evidential",
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def evidential(
    logits: Any,
    rounds: int = 1,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def softmax(
    logits: Any,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def sparsemax(
    logits: Any,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def sparsegen_lin(
    logits: Any,
    lam: float = 0.5,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def sparsegen_hg(
    logits: Any,
    q: float = 1.0,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def entmax(
    logits: Any,
    alpha: float = 1.5,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def top_k(
    logits: Any,
    k: int = 5,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def top_p(
    logits: Any,
    p: float = 0.9,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def min_p(
    logits: Any,
    p: float = 0.05,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def top_n_sigma(
    logits: Any,
    n: float = 1.0,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def min_probability(
    logits: Any,
    p: float = 0.01,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def min_evidence(
    logits: Any,
    w: float = 0.0,
    *,
    axis: int = -1,
    temperature: float = 1.0,
    mask: Any = None,
    out: NDArray[Any] | None = None,
    sparse: bool = False,
    threads: int | None = None,
) -> Any: ...
def support_size(
    logits: ArrayLike,
    method: str = "evidential",
    axis: int = -1,
    temperature: float = 1.0,
    mask: ArrayLike | None = None,
    threads: int | None = None,
) -> NDArray[np.uint32]: ...
def vjp(
    logits: ArrayLike,
    probabilities: ArrayLike,
    upstream: ArrayLike,
    method: str = "evidential",
    axis: int = -1,
    temperature: float = 1.0,
    mask: ArrayLike | None = None,
    threads: int | None = None,
) -> NDArray[Any]: ...
def dense_into(
    logits: NDArray[Any],
    method: str,
    axis: int,
    temperature: float,
    mask: NDArray[np.bool_] | None,
    out: NDArray[Any],
    threads: int | None,
) -> None: ...
def vjp_into(
    logits: NDArray[Any],
    probabilities: NDArray[Any],
    upstream: NDArray[Any],
    method: str,
    axis: int,
    temperature: float,
    mask: NDArray[np.bool_] | None,
    out: NDArray[Any],
    threads: int | None,
) -> None: ...
def parse(method: str) -> tuple[str, str, float]: ...
def sparsify_arrow(
    column: Any, method: str, temperature: float, sparse: bool, threads: int | None
) -> Any: ...
def arrow_addresses(column: Any) -> list[int]: ...
def draw_dense(
    weights: NDArray[np.float64], classes: int, words: NDArray[np.uint64]
) -> NDArray[np.int64]: ...
def draw_csr(
    classes: int,
    pointers: NDArray[np.int64],
    indices: NDArray[np.uint32],
    values: NDArray[np.float64],
    words: NDArray[np.uint64],
) -> NDArray[np.int64]: ...
def bhattacharyya(p: ArrayLike, q: ArrayLike) -> Any: ...
def wasserstein_1(p: ArrayLike, q: ArrayLike, positions: ArrayLike | None = None) -> Any: ...
def total_variation(p: ArrayLike, q: ArrayLike) -> Any: ...
def jensen_shannon(p: ArrayLike, q: ArrayLike) -> Any: ...
def target_distribution(p: ArrayLike, other: ArrayLike) -> NDArray[np.float64]: ...
def open(
    path: str | PathLike[str],
    name: str | None = None,
    *,
    columns: Sequence[str] | None = None,
    exclude: Sequence[str] | None = None,
) -> ArrayReader: ...
def heads(path: str | PathLike[str]) -> list[HeadCandidate]: ...
def load_head(
    path: str | PathLike[str],
    name: str | None = None,
    *,
    layout: str | None = None,
    bias: str | bool | None = None,
) -> Head: ...
def calibrate(
    logits: NDArray[Any],
    labels: NDArray[np.uint32],
    groups: NDArray[np.uint32] | None,
    score: str,
    by: str,
    alpha: float,
    delta: float | None,
    uniform: NDArray[np.float64] | None,
) -> Calibration: ...
def label_scores(
    logits: NDArray[Any],
    labels: NDArray[np.uint32],
    score: str,
    uniform: NDArray[np.float64] | None,
) -> NDArray[np.float64]: ...
def class_scores(
    logits: NDArray[Any], score: str, uniform: NDArray[np.float64] | None
) -> NDArray[np.float64]: ...
def p_values(
    known: NDArray[np.float64],
    scores: NDArray[np.float64],
    uniform: NDArray[np.float64] | None,
) -> NDArray[np.float64]: ...
def weighted_thresholds(
    known: NDArray[np.float64],
    weights: NDArray[np.float64],
    alpha: float,
    rows: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def weighted_p_values(
    known: NDArray[np.float64],
    weights: NDArray[np.float64],
    scores: NDArray[np.float64],
    rows: NDArray[np.float64],
) -> NDArray[np.float64]: ...
def count_misses(
    logits: NDArray[Any],
    labels: NDArray[np.uint32],
    groups: NDArray[np.uint32] | None,
    how: str | Calibration,
    temperature: float,
    threads: int | None,
) -> tuple[tuple[int, int], dict[int, tuple[int, int]], dict[int, tuple[int, int]]]: ...
def exact_interval(missed: int, rows: int, confidence: float) -> tuple[float, float]: ...
def rows_needed(alpha: float, confidence: float | None = None) -> int: ...
def risk_column(
    losses: NDArray[np.float64],
    thresholds: int,
    bound: float,
    alpha: float,
    delta: float | None,
) -> int | None: ...
def ln_capital(scores: NDArray[np.float64], uniform: NDArray[np.float64]) -> float: ...
@final
class Calibration:
    @staticmethod
    def from_json(text: str) -> Calibration: ...
    def to_json(self) -> str: ...
    @property
    def score(self) -> str: ...
    @property
    def by(self) -> str: ...
    @property
    def classes(self) -> int: ...
    @property
    def alpha(self) -> float: ...
    @property
    def confidence(self) -> float | None: ...
    @property
    def thresholds(self) -> dict[int, float]: ...
    @property
    def rows(self) -> dict[int, int]: ...
    @property
    def measured_on(self) -> str: ...
    def with_note(self, measured_on: str) -> Calibration: ...
    def transform(
        self,
        logits: Any,
        groups: ArrayLike | None = None,
        *,
        sparse: bool = False,
        threads: int | None = None,
    ) -> Any: ...
    def predict_set(self, logits: Any, groups: ArrayLike | None = None) -> NDArray[np.bool_]: ...
    def _transform(
        self,
        logits: NDArray[Any],
        groups: NDArray[np.uint32] | None,
        sparse: bool,
        threads: int | None,
    ) -> Any: ...
    def _sets(
        self,
        logits: NDArray[Any],
        groups: NDArray[np.uint32] | None,
        uniform: NDArray[np.float64] | None,
    ) -> NDArray[np.bool_]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
@final
class Evidence:
    def __new__(cls, positive: ArrayLike, negative: ArrayLike) -> Evidence: ...
    @staticmethod
    def from_logits(logits: ArrayLike) -> Evidence: ...
    @staticmethod
    def from_head(
        weight: ArrayLike,
        bias: ArrayLike | None,
        features: ArrayLike,
        construction: str = "direct",
        *,
        mean: ArrayLike | None = None,
    ) -> Evidence: ...
    @property
    def positive(self) -> NDArray[np.float64]: ...
    @property
    def negative(self) -> NDArray[np.float64]: ...
    @property
    def classes(self) -> int: ...
    @property
    def unmasked(self) -> int: ...
    def is_vacuous(self) -> bool: ...
    def supports(self, k: int) -> bool: ...
    def support(self) -> list[int]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
    def _repr_html_(self) -> str: ...
@final
class Head:
    def __new__(cls, weight: ArrayLike, bias: ArrayLike | None = None) -> Head: ...
    @property
    def features(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def weight(self) -> NDArray[np.float64]: ...
    @property
    def bias(self) -> NDArray[np.float64]: ...
    def logits(self, features: ArrayLike) -> NDArray[np.float64]: ...
    def evidence(
        self,
        features: ArrayLike,
        construction: str = "direct",
        *,
        mean: ArrayLike | None = None,
    ) -> Evidence: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
@final
class Belief:
    def __new__(cls, evidence: Evidence) -> Belief: ...
    @staticmethod
    def from_logits(logits: ArrayLike) -> Belief: ...
    @property
    def evidence(self) -> Evidence: ...
    @property
    def classes(self) -> int: ...
    def singleton(self, k: int) -> float: ...
    def singletons(self) -> NDArray[np.float64]: ...
    def mass(self, set: _Set) -> float: ...
    def ignorance(self) -> float: ...
    def belief(self, set: _Set) -> float: ...
    def plausibility(self, set: _Set) -> float: ...
    def contour(self) -> NDArray[np.float64]: ...
    def plausibility_transform(self) -> NDArray[np.float64]: ...
    def ln_normaliser(self) -> float: ...
    def degree_of_conflict(self) -> float: ...
    def internal_conflict(self) -> float: ...
    def __getnewargs__(self) -> tuple[Evidence]: ...
    def _repr_html_(self) -> str: ...
@final
class MassFunction:
    def __new__(cls, classes: int, masses: _Masses) -> MassFunction: ...
    @staticmethod
    def vacuous(classes: int) -> MassFunction: ...
    @staticmethod
    def simple(classes: int, set: _Set, support: float) -> MassFunction: ...
    @staticmethod
    def simple_from_weight(classes: int, set: _Set, weight: float) -> MassFunction: ...
    def combine(self, other: MassFunction) -> Combination: ...
    @property
    def classes(self) -> int: ...
    def focal_sets(self) -> dict[frozenset[int], float]: ...
    def mass(self, set: _Set) -> float: ...
    def belief(self, set: _Set) -> float: ...
    def plausibility(self, set: _Set) -> float: ...
    def commonality(self, set: _Set) -> float: ...
    def plausibility_transform(self) -> NDArray[np.float64]: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __getnewargs__(self) -> tuple[int, dict[frozenset[int], float]]: ...
@final
class Combination:
    @property
    def mass(self) -> MassFunction: ...
    @property
    def conflict(self) -> float: ...
@final
class Joint:
    @property
    def classes(self) -> tuple[int, ...]: ...
    @property
    def probability(self) -> float: ...
@final
class BestJoints:
    def __iter__(self) -> Iterator[Joint]: ...
    def __next__(self) -> Joint: ...
@final
class Product:
    def __new__(cls, rows: Iterable[ArrayLike]) -> Product: ...
    @property
    def variables(self) -> int: ...
    def support_size(self) -> int: ...
    def contains(self, classes: Sequence[int]) -> bool: ...
    def probability(self, classes: Sequence[int]) -> float: ...
    def ln_probability(self, classes: Sequence[int]) -> float: ...
    def best(self, k: int) -> list[Joint]: ...
    def __iter__(self) -> BestJoints: ...
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
@final
class ArrayReader:
    @property
    def name(self) -> str | None: ...
    @property
    def dtype(self) -> str: ...
    @property
    def shape(self) -> tuple[int | None, ...]: ...
    @property
    def columns(self) -> list[str] | None: ...
    def read(self, rows: int | None = None) -> NDArray[Any]: ...
    def __iter__(self) -> Iterator[NDArray[Any]]: ...
    def __next__(self) -> NDArray[Any]: ...
@final
class HeadCandidate:
    @property
    def weight(self) -> str: ...
    @property
    def bias(self) -> str | None: ...
    @property
    def features(self) -> int: ...
    @property
    def classes(self) -> int: ...
    @property
    def reason(self) -> str: ...
    @property
    def doubtful(self) -> bool: ...
