"""Times PyTorch and entmax on the shapes of our benchmark and compares the two.

All peers run on one thread, in f32, without autograd, on logits drawn from 3 N(0, 1). Reads our
times from target/bench/shafer.json (`cargo bench -p shafer` writes it), prints a table, and
writes target/bench/peers.json. Run it through bench/peers/run, which makes the environment.
"""

from __future__ import annotations

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

ROOT = Path(__file__).resolve().parents[2]
SHAPES = ((100_000, 10), (10_000, 512), (1_000, 32_000), (256, 128_000))
LEAST_REPETITIONS = 3
TOP_K, TOP_P, MIN_P = 50, 0.9, 0.05
N_SIGMA = 1.0
# Sizes entmax's partial sort may start from; it doubles them for the rows that need more.
PARTIAL_SORTS = (16, 64, 256)

Function = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True)
class Peer:
    """A way to compute `transform` (our benchmark's name for it)."""

    transform: str
    name: str
    run: Function


@dataclass(frozen=True)
class Measurement:
    transform: str
    peer: str
    rows: int
    k: int
    threads: int
    repetitions: int
    ns_per_element: float
    memcpy_ratio: float
    ours_ns_per_element: float | None
    ratio: float | None


# --- The peers -------------------------------------------------------------------------------


def renormalise(p: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
    import torch

    kept = torch.where(keep, p, 0.0)
    return kept.div_(kept.sum(-1, keepdim=True))


def evidential_by_mass(x: torch.Tensor) -> torch.Tensor:
    """The paper as it is written: softmax where the singleton mass of equation 6a is not 0.

    The product over the other classes is that of all before and all after: dividing the whole
    product by one factor would be 0 / 0, since the factors of favoured classes are 0. The
    constant C does not matter to whether a mass is 0.
    """
    import torch

    weights = x - x.mean(-1, keepdim=True)
    in_favour, against = weights.clamp(min=0), (-weights).clamp(min=0)
    factors = -torch.expm1(-against)
    ones = torch.ones_like(factors[..., :1])
    before = torch.cat([ones, factors[..., :-1]], -1).cumprod(-1)
    after = torch.cat([ones, factors.flip(-1)[..., :-1]], -1).cumprod(-1).flip(-1)
    mass = torch.exp(-against) * (torch.expm1(in_favour) + before * after)
    return renormalise(torch.softmax(x, -1), mass != 0)


def evidential_by_mean(x: torch.Tensor) -> torch.Tensor:
    """The shortest way, for one who knows that a mass is 0 where the logit is not above the mean."""
    import torch

    return torch.softmax(x.masked_fill(x <= x.mean(-1, keepdim=True), -math.inf), -1)


def top_k(x: torch.Tensor) -> torch.Tensor:
    import torch

    values, indices = torch.topk(x, min(TOP_K, x.shape[-1]), dim=-1)
    return torch.zeros_like(x).scatter_(-1, indices, torch.softmax(values, -1))


def top_p(x: torch.Tensor) -> torch.Tensor:
    import torch

    values, indices = torch.sort(x, dim=-1, descending=True)
    p = torch.softmax(values, -1)
    kept = renormalise(p, p.cumsum(-1) - p < TOP_P)
    return torch.zeros_like(x).scatter_(-1, indices, kept)


def min_p(x: torch.Tensor) -> torch.Tensor:
    import torch

    p = torch.softmax(x, -1)
    return renormalise(p, p >= MIN_P * p.amax(-1, keepdim=True))


def top_n_sigma(x: torch.Tensor) -> torch.Tensor:
    import torch

    p = torch.softmax(x, -1)
    floor = x.amax(-1, keepdim=True) - N_SIGMA * x.std(-1, correction=0, keepdim=True)
    return renormalise(p, x >= floor)


def sorting_peers(transform: str, x: torch.Tensor) -> Iterator[Peer]:
    """entmax's plain call, and the one with the best of the partial sorts that fit x."""
    import entmax

    function = getattr(entmax, transform)
    yield Peer(transform, f"entmax.{transform}", lambda x: function(x, dim=-1))
    partial = [
        Peer(transform, f"entmax.{transform} k={size}", lambda x, k=size: function(x, dim=-1, k=k))
        for size in PARTIAL_SORTS
        if size < x.shape[-1]
    ]
    if partial:
        # Which size is best depends on the logits, so a user would tune it too.
        yield min(partial, key=lambda peer: median_seconds(lambda: peer.run(x), 0.0)[0])


def peers_for(x: torch.Tensor, out: torch.Tensor) -> Iterator[Peer]:
    import entmax
    import torch

    yield Peer("memcpy", "Tensor.copy_", lambda x: out.copy_(x))
    yield Peer("softmax", "torch.softmax", lambda x: torch.softmax(x, -1, out=out))
    yield Peer("evidential", "published formula in torch", evidential_by_mass)
    yield Peer("evidential", "mean mask in torch", evidential_by_mean)
    yield from sorting_peers("sparsemax", x)
    yield from sorting_peers("entmax15", x)
    yield Peer("entmax15", "entmax.entmax_bisect", lambda x: entmax.entmax_bisect(x, 1.5, dim=-1))
    yield Peer("top_k", f"torch.topk k={TOP_K}", top_k)
    yield Peer("top_p", f"torch.sort p={TOP_P}", top_p)
    yield Peer("min_p", f"torch p={MIN_P}", min_p)
    yield Peer("top_n_sigma", f"torch n={N_SIGMA}", top_n_sigma)


def check_peers() -> None:
    """A peer that computes something else would make the comparison worthless."""
    import torch

    for classes in (10, 300):
        x = 3 * torch.randn(64, classes, generator=torch.Generator().manual_seed(1))
        by_transform: dict[str, torch.Tensor] = {}
        for peer in peers_for(x, torch.empty_like(x)):
            if peer.transform == "memcpy":
                continue
            p = peer.run(x).clone()
            if not torch.allclose(p.sum(-1), torch.ones(64), atol=1e-4):
                sys.exit(f"{peer.name}: the rows do not sum to 1")
            same = by_transform.setdefault(peer.transform, p)
            if not torch.allclose(p, same, atol=1e-4):
                sys.exit(f"{peer.name} differs from another way to compute {peer.transform}")


# --- Measuring -------------------------------------------------------------------------------


def median_seconds(run: Callable[[], object], budget: float) -> tuple[float, int]:
    """The median over as many runs as fit into the budget, after one that warms the caches.

    Where a single run takes longer than the budget, warming up is lost in it and it counts.
    """
    start = time.perf_counter()
    run()
    first = time.perf_counter() - start
    times = [first] if first > budget > 0 else []
    while len(times) < LEAST_REPETITIONS or sum(times) < budget:
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return statistics.median(times), len(times)


def measure_shape(
    rows: int, classes: int, budget: float, ours: dict[tuple[str, int, int], float]
) -> list[Measurement]:
    import torch

    x = 3 * torch.randn(rows, classes, generator=torch.Generator().manual_seed(rows))
    out = torch.empty_like(x)
    copy_ns = 0.0
    results = []
    for peer in peers_for(x, out):
        print(f"  {rows} x {classes}: {peer.name}", file=sys.stderr)
        seconds, repetitions = median_seconds(lambda: peer.run(x), budget)
        ns = seconds * 1e9 / (rows * classes)
        copy_ns = copy_ns or ns  # memcpy comes first
        own = ours.get((peer.transform, rows, classes))
        results.append(
            Measurement(
                transform=peer.transform,
                peer=peer.name,
                rows=rows,
                k=classes,
                threads=1,
                repetitions=repetitions,
                ns_per_element=ns,
                memcpy_ratio=ns / copy_ns,
                ours_ns_per_element=own,
                ratio=ns / own if own else None,
            )
        )
    return results


# --- Ours ------------------------------------------------------------------------------------


def read_ours(path: Path) -> dict[tuple[str, int, int], float]:
    """Our dense, single-threaded times by transform, rows and classes."""
    try:
        entries = json.loads(path.read_text())
    except FileNotFoundError:
        sys.exit(f"{path} is missing: run `cargo bench -p shafer` first (or pass --ours PATH)")
    except json.JSONDecodeError as error:
        sys.exit(f"{path} is not JSON: {error}")
    try:
        return {
            (entry["transform"], entry["rows"], entry["k"]): float(entry["ns_per_element"])
            for entry in entries
            if entry["threads"] == 1 and entry["layout"] == "dense"
        }
    except (KeyError, TypeError) as error:
        sys.exit(f"{path} is not what `cargo bench -p shafer` writes: {error!r}")


# --- Reporting -------------------------------------------------------------------------------

HEADINGS = ("transform", "rows x K", "peer", "ours ns/element", "peer ns/element", "peer / ours")


def number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3g}" if value < 100 else f"{value:.0f}"


