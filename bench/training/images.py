"""One training step of a VQ-VAE and of a wide residual network: ours against PyTorch's, in turns."""

import argparse
import json
import statistics
import subprocess
import time

WARM_UP = 2


def parse():
    parser = argparse.ArgumentParser(
        prog="bench/training/run images",
        description=__doc__,
        epilog="example: bench/training/run images --side 64 --width 64",
    )
    parser.add_argument("--ours", required=True, help="the example image_training_step, compiled")
    parser.add_argument("--side", type=int, default=32, help="of the images (default: 32)")
    parser.add_argument("--width", type=int, default=64, help="of the VQ-VAE (default: 64)")
    parser.add_argument("--batch", type=int, default=64, help="images (default: 64)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--steps", type=int, default=5, help="steps in a turn (default: 5)")
    parser.add_argument("--threads", type=int, default=1, help="of each (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def torch_steps(arguments):
    """The median time in milliseconds of a step of each network."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(arguments.threads)
    width, side, codes = arguments.width, arguments.side, 512

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.Sequential(
                nn.ReLU(),
                nn.Conv2d(width, width, 3, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 1, bias=False),
                nn.BatchNorm2d(width),
            )

        def forward(self, x):
            return x + self.layers(x)

    class VqVae(nn.Module):
        def __init__(self):
            super().__init__()
            self.encoder = nn.Sequential(
                nn.Conv2d(3, width, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.Conv2d(width, width, 4, 2, 1),
                Residual(),
                Residual(),
            )
            self.embedding = nn.Embedding(codes, width)
            nn.init.uniform_(self.embedding.weight, -1 / codes, 1 / codes)
            self.decoder = nn.Sequential(
                Residual(),
                Residual(),
                nn.ReLU(inplace=True),
                nn.ConvTranspose2d(width, width, 4, 2, 1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
                nn.ConvTranspose2d(width, 3, 4, 2, 1),
                nn.Tanh(),
            )

        def loss(self, x, _):
            z = self.encoder(x).permute(0, 2, 3, 1).contiguous()
            flat = z.detach().flatten(0, 2)
            vectors = self.embedding.weight.detach()
            distances = torch.addmm((vectors**2).sum(1), flat, vectors.T, alpha=-2)
            chosen = self.embedding(distances.argmin(1)).view_as(z)
            straight = (z + (chosen - z).detach()).permute(0, 3, 1, 2)
            reconstruction = F.mse_loss(self.decoder(straight), x)
            codebook, commitment = F.mse_loss(chosen, z.detach()), F.mse_loss(z, chosen.detach())
            return reconstruction + codebook + commitment

    class Block(nn.Module):
        def __init__(self, inputs, outputs, stride):
            super().__init__()
            self.layers = nn.Sequential(
                nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False),
                nn.BatchNorm2d(outputs),
                nn.ReLU(inplace=True),
                nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False),
                nn.BatchNorm2d(outputs),
            )
            self.fit = nn.Identity()
            if stride != 1 or inputs != outputs:
                convolution = nn.Conv2d(inputs, outputs, 1, stride, bias=False)
                self.fit = nn.Sequential(convolution, nn.BatchNorm2d(outputs))

        def forward(self, x):
            return F.relu(self.layers(x) + self.fit(x))

    class WideResidual(nn.Module):
        def __init__(self):
            super().__init__()
            layers = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
            inputs = 16
            for stage in range(3):
                for block in range(2):
                    stride = 2 if stage > 0 and block == 0 else 1
                    layers.append(Block(inputs, 32 << stage, stride))
                    inputs = 32 << stage
            self.layers = nn.Sequential(*layers)
            self.classes = nn.Linear(inputs, 10)

        def loss(self, x, y):
            return F.cross_entropy(self.classes(self.layers(x).mean((2, 3))), y)

    pixels = torch.randint(0, 256, (arguments.batch, 3, side, side), dtype=torch.uint8)
    labels = torch.randint(0, 10, (arguments.batch,))
    adam = lambda p: torch.optim.Adam(p, lr=2e-4)
    nesterov = lambda p: torch.optim.SGD(p, lr=1e-3, momentum=0.9, nesterov=True, weight_decay=1e-2)
    times = {}
    for name, kind, make in [("vqvae", VqVae, adam), ("wide_residual", WideResidual, nesterov)]:
        model = kind()
        optimiser = make(model.parameters())
        samples = []
        for _ in range(WARM_UP + arguments.steps):
            start = time.perf_counter()
            x = pixels.float() / 127.5 - 1
            optimiser.zero_grad()
            loss = model.loss(x, labels)
            loss.backward()
            optimiser.step()
            loss.item()
            samples.append((time.perf_counter() - start) * 1e3)
        times[name] = statistics.median(samples[WARM_UP:])
    return times


def main():
    arguments = parse()
    sizes = [arguments.side, arguments.width, arguments.batch, arguments.steps, arguments.threads]
    command = [arguments.ours, *map(str, sizes)]
    ours, torch = [], []
    for _ in range(arguments.rounds):
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ours.append(json.loads(output))
        torch.append(torch_steps(arguments))

    # The ratio of each round, because rounds differ more than what is compared does.
    rows = [
        {
            "network": name,
            "side": arguments.side,
            "width": arguments.width if name == "vqvae" else 32,
            "batch": arguments.batch,
            "threads": arguments.threads,
            "ours_ms": round(statistics.median(round_[name] for round_ in ours), 1),
            "torch_ms": round(statistics.median(round_[name] for round_ in torch), 1),
            "ratio": round(statistics.median(a[name] / b[name] for a, b in zip(ours, torch)), 3),
        }
        for name in ["vqvae", "wide_residual"]
    ]
    if arguments.json:
        print(json.dumps(rows, indent=2))
        return
    print(f"{'network':<16}{'ours':>12}{'PyTorch':>13}{'ratio':>8}")
    for row in rows:
        print(
            f"{row['network']:<16}{row['ours_ms']:>9.1f} ms{row['torch_ms']:>10.1f} ms"
            f"{row['ratio']:>8.2f}"
        )


if __name__ == "__main__":
    main()
