"""Generation: time per token at every length, sums per second in batches, and GPT-2 beside it.

    python benchmarks/generation.py RUN --out results/generation.json

RUN is a run of the recipe `add`. Everything is timed in one run, because on a shared machine only
ratios of times that were measured together mean anything. Processor seconds are stated beside those
of the clock for the same reason. GPT-2 of the transformers library has the width, the heads, the
layers and the vocabulary of RUN and writes with its own cache; it is left out where that library is not
installed.
"""

import argparse
import importlib.util
import json
import math
import random
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

import abacist
from abacist.models.attention_tables import AttentionTables
from abacist.models.teacher_forcing import coordinates_of
from abacist.runs.circumstances import circumstances
from abacist.scoring.solving import solve
from abacist.scoring.trained_model import TrainedModel

NUM_THREE_DIGIT = 20_000
REPEATS = 5


def seconds(action: Callable[[], object]) -> tuple[float, float]:
    """Return the processor seconds and the clock's seconds that an action takes."""
    begin_clock, begin = time.perf_counter(), time.process_time()
    action()
    return time.process_time() - begin, time.perf_counter() - begin_clock


def random_sum(num_digits: int, generator: random.Random) -> str:
    digits = ["".join(generator.choices("123456789", k=num_digits)) for _ in range(2)]
    return "+".join(digits)


def solve_one(trained_model: TrainedModel, problem: str) -> tuple[float, float]:
    """Solve one problem, and return its processor and clock seconds; the answer must be right."""
    problems = trained_model.task.parse([problem])
    solutions = []
    times = seconds(lambda: solutions.extend(solve(trained_model, problems)))
    assert solutions[0].correct, "the run does not add numbers of this length"
    return times


Times = dict[int, list[tuple[float, float]]]
"""Processor and clock milliseconds per token of each repetition, by number of digits."""


def time_lengths(trained_model: TrainedModel, lengths: list[int]) -> Times:
    """Return the time per token of one line at each length, in turns, so that all share what disturbs."""
    generator = random.Random(0)
    times: Times = {length: [] for length in lengths}
    for _ in range(REPEATS):
        for length in lengths:
            processor, clock = solve_one(trained_model, random_sum(length, generator))
            times[length].append((1e3 * processor / (length + 1), 1e3 * clock / (length + 1)))
    return times


def best(times: Times) -> list[dict[str, float]]:
    """Return the best repetition at each length."""
    return [
        {
            "digits": length,
            "processor_milliseconds_per_token": round(min(p for p, _ in repetitions), 4),
            "clock_milliseconds_per_token": round(min(c for _, c in repetitions), 4),
        }
        for length, repetitions in times.items()
    ]


def slope(times: Times) -> dict[str, float] | None:
    """Return the slope of processor time per token against length, over all repetitions.

    None for fewer than two lengths. The standard error says how large a slope the noise alone makes.
    """
    if len(times) < 2:
        return None
    points = [(length, p) for length, repetitions in times.items() for p, _ in repetitions]
    digits, milliseconds = zip(*points, strict=True)
    fit = statistics.linear_regression(digits, milliseconds)
    squares = sum((p - fit.intercept - fit.slope * length) ** 2 for length, p in points)
    mean = statistics.mean(digits)
    deviations = sum((length - mean) ** 2 for length in digits)
    error = math.sqrt(squares / (len(points) - 2) / deviations)
    return {
        "microseconds_per_thousand_digits": round(1e6 * fit.slope, 3),
        "standard_error": round(1e6 * error, 3),
    }


def time_three_digit_sums(trained_model: TrainedModel) -> dict[str, float]:
    generator = random.Random(1)
    problems = trained_model.task.parse([random_sum(3, generator) for _ in range(NUM_THREE_DIGIT)])
    solve(trained_model, problems[:2_048])
    times = [seconds(lambda: solve(trained_model, problems)) for _ in range(REPEATS)]
    return {
        "per_processor_second": round(NUM_THREE_DIGIT / min(processor for processor, _ in times)),
        "per_clock_second": round(NUM_THREE_DIGIT / min(clock for _, clock in times)),
    }


