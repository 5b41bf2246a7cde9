"""Model FLOP utilisation on a GPU: the training step's products as a share of the GPU's peak.

    python benchmarks/gpu.py [--recipe looped-abacus-1x16] [--batch-size 1024] [--out results/gpu.json]

The multiply-adds are counted by the model's formula (`abacist model RECIPE`), once for the forward pass
and twice for the backward pass, and compared with the peak of the GPU's matrix units in bfloat16.
Needs a GPU.
"""

import argparse
import json
import statistics
import time
from dataclasses import replace
from pathlib import Path

import torch

from abacist import recipes
from abacist.data.stream import TrainingStream
from abacist.models.parameter_count import components
from abacist.runs.circumstances import circumstances
from abacist.runs.run import build_model, build_problems
from abacist.training.optimizer import Optimizer
from abacist.training.step import training_step

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12, "L40": 181e12, "A10": 125e12}
"""Peak of dense bfloat16 products in floating-point operations per second, from the makers' data sheets."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="looped-abacus-1x16", choices=list(recipes.RECIPES))
    parser.add_argument("--batch-size", type=int, default=1_024)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--out", help="write the record here, as JSON")
    arguments = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("torch finds no GPU on this machine")
    device, name = torch.device("cuda"), torch.cuda.get_device_name()
    peak = next((peak for part, peak in PEAKS.items() if part in name), None)
    recipe = recipes.find(arguments.recipe)
    # A progressive loss would add a second pass of random depth to each step.
    config = replace(
        recipe.training,
        batch_size=arguments.batch_size,
        precision="bfloat16",
        progressive_loss="none",
    )
    model = build_model(recipe).to(device).train()
    task, format = build_problems(recipe)
    stream = TrainingStream(task, format, recipe.split, arguments.batch_size, 0, device=device)
    optimizer, seconds, speeds = Optimizer(model, config), [], []
    for step in range(arguments.steps):
        lines = stream.batch(step)
        torch.cuda.synchronize()
        begin = time.perf_counter()
        training_step(model, optimizer, lines, config, step, stream.aligned)
        torch.cuda.synchronize()
        seconds.append(time.perf_counter() - begin)
        tokens, predicting = lines.ids.shape[1] - 1, int(lines.target[0].sum())
        parts = components(recipe.model, len(format.vocabulary), tokens, predicting)
        operations = 6 * arguments.batch_size * sum(part.multiply_adds for part in parts)
        speeds.append(operations / seconds[-1])
        print(f"step {step}: {tokens} tokens, {seconds[-1]:.3f} s, {speeds[-1] / 1e12:.0f} TFLOP/s")
    warm = speeds[arguments.steps // 2 :]
    record = {
        "recipe": recipe.name,
        "batch_size": arguments.batch_size,
        "gpu": name,
        "median_operations_per_second": statistics.median(warm),
        "utilisation": None if peak is None else statistics.median(warm) / peak,
        "peak_memory_gib": torch.cuda.max_memory_allocated() / 2**30,
        "circumstances": circumstances(),
    }
    print(json.dumps(record, indent=1))
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
