"""Recipes that multiply and divide, over several seeds: seconds, exact match by lengths, certificate.

    python benchmarks/long_recipes.py --recipe multiply --seeds 3 --out results/multiply.json
    python benchmarks/long_recipes.py --readme

The second form puts the tables of all committed records into the README.

Each seed is trained from nothing with its own data and scored on its own problems of the test
split, one seed after the other, in processes of their own. With `--runs DIR` the runs are kept, and
one that stopped half-way is gone on with; with `--resume` seeds that the record holds are kept.
"""

import argparse
import json
import multiprocessing
import re
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

import abacist
from abacist import seeds
from abacist.data.split import draw_from_split
from abacist.evaluation.exact_match import exact_match
from abacist.runs.run import Run
from abacist.tasks.config import ArithmeticConfig
from abacist.tasks.problems import Shapes
from abacist.tasks.task import Task, build_task

ROOT = Path(__file__).parents[1]

LENGTHS: dict[str, list[tuple[int, int, int]]] = {
    "*": [(7, 7, 10_000), (20, 20, 1_000), (20, 3, 1_000), (3, 20, 1_000), (50, 50, 100),
          (100, 100, 4)],
    "//": [(8, 4, 2_000), (8, 1, 1_000), (8, 8, 1_000), (20, 10, 400), (40, 20, 40), (100, 50, 2)],
    "%": [(8, 4, 1_000), (20, 10, 200)],
}  # fmt: skip
"""Digits of both operands, and how many problems of them, by operation."""
NINES = {"*": (20, 20, 1_000), "//": (20, 10, 200), "%": (20, 10, 200)}
"""The same, of problems of which half are rich in nines."""


def measure(recipe: str, seed: int, kept: str | None) -> dict[str, Any]:
    """Train and score one seed."""
    with tempfile.TemporaryDirectory() as directory:
        path = Path(kept or directory) / f"{recipe}-{seed}"
        if (path / "run.json").exists():
            abacist.resume(path)
        else:
            abacist.train(recipe, out=path, seed=seed, threads=1)
        run = abacist.load(path)
        record = json.loads(run.directory.run_json.read_text())
        return {
            "seed": seed,
            "seconds": round(run.directory.read_metrics()[-1]["seconds"], 1),
            "steps": run.recipe.training.num_steps,
            "threads": record["threads"],
            "parameters": run.model.num_parameters,
            "rows": rows(run, seed),
            "certificate": proof(run),
            "circumstances": {k: record[k] for k in ("torch", "python", "machine", "cores")},
        }


def proof(run: Run) -> dict[str, Any]:
    """What checking every neighbourhood gave."""
    outcome = run.prove()
    return {
        "certified": outcome.certified,
        "reason": outcome.reason,
        "neighbourhoods": outcome.neighbourhoods,
        "wrong": outcome.wrong,
        "smallest_margin": outcome.smallest_margin and round(outcome.smallest_margin, 2),
        "rounding_error": outcome.rounding_error,
        "locality_error": outcome.locality_error,
        "seconds": round(outcome.seconds, 1),
    }


def rows(run: Run, seed: int) -> list[dict[str, Any]]:
    """Exact match on test problems: of the trained lengths all together, then of longer ones."""
    trained = run.recipe.task
    assert isinstance(trained, ArithmeticConfig)
    uniform = build_task(replace(trained, sampling="lengths"))
    name = f"≤ {trained.max_digits}, all pairs"
    generator = seeds.generator(seed, "long", name)
    found = [row(run, name, uniform, uniform.draw_shapes(10_000, generator), generator)]
    for operation in trained.operations:
        lengths = [(*lengths, uniform, "") for lengths in LENGTHS[operation]]
        nines = build_task(replace(trained, sampling="nines"))
        lengths.append((*NINES[operation], nines, ", half of them rich in nines"))
        for first, second, count, task, remark in lengths:
            shapes = Shapes.of(torch.tensor([[first, second]]).expand(count, 2), operation)
            name = f"{first} {operation} {second}{remark}"
            found.append(row(run, name, task, shapes, seeds.generator(seed, "long", name)))
            print(f"seed {seed}: {name}: {found[-1]['errors']} of {count:,} wrong", flush=True)
    return found