def table_rows(results: list[Measurement]) -> list[tuple[str, ...]]:
    return [
        (
            r.transform,
            f"{r.rows} x {r.k}",
            r.peer,
            number(r.ours_ns_per_element),
            number(r.ns_per_element),
            number(r.ratio),
        )
        for r in results
    ]


def print_table(results: list[Measurement]) -> None:
    lines = [HEADINGS, *table_rows(results)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEADINGS))]
    for line in lines:
        cells = [
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line, widths))
        ]
        print("  ".join(cells).rstrip())


def cpu_model() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.machine() or "unknown"


def machine() -> dict[str, Any]:
    import entmax
    import torch

    return {
        "cpu": cpu_model(),
        "cores": os.cpu_count(),
        "torch": torch.__version__,
        "entmax": entmax.__version__,
        "python": platform.python_version(),
        "date": datetime.date.today().isoformat(),
    }


def markdown(about: dict[str, Any], results: list[Measurement]) -> str:
    lines = [
        f"{about['cpu']}, {about['cores']} cores, one thread used; torch {about['torch']}, "
        f"entmax {about['entmax']}, Python {about['python']}; {about['date']}. "
        "Median times, f32, dense; above 1 in the last column, ours is the faster.",
        "",
        "| " + " | ".join(HEADINGS) + " |",
        "|---|---|---|--:|--:|--:|",
        *("| " + " | ".join(row) + " |" for row in table_rows(results)),
    ]
    return "\n".join(lines) + "\n"


