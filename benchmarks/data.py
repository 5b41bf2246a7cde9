"""How fast problems are drawn, solved, written and annotated, compared with Python strings.

    python benchmarks/data.py [--out results/data.json]

Everything runs on one thread. For each task, a plain Python loop does the same work: it draws integers,
calculates, formats the line, looks its characters up, and lists their places. Both are repeated in
turn, so that they meet the same load, and their medians are compared. At the end, all 4,998,000
lines of five operations on 0 … 999 are written, and the overlap of splits in ten million draws is counted.
"""

import argparse
import json
import random
import resource
import statistics
import string
import time
from collections.abc import Callable
from pathlib import Path

import torch

from abacist.data.check import check
from abacist.data.config import SplitConfig
from abacist.data.export import all_problems
from abacist.formats.config import FORMATS
from abacist.runs.circumstances import circumstances
from abacist.tasks.config import TASKS, ArithmeticConfig, SortingConfig, TaskConfig

ROUNDS = 9
BATCHES = 8
PYTHON_PROBLEMS = 500


def addition_line(chance: random.Random) -> tuple[str, list[int]]:
    """Return `<start>` a `+` b `=` answer `<end>`, reversed, in one character per token, and its places."""
    a, b = chance.randrange(10**9, 10**10), chance.randrange(10**9, 10**10)
    parts = [str(n)[::-1] for n in (a, b, a + b)]
    places = [-2, *range(1, 11), -1, *range(1, 11), 0, *range(1, len(parts[2]) + 2)]
    return f"s{parts[0]}+{parts[1]}={parts[2]}e", places


def multiplication_line(chance: random.Random) -> tuple[str, list[int]]:
    """Return the line of a product and its places."""
    a, b = chance.randrange(10**9, 10**10), chance.randrange(10**9, 10**10)
    parts = [str(n)[::-1] for n in (a, b, a * b)]
    places = [-2, *range(1, 11), -1, *range(1, 11), 0, *range(1, len(parts[2]) + 2)]
    return f"s{parts[0]}*{parts[1]}={parts[2]}e", places


def division_line(chance: random.Random) -> tuple[str, list[int]]:
    """Return the line of a long division with its subtractions, and its places."""
    a, b = chance.randrange(10**19, 10**20), chance.randrange(10**9, 10**10)
    rows: list[str] = []
    left, digits = a // 10**11, str(a)[9:]
    for digit in digits:
        left, count = left * 10 + int(digit), 0
        rows.append(f"{left:011d}"[::-1] + ":0")
        while left >= b:
            left, count = left - b, count + 1
            rows.append(f"{left:011d}"[::-1] + f"+{count}")
        rows.append(f"{10**11 + left - b:011d}"[::-1] + f"-{count}")
    line = f"s{a}/{b}=" + "".join(rows) + "e"
    return line, [i % 13 for i in range(len(line))]


def sorting_line(chance: random.Random) -> tuple[str, list[int]]:
    """Return the line of ten labelled numbers and their order, and its places."""
    numbers = [chance.randrange(10**9, 10**10) for _ in range(10)]
    labels = string.ascii_lowercase[:10]
    order = "".join(label for _, label in sorted(zip(numbers, labels, strict=True)))
    asked = ",".join(f"{label}:{n}" for label, n in zip(labels, numbers, strict=True))
    return f"{asked}={order}e", [0, 0, *range(10, 0, -1), -1] * 10 + [-1] * 11


CONTENDERS: dict[str, tuple[TaskConfig, str, int, Callable[[random.Random], tuple[str, list[int]]], float]] = {
    "addition, 10 digits": (
        ArithmeticConfig(operand_digits=(10, 10)), "reversed", 32_768, addition_line, 2e6,
    ),
    "multiplication, 10 × 10 digits": (
        ArithmeticConfig(operations=("*",), operand_digits=(10, 10)),
        "reversed", 8_192, multiplication_line, 4e5,
    ),
    "long division with trace, 20 ÷ 10 digits": (
        ArithmeticConfig(operations=("//",), operand_digits=(20, 10)),
        "long-division", 4_096, division_line, 5e4,
    ),
    "sorting, 10 numbers of 10 digits": (
        SortingConfig(min_numbers=10, min_digits=10), "labels", 8_192, sorting_line, 3e5,
    ),
}  # fmt: skip
"""Task, format, problems per batch, the same work in Python, and the target in problems per second."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    rows = [_compare(name) for name in CONTENDERS]
    lines = _all_lines()
    overlap = check(
        TASKS["add"].build(), SplitConfig(), 3_333_334, 0, lambda done, total: None
    ).overlap
    print(f"overlap of splits in 10,000,002 draws: {overlap}")
    record = {
        "rows": rows,
        "five operations": lines,
        "overlap in 10,000,002 draws": overlap,
        "threads": 1,
        **circumstances(),
    }
    if arguments.out:
        arguments.out.write_text(json.dumps(record, indent=1) + "\n")


def _compare(name: str) -> dict[str, object]:
    config, format_name, batch, in_python, bar = CONTENDERS[name]
    task = config.build()
    format = FORMATS[format_name].build(config)
    generator, chance = torch.Generator().manual_seed(0), random.Random(0)
    ids = {token: number for number, token in enumerate(string.printable)}
    ours, theirs = [], []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        for _ in range(BATCHES):
            problems = task.draw(task.draw_shapes(batch, generator), generator)
            format.write(problems, task.answer(problems))
        middle = time.perf_counter()
        for _ in range(PYTHON_PROBLEMS):
            line, places = in_python(chance)
            assert len([ids[character] for character in line]) == len(line)
            assert len(places) == len(line)
        end = time.perf_counter()
        ours.append(BATCHES * batch / (middle - begin))
        theirs.append(PYTHON_PROBLEMS / (end - middle))
    fast, plain = statistics.median(ours), statistics.median(theirs)
    print(
        f"{name:42} {fast:>10,.0f} problems/s (best {max(ours):>10,.0f}, bar {bar:>9,.0f}), "
        f"{fast / plain:5.1f} × Python's {plain:,.0f}"
    )
    return {
        "name": name,
        "problems_per_second": fast,
        "best_problems_per_second": max(ours),
        "bar": bar,
        "python_problems_per_second": plain,
        "ratio": fast / plain,
    }


def _all_lines() -> dict[str, object]:
    """Write every problem of five operations on 0 … 999 as an annotated line with carry traces."""
    config = TASKS["five-operations"]
    task, format = config.build(), FORMATS["carry-trace"].build(config)
    space = task.space()
    assert space is not None
    count = 0
    begin = time.perf_counter()
    for problems in all_problems(space, SplitConfig(), None):
        count += len(format.write(problems, task.answer(problems)).ids)
    seconds = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        f"all {count:,} lines of five operations: {seconds:.1f} s (bar 20), "
        f"at most {memory:.0f} MiB in use (bar 500)"
    )
    return {"lines": count, "seconds": seconds, "peak_mebibytes": memory}


if __name__ == "__main__":
    main()
