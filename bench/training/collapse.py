#!/usr/bin/env python3
"""How many seeds collapse in plain PyTorch: the paper's Fashion-MNIST training, written from its description.

An independent check of our trainings. Needs torch and the training set's IDX files, gzipped or not. Prints both
terms of the loss over each epoch, in nats per image. A posterior that collapses stays near 389 in the first epoch,
others fall below 330.
"""

import argparse
import gzip
from pathlib import Path

import torch
import torch.nn.functional as F
from torch.nn import Linear, ReLU, Sequential

BOTTOMS = [1, 5, 7, 8, 9]


def contents(folder: Path, name: str) -> bytes:
    [path] = sorted(folder.rglob(name + "*"))[:1]
    data = path.read_bytes()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="with train-images-idx3-ubyte and train-labels-idx1-ubyte")
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--epochs", type=int, default=1)
    given = parser.parse_args()
    torch.set_num_threads(1)
    pixels = bytearray(contents(given.folder, "train-images-idx3-ubyte")[16:])
    images = torch.frombuffer(pixels, dtype=torch.uint8).reshape(-1, 784).float() / 255
    labels = torch.frombuffer(bytearray(contents(given.folder, "train-labels-idx1-ubyte")[8:]), dtype=torch.uint8)
    conditions = F.one_hot(torch.isin(labels, torch.tensor(BOTTOMS, dtype=torch.uint8)).long(), 2).float()
    for seed in range(given.seeds):
        torch.manual_seed(seed)
        posterior = Sequential(Linear(786, 256), ReLU(), Linear(256, 10))
        prior = Sequential(Linear(2, 30), ReLU(), Linear(30, 10))
        decoder = Sequential(Linear(10, 256), ReLU(), Linear(256, 784))
        parameters = [p for network in (posterior, prior, decoder) for p in network.parameters()]
        adam = torch.optim.Adam(parameters, 1e-3)
        for epoch in range(given.epochs):
            sums = [0.0, 0.0]
            for rows in torch.randperm(len(images)).split(64):
                x, y = images[rows], conditions[rows]
                logits = posterior(torch.cat([x, y], 1))
                z = F.gumbel_softmax(logits, 0.67)
                reconstruction = F.binary_cross_entropy_with_logits(decoder(z), x, reduction="sum")
                log_q = F.log_softmax(logits, 1)
                kl = (log_q.exp() * (log_q - F.log_softmax(prior(y), 1))).sum(1).mean()
                adam.zero_grad()
                (reconstruction + kl).backward()
                adam.step()
                sums[0] += reconstruction.item()
                sums[1] += kl.item() * len(rows)
            terms = " ".join(f"{term / len(images):8.3f}" for term in sums)
            print(f"seed {seed:2} epoch {epoch + 1:2}: reconstruction, KL {terms}", flush=True)


if __name__ == "__main__":
    main()
