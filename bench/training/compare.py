"""One training step of the paper's MNIST autoencoder: ours against PyTorch's, in turns."""

import argparse
import json
import statistics
import subprocess
import time

BATCH = 64
WARM_UP = 100


def parse():
    parser = argparse.ArgumentParser(
        prog="bench/training/run",
        description=__doc__,
        epilog="example: bench/training/run --rounds 9",
    )
    parser.add_argument("--ours", required=True, help="the example training_step, compiled")
    parser.add_argument("--rounds", type=int, default=5, help="turns of each (default: 5)")
    parser.add_argument("--steps", type=int, default=300, help="steps in a turn (default: 300)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def torch_steps(steps):
    """The median time in milliseconds of a step, for each optimiser."""
    import torch
    from torch.nn import Linear, Module, ReLU, Sequential
    from torch.nn import functional as F

    torch.set_num_threads(1)

    class Autoencoder(Module):
        def __init__(self):
            super().__init__()
            self.posterior = Sequential(Linear(786, 256), ReLU(), Linear(256, 10))
            self.prior = Sequential(Linear(2, 30), ReLU(), Linear(30, 10))
            self.decoder = Sequential(Linear(10, 256), ReLU(), Linear(256, 784))

        def loss(self, x, y):
            posterior = self.posterior(torch.cat([x, y], dim=1))
            log_q = F.log_softmax(posterior, dim=1)
            log_p = F.log_softmax(self.prior(y), dim=1)
            logits = self.decoder(F.gumbel_softmax(posterior, tau=0.67))
            reconstruction = F.binary_cross_entropy_with_logits(logits, x, reduction="sum")
            kl = (log_q.exp() * (log_q - log_p)).sum(dim=1).mean()
            return reconstruction, kl

    pixels = torch.randint(0, 256, (BATCH, 784), dtype=torch.uint8)
    labels = torch.randint(0, 2, (BATCH,))
    optimisers = {
        "sgd": lambda p: torch.optim.SGD(p, lr=1e-3),
        "adam": lambda p: torch.optim.Adam(p, lr=1e-3),
        "adam_fused": lambda p: torch.optim.Adam(p, lr=1e-3, fused=True),
    }
    times = {}
    for name, make in optimisers.items():
        model = Autoencoder()
        optimiser = make(model.parameters())
        samples = []
        for _ in range(WARM_UP + steps):
            start = time.perf_counter()
            rows = torch.arange(BATCH)
            x, y = pixels[rows].float() / 255, F.one_hot(labels[rows], 2).float()
            optimiser.zero_grad()
            reconstruction, kl = model.loss(x, y)
            (reconstruction + kl).backward()
            optimiser.step()
            reconstruction.item(), kl.item()
            samples.append((time.perf_counter() - start) * 1e3)
        times[name] = statistics.median(samples[WARM_UP:])
    return times


def main():
    arguments = parse()
    ours, torch = [], []
    for _ in range(arguments.rounds):
        output = subprocess.run(
            [arguments.ours, str(arguments.steps)], check=True, capture_output=True, text=True
        ).stdout
        ours.append(json.loads(output))
        torch.append(torch_steps(arguments.steps))

    def median(rounds, name):
        return statistics.median(round[name] for round in rounds)

    # Ratios within a round: rounds differ more than the two sides do.
    def ratio(name, peer):
        return statistics.median(a[name] / b[peer] for a, b in zip(ours, torch))

    rows = [
        {
            "optimiser": name,
            "ours_ms": round(median(ours, name), 3),
            "torch_ms": round(median(torch, peer), 3),
            "ratio": round(ratio(name, peer), 3),
            "products_share": round(statistics.median(o["products"] / o[name] for o in ours), 3),
        }
        for name, peer in [("sgd", "sgd"), ("adam", "adam"), ("adam", "adam_fused")]
    ]
    rows[2]["optimiser"] = "adam (PyTorch's fused)"
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'optimiser':<24}{'ours':>10}{'PyTorch':>12}{'ratio':>8}{'matrix products':>18}")
    for row in rows:
        print(
            f"{row['optimiser']:<24}{row['ours_ms']:>7.2f} ms{row['torch_ms']:>9.2f} ms"
            f"{row['ratio']:>8.2f}{row['products_share']:>17.0%} of ours"
        )


if __name__ == "__main__":
    main()
