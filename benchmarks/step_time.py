"""The time of one training step of a recipe, compared with the time of its matrix products alone.

    python benchmarks/step_time.py [--recipe add] [--threads 1]

Steps and matrix products are timed in turn, block by block, in one run, and the medians of processor
seconds are compared, because on a shared machine both slow down together. The products are those of
a model that makes queries, keys and values for every token, once for the forward pass and twice for
the backward pass; everything else (softmax, normalisation, the optimiser, Python) is overhead by
definition. The speed of products is that of a 512 x 512 x 512 product in float32.
"""

import argparse
import json
import statistics
import time

import torch

from abacist import recipes
from abacist.data.stream import TrainingStream
from abacist.models.config import ModelConfig
from abacist.runs.circumstances import circumstances
from abacist.runs.run import build_model, build_problems
from abacist.training.optimizer import Optimizer
from abacist.training.step import training_step

BLOCKS = 12
STEPS_PER_BLOCK = 32
SIDE = 512


def step_operations(
    config: ModelConfig, vocabulary: int, batch: int, tokens: int, predicting: int
) -> int:
    """Return the floating-point operations of all products of one step, forward and backward.

    All tokens have keys and values; in the last layer only the predicting tokens have queries.
    """
    inner = config.num_heads * config.width_of_head
    total = 0
    for layer in range(config.num_layers):
        queries = predicting if layer == config.num_layers - 1 else tokens
        total += 2 * tokens * 2 * config.width * inner  # keys, values
        total += 2 * queries * 2 * config.width * inner  # queries, output
        total += 2 * queries * tokens * 2 * inner  # scores, mixing
        total += 2 * queries * 2 * config.width * config.mlp_width
    total += 2 * predicting * config.width * vocabulary
    return 3 * batch * total


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="add", choices=list(recipes.RECIPES))
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", help="write the record here, as JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(0)
    recipe = recipes.find(arguments.recipe)
    model = build_model(recipe)
    task, format = build_problems(recipe)
    stream = TrainingStream(task, format, recipe.split, recipe.training.batch_size, seed=0)
    optimizer = Optimizer(model, recipe.training)
    batches = [stream.batch(step) for step in range(STEPS_PER_BLOCK)]
    operations = sum(
        step_operations(
            recipe.model,
            len(format.vocabulary),
            recipe.training.batch_size,
            batch.ids.shape[1] - 1,
            int(batch.target.any(dim=0).sum()),
        )
        for batch in batches
    )
    matrix = torch.randn(SIDE, SIDE)
    step_seconds, product_seconds = [], []
    for block in range(BLOCKS + 1):
        begin = time.process_time()
        for step, batch in enumerate(batches):
            training_step(model, optimizer, batch, recipe.training, step, stream.aligned)
        middle = time.process_time()
        products = max(1, round(operations / (2 * SIDE**3)))
        for _ in range(products):
            matrix @ matrix
        end = time.process_time()
        if block:  # The first block warms up.
            step_seconds.append((middle - begin) / STEPS_PER_BLOCK)
            product_seconds.append((end - middle) / products)
    median_step = statistics.median(step_seconds)
    speed = 2 * SIDE**3 / statistics.median(product_seconds)
    needed = operations / STEPS_PER_BLOCK / speed
    ratios = sorted(
        s / (operations / STEPS_PER_BLOCK / (2 * SIDE**3) * p)
        for s, p in zip(step_seconds, product_seconds, strict=True)
    )
    record = {
        "recipe": recipe.name,
        "threads": arguments.threads,
        "milliseconds_per_step": round(1e3 * median_step, 3),
        "operations_per_step": round(operations / STEPS_PER_BLOCK),
        "gigaflops_of_products": round(speed / 1e9, 1),
        "milliseconds_needed": round(1e3 * needed, 3),
        "ratio": round(statistics.median(ratios), 2),
        "ratio_best_and_worst_block": [round(ratios[0], 2), round(ratios[-1], 2)],
        **circumstances(),
    }
    print(json.dumps(record, indent=2))
    if arguments.out:
        with open(arguments.out, "w") as file:
            file.write(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
