"""The recipes that answer published systems, over several seeds: what they get wrong, and what they cost.

    python benchmarks/recipes.py three-digit [--seeds 5] [--out results/three-digit.json]
    python benchmarks/recipes.py five-operations --run runs/five-operations-20261121 --sample 10000
    python benchmarks/recipes.py --readme

The second form scores a run that is there already, on a sample where the space is large. The third
puts the table of all committed records into the README.

Each seed is trained from nothing on one thread, in a process of its own, and then scored on the
suites of its recipe: `SUITES` lists them. A suite is a number of problems, and how many of them are
answered wrongly. On a machine that others use too, `processor_seconds` says what training costs
where `seconds` says how long it took this time.
"""

import argparse
import json
import multiprocessing
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

import abacist
from abacist import seeds
from abacist.data.split import draw_from_split
from abacist.evaluation.exact_match import exact_match
from abacist.evaluation.solving import solve
from abacist.formats.config import PlainFormatConfig
from abacist.formats.format import Format, build_format
from abacist.models.teacher_forcing import teacher_forced
from abacist.runs.run import Run
from abacist.runs.training import circumstances
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Problems
from abacist.tasks.task import build_task

ROOT = Path(__file__).parents[1]
AT_ONCE = 65_536
LINES_AT_ONCE = 2_048
NUM_PROBLEMS = 10_000

Row = dict[str, Any]
"""A suite's name, how many problems it has (`n`) and how many were answered wrongly (`errors`)."""


def judged(run: Run, name: str, problems: Problems, format: Format | None = None) -> Row:
    """Problems scored by one pass each, in the run's own notation or another."""
    margins = smallest_margins(run, problems, format or run.format)
    return {
        "name": name,
        "errors": int((margins <= 0).sum()),
        "n": len(margins),
        "smallest_margin": round(float(margins.min()), 2),
    }


@torch.no_grad()
def smallest_margins(run: Run, problems: Problems, format: Format) -> Tensor:
    """(B,): right where above 0, as `exact_match` finds it.

    Several times as fast for millions of short lines: those of one layout share their coordinates,
    others stand with lines of their own length.
    """
    if format.layout == "shape":
        return exact_match(run.model, run.task, format, problems).margins
    margins = torch.empty(len(problems), dtype=torch.float64)
    for begin in range(0, len(problems), AT_ONCE):
        chosen = problems[begin : begin + AT_ONCE]
        lines = format.write(chosen, run.task.answer(chosen))
        lengths, order = lines.lengths.sort(stable=True)
        for first in range(0, len(order), LINES_AT_ONCE):
            rows = order[first : first + LINES_AT_ONCE]
            widest = int(lengths[first : first + LINES_AT_ONCE].max())
            forced = teacher_forced(
                run.model, lines[rows][:, :widest], equal_lengths=format.layout == "constant"
            )
            margins[begin + rows] = forced.margins().amin(dim=1).double()
    return margins


def drawn(run: Run, name: str, task: ArithmeticConfig, number: int = NUM_PROBLEMS) -> Problems:
    """Test problems of a task like the run's."""
    generator = seeds.generator(run.seed, "benchmark", name)
    drawer = build_task(task)
    shapes = drawer.draw_shapes(number, generator)
    return draw_from_split(drawer, shapes, "test", run.recipe.split, generator)


def every(run: Run, sample: int | None = None) -> Iterator[Row]:
    """The whole space, operation by operation, or a sample of the test problems of each."""
    config = run.recipe.task
    assert isinstance(config, ArithmeticConfig)
    for operation in config.operations:
        alone = replace(config, operations=(operation,), weights=())
        if sample is not None:
            yield judged(run, f"sample of {operation}", drawn(run, operation, alone, sample))
            continue
        space = build_task(alone).space()
        assert space is not None
        errors, margin = 0, float("inf")
        for begin in range(0, len(space), AT_ONCE):
            numbers = torch.arange(begin, min(len(space), begin + AT_ONCE))
            row = judged(run, operation, space.problems(numbers))
            errors, margin = errors + row["errors"], min(margin, row["smallest_margin"])
        name = "every problem" if len(run.task.operations) == 1 else f"every problem of {operation}"
        yield {"name": name, "errors": errors, "n": len(space), "smallest_margin": margin}


def spacings(run: Run) -> Iterator[Row]:
    """The same test problems in the trained spacing and in others."""
    config = run.recipe.format
    assert isinstance(config, PlainFormatConfig)
    assert isinstance(run.recipe.task, ArithmeticConfig)
    problems = drawn(run, "spacings", run.recipe.task)
    examples: dict[Literal["none", "around", "thousands", "random"], str] = {
        "around": "1234 + 5678 =",
        "thousands": "1 234 + 5 678=",
        "none": "1234+5678=",
        "random": "1 23 4+ 56 78 =",
    }
    for spaces, example in examples.items():
        # Without spaces the vocabulary lacks them; all other tokens keep their ids.
        format = build_format(replace(config, spaces=spaces), run.recipe.task)
        yield judged(run, example, problems, format)


