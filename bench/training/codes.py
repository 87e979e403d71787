"""One training step of the gated PixelCNN: ours against PyTorch's, in turns.

PyTorch's is timed twice: with full kernels under a mask, and with kernels cropped to what is not masked.
"""

import argparse
import json
import statistics
import subprocess
import time

WARM_UP = 2


def parse():
    parser = argparse.ArgumentParser(
        prog="bench/training/run codes",
        description=__doc__,
        epilog="example: bench/training/run codes --side 16 --layers 10",
    )
    parser.add_argument(
        "--ours", required=True, help="the example pixel_cnn_training_step, compiled"
    )
    parser.add_argument("--side", type=int, default=8, help="of the grids (default: 8)")
    parser.add_argument("--layers", type=int, default=15, help="gated layers (default: 15)")
    parser.add_argument("--width", type=int, default=64, help="of the layers (default: 64)")
    parser.add_argument("--batch", type=int, default=32, help="grids (default: 32)")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument("--steps", type=int, default=5, help="steps in a turn (default: 5)")
    parser.add_argument("--threads", type=int, default=1, help="of each (default: 1)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def torch_step(arguments, cropped):
    """The median time in milliseconds of a step."""
    import torch
    from torch import nn
    from torch.nn import functional as F

    torch.set_num_threads(arguments.threads)
    width, side = arguments.width, arguments.side

    class Causal(nn.Module):
        """A kernel of which the last row, or column, is masked or left out in the first layer."""

        def __init__(self, kernel, first, horizontal):
            super().__init__()
            half = kernel // 2
            rows, columns = (1, half + 1) if horizontal else (half + 1, kernel)
            if cropped and first:
                rows, columns = (rows, columns - 1) if horizontal else (rows - 1, columns)
            square = (1 if horizontal else kernel, kernel)
            shape = (rows, columns) if cropped else square
            self.convolution = nn.Conv2d(width, 2 * width, shape)
            self.pad = (half, 0 if horizontal else half, 0 if horizontal else half, 0)
            if not cropped:
                mask = torch.zeros(shape)
                seen = half if first else half + 1
                mask[(slice(None), slice(seen)) if horizontal else slice(seen)] = 1
                self.register_buffer("mask", mask)
                self.padding = (0, half) if horizontal else (half, half)

        def forward(self, x):
            c = self.convolution
            if not cropped:
                return F.conv2d(x, c.weight * self.mask, c.bias, padding=self.padding)
            return c(F.pad(x, self.pad))[:, :, :side, :side]

    class Layer(nn.Module):
        def __init__(self, first):
            super().__init__()
            kernel = 7 if first else 3
            self.first = first
            self.classes = nn.Embedding(10, 2 * width)
            self.vertical = Causal(kernel, first, False)
            self.across = nn.Conv2d(2 * width, 2 * width, 1)
            self.horizontal = Causal(kernel, first, True)
            self.residual = nn.Conv2d(width, width, 1)

        def forward(self, vertical, horizontal, classes):
            class_ = self.classes(classes)[:, :, None, None]

            def gate(x):
                a, b = (x + class_).chunk(2, 1)
                return a.tanh() * b.sigmoid()

            above = self.vertical(vertical)
            added = self.residual(gate(self.across(above) + self.horizontal(horizontal)))
            return gate(above), added if self.first else added + horizontal

    class PixelCnn(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(512, width)
            self.layers = nn.ModuleList([Layer(i == 0) for i in range(arguments.layers)])
            self.head = nn.Sequential(nn.Conv2d(width, 512, 1), nn.ReLU(), nn.Conv2d(512, 512, 1))

        def forward(self, codes, classes):
            vertical = horizontal = self.embedding(codes).permute(0, 3, 1, 2).contiguous()
            for layer in self.layers:
                vertical, horizontal = layer(vertical, horizontal, classes)
            return self.head(horizontal)

    codes = torch.randint(0, 512, (arguments.batch, side, side))
    classes = torch.randint(0, 10, (arguments.batch,))
    model = PixelCnn()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-4)
    samples = []
    for _ in range(WARM_UP + arguments.steps):
        start = time.perf_counter()
        optimiser.zero_grad()
        loss = F.cross_entropy(model(codes, classes), codes)
        loss.backward()
        optimiser.step()
        loss.item()
        samples.append((time.perf_counter() - start) * 1e3)
    return statistics.median(samples[WARM_UP:])


def main():
    a = parse()
    sizes = [a.side, a.layers, a.width, a.batch, a.steps, a.threads]
    rounds = []
    for _ in range(a.rounds):
        command = [a.ours, *map(str, sizes)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ours = json.loads(output)["milliseconds"]
        rounds.append((ours, torch_step(a, cropped=False), torch_step(a, cropped=True)))

    def median(of):
        return round(statistics.median(map(of, rounds)), 3)

    # The ratio of each round, because rounds differ more than what is compared does.
    result = {
        "ours_ms": median(lambda r: r[0]),
        "torch_masked_ms": median(lambda r: r[1]),
        "torch_cropped_ms": median(lambda r: r[2]),
        "ratio_to_masked": median(lambda r: r[0] / r[1]),
        "ratio_to_cropped": median(lambda r: r[0] / r[2]),
    }
    if a.json:
        print(json.dumps(result, indent=2))
        return
    print(f"{a.batch} grids of {a.side} x {a.side}, {a.layers} layers of width {a.width}, {a.threads} threads")
    print(f"ours                {result['ours_ms']:>9.1f} ms")
    for kind in ["masked", "cropped"]:
        print(
            f"PyTorch, {kind:<10} {result[f'torch_{kind}_ms']:>9.1f} ms"
            f"   ratio {result[f'ratio_to_{kind}']:.2f}"
        )


if __name__ == "__main__":
    main()
