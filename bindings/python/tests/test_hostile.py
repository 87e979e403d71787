"""Ten thousand random calls, most of them wrong: no crash, no leak, and errors as documented."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import ml_dtypes
import numpy as np
import oracle
import pytest

import shafer

DTYPES = ["f2", "f4", "f8", ">f4", ">f8", "i4", "u1", "?", "c8", "O", "S3", "M8[s]", ml_dtypes.bfloat16, "f4,i1"]
VALUES = [0.0, -0.0, 1.0, -1.0, np.nan, np.inf, -np.inf, 1e-300, 1e300, 3e38, 6e4, 5e-324]
METHODS = [*oracle.METHODS, "top-k:k=40", "evidential:rounds=0", "", "softmax:x=1", "entmax:alpha=nan", "top_p:p=1"]
DOCUMENTED = (ValueError, TypeError, MemoryError, OverflowError)


def array(rng):
    shape = tuple(int(n) for n in rng.integers(0, 7, size=rng.integers(0, 5)))
    # Half of the arrays are of a type that is accepted.
    names = DTYPES if rng.random() < 0.5 else ["f4", "f8"]
    dtype = np.dtype(names[rng.integers(len(names))])
    with np.errstate(all="ignore"):
        if dtype.fields or dtype.kind in "MS":
            x = np.zeros(shape, dtype)
        else:
            kind = rng.integers(6)
            values = rng.choice(VALUES, shape) if kind == 0 else rng.standard_normal(shape) * 10 ** rng.integers(-3, 4)
            try:
                x = np.asarray(values).astype(dtype)
            except (ValueError, OverflowError):
                x = np.zeros(shape, dtype)
    if rng.random() < 0.5 and x.ndim:
        x = x[tuple(slice(None, None, int(rng.choice([-2, -1, 1, 2, 3]))) for _ in x.shape)]
    if rng.random() < 0.3:
        x = x.transpose(rng.permutation(x.ndim))
    if rng.random() < 0.1:
        x = np.broadcast_to(x, (3, *x.shape))
    if rng.random() < 0.05:
        raw = np.zeros(x.nbytes + 1, np.uint8)[1:]
        x = raw.view(np.float64)[: x.size] if x.nbytes >= 8 and x.nbytes % 8 == 0 else x
    return x


def call(rng):
    x = array(rng)
    method = METHODS[rng.integers(len(METHODS))]
    options = {}
    if rng.random() < 0.3:
        options["axis"] = int(rng.integers(-5, 5))
    if rng.random() < 0.3:
        options["temperature"] = float(rng.choice([0.0, -1.0, np.nan, np.inf, 1e-30, 1e30, 0.5]))
    if rng.random() < 0.2:
        options["mask"] = array(rng) if rng.random() < 0.5 else rng.random(x.shape) < 0.5
    if rng.random() < 0.3:
        options["threads"] = int(rng.choice([-1, 0, 1, 2, 1000]))
    kind = rng.integers(6)
    if kind == 0:
        return shafer.support_size(x, method, **options)
    if kind == 1:
        return shafer.vjp(x, x, array(rng) if rng.random() < 0.5 else x, method, **options)
    if kind == 2:
        options["sparse"] = True
    elif kind == 3:
        options["out"] = array(rng) if rng.random() < 0.5 else np.empty(x.shape, x.dtype)
    elif kind == 4:
        return shafer.sample(x, rng=1, size=int(rng.integers(-1, 4)))
    return shafer.sparsify(x, method, **options)


def theory(rng):
    x, y = array(rng), array(rng)
    which = rng.integers(6)
    if which == 0:
        return shafer.Belief.from_logits(x).belief(y)
    if which == 1:
        return shafer.Evidence(x, y)
    if which == 2:
        return shafer.distance.jensen_shannon(x, y)
    if which == 3:
        return shafer.Product([x, y]).best(3)
    if which == 4:
        return shafer.Evidence.from_head(x, y, array(rng))
    return shafer.MassFunction(int(rng.integers(-1, 70)), [(int(rng.integers(-1, 70)), float(rng.choice(VALUES)))])


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGESIZE")


@pytest.mark.filterwarnings("ignore")
def test_ten_thousand_random_calls():
    rng = np.random.default_rng(2020)
    good = bad = 0
    memory = []
    for number in range(10_000):
        try:
            call(rng) if number % 4 else theory(rng)
            good += 1
        except DOCUMENTED:
            bad += 1
        if number % 2500 == 2499 and Path("/proc/self/statm").exists():
            memory.append(resident())
    assert good > 500 and bad > 5000, (good, bad)
    # A leak of a single array of each call would be megabytes.
    if memory:
        assert memory[-1] - memory[0] < 4 << 20, memory


def test_memory_does_not_grow():
    if not Path("/proc/self/statm").exists():
        pytest.skip("the resident memory needs /proc")
    x = np.random.default_rng(0).standard_normal((300, 100)).astype(np.float32)
    bad = x.copy()
    bad[-1, -1] = np.nan

    def work():
        for _ in range(50):
            shafer.evidential(x)
            shafer.sparsify(x, sparse=True)
            shafer.softmax(x, axis=0, mask=x > -10)
            shafer.vjp(x, x, x, "softmax")
            shafer.Belief.from_logits(x[0]).belief(range(9))
            shafer.sample(abs(x), rng=1)
            with pytest.raises(ValueError):
                shafer.evidential(bad)

    work()
    before = resident()
    for _ in range(4):
        work()
    # Each round would leak 40 MB if results were kept.
    assert resident() - before < 8 << 20


def test_threads_on_one_array():
    x = np.random.default_rng(0).standard_normal((2000, 200)).astype(np.float32)
    expected = {method: shafer.sparsify(x, method, threads=1) for method in oracle.METHODS}
    failures = []

    def work(threads):
        for _ in range(3):
            for method, p in expected.items():
                if not (shafer.sparsify(x, method, threads=threads) == p).all():
                    failures.append(method)

    workers = [threading.Thread(target=work, args=(threads,)) for threads in (1, None, 2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


FORK = """
import os, warnings
import numpy as np
import shafer

warnings.simplefilter("ignore")
x = np.random.default_rng(0).standard_normal((4000, 100)).astype(np.float32)
expected = shafer.evidential(x, threads=2)
for _ in range(2):
    # The second time, a child of the child.
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status))
    assert all((shafer.evidential(x, threads=2) == expected).all() for _ in range(3))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_process_has_threads_of_its_own():
    # Not in this process, which has threads of others.
    subprocess.run([sys.executable, "-c", FORK], check=True, timeout=300)
