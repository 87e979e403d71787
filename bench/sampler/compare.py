"""Sampling codes from a gated PixelCNN: ours beside full passes of ours and of PyTorch's, in one run."""

import argparse
import json
import subprocess
import tempfile
import time
from pathlib import Path


def parse():
    parser = argparse.ArgumentParser(
        prog="bench/sampler/run",
        description=__doc__,
        epilog="example: bench/sampler/run --json results/vqvae-sampler.json",
    )
    parser.add_argument("--ours", required=True, help="the example pixel_cnn_sampler, compiled")
    parser.add_argument("--turns", type=int, default=3, help="turns of each (default: 3)")
    parser.add_argument(
        "--positions", type=int, default=4, help="positions of the full passes (default: 4)"
    )
    parser.add_argument("--json", type=Path, help="also write the result to this file")
    return parser.parse_args()


def network(weights, layers):
    """The same network as public code has it: full square kernels whose masked part is set to 0."""
    import torch
    from safetensors.torch import load_file
    from torch.nn import functional as F

    w = load_file(weights)

    def convolution(name, kernel, transposed=False):
        """The kernel (half its rows and one column more, or one row) around what is not masked."""
        part = w[f"{name}.weight"]
        rows = 1 if transposed else kernel // 2 + 1
        columns = kernel // 2 + 1 if transposed else kernel
        full = torch.zeros(*part.shape[:2], rows, columns)
        full[:, :, : part.shape[2], : part.shape[3]] = part
        return full, w[f"{name}.bias"]

    def point(name):
        return w[f"{name}.weight"][:, :, None, None], w[f"{name}.bias"]

    stack = [
        {
            "class": w[f"layers.{i}.class_embedding"],
            "vertical": convolution(f"layers.{i}.vertical", 7 if i == 0 else 3),
            "across": point(f"layers.{i}.vertical_to_horizontal"),
            "horizontal": convolution(f"layers.{i}.horizontal", 7 if i == 0 else 3, True),
            "residual": point(f"layers.{i}.residual"),
        }
        for i in range(layers)
    ]

    def forward(codes, classes):
        vertical = horizontal = w["embedding"][codes].permute(0, 3, 1, 2).contiguous()
        _, rows, columns = codes.shape
        for i, layer in enumerate(stack):
            class_ = layer["class"][classes][:, :, None, None]

            def gate(x, class_=class_):
                a, b = (x + class_).chunk(2, 1)
                return a.tanh() * b.sigmoid()

            half = 3 if i == 0 else 1
            above = F.conv2d(vertical, *layer["vertical"], padding=half)[:, :, :rows]
            before = F.conv2d(horizontal, *layer["horizontal"], padding=(0, half))[..., :columns]
            gated = gate(F.conv2d(above, *layer["across"]) + before)
            added = F.conv2d(gated, *layer["residual"])
            vertical, horizontal = gate(above), added if i == 0 else added + horizontal
        return F.conv2d(F.relu(F.conv2d(horizontal, *point("hidden"))), *point("output"))

    return forward


def main():
    import torch

    arguments = parse()
    turns, positions = str(arguments.turns), str(arguments.positions)
    with tempfile.TemporaryDirectory() as folder:
        weights = f"{folder}/prior.safetensors"
        command = [arguments.ours, weights, turns, positions]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        ours = json.loads(output)
        forward = network(weights, ours["layers"])

    side = round(ours["positions"] ** 0.5)
    torch.set_num_threads(ours["threads"])
    with torch.no_grad():
        codes = torch.tensor(ours["codes"]).reshape(1, side, side)
        logits = forward(codes, torch.tensor([0]))[0].flatten(1)
        for found, expected in zip([logits[:, 0], logits[:, -1]], ours["logits"], strict=True):
            error = (found - torch.tensor(expected)).abs().max().item()
            assert error < 1e-3, f"PyTorch's logits differ from ours by {error}"

        times = []
        classes = torch.tensor(ours["classes"])
        codes = torch.zeros(len(classes), side, side, dtype=torch.long)
        forward(codes, classes)
        for _ in range(arguments.turns):
            start = time.perf_counter()
            for position in range(arguments.positions):
                row, column = divmod(position, side)
                probabilities = forward(codes, classes)[:, :, row, column].softmax(1)
                codes[:, row, column] = torch.multinomial(probabilities, 1)[:, 0]
            times.append((time.perf_counter() - start) / arguments.positions)

    images, count = ours["images"], ours["positions"]
    fast = ours["sampler_seconds"]
    full, peer = ours["full_pass_seconds"] * count, min(times) * count
    timed = f"{arguments.positions} of {count} positions timed, times {count}"
    result = {
        "command": "bench/sampler/run --json results/vqvae-sampler.json",
        "network": f"{side} x {side} positions, {ours['layers']} layers of width {ours['width']}, "
        "512 codes, untrained weights",
        "images": images,
        "threads": ours["threads"],
        "turns": arguments.turns,
        "speedup": round(full / fast, 1),
        "speedup_over_pytorch": round(peer / fast, 1),
        "seconds_per_image": round(fast / images, 4),
        "full_pass_seconds_per_image": round(full / images, 1),
        "pytorch_seconds_per_image": round(peer / images, 1),
        "identical_codes": ours["complete_codes"],
        "measured": {
            "seconds_per_image": f"a whole batch of {images}, fastest of {arguments.turns} turns",
            "speedup": f"our network, a full pass a position, the images shared out among the "
            f"threads: {timed}; fastest of {arguments.turns} turns, in turns with the sampler",
            "speedup_over_pytorch": f"the same weights in PyTorch {torch.__version__}, a full pass "
            f"a position: {timed}; fastest of {arguments.turns} turns, in the same run",
            "identical_codes": f"our sampler and our full passes, both to the end, the same layers on "
            f"{ours['complete_side']} x {ours['complete_side']} positions; and the positions timed",
        },
    }
    text = json.dumps(result, indent=2) + "\n"
    if arguments.json:
        arguments.json.write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
