"""How fast models are scored: on a small grid, on a large grid, and on every problem of a task.

    python benchmarks/scoring.py [--threads 2] [--quick] [--out results/scoring.json]

The small grid is compared with a published notebook's method, on the same model and in the same run:
cell by cell and token by token, with the whole line computed again for every token, and with positions
found in a Python loop. That would take hours, so some cells are timed and the others extrapolated: the
seconds of a cell of i and j digits are a linear function of the tokens put through the model.
The models are untrained, which changes no shape and no time.
"""

import argparse
import json
import random
import resource
import statistics
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from abacist.formats.config import FORMATS
from abacist.models.config import POSITIONS, ModelConfig, PositionScheme
from abacist.models.coordinates import Coordinates
from abacist.models.transformer import Transformer
from abacist.runs.circumstances import circumstances
from abacist.scoring.config import ScoringConfig
from abacist.scoring.exhaustive import EXHAUSTIVE
from abacist.scoring.grid import GRID
from abacist.scoring.trained_model import TrainedModel
from abacist.tasks.config import ArithmeticConfig

PER_CELL = 100


def trained_model(
    config: ModelConfig, task: ArithmeticConfig, format: str, **settings: Any
) -> TrainedModel:
    """Return an untrained model, ready to be scored."""
    torch.manual_seed(0)
    written = FORMATS[format].build(task)
    model = Transformer(config, len(written.vocabulary)).eval()
    return TrainedModel(model, task.build(), written, scoring=ScoringConfig(**settings))


def small_grid(size: int) -> dict[str, object]:
    """Time the notebook's grid by both methods, with 100 thousand parameters and Abacus positions."""
    config = ModelConfig(width=64, num_layers=2, mlp_width=256, positions=POSITIONS["abacus"])
    untrained = trained_model(
        config, ArithmeticConfig(), "reversed", grid_size=size, grid_problems=PER_CELL
    )
    seconds = _timed(untrained)
    cells = {_cell(size, number) for number in range(12)}
    timings = {cell: _generated(untrained.model, *cell) for cell in cells}
    estimated = _extrapolated(timings, size)
    passes = _extrapolated({cell: (timings[cell][1], 0.0) for cell in timings}, size)
    print(
        f"{size} × {size} grid, {untrained.model.num_parameters:,} parameters: {seconds:.1f} s; "
        f"token by token {estimated:,.0f} s ({estimated / seconds:.0f} ×), "
        f"of which passes {passes:,.0f} s ({passes / seconds:.0f} ×)"
    )
    return {
        "grid": [size, size, PER_CELL],
        "parameters": untrained.model.num_parameters,
        "seconds": seconds,
        "token_by_token_seconds": estimated,
        "token_by_token_seconds_of_passes_alone": passes,
        "token_by_token_is_extrapolated_from_cells": sorted(
            [*cell, *timing] for cell, timing in timings.items()
        ),
        "ratio": estimated / seconds,
        "ratio_of_passes_alone": passes / seconds,
    }


def _cell(size: int, number: int) -> tuple[int, int]:
    """Return the cell with a number: first the corners of the grid, then random cells."""
    drawn = random.Random(number)
    return {0: (1, 1), 1: (size, size), 2: (1, size), 3: (size, 1)}.get(
        number, (drawn.randint(1, size), drawn.randint(1, size))
    )


def _timed(untrained: TrainedModel) -> float:
    begin = time.perf_counter()
    GRID.run(untrained, lambda name, done, total: None)
    return time.perf_counter() - begin


