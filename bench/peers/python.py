"""The Python package beside PyTorch, entmax and NumPy, in one process and in turns.

    bench/peers/run python [--markdown FILE] [--rounds N] [--cpu-time]

Every function is called once a round, in an order that changes, so that what else the machine does weighs on all of them.
Times are medians over the rounds, ratios medians of the ratios within a round. On a machine that does other work, too,
--cpu-time counts the processor time of the thread instead, and measures one thread only.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import sys
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

from peers import PARTIAL_SORTS, ROOT, SHAPES, machine, number, parse_shape, write

Calls = dict[str, Callable[[], Any]]

# Ours, and what it is compared with.
PAIRS = (
    ("evidential, out", "torch.softmax, out"),
    ("evidential", "torch.softmax"),
    ("evidential, out", "NumPy"),
    ("softmax, out", "torch.softmax, out"),
    ("sparsemax", "entmax.sparsemax"),
    ("sparsemax", "entmax.sparsemax, k"),
    ("entmax", "entmax.entmax15"),
    ("entmax", "entmax.entmax15, k"),
)


def numpy_one_liner(x: Any) -> Any:
    """The evidential transform as one who knows that the mean decides writes it."""
    import numpy as np

    e = np.where(x > x.mean(-1, keepdims=True), np.exp(x - x.max(-1, keepdims=True)), 0)
    return e / e.sum(-1, keepdims=True)


def calls(rows: int, classes: int, threads: int) -> Calls:
    import entmax
    import torch

    import shafer

    torch.set_num_threads(threads)
    t = 3 * torch.randn(rows, classes, generator=torch.Generator().manual_seed(rows))
    x = t.numpy()
    t_out = torch.zeros_like(t)
    out = t_out.numpy().copy()
    ours = {"threads": threads}
    k = best_partial_sort(t)
    made: Calls = {
        "evidential, out": lambda: shafer.evidential(x, out=out, **ours),
        "evidential": lambda: shafer.evidential(x, **ours),
        "softmax, out": lambda: shafer.softmax(x, out=out, **ours),
        "sparsemax": lambda: shafer.sparsemax(x, **ours),
        "entmax": lambda: shafer.entmax(x, **ours),
        "torch.softmax, out": lambda: torch.softmax(t, -1, out=t_out),
        "torch.softmax": lambda: torch.softmax(t, -1),
        "NumPy": lambda: numpy_one_liner(x),
        "entmax.sparsemax": lambda: entmax.sparsemax(t, dim=-1),
        "entmax.entmax15": lambda: entmax.entmax15(t, dim=-1),
    }
    if k is not None:
        made["entmax.sparsemax, k"] = lambda: entmax.sparsemax(t, dim=-1, k=k)
        made["entmax.entmax15, k"] = lambda: entmax.entmax15(t, dim=-1, k=k)
    check(made)
    return made


def best_partial_sort(t: Any) -> int | None:
    """The fastest of the sizes that fit, which a user would look for too."""
    import entmax

    sizes = [size for size in PARTIAL_SORTS if size < t.shape[-1]]
    part = t[: max(1, len(t) // 8)]
    return min(
        sizes,
        key=lambda size: min(timeit.repeat(lambda: entmax.sparsemax(part, dim=-1, k=size), number=1, repeat=2)),
        default=None,
    )


def check(made: Calls) -> None:
    """A peer that computes something else would make the comparison worthless."""
    import numpy as np

    for ours, theirs in PAIRS:
        same = theirs != "torch.softmax" and not (ours.startswith("evidential") and theirs.startswith("torch"))
        if theirs in made and same:
            a, b = np.asarray(made[ours]()).copy(), np.asarray(made[theirs]())
            if not np.allclose(a, b, atol=1e-4):
                sys.exit(f"{theirs} differs from ours")


def measure(
    rows: int, classes: int, threads: int, rounds: int, clock: Callable[[], float]
) -> dict[str, list[float]]:
    made = calls(rows, classes, threads)
    times: dict[str, list[float]] = {name: [] for name in made}
    order = list(made)
    shuffle = random.Random(0)
    for turn in range(rounds + 1):
        shuffle.shuffle(order)
        for name in order:
            start = clock()
            made[name]()
            seconds = clock() - start
            # The first round warms the caches.
            if turn:
                times[name].append(seconds)
    return times


def latency(clock: Callable[[], float]) -> dict[str, float]:
    """Microseconds of a call on one row of 25 classes."""
    import numpy as np
    import torch

    import shafer

    x = np.random.default_rng(0).standard_normal(25).astype(np.float32)
    t = torch.from_numpy(x)
    functions: Calls = {
        "shafer.evidential": lambda: shafer.evidential(x),
        "shafer.sparsify": lambda: shafer.sparsify(x),
        "torch.softmax": lambda: torch.softmax(t, -1),
        "NumPy": lambda: numpy_one_liner(x),
    }
    times: dict[str, list[float]] = {name: [] for name in functions}
    for _ in range(15):
        for name, function in functions.items():
            times[name].append(timeit.timeit(function, timer=clock, number=5000) / 5000 * 1e6)
    return {name: statistics.median(values) for name, values in times.items()}


def main() -> None:
    bench = ROOT / "target" / "bench"
    parser = argparse.ArgumentParser(prog="bench/peers/run python", description=__doc__.split("\n")[0])
    parser.add_argument("--output", type=Path, default=bench / "python.json", help="JSON (default: %(default)s)")
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the tables here")
    parser.add_argument("--rounds", type=int, default=11, help="calls of each function (default: %(default)s)")
    parser.add_argument("--threads", type=int, action="append", help="numbers of threads (default: 1 and 2)")
    parser.add_argument("--shape", type=parse_shape, action="append", metavar="ROWSxK", help="only this shape")
    parser.add_argument("--cpu-time", action="store_true", help="processor time of one thread, not elapsed time")
    arguments = parser.parse_args()
    clock = time.thread_time if arguments.cpu_time else time.perf_counter
    numbers = (1,) if arguments.cpu_time else arguments.threads or (1, 2)
    import torch

    lines = ["| rows x K | threads | ours | ns/element | peer | ns/element | peer / ours |", "|---|--:|---|--:|---|--:|--:|"]
    report: dict[str, Any] = {"machine": machine(), "measurements": []}
    with torch.inference_mode():
        for rows, classes in arguments.shape or SHAPES:
            for threads in numbers:
                print(f"  {rows} x {classes}, {threads} threads", file=sys.stderr)
                times = measure(rows, classes, threads, arguments.rounds, clock)
                for ours, theirs in PAIRS:
                    if theirs not in times:
                        continue
                    ns = [statistics.median(times[name]) * 1e9 / (rows * classes) for name in (ours, theirs)]
                    ratio = statistics.median(b / a for a, b in zip(times[ours], times[theirs]))
                    lines.append(
                        f"| {rows} x {classes} | {threads} | {ours} | {number(ns[0])} | {theirs} | {number(ns[1])} "
                        f"| {number(ratio)} |"
                    )
                    entry = {"rows": rows, "k": classes, "threads": threads, "ours": ours, "peer": theirs}
                    report["measurements"].append(entry | {"ours_ns": ns[0], "peer_ns": ns[1], "ratio": ratio})
        report["latency_us"] = latency(clock)
    lines += ["", "One row of 25 classes, in microseconds: " + ", ".join(f"{name} {us:.2f}" for name, us in report["latency_us"].items()) + "."]
    about = report["machine"]
    head = f"{about['cpu']}, {about['cores']} cores; torch {about['torch']}, entmax {about['entmax']}, Python {about['python']}; {about['date']}."
    head += " Processor time of one thread." if arguments.cpu_time else " Elapsed time."
    text = "\n".join([head, "", *lines, ""])
    print(text)
    write(arguments.output, json.dumps(report, indent=1) + "\n")
    if arguments.markdown:
        write(arguments.markdown, text)


if __name__ == "__main__":
    main()
