"""Train and certify the column tasks of `examples/`, seed by seed.

    python benchmarks/column_tasks.py --seeds 3 --minutes 60
    python benchmarks/column_tasks.py add-binary

writes `results/column-tasks.json` and the table in `docs/extending.md` after every seed, and goes on
where it stopped when it is called again; with names, for these tasks only. Seeds of an example whose
settings have changed since are trained again. The seconds of training are processor seconds of one
thread.
"""

import argparse
import json
import re
import tempfile
import time
from pathlib import Path
from typing import Any

import abacist
from abacist import files, recipes
from abacist.formats.config import FORMATS
from abacist.recipes.recipe import Recipe
from abacist.runs.circumstances import circumstances
from abacist.tasks.config import ColumnTaskConfig

ROOT = Path(__file__).parents[1]
RESULT = ROOT / "results" / "column-tasks.json"
DOCUMENT = ROOT / "docs" / "extending.md"


def column_tasks() -> dict[str, Path]:
    """Return the name of every column task of an example and its file."""
    named = {}
    for file in sorted((ROOT / "examples").glob("*.py")):
        match = re.search(r'@column_task\(\s*"([^"]+)"', file.read_text())
        if match:
            named[match[1]] = file
    return named


def settings(recipe: Recipe) -> dict[str, object]:
    """Return the settings of a recipe in which column tasks differ, by name."""
    task, training, model = recipe.task, recipe.training, recipe.model
    assert isinstance(task, ColumnTaskConfig)
    return {
        "task.max_digits": task.max_digits,
        "model.width": model.width,
        "model.mlp_width": model.mlp_width,
        "training.num_steps": training.num_steps,
        "training.batch_size": training.batch_size,
        "training.learning_rate": training.learning_rate,
        "training.ema_decay": training.ema_decay,
    }


def entry(file: Path, recipe: Recipe) -> dict[str, Any]:
    """Return what the record states about an example, without its seeds."""
    return {
        "file": f"examples/{file.name}",
        "lines": len(file.read_text().splitlines()),
        "notation": next(name for name, format in FORMATS.items() if format == recipe.format),
        "settings": settings(recipe),
    }


def measure(name: str, seed: int) -> dict[str, object]:
    """Train and check one seed of one task."""
    with tempfile.TemporaryDirectory() as directory:
        begin = time.process_time()
        run = abacist.train(name, out=Path(directory) / "run", seed=seed)
        seconds = time.process_time() - begin
        certificate = run.prove()
    return {
        "seed": seed,
        "training_seconds": round(seconds, 1),
        "certified": certificate.certified,
        "neighbourhoods": certificate.neighbourhoods,
        "wrong": certificate.wrong,
        "smallest_margin": certificate.smallest_margin,
        "proof_seconds": round(certificate.seconds, 1),
        "reason": certificate.reason,
        **circumstances(),
    }


def table(record: dict[str, Any]) -> str:
    """Return the results in Markdown, a row for each task."""
    lines = [
        "| task | lines | notation | certified | training | neighbourhoods | smallest margin |",
        "|---|---:|---|---|---:|---:|---:|",
    ]
    for name, example in sorted(record["tasks"].items()):
        seeds = example["seeds"]
        certified = sum(seed["certified"] for seed in seeds)
        cells = [
            f"[{name}](../{example['file']})",
            str(example["lines"]),
            f"`{example['notation']}`",
            f"{certified} of {len(seeds)} seeds",
            f"{max(seed['training_seconds'] for seed in seeds):.0f} s",
            f"{max(seed['neighbourhoods'] for seed in seeds):,}",
            f"{min(seed['smallest_margin'] for seed in seeds):.2f}",
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def with_table(document: str, record: dict[str, Any]) -> str:
    """Return the document with the table of results generated from the record."""
    return re.sub(
        r"<!-- table -->\n.*?<!-- end -->",
        lambda match: f"<!-- table -->\n{table(record)}\n<!-- end -->",
        document,
        flags=re.DOTALL,
    )


def main() -> None:
    """Train what the record lacks until the time is up."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tasks", nargs="*", help="names of tasks (default: all of examples/)")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=60.0)
    arguments = parser.parse_args()
    end = time.monotonic() + 60 * arguments.minutes
    known = column_tasks()
    if unknown := sorted({*arguments.tasks} - {*known}):
        parser.error(
            f"no example has a column task {unknown[0]!r}. Type one of {', '.join(known)}."
        )
    named = {name: known[name] for name in arguments.tasks or known}
    record = json.loads(RESULT.read_text()) if RESULT.exists() else {}
    record = {"command": "python benchmarks/column_tasks.py", **record}
    tasks = record.setdefault("tasks", {})
    for seed in range(arguments.seeds):
        for name, file in named.items():
            abacist.load_extension(str(file))
            present = entry(file, recipes.find(name))
            earlier = tasks.get(name, {})
            is_same = all(earlier.get(key) == present[key] for key in ("notation", "settings"))
            seeds = earlier["seeds"] if is_same else []
            if any(outcome["seed"] == seed for outcome in seeds):
                continue
            if time.monotonic() > end:
                return
            tasks[name] = {**present, "seeds": [*seeds, measure(name, seed)]}
            print(name, tasks[name]["seeds"][-1], flush=True)
            files.write_json(RESULT, record)
            text = with_table(DOCUMENT.read_text(), record)
            files.write_bytes(DOCUMENT, text.encode())


if __name__ == "__main__":
    main()
