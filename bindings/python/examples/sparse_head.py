"""A trained model, its head made sparse in one line, and the time that saves.

A conditional variational autoencoder with a discrete latent variable of 25 classes predicts where someone on a street
corner goes: of eight paths, each kind of corner has two to four. The prior p(z | corner) gives every class some
probability. The evidential head keeps those with support, so that a program which follows every possible class decodes
a fraction of them. It needs no data and no network, and takes some seconds:

    python bindings/python/examples/sparse_head.py
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import Tensor, nn

import shafer.torch

CLASSES = 25
# The paths of each kind of corner, as directions of an eighth of a circle.
CORNERS = ((0, 4), (1, 2, 6), (0, 3, 5), (1, 3, 5, 7))


class Cvae(nn.Module):
    """The prior p(z | corner), and a mean path for each class: x ~ N(path(z, corner), 0.1)."""

    def __init__(self) -> None:
        super().__init__()
        self.prior = nn.Sequential()
        self.prior.add_module("hidden", nn.Sequential(nn.Linear(len(CORNERS), 32), nn.ReLU()))
        self.prior.add_module("linear", nn.Linear(32, CLASSES))
        self.decoder = nn.Sequential(
            nn.Linear(CLASSES + len(CORNERS), 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 2)
        )

    def decode(self, classes: Tensor, corner: Tensor) -> Tensor:
        return self.decoder(torch.cat([nn.functional.one_hot(classes, CLASSES).float(), corner], -1))

    def nll(self, x: Tensor, corner: Tensor) -> Tensor:
        """The exact negative log-likelihood: with 25 classes, the sum over all of them is cheap."""
        log_prior = torch.log_softmax(self.prior(corner), -1)
        classes = torch.arange(CLASSES).expand(len(x), -1)
        paths = self.decode(classes, corner[:, None].expand(-1, CLASSES, -1))
        squares = ((x[:, None] - paths) / 0.1).square().sum(-1)
        return -torch.logsumexp(log_prior - squares / 2, -1).mean()


def draw(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Corners, and where people went."""
    kinds = torch.randint(len(CORNERS), (count,), generator=generator)
    ways = torch.zeros(count)
    for kind, directions in enumerate(CORNERS):
        chosen = torch.randint(len(directions), (count,), generator=generator)
        ways = torch.where(kinds == kind, torch.tensor(directions)[chosen], ways)
    angle = ways * (torch.pi / 4)
    x = torch.stack([angle.cos(), angle.sin()], -1)
    return x + 0.1 * torch.randn(x.shape, generator=generator), nn.functional.one_hot(kinds, len(CORNERS)).float()


def possible_paths(model: Cvae, corner: Tensor) -> Tensor:
    """The path of every class with probability, for each corner: what a planner would have to consider."""
    p = torch.softmax(model.prior(corner), -1)
    rows, classes = p.nonzero(as_tuple=True)
    return model.decode(classes, corner[rows])


def seconds(model: Cvae, corner: Tensor) -> float:
    start = time.perf_counter()
    possible_paths(model, corner)
    return time.perf_counter() - start


def main(steps: int = 400, rows: int = 4000) -> dict[str, float]:
    # The networks are small: more threads only wait for each other.
    torch.set_num_threads(1)
    torch.manual_seed(0)
    generator = torch.Generator().manual_seed(0)
    model = Cvae()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    for _ in range(steps):
        loss = model.nll(*draw(256, generator))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    print(f"trained for {steps} steps: negative log-likelihood {loss.item():.2f}")

    x, corner = draw(rows, generator)
    times: dict[str, list[float]] = {"softmax": [], "evidential": []}
    with torch.no_grad():
        before = len(possible_paths(model, corner)) / rows
        full = torch.softmax(model.prior(corner), -1)
        nll = model.nll(x, corner).item()

        head = shafer.torch.sparsify_head(model, "prior.linear")  # the one line

        after = len(possible_paths(model, corner)) / rows
        sparse = torch.softmax(model.prior(corner), -1)
        sparse_nll = model.nll(x, corner).item()
        # In turns, so that what else the machine does weighs on both.
        for _ in range(15):
            times["evidential"].append(seconds(model, corner))
            head.restore()
            times["softmax"].append(seconds(model, corner))
            head = shafer.torch.sparsify_head(model, "prior.linear")
        head.restore()
        restored = torch.softmax(model.prior(corner), -1)

    kept = (full * (sparse > 0)).sum(-1).mean().item()
    took = {name: statistics.median(values) for name, values in times.items()}
    print(f"classes decoded for each corner: {before:.1f} of softmax, {after:.1f} of evidential")
    print(f"softmax mass of the classes kept: {kept:.4f}")
    print(f"negative log-likelihood: {nll:.3f} of softmax, {sparse_nll:.3f} of evidential")
    print(
        f"decoding {rows} corners: {1e3 * took['softmax']:.1f} ms and {1e3 * took['evidential']:.1f} ms, "
        f"{took['softmax'] / took['evidential']:.1f} times as fast"
    )
    print(f"restored: {torch.equal(restored, full)}")
    return {
        "before": before,
        "after": after,
        "kept": kept,
        "nll": nll,
        "sparse_nll": sparse_nll,
        "restored": float(torch.equal(restored, full)),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=400, help="training steps (default: %(default)s)")
    parser.add_argument("--rows", type=int, default=4000, help="corners to decode (default: %(default)s)")
    arguments = parser.parse_args()
    main(arguments.steps, arguments.rows)
