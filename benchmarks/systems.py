"""The time that published systems and ours take to 99 % and to 100 %, in one run on one machine.

    python benchmarks/systems.py three-digit [--out results/systems-three-digit.json]
    python benchmarks/systems.py spaced

`three-digit` trains ours and the faithful `three-digit-grokking` in full, on one thread each, and
scores all 1,000,000 sums of both. `spaced` trains ours in full and times 100 steps of `spaced-gpt2`;
the record extrapolates the time of all its steps from them, and says so. The times are those at
which exact match on validation first reached 99 % and 100 %, validation included.
"""

import argparse
import json
import multiprocessing
import tempfile
from pathlib import Path
from typing import Any

import abacist
from abacist import recipes
from abacist.runs.circumstances import circumstances

PAIRS = {"three-digit": "three-digit-grokking", "spaced": "spaced-gpt2"}
WHOLE = ("three-digit", "three-digit-grokking")
"""Recipes that are scored on every problem of their task."""
TIMED_STEPS = 100


def trained(recipe: str, steps: int | None) -> dict[str, Any]:
    """Train in full or for `steps` steps, and score."""
    settings: dict[str, object] = {}
    if steps is not None:
        settings = {"training.num_steps": steps, "training.validate_every": steps}
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "run"
        run = abacist.train(recipe, out=path, seed=0, settings=settings)
        curve = run.directory.read_metrics()
        measured: dict[str, Any] = {
            "recipe": recipe,
            "parameters": run.model.num_parameters,
            "steps": curve[-1]["step"],
            "seconds": curve[-1]["seconds"],
            "final_loss": curve[-1]["loss"],
            "curve": [
                [c["step"], c["loss"], c["exact_match"]["value"], c["seconds"]] for c in curve
            ],
        }
        for level in (0.99, 1.0):
            reached = [c for c in curve if (c["exact_match"]["value"] or 0) >= level]
            name = f"to_{level:.0%}"
            measured[name] = (reached and {k: reached[0][k] for k in ("step", "seconds")}) or None
        if recipe in WHOLE:
            measured["errors_of_all"] = run.score(["exhaustive"]).errors
    return measured


def trained_alone(recipe: str, steps: int | None = None) -> dict[str, Any]:
    """Train and score in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        measured: dict[str, Any] = pool.apply(trained, (recipe, steps))
    print({k: v for k, v in measured.items() if k != "curve"}, flush=True)
    return measured


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", choices=list(PAIRS))
    parser.add_argument("--out", help="write the record here, as JSON")
    arguments = parser.parse_args()
    ours, faithful = arguments.system, PAIRS[arguments.system]
    record: dict[str, Any] = {"ours": trained_alone(ours)}
    if arguments.system == "three-digit":
        record["faithful"] = trained_alone(faithful)
        for name in ("to_99%", "to_100%"):
            both = record["faithful"][name], record["ours"][name]
            record[f"ratio_{name}"] = (
                all(both) and both[0]["seconds"] / both[1]["seconds"]
            ) or None
    else:
        timed = trained_alone(faithful, TIMED_STEPS)
        steps = recipes.find(faithful).training.num_steps
        record["faithful"] = timed | {
            "extrapolated_seconds": timed["seconds"] / TIMED_STEPS * steps,
            "extrapolated_from_steps": TIMED_STEPS,
            "of_steps": steps,
        }
    record["circumstances"] = circumstances()
    print({k: v for k, v in record.items() if k.startswith("ratio")})
    if arguments.out:
        Path(arguments.out).write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