def at_once(run: Run) -> Iterator[Row]:
    """Sums up to the trained length and beyond; and whether a + b is always b + a."""
    config = run.recipe.task
    assert isinstance(config, ArithmeticConfig)
    longest = config.max_digits
    tasks = {
        f"≤ {longest} digits": ArithmeticConfig(max_digits=longest),
        f"{longest} + {longest} digits": ArithmeticConfig(operand_digits=(longest, longest)),
        f"≤ {longest} digits, every length of chain": ArithmeticConfig(
            max_digits=longest, sampling="carry-chains"
        ),
        "21 to 30 digits": ArithmeticConfig(min_digits=21, max_digits=30),
        "30 + 30 digits": ArithmeticConfig(operand_digits=(30, 30)),
    }
    for name, task in tasks.items():
        yield judged(run, name, drawn(run, name, task))
    digits = build_task(ArithmeticConfig(max_digits=1)).space()
    assert digits is not None
    yield judged(run, "single digits, all", digits.problems(torch.arange(len(digits))))
    problems = drawn(run, "commuted", ArithmeticConfig(max_digits=longest))
    commuted = Problems(
        problems.digits_BNW.flip(1),
        replace(problems.shapes, lengths_BN=problems.lengths_BN.flip(1)),
    )
    answers = [
        [solution.answer for solution in solve(run.model, run.task, run.format, batch)]
        for batch in (problems, commuted)
    ]
    unequal = sum(one != other for one, other in zip(*answers, strict=True))
    yield {"name": "a+b unlike b+a", "errors": unequal, "n": len(problems)}


SUITES: dict[str, Callable[..., Iterator[Row]]] = {
    "three-digit": every,
    "spaced": spacings,
    "parallel": at_once,
    "five-operations": every,
}
"""What is scored of each recipe."""


def measure(recipe: str, seed: int) -> dict[str, Any]:
    """Train and score one seed."""
    with tempfile.TemporaryDirectory() as directory:
        begin = time.process_time()
        run = abacist.train(recipe, out=Path(directory) / "run", seed=seed, threads=1)
        processor_seconds = time.process_time() - begin
        return outcome(run, round(processor_seconds, 1))


def outcome(
    run: Run, processor_seconds: float | None = None, sample: int | None = None
) -> dict[str, Any]:
    """What a run cost and what it gets wrong."""
    curve = run.directory.read_metrics()
    first_perfect = next((r for r in curve if r["exact_match"]["value"] == 1), None)
    suites = SUITES[run.recipe.name]
    return {
        "seed": run.seed,
        "seconds": round(curve[-1]["seconds"], 1),
        "processor_seconds": processor_seconds,
        "steps": run.recipe.training.num_steps,
        "batch_size": run.recipe.training.batch_size,
        "threads": 1,
        "parameters": run.model.num_parameters,
        "steps_to_perfect_validation": first_perfect and first_perfect["step"],
        "suites": list(suites(run) if sample is None else suites(run, sample)),
        "circumstances": circumstances(),
    }


# The README's table ------------------------------------------------------------------------------


def line(name: str) -> str:
    """A recipe's row: of each suite the errors of all its seeds together."""
    record = json.loads((ROOT / "results" / f"{name}.json").read_text())
    found = record["seeds"]
    seconds = f"{statistics.median(seed['seconds'] for seed in found):.0f}"
    if all(seed["processor_seconds"] for seed in found):
        seconds += f" ({statistics.median(seed['processor_seconds'] for seed in found):.0f})"
    cells = []
    for number, suite in enumerate(found[0]["suites"]):
        errors = [seed["suites"][number]["errors"] for seed in found]
        shown = f"{errors[0]}" if len(set(errors)) == 1 else " / ".join(map(str, errors))
        cells.append(f"{suite['name']}: **{shown}** of {suite['n']:,}")
    return (
        f"| `{name}` | {found[0]['parameters']:,} | {len(found)} | {seconds} | "
        f"{'; '.join(cells)} | [record](results/{name}.json) |"
    )


def table() -> str:
    """All recipes that have a record here, as Markdown."""
    heading = (
        "| recipe | parameters | seeds | seconds of training (processor) | wrong, in each seed | |"
    )
    names = [name for name in SUITES if (ROOT / "results" / f"{name}.json").exists()]
    return "\n".join([heading, "|---|---|---|---|---|---|", *map(line, names)])


def with_table(readme: str) -> str:
    """The README with the table made anew from the committed records."""
    marked = r"(<!-- recipes -->\n).*?(<!-- end of recipes -->)"
    return re.sub(marked, lambda m: f"{m[1]}{table()}\n{m[2]}", readme, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("recipe", nargs="?", choices=list(SUITES))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", help="write the record here, as JSON")
    parser.add_argument("--run", help="score this run instead of training")
    parser.add_argument("--sample", type=int, help="so many problems instead of every one")
    parser.add_argument("--readme", action="store_true", help="only bring the README up to date")
    arguments = parser.parse_args()
    if arguments.readme:
        readme = ROOT / "README.md"
        readme.write_text(with_table(readme.read_text()))
        return
    if arguments.recipe is None:
        parser.error("type a recipe, or --readme")
    found = []
    if arguments.run:
        torch.set_num_threads(1)
        found = [outcome(abacist.load(arguments.run), sample=arguments.sample)]
        write(arguments, found)
        return
    spawn = multiprocessing.get_context("spawn")
    for seed in range(arguments.seeds):
        with spawn.Pool(1) as pool:
            found.append(pool.apply(measure, (arguments.recipe, seed)))
        write(arguments, found)


def write(arguments: argparse.Namespace, found: list[dict[str, Any]]) -> None:
    """Show the newest seed, and keep the record of all so far."""
    print(json.dumps({k: v for k, v in found[-1].items() if k != "circumstances"}), flush=True)
    if arguments.out:
        record = {"recipe": arguments.recipe, "seeds": found}
        Path(arguments.out).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