class CountCalls(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the operations of torch that run inside."""

    count = 0

    def __torch_dispatch__(
        self, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        self.count += 1
        return function(*args, **(kwargs or {}))


@torch.inference_mode()
def time_model(trained_model: TrainedModel, num_tokens: int = 2_000) -> dict[str, float]:
    """Return the processor time of the model alone for one token that sees five, and dispatch's share.

    The cost of dispatch is that of adding two single numbers, for each operation of torch.
    """
    model = trained_model.model
    problems = trained_model.task.parse(["12+34"])
    prompt = trained_model.format.prompt(problems)
    last = prompt[:, -1:]
    ids, coordinates = last.ids.long(), coordinates_of(last)
    number = torch.ones(1)
    tables = AttentionTables(model)
    token = ids[0].numpy()
    keys, rows = np.repeat(token[None], 5, axis=0), np.zeros((5, 1), np.int64)

    def by_layers() -> None:
        model(ids, coordinates, path="dense")

    def by_tables() -> None:
        tables.logits(token, keys, rows)

    def microseconds(action: Callable[[], object]) -> float:
        def run() -> None:
            for _ in range(num_tokens):
                action()

        run()
        return round(1e6 * min(seconds(run)[0] for _ in range(REPEATS)) / num_tokens, 2)

    with CountCalls() as counted:  # type: ignore[no-untyped-call]
        by_tables()
    one_call, tabulated = microseconds(lambda: number + number), microseconds(by_tables)
    return {
        "layers_microseconds": microseconds(by_layers),
        "tables_microseconds": tabulated,
        "operations": counted.count,
        "one_addition_microseconds": one_call,
        "share_of_dispatch": round(counted.count * one_call / tabulated, 2),
    }


def time_gpt2(trained_model: TrainedModel, num_tokens: int) -> dict[str, float] | None:
    """Return the time per token of GPT-2 of equal size with its cache; None without transformers."""
    if importlib.util.find_spec("transformers") is None:
        return None
    library: Any = importlib.import_module("transformers")
    config = trained_model.model.config
    torch.manual_seed(0)
    gpt2 = library.GPT2LMHeadModel(
        library.GPT2Config(
            vocab_size=len(trained_model.format.vocabulary),
            n_positions=4 * num_tokens,
            n_embd=config.width,
            n_layer=config.num_layers,
            n_head=config.num_heads,
            n_inner=config.mlp_width,
            bos_token_id=0,
            eos_token_id=None,
        )
    ).eval()
    prompt = torch.randint(10, (1, 2 * num_tokens), generator=torch.Generator().manual_seed(0))

    def their_loop() -> None:
        gpt2.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=num_tokens,
            min_new_tokens=num_tokens,
            do_sample=False,
            use_cache=True,
            pad_token_id=0,
        )

    @torch.no_grad()
    def plain_loop() -> None:
        out = gpt2(prompt, use_cache=True)
        for _ in range(num_tokens):
            token: Tensor = out.logits[:, -1:].argmax(dim=-1)
            out = gpt2(token, past_key_values=out.past_key_values, use_cache=True)

    def per_token(action: Callable[[], None]) -> float:
        action()
        return round(1e3 * min(seconds(action)[0] for _ in range(REPEATS)) / num_tokens, 4)

    return {
        "new_tokens": num_tokens,
        "processor_milliseconds_per_token_generate": per_token(their_loop),
        "processor_milliseconds_per_token_plain_loop": per_token(plain_loop),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run", help="directory of a run of the recipe `add`")
    parser.add_argument("--digits", default="250,2000,8000,20000", help="lengths of single lines")
    parser.add_argument("--longest", type=int, default=100_000, help="digits of the longest sum")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", help="write the record here, as JSON")
    arguments = parser.parse_args()
    sys.set_int_max_str_digits(0)
    torch.set_num_threads(arguments.threads)
    trained_model = abacist.load(Path(arguments.run)).trained_model()
    lengths = [int(length) for length in arguments.digits.split(",")]
    solve_one(trained_model, random_sum(100, random.Random(0)))
    gpt2 = time_gpt2(trained_model, lengths[0])
    if gpt2 is None:
        print("transformers is not installed, so GPT-2 is left out: pip install transformers")
    times = time_lengths(trained_model, lengths)
    record = {
        "threads": arguments.threads,
        "one_line": best(times),
        "slope": slope(times),
        "model_alone": time_model(trained_model),
        "gpt2": gpt2,
        "three_digit_sums": time_three_digit_sums(trained_model),
    }
    if arguments.longest:
        processor, clock = solve_one(trained_model, random_sum(arguments.longest, random.Random(2)))
        record["longest"] = {
            "digits": arguments.longest,
            "processor_seconds": round(processor, 2),
            "clock_seconds": round(clock, 2),
        }
    record |= circumstances()
    print(json.dumps(record, indent=2))
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(record, indent=2) + "\n")


if __name__ == "__main__":
    main()