def row(
    run: Run, name: str, task: Task, shapes: Shapes, generator: torch.Generator
) -> dict[str, Any]:
    """Exact match on one problem of the test split for every shape."""
    problems = draw_from_split(task, shapes, "test", run.recipe.split, generator)
    verdicts = exact_match(run.model, run.task, run.format, problems)
    proportion = verdicts.proportion
    return {
        "name": name,
        "errors": proportion.errors,
        "n": proportion.n,
        "interval": proportion.interval,
        "smallest_margin": round(float(verdicts.margins.min()), 2),
    }


def table(record: dict[str, Any]) -> str:
    """The record as a Markdown table, one row for each pair of lengths."""
    seeds = record["seeds"]
    headings = [
        "digits of both operands",
        *(f"wrong, seed {seed['seed']}" for seed in seeds),
        "n",
        "95 % interval",
    ]
    lines = ["| " + " | ".join(headings) + " |", "|" + "---|" * len(headings)]
    for number, first in enumerate(seeds[0]["rows"]):
        rows = [seed["rows"][number] for seed in seeds]
        worst = max(rows, key=lambda r: r["errors"])
        low, high = worst["interval"]
        cells = [first["name"], *(r["errors"] for r in rows), f"{first['n']:,}"]
        cells.append(f"{100 * low:.2f} – {100 * high:.2f} % right")
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    proofs = [seed["certificate"] for seed in seeds if "certificate" in seed]
    lines += certificate_row(proofs)
    where = seeds[0]["circumstances"]
    seconds = ", ".join(f"{seed['seconds']:,.0f}" for seed in seeds)
    lines += [
        "",
        f"`{record['recipe']}`: {seeds[0]['parameters']:,} parameters, {seeds[0]['steps']:,} steps in "
        f"{seconds} s on one thread of a busy machine ({where['machine']}, {where['cores']} cores, "
        f"torch {where['torch']}, Python {where['python']}).",
    ]
    if proofs and proofs[0]["neighbourhoods"]:
        certified = sum(proof["certified"] for proof in proofs)
        slowest = max(proof["seconds"] for proof in proofs)
        lines[-1] += (
            f" Certified for every length in {certified} of {len(proofs)} seeds, by "
            f"{proofs[0]['neighbourhoods']:,} neighbourhoods each, checked in at most {slowest:.0f} s."
        )
    return "\n".join(lines)


def certificate_row(proofs: list[dict[str, Any]]) -> list[str]:
    """The last row of the table: what was proved of each seed; none where nothing could be listed."""
    if not proofs or not proofs[0]["neighbourhoods"]:
        return []
    cells = [
        f"{'certified' if proof['certified'] else '**not certified**'}, {proof['wrong']} wrong, "
        f"margin {proof['smallest_margin']}"
        for proof in proofs
    ]
    return [
        "| every length | "
        + " | ".join(cells)
        + f" | {proofs[0]['neighbourhoods']:,} neighbourhoods | |"
    ]


def with_tables(readme: str) -> str:
    """The README with every marked table made anew from its committed record."""

    def fill(match: re.Match[str]) -> str:
        record = json.loads((ROOT / match[1]).read_text())
        return f"<!-- lengths of {match[1]} -->\n{table(record)}\n<!-- end -->"

    pattern = r"<!-- lengths of (results/\S+\.json) -->\n.*?<!-- end -->"
    return re.sub(pattern, fill, readme, flags=re.DOTALL)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--recipe", default="multiply", choices=["multiply", "divide"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", help="keep the runs here")
    parser.add_argument("--out", help="write the record here, as JSON, after every seed")
    parser.add_argument("--resume", action="store_true", help="keep the seeds that --out holds")
    parser.add_argument("--readme", action="store_true", help="only bring the README up to date")
    arguments = parser.parse_args()
    if arguments.readme:
        readme = ROOT / "README.md"
        readme.write_text(with_tables(readme.read_text()))
        return
    measured = []
    if arguments.resume and Path(arguments.out).exists():
        measured = json.loads(Path(arguments.out).read_text())["seeds"]
    spawn = multiprocessing.get_context("spawn")
    for seed in range(len(measured), arguments.seeds):
        with spawn.Pool(1) as pool:
            measured.append(pool.apply(measure, (arguments.recipe, seed, arguments.runs)))
        record = {"recipe": arguments.recipe, "seeds": measured}
        if arguments.out:
            Path(arguments.out).write_text(json.dumps(record, indent=1) + "\n")
    print(table(record))


if __name__ == "__main__":
    main()