@torch.no_grad()
def _generated(model: Transformer, digits1: int, digits2: int) -> tuple[float, float]:
    """Time one cell by the notebook's method: all seconds, and those of the passes through the model."""
    begin, in_passes = time.perf_counter(), 0.0
    pairs = [
        tuple(
            random.randint(0 if digits == 1 else 10 ** (digits - 1), 10**digits - 1)
            for digits in (digits1, digits2)
        )
        for _ in range(PER_CELL)
    ]
    ids_of = {str(digit): digit for digit in range(10)} | {"+": 10, "=": 11}
    texts = [f"{str(a)[::-1]}+{str(b)[::-1]}=" for a, b in pairs]
    batch = torch.tensor([[ids_of[token] for token in text] for text in texts])
    for _ in range(max(digits1, digits2) + 2):
        place = _places(batch)
        index = torch.arange(batch.shape[1]).expand_as(batch)
        begin_pass = time.perf_counter()
        # As in the notebook, all tokens go through all layers and the head.
        logits = model(batch, Coordinates(index, place))
        in_passes += time.perf_counter() - begin_pass
        batch = torch.cat([batch, logits[:, -1].argmax(dim=-1, keepdim=True)], dim=1)
    letters = "0123456789+=$!"
    decoded = ["".join(letters[token] for token in line) for line in batch.tolist()]
    assert len(decoded) == PER_CELL
    return time.perf_counter() - begin, in_passes


def _places(batch: Tensor) -> Tensor:
    """Return the position of every digit in its number, computed as in the notebook."""
    places = torch.zeros(batch.shape, dtype=torch.long)
    for row in range(len(batch)):
        span: list[int] = []
        spans = []
        for column, token in enumerate(batch[row].tolist()):
            if token < 10:
                span.append(column)
            elif span:
                spans.append(span)
                span = []
        if span:
            spans.append(span)
        for span in spans:
            for place, column in enumerate(span, 1):
                places[row, column] = place
    return places


def _extrapolated(timings: dict[tuple[int, int], tuple[float, float]], size: int) -> float:
    """Extrapolate the seconds of the whole grid linearly from those of some cells."""
    work = [_work(*cell) for cell in timings]
    slope, intercept = statistics.linear_regression(work, [t for t, _ in timings.values()])
    whole = [_work(i, j) for i in range(1, size + 1) for j in range(1, size + 1)]
    return slope * sum(whole) + intercept * len(whole)


def _work(digits1: int, digits2: int) -> float:
    """Return the number of tokens put through the model for one problem of a cell."""
    steps = max(digits1, digits2) + 2
    return float(sum(digits1 + digits2 + 2 + step for step in range(steps)))


def large_grid(size: int) -> dict[str, object]:
    """Time a grid of 100 × 100 digits with a windowed model of 26 thousand parameters."""
    config = ModelConfig(num_layers=2, positions=POSITIONS["place-relative"])
    untrained = trained_model(
        config, ArithmeticConfig(), "reversed", grid_size=size, grid_problems=PER_CELL
    )
    seconds = _timed(untrained)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"{size} × {size} grid, {untrained.model.num_parameters:,} parameters: {seconds:.0f} s "
        f"(bar 600), peak memory {memory:.0f} MiB"
    )
    return {
        "grid": [size, size, PER_CELL],
        "parameters": untrained.model.num_parameters,
        "seconds": seconds,
        "peak_mebibytes": memory,
    }


def every_sum(digits: int) -> dict[str, object]:
    """Time all sums of three digits with 17,760 parameters."""
    index = PositionScheme(encoding="learned", coordinate="index", num_positions=14)
    config = ModelConfig(
        num_layers=2,
        mlp_width=64,
        biases=("mlp-hidden", "mlp-output"),
        tied_head=True,
        positions=(index,),
    )
    task = ArithmeticConfig(max_digits=digits, sampling="values")
    untrained = trained_model(replace(config), task, "zero-padded")
    begin = time.perf_counter()
    section = EXHAUSTIVE.run(untrained, lambda name, done, total: None)
    seconds = time.perf_counter() - begin
    proportion = section.rows[0].proportion
    assert proportion is not None
    print(
        f"all {proportion.n:,} sums of {digits} digits, {untrained.model.num_parameters:,} parameters: "
        f"{seconds:.1f} s (bar 30)"
    )
    return {
        "problems": proportion.n,
        "parameters": untrained.model.num_parameters,
        "seconds": seconds,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    quick = arguments.quick
    record: dict[str, object] = {
        "every sum": every_sum(2 if quick else 3),
        "small grid": small_grid(6 if quick else 40),
        "large grid": large_grid(8 if quick else 100),
        "quick": quick,
        "threads": arguments.threads,
        **circumstances(),
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
