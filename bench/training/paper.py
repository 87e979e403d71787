"""Training steps of the paper's three networks on miniImageNet at full size: time and memory of each.

Each network is trained in a process of its own, on all cores. Its whole training on a GPU is estimated from the
floating-point operations of a step and a sustained rate, which is an assumption.
"""

import argparse
import json
import os
import subprocess

# Of 38,400 images the paper holds out 5%.
IMAGES = 36_480
EPOCHS = 100


def parse():
    parser = argparse.ArgumentParser(
        prog="bench/training/run paper",
        description=__doc__,
        epilog="example: bench/training/run paper --stage prior --steps 2",
    )
    parser.add_argument("--ours", required=True, help="the example paper_step, compiled")
    parser.add_argument(
        "--stage",
        choices=list(STAGES),
        action="append",
        help="only this network; can be given again (default: all)",
    )
    parser.add_argument("--steps", type=int, default=1, help="training steps (default: 1)")
    parser.add_argument(
        "--rate",
        type=float,
        default=2.2,
        help="sustained TFLOP/s of the GPU (default: 2.2, a third of the peak of the paper's GTX 1070)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args()


def vqvae(side=128, width=256, codes=512, blocks=2):
    """Multiplications of a forward pass over an image: outputs x inputs x taps at every position."""
    half, quarter = (side // 2) ** 2, (side // 4) ** 2
    ends = 2 * half * 3 * width * 16
    middle = 2 * quarter * width * width * 16
    residual = 2 * blocks * quarter * width * width * (9 + 1)
    return ends + middle + residual + quarter * codes * width


def prior(side=32, layers=20, width=128, head=512, codes=512):
    """The same for a grid of codes, with kernels cropped to what is not masked."""
    points = 2 * width * 2 * width + width * width
    first = (3 * 7 + 3) * width * 2 * width + points
    other = (2 * 3 + 2) * width * 2 * width + points
    return side**2 * (first + (layers - 1) * other + width * head + head * codes)


def classifier(side=128, width=64, widening=2, blocks=(3, 4, 6, 3), classes=64):
    """The same for wide_resnet50_2."""
    side //= 2
    total = side**2 * 3 * width * 49
    side //= 2
    inputs = width
    for stage, count in enumerate(blocks):
        inner, outputs = (width * widening) << stage, (4 * width) << stage
        for block in range(count):
            before = side
            if stage > 0 and block == 0:
                side //= 2
            total += before**2 * inputs * inner + side**2 * inner * (9 * inner + outputs)
            if block == 0:
                total += side**2 * inputs * outputs
            inputs = outputs
    return total + inputs * classes


# Multiplications of a forward pass over an example, and examples in a batch.
STAGES = {"vqvae": (vqvae(), 128), "prior": (prior(), 32), "classifier": (classifier(), 128)}


def measure(command):
    """The standard output of a program, and the most memory that it held, in bytes."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    output = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} failed with {process.returncode}")
    return output, usage.ru_maxrss * 1024


def row(arguments, stage):
    output, memory = measure([arguments.ours, stage, str(arguments.steps)])
    ours = json.loads(output)
    multiplications, batch = STAGES[stage]
    # A multiplication and an addition; forward, and backward to the inputs and to the weights.
    operations = multiplications * batch * 2 * 3
    steps = -(-IMAGES // batch) * EPOCHS
    seconds = min(ours["seconds"])
    return {
        "network": stage,
        "batch": batch,
        "threads": ours["threads"],
        "steps_timed": len(ours["seconds"]),
        "seconds_per_step": round(seconds, 1),
        "memory_gib": round(memory / 2**30, 1),
        "tflop_per_step": round(operations / 1e12, 2),
        "gflops": round(operations / seconds / 1e9),
        "steps": steps,
        "gpu_hours": round(steps * operations / (arguments.rate * 1e12) / 3600, 1),
    }


def main():
    arguments = parse()
    rows = [row(arguments, stage) for stage in arguments.stage or STAGES]
    if arguments.json:
        print(json.dumps({"gpu_tflops": arguments.rate, "stages": rows}, indent=2))
        return
    print("| network | batch | seconds a step | memory | operations a step | steps | on a GPU |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for r in rows:
        print(
            f"| {r['network']} | {r['batch']} | {r['seconds_per_step']} | {r['memory_gib']} GiB "
            f"| {r['tflop_per_step']} TFLOP | {r['steps']:,} | {r['gpu_hours']} h |"
        )
    print(f"\n{rows[0]['threads']} threads; a GPU with a sustained {arguments.rate} TFLOP/s")


if __name__ == "__main__":
    main()