def write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    except OSError as error:
        sys.exit(f"cannot write {path}: {error.strerror}")
    print(f"wrote {path}", file=sys.stderr)


# --- The command line ------------------------------------------------------------------------


def parse_shape(text: str) -> tuple[int, int]:
    try:
        rows, classes = (int(part) for part in text.split("x"))
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not ROWSxK") from None
    if rows < 1 or classes < 1:
        raise argparse.ArgumentTypeError("ROWS and K are at least 1")
    return rows, classes


def positive(text: str) -> float:
    value = float(text)
    if not 0 < value < math.inf:
        raise argparse.ArgumentTypeError("must be positive")
    return value


def parse_arguments() -> argparse.Namespace:
    bench = ROOT / "target" / "bench"
    parser = argparse.ArgumentParser(prog="peers.py", description=__doc__)
    parser.add_argument(
        "--ours", type=Path, default=bench / "shafer.json", help="our times (default: %(default)s)"
    )
    parser.add_argument(
        "--output", type=Path, default=bench / "peers.json", help="JSON (default: %(default)s)"
    )
    parser.add_argument("--markdown", type=Path, metavar="FILE", help="also write the table here")
    parser.add_argument(
        "--budget",
        type=positive,
        default=2.0,
        metavar="SECONDS",
        help="time for each measurement, after at least three runs (default: %(default)s)",
    )
    parser.add_argument(
        "--shape",
        type=parse_shape,
        action="append",
        metavar="ROWSxK",
        help="measure only this shape (may be repeated; default: those of our benchmark)",
    )
    return parser.parse_args()


def main() -> None:
    arguments = parse_arguments()
    # Before anything slow, so that a missing file is noticed at once.
    ours = read_ours(arguments.ours)
    try:
        import entmax  # noqa: F401
        import torch
    except ImportError as error:
        sys.exit(f"{error}: run this through bench/peers/run, which installs what is missing")
    torch.set_num_threads(1)
    with torch.inference_mode():
        check_peers()
        results: list[Measurement] = []
        for rows, classes in arguments.shape or SHAPES:
            results += measure_shape(rows, classes, arguments.budget, ours)
    about = machine()
    print_table(results)
    report = {"machine": about, "measurements": [asdict(r) for r in results]}
    write(arguments.output, json.dumps(report, indent=1) + "\n")
    if arguments.markdown:
        write(arguments.markdown, markdown(about, results))


if __name__ == "__main__":
    main()
